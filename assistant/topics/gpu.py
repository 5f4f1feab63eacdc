"""GPU models: memory, bandwidth, peaks, links, power."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Fields, Heading, Paragraph, Part, Sheet, Table
from assistant.topics._common import others_say, sources
from knowledge.errors import UnknownNameError
from knowledge.gpus import GpuSpec, all_specs, candidates, spec
from knowledge.language import Text

KIND = "gpu"
HELP = "a GPU model: its memory, bandwidth, peaks, links and power"


def names() -> Iterable[str]:
    """Ids, titles and families."""
    for s in all_specs():
        yield from (s.id, s.title, s.family)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one model; a name that several share lists them."""
    word = " ".join(words)
    one = spec(word.lower()) or next((s for s in all_specs() if s.title.casefold() == word.casefold()), None)
    found = (one,) if one else candidates(word)
    if not found:
        raise UnknownNameError(KIND, word, names())
    return _page(found[0], lang) if len(found) == 1 else _several(word, found, lang)


def _several(word: str, found: Sequence[GpuSpec], lang: str) -> Sheet:
    header = tuple(t.in_(lang) for t in (
        Text("model", "型号"), Text("memory GiB", "显存 GiB"), Text("GB/s", "GB/s"), Text("BF16 TFLOP/s", "BF16 TFLOP/s"),
        Text("title", "名称")))  # fmt: skip
    rows = tuple((s.id, _n(s.memory_gib), _n(s.bandwidth_gbs), _n(s.peak("bf16")), s.title) for s in found)
    title = Text(f"{word}: {len(found)} models", f"{word}：{len(found)} 个型号").in_(lang)
    return Sheet(title, (Table(header, rows),), {"kind": KIND, "models": [asdict(s) for s in found]})


def _page(s: GpuSpec, lang: str) -> Sheet:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    sure = {
        "checked": t("checked on independent pages", "已与独立来源核对"),
        "datasheet": t("read in the datasheet", "取自数据手册"),
        "memory": t("recalled: check before a figure decides anything", "凭记忆：用于决策前请核对"),
    }[str(s.certainty)]
    link = s.nvlink
    nvlink = f"NVLink {link.generation}: {link.links} {t('links', '条链路')}, {link.gbs:g} GB/s" if link else ""
    low = f"{s.bandwidth_low_gbs:g} .. " if s.bandwidth_low_gbs else ""
    peaks = tuple((str(d).upper(), f"{v:g}", _n(s.knee(d), 0)) for d, v in s.peaks.items() if v is not None)
    parts: list[Part] = [
        Paragraph(s.note.in_(lang) if s.note else ""),
        Fields((
            (t("architecture", "架构"), f"{s.architecture}" + (f" (sm {s.compute_capability})" if s.compute_capability else "")),
            (t("form", "形态"), s.form_factor),
            (t("memory", "显存"), f"{s.memory_gib:g} GiB, {low}{_n(s.bandwidth_gbs)} GB/s" if s.memory_gib else ""),
            (t("power limit", "功耗上限"), f"{s.tdp_w:g} W" if s.tdp_w else ""),
            ("PCIe", f"Gen{s.pcie_generation}" if s.pcie_generation else ""),
            (t("links", "互联"), nvlink),
            (t("figures", "数据来源"), sure),
        )),
        Heading(t("Dense peaks at boost clock", "稠密峰值（加速频率）")),
        Table((t("format", "格式"), "TFLOP/s", t("FLOP/byte at the knee", "屋顶线拐点 FLOP/字节")), peaks),
        *others_say(s.disagrees, lang),
        *sources(s.sources, lang),
    ]  # fmt: skip
    return Sheet(s.title, tuple(parts), {"kind": KIND, "entry": asdict(s)})


def _n(value: float | None, digits: int | None = None) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if digits is None else f"{value:.{digits}f}"
