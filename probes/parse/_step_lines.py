"""The lines in which trainers tell how a step went: which one, how long it took, what the loss and the gradients were.

Read in the sources and pages of the projects: Megatron-LM (megatron/training/training.py ``training_log``), its forks for ROCm and
Ascend, DeepSpeed (utils/timer.py), Hugging Face Trainer (dictionaries, and tqdm's bars), PyTorch Lightning, Keras, NeMo
(``train_step_timing in s``), torchtitan (components/metrics.py), Composer (ConsoleLogger), nanoGPT, fairseq, MMEngine.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple, TypeAlias

from knowledge.lazy import lazy
from knowledge.record import dataclass

MAX_TEXT = 3000  # characters looked at

# RE2, and nothing else: what a line has to hold to be one of a step. A word for the step with its number, and a figure of it behind that:
#  iteration      100/  500000 | consumed samples:       102400 | elapsed time per iteration (ms): 4100.3 | ... lm loss: 2.101000E+00 |
#  [timer.py:260:stop] epoch=0/micro_step=199/global_step=199, RunningAvgSamplesPerSec=58.7, CurrSamplesPerSec=61.3
#  [titan] 2025-10-30 14:32:58,897 - root - INFO - step:  1  loss:  8.1661  grad_norm:  3.6855  memory:  2.47GiB(3.12%)  tps: 3,502
#  Training epoch 0, iteration 1/249 | lr: 3.9e-06 | global_step: 1 | reduced_train_loss: 1.653 | train_step_timing in s: 2.505
#  {'loss': 2.1, 'grad_norm': 0.4, 'learning_rate': 1e-05, 'epoch': 0.12}      {"loss": 2.1, "step": 120}
#  Epoch 3:  40%|####      | 400/1000 [13:40<20:30,  0.49it/s, v_num=1, train_loss=2.1]
STEPS = (
    r"(?i)\b(?:global_?|train_?|micro_?)?(?:step|iter|iteration|batch|update|epoch)s?\b['\"]?[ :=#\[(]{0,12}\d.*"
    r"(?:\b(?:\w+[ _])?loss|grad[ _]norm|elapsed time per|(?:step|iter|iteration|batch)[ _]?time|train_step_timing|SamplesPerSec"
    r"|\btime(?: per step| in s)?['\"]?[ :=]{1,4}\d|\bdt['\"]?[ :=]{1,4}\d|tflops?\b|\btps\b|tok(?:en)?s?/s|samples?/s|\b[\d.]+ ?(?:m?s/(?:it|step|iter)|(?:it|step|iter)s?/s))",
    # Epoch(train)  [1][100/7330]  lr: 2.0e-02  time: 0.3100  data_time: 0.0100  loss: 1.2       Epoch: [0][ 100/5005]  Time  0.213 ( 0.413)
    r"(?i)\bepoch(?:\(train\))?:? {1,4}\[ ?\d+\]\[ {0,8}\d.*\b(?:time|loss)\b",
    # 2024-01-01 10:00:00 | INFO | train_inner | epoch 001:    100 / 5000 loss=9.1, ppl=600, wps=31000, ups=1.2, num_updates=100
    r"\btrain_inner\b.*\bups=",
    # rank 5: step 100 forward 1.31 s
    r"(?i)\b(?:step|iter|iteration)s?\b[ :=#]{1,4}\d.*\b(?:forward|backward|compute|fwd|bwd|fwd_bwd|forward_backward)\b.*\d ?m?s\b",
    r"['\"](?:train_)?loss['\"]: ?-?(?:[\dnNi]).*['\"](?:learning_rate|epoch|step)['\"]: ?\d",
    # 100/100 [==============================] - 61s 610ms/step - loss: 0.4210 (Keras)
    r"\b\d+/\d+ (?:\[[=>.]+\]|\S+) .*\d ?m?s/step\b",
    r"\d+%\|[^|]*\| ?\d+/\d+ \[[\d:]+<[\d:?]+, {0,4}[\d.]+ ?(?:s/it|it/s)",
)


class _Hinted(NamedTuple):
    """A pattern, and a word in lower case that stands in whatever it matches: most lines have few of those words."""

    hint: str
    pattern: re.Pattern[str]

    def search(self, text: str) -> re.Match[str] | None:
        """The first match."""
        return self.pattern.search(text) if self.hint in text.lower() else None


_Words: TypeAlias = _Hinted | re.Pattern[str]


def _hinted(hint: str, pattern: str) -> _Hinted:
    return _Hinted(hint, lazy(pattern))


_NUMBER = r"(-?(?:\d[\d,]{0,14}(?:\.\d{0,18})?(?:[eE][-+]?\d{1,4})?|nan|inf))"
_PLAIN = r"(\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,8})?)"
_STEP = lazy(
    r"(?i)\bepoch(?:\(train\))?:? {1,4}\[ ?\d{1,6}\]\[ {0,8}(\d{1,12})|\bnum_updates=(\d{1,12})|\bglobal_?step['\"]?[ :=]{1,12}(\d{1,12})|\b(?:iteration|iter|step|update|batch)s?\b['\"]?[ :=#\[(]{0,12}(\d{1,12})"
)
_EPOCH = _hinted("epoch", r"(?i)\bepoch['\"]?[ :=#\[(]{1,6}(\d{1,6}(?:\.\d{1,6})?)")
# 40%|####      | 400/1000 [13:40<20:30,  2.05s/it]
_BAR = _hinted(
    "%|",
    r"([^%|]{0,80}?)\b(\d{1,3})%\|[^|]{0,300}\| ?(\d{1,9})/(\d{1,9}) \[([\d:]{2,12})<[^\]]{0,40}?, {0,4}([\d.]{1,12}) ?(s/it|it/s)",
)
_OTHER_BARS = lazy(
    r"(?i)load|download|fetch|map|filter|token|captur|eval|valid|predict|test|generat|sav|shard|compil|upload"
)
_TIMED = _hinted("train_step_timing", rf"(?i)train_step_timing in s['\"]?[ :=]{{1,4}}{_NUMBER}")
_SECONDS: tuple[tuple[_Words, float], ...] = (
    (_hinted("seconds", rf"(?i)\bstep: {{1,4}}\d{{1,12}}, seconds: {_NUMBER}"), 1.0),
    (_hinted("elapsed time", rf"(?i)elapsed time per iteration \(ms\): {{0,4}}{_NUMBER}"), 1e-3),
    (_TIMED, 1.0),
    (_hinted("time", rf"(?i)\b(?:step|iter|iteration|batch)[ _]?time(?: per step)?['\"]?(?: ?\(ms\)|_ms)['\"]?[ :=|]{{1,4}}{_NUMBER}"), 1e-3),
    (_hinted("time", rf"(?i)\b(?:(?:step|iter|iteration|batch)[ _]?time|time per (?:step|iteration)|time/step)(?: ?\((?:s|sec)\)|_s)?['\"]?[ :=|]{{1,4}}{_NUMBER} ?ms\b"), 1e-3),
    (_hinted("time", rf"(?i)\b(?:(?:step|iter|iteration|batch)[ _]?time|time per (?:step|iteration)|time/step)(?: ?\((?:s|sec)\)|_s)?['\"]?[ :=|]{{1,4}}{_NUMBER}"), 1.0),
    (_hinted("data", rf"(?i)\btime['\"]?[ :=]{{1,4}}{_NUMBER}(?=.{{0,40}}\bdata)"), 1.0),
    (lazy(rf"(?i)\b(?:fwd_bwd|forward_backward|forward|compute|fwd|backward|bwd)(?:[ _]time)?['\"]?[ :=|]{{1,4}}{_NUMBER} ?ms\b"), 1e-3),
    (lazy(rf"(?i)\b(?:fwd_bwd|forward_backward|forward|compute|fwd|backward|bwd)(?:[ _]time)?['\"]?[ :=|]{{1,4}}{_NUMBER} ?s\b"), 1.0),
    (_hinted("ms/", r"\b(\d[\d.]{0,12}) ?ms/(?:it|step|iter)\b"), 1e-3),
    (_hinted("s/", r"\b(\d[\d.]{0,12}) ?s/(?:it|step|iter|iteration|batch)\b"), 1.0),
)  # fmt: skip
# Words that some use for the time of a step, others for the time since the start.
_TIMES: tuple[tuple[_Words, float], ...] = (
    (lazy(rf"(?i)\b(?:time|dt|took)['\"]?[ :=|]{{1,4}}{_NUMBER} ?ms\b"), 1e-3),
    (lazy(rf"(?i)\b(?:time|dt|took)['\"]?[ :=|]{{1,4}}{_NUMBER} ?(?:s|sec|seconds)\b"), 1.0),
)  # fmt: skip
# What a step waited for its next batch: data_time 0.010 s (MMEngine), Data  0.011 ( 0.012) (PyTorch's examples), batch-generator (Megatron)
_DATA_WORDS = r"(?:data(?:[ _-]?(?:load(?:ing|er)?|wait(?:ing)?|fetch(?:ing)?))?(?:[ _]?time)?|data_t|batch-generator)"
_DATA: tuple[tuple[_Words, float], ...] = (
    (_hinted("data", rf"(?i)\b{_DATA_WORDS}(?: ?\(ms\)|_ms)['\"]?[ :=|]{{1,6}}{_NUMBER}"), 1e-3),
    (_hinted("data", rf"(?i)\b{_DATA_WORDS}['\"]?[ :=|]{{1,6}}{_NUMBER} ?ms\b"), 1e-3),
    (_hinted("data", rf"(?i)\b{_DATA_WORDS}(?: ?\((?:s|sec)\)|_s)?['\"]?[ :=|]{{1,6}}{_NUMBER}(?: ?s\b|(?= ?[(|,\s]|$))"), 1.0),
)  # fmt: skip
# A number before the unit may be another one's value: "loss 2.240 tok/s/gpu 11836", "loss 2.27 it/s 1.18".
_EACH = r"[/_ ](?:per[/_ ])?(?:gpu|device|rank|chip|node)"
# What goes up when steps get faster, and its unit
_RATES: tuple[tuple[_Words, str], ...] = (
    (_hinted("/s", rf"(?i)(?<=[a-z])['\"]?[ :=]{{1,4}}\d[\d.]{{0,12}} (?:it|iter|step)s?/s['\"]?[ :=]{{1,4}}{_NUMBER}"), "it/s"),
    (_hinted("/s", r"\b(\d[\d.]{0,12}) ?(?:it|iter|step)s?/s\b"), "it/s"),
    (_hinted("ups=", rf"\bups={_NUMBER}"), "it/s"),
    (_hinted("currsamplespersec", rf"CurrSamplesPerSec={_NUMBER}"), "samples/s"),
    (_hinted("samples", rf"(?i)samples per second['\"]?[ :=]{{1,4}}{_NUMBER}|\b(?:throughput/)?samples_per_sec(?:ond)?['\"]?[ :=]{{1,4}}{_NUMBER}"), "samples/s"),
    (_hinted("sample", rf"\b{_PLAIN} ?samples?/s(?:ec)?\b"), "samples/s"),
    (lazy(rf"(?i)\b(?:tps|tok(?:en)?s?[/_ ](?:s|sec|second)(?:{_EACH})?|tokens[_ ]per[_ ]sec(?:ond)?(?:{_EACH})?)['\"]?[ :=]{{1,4}}{_NUMBER}"), "tokens/s"),
    (_hinted("tok", rf"(?i)\b{_PLAIN} ?tok(?:en)?s?/s(?:ec)?\b(?!{_EACH}?['\"]?[ :=]{{1,4}}\d)"), "tokens/s"),
    (_hinted("op", rf"(?i)\btfl?op/?s?(?:/s)?(?:/gpu)?\)?['\"]?[ :=]{{1,4}}{_NUMBER}"), "TFLOP/s"),
)  # fmt: skip
_LOSS = _hinted(
    "loss",
    rf"(?i)(?<!val_)(?<!val )(?<!eval_)(?<!valid )\b(?:lm |train |train_|train/|reduced_train_|loss/train/)?(?:total_)?loss(?:/train(?:/total)?)?['\"]?[ :=|]{{1,5}}{_NUMBER}",
)
_GRADIENT = _hinted("norm", rf"(?i)\bgrad(?:ient)?[ _]?norm['\"]?[ :=|]{{1,5}}{_NUMBER}")
_TFLOPS = lazy(rf"(?i)\btfl?op/?s?(?:/s)?(?:/gpu)?\)?['\"]?[ :=]{{1,4}}{_NUMBER}")
_LOAD = tuple(
    _hinted(hint, rf"(?i){word}['\"]?[ :=]{{1,6}}{_NUMBER}")
    for hint, word in (
        ("batch", r"gl(?:ob|bo)al[ _]batch[ _]size"),
        ("seqlen", r"actual seqlen"),
        ("seq", r"\bseq(?:uence)?[ _]len(?:gth)?"),
    )
)
_KERAS = lazy(r"\b\d{1,9}/\d{1,9} (?:\[[=>.]{1,80}\]|━{1,80}) .{0,80}\d ?m?s/step\b")
_VALIDATION = lazy(r"(?i)\W{0,20}(?:validation|valid|val|eval|evaluation|test|testing)\b")
_SKIPPED = _hinted("skipped", r"(?i)number of skipped iterations: {0,6}(\d{1,9})\b")
_RANK = _hinted("rank", r"(?i)\brank[ =:]{1,2}(\d{1,6})\b")


@dataclass(frozen=True, slots=True)
class Step:
    """What one line tells; None for what it does not."""

    number: int | None
    seconds: float | None
    rate: float | None
    unit: str  # of the rate
    loss: float | None
    gradient: float | None
    load: tuple[float, ...]  # what a step has to do, as far as the line says: batch, length of sequences
    rank: int | None
    kind: str  # lines that look alike
    epoch: float | None = None
    may_add_up: bool = False  # `seconds` may be those since the start
    data: float | None = None  # s of it that were spent waiting for the next batch
    skipped: int = 0  # steps since the line before that were not taken: their gradients overflowed


def read(text: str) -> Step | None:
    """The step that a line tells of; None where it tells of none."""
    text = text[:MAX_TEXT]
    if "num_scheduled_requests" in text:  # a step of a server (TensorRT-LLM), of which each has its own load
        return None
    if bar := _BAR.search(text):
        return _of_bar(bar, text)
    step, epoch = _STEP.search(text), _EPOCH.search(text)
    seconds, may_add_up = _first(_SECONDS, text), False
    if seconds is None:
        seconds, may_add_up = _first(_TIMES, text), True
    rate, unit = next(
        ((n, unit) for words, unit in _RATES if (n := _value(words.search(text))) is not None), (None, "")
    )
    loss, gradient = (_value(words.search(text), odd=True) for words in (_LOSS, _GRADIENT))
    if (step is None and epoch is None and not _KERAS.search(text)) or (
        seconds is None and rate is None and loss is None and gradient is None
    ):
        return None
    load = tuple(_value(words.search(text)) or 0.0 for words in _LOAD)
    rank = _RANK.search(text)
    number = int(next(g for g in step.groups() if g)) if step else None
    return Step(
        number, _positive(seconds), _positive(rate), unit, loss, gradient, load, int(rank[1]) if rank else None,
        "validation" if _VALIDATION.match(text) else "",
        float(epoch[1]) if epoch else None, may_add_up, _first(_DATA, text), round(_value(_SKIPPED.search(text)) or 0),
    )  # fmt: skip


def _first(words: tuple[tuple[_Words, float], ...], text: str) -> float | None:
    return next((n * scale for word, scale in words if (n := _value(word.search(text))) is not None), None)


def _of_bar(bar: re.Match[str], text: str) -> Step | None:
    """A bar of tqdm, of the training: not of what is loaded, mapped or evaluated."""
    if _OTHER_BARS.search(bar[1]):
        return None
    value = float(bar[6]) if bar[6].count(".") < 2 and bar[6].strip(".") else 0.0
    seconds = value if bar[7] == "s/it" else (1 / value if value else None)
    timed = _value(_TIMED.search(text))
    loss = _value(_LOSS.search(text), odd=True)
    return Step(int(bar[3]), _positive(timed or seconds), None, "", loss, None, (), None, f"bar of {bar[4]}")


def _value(found: re.Match[str] | None, odd: bool = False) -> float | None:
    """The number that was found; NaN and infinity only where they are wanted."""
    text = next((g for g in found.groups() if g), None) if found else None
    if text is None:
        return None
    try:
        value = float(text.replace(",", "").rstrip("."))
    except ValueError:
        return None
    if value < 0 and not odd:
        return None
    return value if odd or math.isfinite(value) else None


def _positive(value: float | None) -> float | None:
    return value if value is not None and 0 < value < 1e9 else None
