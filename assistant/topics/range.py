"""Ranges: what is a good value of a measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Fields, Heading, Items, Paragraph, Part, Sheet, Table
from assistant.topics._common import sources
from knowledge.errors import UnknownNameError
from knowledge.language import Text
from knowledge.ranges import Band, Range, ranges
from knowledge.workloads import Workload

KIND = "range"
HELP = "what is a good value: MFU, GPU utilization, temperature, PCIe bandwidth, ..."
RATINGS = {
    "good": Text("good", "良好"),
    "fair": Text("fair", "一般"),
    "poor": Text("poor", "较差"),
    "bad": Text("bad", "异常"),
    "open": Text("it depends", "视情况"),
}


def names() -> Iterable[str]:
    """Ids, titles and other names of all measures."""
    for r in ranges().values():
        yield from (r.id, r.title.en, r.title.zh, *r.aliases)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one measure."""
    return page(find(" ".join(words)), lang)


def find(name: str) -> Range:
    """The measure called `name`: id, title or alias. UnknownNameError with the nearest."""
    wanted = name.casefold().strip()
    for r in ranges().values():
        if wanted in (r.id, r.id.replace("-", " "), *(s.casefold() for s in (r.title.en, r.title.zh, *r.aliases))):
            return r
    raise UnknownNameError(KIND, name, ranges())


def page(r: Range, lang: str) -> Sheet:
    """What values of `r` mean, and on what that depends."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    parts: list[Part] = [Paragraph(r.about.in_(lang))]
    if r.bands:
        rows = tuple((bounds(b, r.unit, lang), RATINGS[b.rating].in_(lang), b.text.in_(lang)) for b in r.bands)
        parts.append(Table((t("value", "取值"), t("rating", "评价"), t("meaning", "含义")), rows))
    if r.rows:
        parts.append(Table((t("case", "情形"), t("usual", "常见值")), r.rows))
    if r.depends:
        parts += [Heading(t("It depends", "取决于")), Paragraph(r.depends.in_(lang))]
    if r.shown_by:
        parts += [Heading(t("Shown by", "查看方式")), Items(r.shown_by)]
    parts.append(Fields(((t("also called", "又称"), ", ".join(r.aliases)),)))
    parts += sources(r.sources, lang)
    return Sheet(r.title.in_(lang), tuple(parts), {"kind": KIND, "entry": asdict(r)})


def judged(r: Range, value: float, band: Band, kind: Workload | None) -> Text:
    """``Tensor active of 8 %: poor for training. Low: ...``: a value with what its band says, of the kind of work where that counts."""
    shown, rating = f"{value:.6g}{f' {r.unit}' if r.unit else ''}", RATINGS[band.rating]
    en, zh = (f" for {kind.title.en}", f"（{kind.title.in_('zh')}）") if kind else ("", "")
    title = r.title.in_("zh")
    return Text(
        f"{r.title.en} of {shown}: {rating.en}{en}. {band.text.en}",
        f"{title}{'' if title[-1:] == '）' else ' '}{shown}：{rating.in_('zh')}{zh}。{band.text.in_('zh')}",
    )


def bounds(b: Band, unit: str, lang: str) -> str:
    """``38 .. 56 %``, ``below 20 %``, ``from 87 °C``."""
    low, high = (None if x is None else _number(x) for x in (b.low, _whole(b.high)))
    unit = f" {unit}" if unit else ""
    if low is None:
        return Text(f"below {high}{unit}", f"低于 {high}{unit}").in_(lang)
    if high is None:
        if b.low is not None and _whole(b.low) != b.low:  # 100.001: beyond what a share can be
            return Text(f"above {_whole(b.low):g}{unit}", f"高于 {_whole(b.low):g}{unit}").in_(lang)
        return Text(f"from {low}{unit}", f"{low}{unit} 及以上").in_(lang)
    return f"{low} .. {high}{unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:.6g}"


def _whole(value: float | None) -> float | None:
    """100 for 100.001, the bound that still holds 100 %."""
    return 100.0 if value == 100.001 else value
