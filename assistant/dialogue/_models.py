"""Which of several GPU models, and for what: by peak for training and prefill, by memory for decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assistant.dialogue import _compare
from assistant.dialogue._pages import page, text_in
from assistant.intent.models import Figure, Specified, Work
from assistant.render.labels import listed
from assistant.render.sheet import Paragraph
from assistant.reply import Reply
from knowledge.gpus import Dtype, GpuSpec
from knowledge.language import Text

_SAME = 1.05  # times, below which two figures count as the same


def answer(models: Sequence[GpuSpec], work: Work, lang: str, *, parameters: float = 0.0) -> Reply:
    """Which model for what in the first line, and their figures side by side; `parameters` of the model that is to run there."""
    pages = [(f"gpu {m.id}", sheet) for m in models if (sheet := page(f"gpu {m.id}", lang)) is not None]
    table = _compare.of_models(pages, lang)
    head = _pair(models[0], models[1], work, lang) if len(models) == 2 else _best(models, lang)
    too_small = _too_small(models, parameters, lang)
    return replace(table, headline=" ".join(filter(None, (too_small, head)))) if head else table


def figure(asked: Specified, sheet: Reply) -> Reply:
    """The figure of one name's models in the first line, ahead of the data `sheet` of the usual one."""
    lang, titles = sheet.lang, dict[str, list[str]]()
    for m in asked.of:
        if value := _said(asked, m, lang):
            titles.setdefault(value, []).append(m.title)
    of = {
        Figure.PEAK: Text(f"{asked.dtype.upper()} peak (dense)", f" {asked.dtype.upper()} 峰值算力（稠密）")
    } | _FIGURES
    name, family = of[asked.figure].in_(lang), asked.of[0].family
    if not titles:
        head = text_in(lang, f"{family}: no figure of its {name} is known here.", f"{family}：这里没有它的{name}数据。")
    elif len(titles) == 1 and sum(map(len, titles.values())) == len(asked.of):
        value = next(iter(titles))
        none = text_in(lang, f"{family} has no NVLink.", f"{family} 没有 NVLink。")
        head = (
            none
            if value == _none(lang)
            else text_in(lang, f"{family}, {name}: {value}.", f"{family} 的{name}：{value}。")
        )
    else:
        each = [
            text_in(
                lang, f"{listed(of_it, lang)} {v}", f"{listed(of_it, lang)} {'没有' if v == _none(lang) else f'为 {v}'}"
            )
            for v, of_it in titles.items()
        ]
        head = text_in(
            lang, f"{name[:1].upper()}{name[1:]}: {'; '.join(each)}.", f"{name.strip()}：{'；'.join(each)}。"
        )
    return replace(sheet, headline=head, parts=(Paragraph(sheet.headline), *sheet.parts))


def _none(lang: str) -> str:
    return text_in(lang, "none", "无")


_FIGURES = {
    Figure.BANDWIDTH: Text("memory bandwidth", "显存带宽"),
    Figure.NVLINK: Text("NVLink bandwidth", " NVLink 带宽"),
    Figure.MEMORY: Text("memory", "显存"),
    Figure.POWER: Text("power limit as it ships", "出厂功率上限"),
    Figure.PCIE: Text("PCIe generation", " PCIe 代数"),
}


def _said(asked: Specified, m: GpuSpec, lang: str) -> str:
    """The figure of one model with its unit; empty where it is not known."""
    match asked.figure:
        case Figure.NVLINK:
            if m.nvlink is None:
                return _none(lang)
            links, gbs = m.nvlink.links, f"{m.nvlink.gbs:g} GB/s"
            return text_in(lang, f"{gbs} ({links} links, both directions)", f"{gbs}（{links} 条，双向合计）")
        case Figure.PCIE:
            return f"Gen{m.pcie_generation}" if m.pcie_generation else ""
        case Figure.PEAK:
            value, unit = m.peak(asked.dtype), "TOP/s" if asked.dtype is Dtype.INT8 else "TFLOP/s"
        case Figure.BANDWIDTH:
            value, unit = m.bandwidth_gbs, "GB/s"
        case Figure.POWER:
            value, unit = m.tdp_w, "W"
        case _:
            value, unit = m.memory_gib, "GB"
    return f"{value:g} {unit}" if value else ""


