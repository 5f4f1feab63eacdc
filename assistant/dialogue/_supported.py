"""Whether a GPU model has a feature, yes or no first.

Number formats of the tensor cores by compute capability: CUDA C++ Programming Guide, "Compute Capabilities"; MIG: the list of supported
GPUs in NVIDIA's MIG User Guide; FlashAttention: its README (2: Ampere and newer, 3: Hopper).
"""

from __future__ import annotations

from dataclasses import replace

from assistant.intent.supported import PEAKS, Feature, Supported
from assistant.render.labels import listed
from assistant.render.sheet import Paragraph
from assistant.reply import Reply
from knowledge.gpus import GpuSpec
from knowledge.language import Text

# The compute capability from which on tensor cores take a format, and the architecture that came with it.
_FORMATS = {
    Feature.BF16: ((8, 0), "Ampere"),
    Feature.TF32: ((8, 0), "Ampere"),
    Feature.FP8: ((8, 9), "Ada"),
    Feature.FP4: ((10, 0), "Blackwell"),
}
_BESIDE = {
    Feature.BF16: Text("Take FP16 with loss scaling.", "改用 FP16 加 loss scaling。"),
    Feature.TF32: Text("Matrix products in FP32 run without tensor cores.", "FP32 矩阵乘不走 tensor core。"),
    Feature.FP8: Text(
        "Weights stored in FP8 still save memory where the engine unpacks them to 16 bits (vLLM: Marlin), without the speed.",
        "若推理引擎能解包到 16 位计算（vLLM 的 Marlin），FP8 权重仍可省显存，但不会更快。",
    ),
    Feature.FP4: Text("Take FP8 from Ada and Hopper on, or INT4 weights.", "Ada、Hopper 起可用 FP8，或用 INT4 权重。"),
}
_MIG = ((8, 0), (9, 0), (10, 0), (10, 3))  # A100 and A30, Hopper, the data-centre Blackwells
_MIG_CARDS = ("RTX PRO 6000",)  # of compute capability 12.0


def answer(asked: Supported, sheet: Reply) -> Reply:
    """Yes or no in the first line, ahead of the data `sheet` of the usual model of that name."""
    head = _head(asked).in_(sheet.lang)
    return replace(sheet, headline=head, parts=(Paragraph(sheet.headline), *sheet.parts))


def _head(asked: Supported) -> Text:
    of, feature = asked.of[0], asked.feature
    name, sm = of.family, f"sm {of.compute_capability}"
    if feature is Feature.CAPABILITY:
        return Text(
            f"{name}: compute capability {of.compute_capability} (sm_{(of.compute_capability or '').replace('.', '')}, {of.architecture.capitalize()}).",
            f"{name} 的计算能力为 {of.compute_capability}（sm_{(of.compute_capability or '').replace('.', '')}，{of.architecture.capitalize()}）。",
        )
    if feature in (Feature.FLASH_2, Feature.FLASH_3):
        return _flash(feature, of)
    if feature is Feature.NVLINK:
        return _nvlink(asked)
    if feature is Feature.MIG:
        return _mig(of)
    first, since = _FORMATS[feature]
    peak = of.peak(PEAKS[feature])
    if not of.compute_capability:  # AMD: what has a peak is there
        return Text(
            f"Yes, {name} takes {feature}: {peak:g} TFLOP/s dense.",
            f"支持：{name} 有 {feature}，稠密 {peak:g} TFLOP/s。",
        )
    if _capability(of) >= first:
        rate = Text(f": {peak:g} TFLOP/s dense", f"：稠密 {peak:g} TFLOP/s") if peak else Text("", "")
        return Text(
            f"Yes, the tensor cores of {name} ({sm}) take {feature}{rate.en}.",
            f"支持：{name}（{sm}）的 tensor core 有 {feature}{rate.in_('zh')}。",
        )
    least = ".".join(map(str, first))
    beside = _BESIDE[feature]
    return Text(
        f"No, {name} ({sm}) has no {feature}: tensor cores take it from {since} (sm {least}) on. {beside.en}",
        f"不支持：{name}（{sm}）没有 {feature}，{since}（sm {least}）起才有。{beside.in_('zh')}",
    )


