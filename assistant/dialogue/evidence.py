"""How do you know: the observations under an answer, each with where it stands, when, and its raw line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assistant.dialogue._looked import looked_at, missed
from assistant.dialogue._named import chosen, named
from assistant.dialogue._words import LINE, Words, finding_data, nothing_yet, suggest, words
from assistant.render import lines
from assistant.render.cells import cut
from assistant.render.labels import aside, label
from assistant.render.sheet import Items, Paragraph, Part, Table
from assistant.render.times import readable, when
from assistant.reply import Reply
from knowledge.observation import Event, Observation, Origin, Series
from knowledge.text import clean
from rules.engine import Grade

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding
    from rules.factbase import Conflict

ROWS, VALUE, PLACE = 8, 40, 44  # rows shown; columns of a value and of a place


def answer(turn: Turn) -> Reply:
    """The rows of the finding that the talk is about; without one, of what was looked at."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w, found = words(turn), named(turn)
    if found.missed:
        return missed(turn, w, found)
    f = chosen(turn, found)
    return _looked(turn, w) if f is None else _rows(turn, w, f)


def _rows(turn: Turn, w: Words, f: Finding) -> Reply:
    every = seen_by(f)
    table = evidence_table(w, every)
    told = sum(o.origin is Origin.TOLD for o in every)
    parts: list[Part] = [table] if table.rows else []
    if len(every) > ROWS:
        parts.append(Paragraph(label("more_lines", w.lang).format(n=len(every) - ROWS)))
    parts += w.section("Sources contradict each other", "来源相互矛盾", conflicts_of(w, f))
    if f.missing:
        parts += w.section("Not known", "尚不清楚", [w.gaps(f.missing)])
    n = len(every)
    title = w.title(f)
    head = w.t(f"{title} rests on {n} observation{'' if n == 1 else 's'}", f"{w.quoted(title)}依据 {n} 条观测")
    if f.grade is Grade.RULED_OUT:
        head = w.t(
            f"{title} is ruled out; {n} observation{'' if n == 1 else 's'} bear on it",
            f"{w.quoted(title)}已排除，相关观测 {n} 条",
        )
    if told:
        head += aside(w.t(f"{told} as told, not measured", f"其中 {told} 条为人工提供，并非测得"), w.lang)
    return Reply(
        turn.lang,
        head + w.t(".", "。"),
        tuple(parts),
        focus=f.id,
        suggestions=suggest(turn.lang, "confidence", "why", "next"),
        data={"answer": "evidence", "finding": finding_data(f, turn.lang), "rows": [row_data(o) for o in every],
              "missing": [str(m) for m in f.missing]},
    )  # fmt: skip


def seen_by(f: Finding) -> list[Observation]:
    """What a finding rests on, each once: its events, its other evidence, what decided the action."""
    out: dict[int, Observation] = {}
    for o in (*f.events, *f.because, *f.advice.because):
        out.setdefault(id(o), o)
    return list(out.values())


def evidence_table(w: Words, observations: Sequence[Observation], most: int = ROWS) -> Table:
    """One row an observation: what, value, where, when, and the raw line."""
    header = tuple(w.t(*names) for names in (("what", "内容"), ("value", "值"), ("where", "位置"), ("when", "时间"),
                                             ("raw", "原文")))  # fmt: skip
    return Table(header, tuple(_row(w, o) for o in observations[:most]))


def _row(w: Words, o: Observation) -> tuple[str, ...]:
    place = w.view.evidence(o).place
    raw = lines.message(o) if isinstance(o.value, Event) else clean(o.excerpt)
    mark = {Origin.TOLD: label("told", w.lang), Origin.DERIVED: label("derived", w.lang)}.get(o.origin, "")
    what = f"{o.fact}{aside(mark, w.lang)}" if mark and mark != place else o.fact
    return what, cut(_value(w, o), VALUE), _tail(place), _moment(o), cut(raw, LINE)