def _too_small(models: Sequence[GpuSpec], parameters: float, lang: str) -> str:
    """Which of them cannot hold the weights of a language model in 16 bits, two bytes for each of `parameters` (0: none is named)."""
    bytes_ = 2 * parameters
    small = [m for m in models if m.memory_gib and m.memory_gib * 2**30 <= bytes_]
    if not small or not parameters:
        return ""
    named = listed([f"{m.title} ({m.memory_gib:g} GiB)" for m in small], lang)
    of = f"{parameters / 1e9:g}B"
    return text_in(
        lang,
        f"The weights of {of} in 16 bits are {bytes_ / 1e9:g} GB, more than one {named} holds: several of it, or 8 and 4 bits.",
        f"{of} 模型的 16 位权重为 {bytes_ / 1e9:g} GB，单块 {named} 放不下：需要多卡，或用 8、4 位量化。",
    )


def _pair(a: GpuSpec, b: GpuSpec, work: Work, lang: str) -> str:
    """What one has ahead of the other; empty where too little is known of either."""
    if not (_peak(a) and _peak(b) and _width(a) and _width(b)):
        return ""
    if (_peak(a), _width(a)) > (_peak(b), _width(b)):
        a, b = b, a
    more = _peak(b) / _peak(a)  # never below 1
    wider = _width(b) / _width(a)
    if wider < 1 / _SAME and more > _SAME:
        return _split(a, b, work, lang)
    if more < _SAME and wider < _SAME:
        return _alike(a, b, lang)
    peaks = _ratio(more, f"{_peak(b):g}", f"{_peak(a):g} TFLOP/s", lang)
    memory = _ratio(wider, f"{b.bandwidth_gbs:g}", f"{a.bandwidth_gbs:g} GB/s", lang)
    size = f"{b.memory_gib:g} / {a.memory_gib:g} GiB"
    worth = _worth(more, wider, work, lang)
    return text_in(
        lang,
        f"{b.title} against {a.title}: BF16 peak {peaks}, memory bandwidth {memory}, {size}{_fp8(a, b, lang)}. {worth}",
        f"{b.title} 对比 {a.title}：BF16 峰值{peaks}，显存带宽{memory}，显存 {size}{_fp8(a, b, lang)}。{worth}",
    )


def _worth(more: float, wider: float, work: Work, lang: str) -> str:
    """Where the larger one pays: training and prefill go with the peak, decoding with the bandwidth."""
    times = {Work.TRAINING: (more,), Work.SERVING: (wider,), Work.EITHER: (wider, more)}[work]
    low, high = (f"{x:.1f}" for x in (min(times), max(times)))
    span = low if low == high else f"{low} to {high}"
    span_zh = low if low == high else f"{low} 到 {high}"
    why = {
        Work.TRAINING: ("Training and prefill go with the peak", "训练与 prefill 看峰值"),
        Work.SERVING: (
            "Decoding goes with the bandwidth, and what fits with the memory",
            "decode 看带宽，能否放下看显存",
        ),
        Work.EITHER: ("Training goes with the peak, decoding with the bandwidth", "训练看峰值，decode 看带宽"),
    }[work]
    if max(times) < _SAME:
        return text_in(lang, f"{why[0]}: no gain there.", f"{why[1]}：在这方面没有优势。")
    if min(times) < _SAME:
        of = ("decoding", "decode") if wider > more else ("training", "训练")
        return text_in(
            lang,
            f"{why[0]}: a gain for {of[0]} only, worth at most {high} times the price of an hour.",
            f"{why[1]}：只对 {of[1]} 有优势，每小时价格最多值 {high} 倍。",
        )
    return text_in(
        lang,
        f"{why[0]}: worth it where its hour costs less than {span} times as much.",
        f"{why[1]}：每小时价格低于 {span_zh} 倍就值得。",
    )


