"""How do you know: the observations under an answer, each with where it stands and when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots
from assistant.dialogue._clauses import machine_made
from assistant.dialogue._looked import looked_at, missed
from assistant.dialogue._named import chosen, named
from assistant.dialogue._opening import placed
from assistant.dialogue._scope import Scoped, fine
from assistant.dialogue._words import LINE, Words, finding_data, nothing_yet, suggest, words
from assistant.render import lines
from assistant.render.cells import cut
from assistant.render.labels import aside, label, led
from assistant.render.meanings import meaning, within
from assistant.render.sheet import Items, Paragraph, Part
from assistant.render.times import readable, when
from assistant.render.words import our_words
from assistant.reply import Reply
from knowledge.observation import Event, Observation, Origin, Series
from knowledge.text import clean, opened
from knowledge.units import measured
from rules.engine import Grade

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding
    from rules.factbase import Conflict

# What tells the health of a GPU or a process first, of all that was read of it.
_TELLING = ("gpu.nvml.reachable", "gpu.temperature.core", "gpu.ecc.volatile.uncorrected.total", "gpu.row_remap.pending",
            "gpu.pcie.width", "gpu.nvlink.active", "gpu.utilization.core", "process.state", "process.gpu_memory")  # fmt: skip
ROWS, VALUE, PLACE = 6, 40, 44  # rows shown; columns of a value and of a place


def answer(turn: Turn) -> Reply:
    """The rows of the finding that the talk is about; without one, of what was looked at."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    turn = placed(turn)
    w, found = words(turn), named(turn)
    if found.missed:
        return missed(turn, w, found)
    if not found.what and (where := fine(turn)) is not None:
        return _of_part(turn, w, where)
    f = chosen(turn, found)
    return _looked(turn, w) if f is None else _rows(turn, w, f)


def _rows(turn: Turn, w: Words, f: Finding) -> Reply:
    every = seen_by(f)
    shown = evidence_list(w, every)
    told = sum(o.origin is Origin.TOLD for o in every)
    parts: list[Part] = [shown] if shown.items else []
    if len(every) > ROWS:
        parts.append(Paragraph(label("more_lines", w.lang).format(n=len(every) - ROWS)))
    parts += w.section("Sources contradict each other", "来源相互矛盾", conflicts_of(w, f))
    if f.missing:
        parts += w.section("Not known", "尚不清楚", [w.gaps(f.missing)])
    n = len(every)
    title, many = w.title(f), "" if n == 1 else "s"
    head = w.t(
        led(f"{n} observation{many} stand{'s' if n == 1 else ''} behind this", title, "en"),
        f"{w.quoted(title)}的依据有 {n} 条观测",
    )
    if f.grade is Grade.RULED_OUT:
        head = w.t(
            led(f"Ruled out, with {n} observation{many} on it", title, "en"),
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


def evidence_list(w: Words, observations: Sequence[Observation], most: int = ROWS) -> Items:
    """One item an observation: what it says (of an event its line), where that stands, and when."""
    return Items(tuple(_item(w, o) for o in observations[:most]))


def _item(w: Words, o: Observation) -> str:
    mark = {Origin.TOLD: label("told", w.lang), Origin.DERIVED: label("derived", w.lang)}.get(o.origin, "")
    place = w.view.evidence(o).place
    behind = [mark if mark != place else "", _tail(w.place(place)), _moment(o)]
    said = lines.message(o) if isinstance(o.value, Event) else opened(w.seen(o, places=False))
    raw = w.view.evidence(o).raw if not isinstance(o.value, Event) else ""
    if raw and raw not in said and len(raw) <= VALUE and not machine_made(raw):
        said += f" [{our_words(raw, w.lang)}]"
    where = w.t(", ", "，").join(filter(None, behind))
    return cut(said, LINE) + (aside(where, w.lang) if where else "")


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
    return clean(measured(value, spec.unit if spec else ""))


def _moment(o: Observation) -> str:
    said = lines.moment(o) if isinstance(o.value, Event) else readable(when(o))
    return re.sub(r"(\.\d{3})\d+(?=Z)", r"\1", said)  # milliseconds are enough


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
    what = within(meaning(c.first.fact, w.d.facts.vocabulary, w.lang), w.lang)
    return w.t(f"{where}, {what}: {a} and {b}", f"{where}，{what}：{a}与 {b}")


def _of_part(turn: Turn, w: Words, where: Scoped) -> Reply:
    """The values that were read of the part that was asked about: how many, and those that tell its health."""
    from assistant.dialogue.verdict import elsewhere, read_of, values_of

    every, what = values_of(w, where), w.view.where(where.subjects)
    telling = list({o.fact: o for name in _TELLING for o in every if o.fact == name}.values())[:ROWS]
    gap = " " if what[-1:].isascii() else ""
    return Reply(
        turn.lang,
        w.t(f"Nothing wrong was found on {what}. {read_of(w, len(every))}", f"{what}{gap}未发现问题。{read_of(w, len(every))}"),
        (*((evidence_list(w, telling),) if telling else ()), *elsewhere(w, where)),
        settled=w.d.settled,
        suggestions=suggest(turn.lang, "confidence", "next", "rerun"),
        data={"answer": "evidence", "finding": None, "subjects": [str(s) for s in where.subjects],
              "rows": [row_data(o) for o in telling], "answered": len(every)},
    )  # fmt: skip


# --- nothing found ------------------------------------------------------------------------


def _looked(turn: Turn, w: Words) -> Reply:
    d = w.d
    c, told = d.coverage, [o for o in d.events if o.fact != "boot"]
    head = w.t(
        "Nothing that was found explains it. This was looked at:"
        if bad_roots(d.findings)
        else "Nothing wrong was found. This was looked at:",
        "已发现的问题都不能解释它。查看了以下内容：" if bad_roots(d.findings) else "未发现问题。查看了以下内容：",
    )
    parts: list[Part] = [Items(tuple(looked_at(w)))]
    parts += w.section("Lines that were understood", "已识别的日志行", _few(w, told))
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
