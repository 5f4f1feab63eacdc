"""How values are shown: as a sentence, as a span, as the rows of a table, with what stands on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from assistant.dialogue._words import Words
from assistant.render.cells import cut
from assistant.render.labels import listed, reason_name, sentence
from assistant.render.meanings import meaning
from assistant.render.sheet import Table
from assistant.render.times import readable, when
from knowledge.observation import Event, Observation, Origin, Series, Status, Subject
from knowledge.text import clean, opened
from knowledge.units import measured

if TYPE_CHECKING:
    from rules.engine import Finding

Marks: TypeAlias = "dict[tuple[str, Subject], list[Finding]]"  # fact and place -> findings that stand on its value
CELL = 60  # columns of a value or a source


def said(w: Words, o: Observation) -> str:
    """One observation as a sentence."""
    spec = w.d.facts.vocabulary.get(o.fact)
    if spec is None or o.status is not Status.OK:
        state = reason_name(str(o.status), w.lang) if o.status is not Status.OK else value(w, o)
        return clean(f"{w.view.name(o.subject)}: {o.fact}: {state}")
    words = clean(sentence(spec, o, w.lang, w.view.called))
    return opened(words) + ("" if words.endswith((".", "。")) else w.t(".", "。"))


def span(w: Words, told: Sequence[Observation]) -> str:
    """From the least to the most of a number on several subjects."""
    numbers = [o.value for o in told if isinstance(o.value, int | float) and not isinstance(o.value, bool)]
    if len(numbers) < len(told) or not numbers:
        return ""
    spec = w.d.facts.vocabulary[told[0].fact]
    low, high = min(numbers), max(numbers)
    most = measured(float(high), spec.unit)
    n, name = len(told), opened(meaning(spec.name, w.d.facts.vocabulary, w.lang))
    if low == high:
        return w.t(f"{name}: {most} at all {n} places.", f"{name}：全部 {n} 处均为 {most}。")
    return w.t(
        f"{name}: between {low:.6g} and {most} at {n} places.",
        f"{name}：{n} 处介于 {low:.6g} 与 {most} 之间。",
    )


def table(w: Words, rows: Sequence[Observation], marks: Marks) -> Table:
    """What, where, value, since when and by whom; the column of findings only where there are some."""
    several = len({o.fact for o in rows}) > 1
    marked = any((o.fact, o.subject) in marks for o in rows)
    header = [w.t("where", "位置"), w.t("value", "值"), w.t("when", "时间"), w.t("source", "来源")]
    if several:
        header.insert(0, w.t("what", "内容"))
    if marked:
        header.append(w.t("finding", "结论"))
    lines = []
    for o in rows:
        row = [clean(w.view.name(o.subject)), value(w, o), readable(when(o)), cut(clean(source(w, o)), CELL)]
        if several:
            row.insert(0, o.fact)
        if marked:
            found = marks.get((o.fact, o.subject), [])
            row.append(f"! {found[0].rule.id}" if found else "")
        lines.append(tuple(row))
    return Table(tuple(header), tuple(lines))


def value(w: Words, o: Observation) -> str:
    """The value with its unit, or why there is none."""
    if o.status is not Status.OK:
        return cut(reason_name(f"{o.status}: {o.detail}" if o.detail else str(o.status), w.lang), CELL)
    if isinstance(o.value, Event):
        return cut(clean(sentence(w.d.facts.vocabulary[o.fact], o, w.lang)), CELL)
    spec = w.d.facts.vocabulary.get(o.fact)
    value = o.value.values[-1] if isinstance(o.value, Series) and o.value.values else o.value
    if isinstance(value, bool):
        return w.t("yes", "是") if value else w.t("no", "否")
    if isinstance(value, tuple):
        return clean(listed(value, w.lang)) or w.t("none", "无")
    if isinstance(value, str) and spec and value in spec.labels:
        return spec.labels[value].in_(w.lang)
    return cut(clean(measured(value, spec.unit if spec else "")), CELL)


def source(w: Words, o: Observation) -> str:
    """Where the value comes from: the call, the file, or a person."""
    told = {Origin.TOLD: w.t("as told", "人工提供"), Origin.HYPOTHETICAL: w.t("supposed", "假设")}.get(o.origin)
    return told or w.view.evidence(o).place or str(o.source)


def marks_of(w: Words) -> Marks:
    """Findings by the values that they stand on."""
    out: Marks = {}
    for f in w.d.findings:
        for o in (*f.because, *f.events):
            own = o.subject in f.subject.ancestors() or f.subject in o.subject.ancestors()
            found = out.setdefault((o.fact, o.subject), []) if own else [f]  # what was compared with stands for nothing
            if f not in found:
                found.append(f)
    return out
