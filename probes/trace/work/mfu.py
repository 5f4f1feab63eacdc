"""Model FLOP utilisation, from numbers that no trace holds: parameters and tokens."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.record import dataclass
from probes.trace.model import Window
from probes.trace.work.chips import Chip

_FORMATS = ("fp8", "bf16", "fp16", "tf32", "fp32")


@dataclass(frozen=True, slots=True)
class Model:
    """What a user knows of the model and its pace; tokens are those of `gpus` GPUs together."""

    parameters: float | None = None
    tokens_per_second: float | None = None
    tokens: float | None = None  # of one iteration; of the window, when it is no union of iterations
    layers: int | None = None
    hidden: int | None = None  # heads times the size of one
    sequence: int | None = None
    gpus: int = 1
    training: bool = True


@dataclass(frozen=True, slots=True)
class Utilisation:
    """MFU as a fraction, with the formula filled in."""

    share: float | None = None
    formula: str = ""
    notes: tuple[Text, ...] = ()


def utilisation(model: Model, used: Chip, dtype: str, window: Window) -> Utilisation:
    """Tokens per second against those that the peak would allow: P / (6 N + 12 L H Q T).

    PaLM (Chowdhery et al. 2022), appendix B: N parameters, L layers, H heads of size Q, T positions. For inference a
    third of it, 2 N + 4 L H Q T. Recomputed activations are no model FLOP: HFU would count them (8 N for full
    recomputation). The peak is that of `dtype`, the format most of the products' time is spent in. No share unless
    parameters and tokens were given and the GPU is known.
    """
    pace, length = _pace(model, window), _attention(model)
    if not model.parameters or pace is None:
        return Utilisation()
    peak = used.peak(dtype if dtype in _FORMATS else "bf16")
    if not peak:
        return Utilisation(notes=(Text("no MFU: the peak of this GPU is not known (name it with --gpu)",
                                       "无法计算 MFU：不知道该 GPU 的峰值（用 --gpu 指定）"),))  # fmt: skip
    factor = 3 if model.training else 1
    per_token = factor * (2 * model.parameters + 4 * (length or 0))
    share = pace * per_token / (peak * 1e12 * model.gpus)
    formula = f"{pace:.6g} tokens/s x ({factor * 2} N"
    formula += f" + {factor * 4} L H Q T" if length else ""
    formula += f" = {per_token:.4g} FLOP) / ({model.gpus} x {peak:g} TFLOP/s {dtype})"
    if share > 1:
        return Utilisation(None, formula, (Text(
            f"no MFU: {share:.0%} of the peak is impossible; check parameters, tokens and the number of GPUs",
            f"无法给出 MFU：达到峰值的 {share:.0%} 是不可能的；请检查参数量、token 数和 GPU 数"),))  # fmt: skip
    return Utilisation(share, formula, () if length else (Text(
        "MFU counts no attention (give layers, hidden size and sequence length); recomputed activations count in HFU only",
        "MFU 未计入注意力（可给出层数、隐藏维度和序列长度）；重计算的激活只计入 HFU"),))  # fmt: skip


def _pace(model: Model, window: Window) -> float | None:
    if model.tokens_per_second:
        return model.tokens_per_second
    span = window.end_ns - window.start_ns
    if not model.tokens or span <= 0:
        return None
    return model.tokens * (window.iterations or 1) * 1e9 / span


def _attention(model: Model) -> float | None:
    if model.layers and model.hidden and model.sequence:
        return float(model.layers) * model.hidden * model.sequence
    return None