def _value(w: Words, o: Observation) -> str:
    if not o.status.answered or o.value is None:
        from assistant.render.labels import reason_name

        return reason_name(str(o.status), w.lang)
    if isinstance(o.value, Event):
        return str(o.value.code) if o.value.code is not None else w.t("event", "事件")
    if isinstance(o.value, Series):
        n = len(o.value.values)
        return w.t(f"{n} samples", f"{n} 个样本")
    spec = w.d.facts.vocabulary.get(o.fact)
    value = ", ".join(o.value) if isinstance(o.value, tuple) else o.value
    if isinstance(value, bool):
        value = w.t("yes", "是") if value else w.t("no", "否")
    unit = f" {spec.unit}" if spec and spec.unit not in ("", "count", "ratio") else ""
    return clean(f"{value:.6g}{unit}" if isinstance(value, float) else f"{value}{unit}")


def _moment(o: Observation) -> str:
    return lines.moment(o) if isinstance(o.value, Event) else readable(when(o))


def _tail(place: str) -> str:
    """A long place without its beginning: the line number stays."""
    return place if len(place) <= PLACE else f"...{place[-PLACE + 3 :]}"


def row_data(o: Observation) -> dict[str, object]:
    """An observation in full, for JSON."""
    from assistant.render.json_ import subject

    value = (
        {"code": o.value.code}
        if isinstance(o.value, Event)
        else str(o.value)
        if isinstance(o.value, Series)
        else o.value
    )
    return {"fact": o.fact, "subject": subject(o.subject), "status": str(o.status), "value": value,
            "source": str(o.source), "at": when(o) or None, "origin": str(o.origin), "excerpt": o.excerpt or None}  # fmt: skip


# --- conflicts ----------------------------------------------------------------------------


def conflicts_of(w: Words, f: Finding | None, most: int = 3) -> list[str]:
    """Contradictions between sources about facts that the finding's rule asks for, where it asks (None: all)."""
    every = [c for c in w.d.facts.conflicts if f is None or _bears(c, f)]
    said = [_conflict(w, c) for c in every[:most]]
    rest = len(every) - most
    return [*said, label("more_lines", w.lang).format(n=rest)] if rest > 0 else said


def _bears(c: Conflict, f: Finding) -> bool:
    from rules.condition import facts_of

    asked = frozenset().union(*(facts_of(x) for x in (f.rule.when, *f.rule.confirms, *f.rule.excludes)))
    here = c.first.subject
    return c.first.fact in asked and (here in f.subject.ancestors() or f.subject in here.ancestors())


def _conflict(w: Words, c: Conflict) -> str:
    a, b = (f"{_value(w, o)}{aside(w.view.evidence(o).place, w.lang)}" for o in (c.first, c.second))
    where = w.view.name(c.first.subject)
    return w.t(f"{c.first.fact} of {where}: {a} and {b}", f"{where} 的 {c.first.fact}：{a} 与 {b}")


# --- nothing found ------------------------------------------------------------------------


def _looked(turn: Turn, w: Words) -> Reply:
    d = w.d
    c = d.coverage
    head = w.t(
        f"No finding to prove; what was looked at: {c.answered} of {c.asked} facts answered.",
        f"没有需要证明的结论；所查看的内容：{c.asked} 项事实中有 {c.answered} 项得到答案。",
    )
    parts: list[Part] = [Items(tuple(looked_at(w)))]
    if d.events:
        parts += [*w.section("Lines that were understood", "已识别的日志行", _few(w, d.events))]
    parts += w.section("Sources contradict each other", "来源相互矛盾", conflicts_of(w, None, 2))
    return Reply(
        turn.lang,
        head,
        tuple(parts),
        settled=d.settled,
        suggestions=suggest(turn.lang, "confidence", "alternatives", "rerun"),
        data={"answer": "evidence", "finding": None, "rows": [row_data(o) for o in d.events[:ROWS]],
              "sources": list(d.sources), "asked": c.asked, "answered": c.answered},
    )  # fmt: skip


def _few(w: Words, observations: Iterable[Observation], most: int = 3) -> list[str]:
    every = list(observations)
    said = [w.seen(o) for o in every[:most]]
    rest = len(every) - most
    return [*said, label("more_lines", w.lang).format(n=rest)] if rest > 0 else said