def _split(a: GpuSpec, b: GpuSpec, work: Work, lang: str) -> str:
    """One has the wider memory (`a`), the other the higher peak (`b`)."""
    peaks = f"{_peak(b):g} / {_peak(a):g} TFLOP/s BF16"
    memory = f"{a.bandwidth_gbs:g} / {b.bandwidth_gbs:g} GB/s, {a.memory_gib:g} / {b.memory_gib:g} GiB"
    larger = (a.memory_gib or 0.0) >= (b.memory_gib or 0.0)
    what = (
        ("decoding and models that need the memory", "decode 或需要大显存的模型")
        if larger
        else ("decoding what fits into it", "decode 能放下的模型")
    )
    serve = text_in(lang, f"{a.title} for {what[0]} ({memory})", f"{what[1]}选 {a.title}（{memory}）")
    train = text_in(lang, f"{b.title} for training and prefill ({peaks})", f"训练与 prefill 选 {b.title}（{peaks}）")
    first, then = (train, serve) if work is Work.TRAINING else (serve, train)
    return text_in(lang, f"{first}; {then}.", f"{first}；{then}。")


def _alike(a: GpuSpec, b: GpuSpec, lang: str) -> str:
    """The same peak and bandwidth: what is left is the link, the memory, the power."""
    apart = []
    if (a.nvlink and a.nvlink.gbs) != (b.nvlink and b.nvlink.gbs):
        apart.append(f"NVLink {a.nvlink.gbs if a.nvlink else 0:g} / {b.nvlink.gbs if b.nvlink else 0:g} GB/s")
    if a.memory_gib != b.memory_gib:
        apart.append(f"{a.memory_gib:g} / {b.memory_gib:g} GiB")
    if a.tdp_w != b.tdp_w and a.tdp_w and b.tdp_w:
        apart.append(f"{a.tdp_w:g} / {b.tdp_w:g} W")
    said = listed(apart, lang)
    return text_in(
        lang,
        f"{a.title} and {b.title} have the same BF16 peak and memory bandwidth{f'; they differ in {said}' if said else ''}. On one GPU they are as fast.",
        f"{a.title} 与 {b.title} 的 BF16 峰值和显存带宽相同{f'，不同的是 {said}' if said else ''}。单卡速度一样。",
    )


def _best(models: Sequence[GpuSpec], lang: str) -> str:
    """Of three and more the highest peak and the widest memory."""
    peak = max(models, key=_peak)
    wide = max(models, key=lambda m: (_width(m), m.memory_gib or 0.0))
    return text_in(
        lang,
        f"For training and prefill {peak.title} ({_peak(peak):g} TFLOP/s BF16); for decoding {wide.title} ({wide.bandwidth_gbs:g} GB/s, {wide.memory_gib:g} GiB).",
        f"训练与 prefill 选 {peak.title}（BF16 {_peak(peak):g} TFLOP/s）；decode 选 {wide.title}（{wide.bandwidth_gbs:g} GB/s，{wide.memory_gib:g} GiB）。",
    )


def _fp8(a: GpuSpec, b: GpuSpec, lang: str) -> str:
    only = [m.title for m in (a, b) if m.peak("fp8")]
    return text_in(lang, f", FP8 only on {only[0]}", f"，只有 {only[0]} 有 FP8") if len(only) == 1 else ""


def _ratio(times: float, high: str, low: str, lang: str) -> str:
    if 1 / _SAME < times < _SAME:
        return text_in(lang, f"the same ({low})", f"相同（{low}）")
    return text_in(lang, f"{times:.1f} times ({high} / {low})", f"为 {times:.1f} 倍（{high} / {low}）")


def _peak(m: GpuSpec) -> float:
    """BF16, or FP16 where there is no BF16; 0 where neither is known."""
    return m.peak("bf16") or m.peak("fp16") or 0.0


def _width(m: GpuSpec) -> float:
    """Memory bandwidth in GB/s; 0 where it is not known."""
    return m.bandwidth_gbs or 0.0