def _capability(of: GpuSpec) -> tuple[int, int]:
    major, _, minor = (of.compute_capability or "0.0").partition(".")
    return int(major), int(minor)


def _flash(feature: Feature, of: GpuSpec) -> Text:
    at, sm = _capability(of), f"sm {of.compute_capability}"
    if feature is Feature.FLASH_3:
        if at[0] == 9:
            return Text(
                f"Yes, {of.family} ({sm}) is Hopper, which FlashAttention 3 is for.",
                f"支持：{of.family}（{sm}）是 Hopper，FlashAttention 3 正为其而写。",
            )
        runs = "2" if at >= (8, 0) else "1" if at >= (7, 5) else ""
        instead = Text(f"; it runs FlashAttention {runs}", f"，可用 FlashAttention {runs}") if runs else Text("", "")
        return Text(
            f"No, FlashAttention 3 is for Hopper (sm 9.0), and {of.family} is {sm}{instead.en}.",
            f"不支持：FlashAttention 3 面向 Hopper（sm 9.0），{of.family} 是 {sm}{instead.in_('zh')}。",
        )
    if at >= (8, 0):
        return Text(
            f"Yes, FlashAttention 2 runs from Ampere (sm 8.0) on, and {of.family} is {sm}; in FP16 or BF16.",
            f"支持：FlashAttention 2 需 Ampere（sm 8.0）及以上，{of.family} 是 {sm}；须用 FP16 或 BF16。",
        )
    old = (
        Text("; FlashAttention 1.x runs on Turing", "；Turing 可用 FlashAttention 1.x")
        if at == (7, 5)
        else Text("", "")
    )
    return Text(
        f"No, FlashAttention 2 needs Ampere (sm 8.0) or newer, and {of.family} is {sm}{old.en}. PyTorch's SDPA has memory-efficient attention for it.",
        f"不支持：FlashAttention 2 需 Ampere（sm 8.0）及以上，{of.family} 是 {sm}{old.in_('zh')}。可用 PyTorch SDPA 的 memory-efficient attention。",
    )


def _nvlink(asked: Supported) -> Text:
    having = [m for m in asked.of if m.nvlink is not None]
    if not having:
        name = asked.of[0].family
        return Text(f"No, {name} has no NVLink: its GPUs talk over PCIe.", f"不支持：{name} 没有 NVLink，卡间走 PCIe。")
    each = {m.title: m.nvlink for m in having if m.nvlink}
    said = listed([f"{t} {link.gbs:g} GB/s" for t, link in each.items()], "en")
    said_zh = listed([f"{t} {link.gbs:g} GB/s" for t, link in each.items()], "zh")
    return Text(f"Yes: {said} (all links, both directions together).", f"支持：{said_zh}（全部链路，双向合计）。")


def _mig(of: GpuSpec) -> Text:
    if _capability(of) in _MIG or of.family in _MIG_CARDS:
        many = 4 if of.family in ("A30", *_MIG_CARDS) else 7
        return Text(
            f"Yes, {of.family} has MIG, up to {many} instances: nvidia-smi -i GPU_INDEX -mig 1, then nvidia-smi mig -lgip for its profiles.",
            f"支持：{of.family} 有 MIG，最多 {many} 个实例：nvidia-smi -i GPU_INDEX -mig 1，再用 nvidia-smi mig -lgip 看可用规格。",
        )
    return Text(
        f"No, {of.family} has no MIG (A100, A30, H100 and newer data-centre GPUs have it): share it by MPS or time slicing.",
        f"不支持：{of.family} 没有 MIG（A100、A30、H100 及更新的数据中心卡才有）：可用 MPS 或时间片共享。",
    )
