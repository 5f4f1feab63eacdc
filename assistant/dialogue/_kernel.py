"""A kernel or an operator of a trace by its name: its share, time and calls on each rank, what it is, and what there is to change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from assistant.dialogue._scope import scoped
from assistant.dialogue._words import Words, suggest, words
from assistant.intent.query import Slots
from assistant.render.labels import subject_name
from assistant.render.sheet import Fields, Paragraph, Part, Table
from assistant.render.trace_units import digits
from assistant.reply import Reply
from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from knowledge.language import Text

ROWS, NAME = 16, 120  # ranks that are listed; characters of a name in a sentence


class _Kind(NamedTuple):
    """How one of the two is called, and its facts."""

    scope: Scope
    facts: str  # what their names begin with
    en: str
    zh: str
    command: str


_KINDS = {
    "kernel": _Kind(Scope.KERNEL, "trace.by_kernel.", "kernel", "kernel", "kernels"),
    "operator": _Kind(Scope.OPERATOR, "trace.by_operator.", "operator", "算子", "ops"),
}


class _Told(NamedTuple):
    """What one rank told of it."""

    subject: Subject
    values: dict[str, Observation]

    def number(self, name: str) -> float:
        """A value; 0 where it is not told."""
        o = self.values.get(name)
        return float(o.value) if o is not None and isinstance(o.value, int | float) else 0.0


def answer(turn: Turn) -> Reply | None:
    """The answer about what the query names; None when it names neither a kernel nor an operator of a trace."""
    found = next(((slot, v) for slot in _KINDS for v in getattr(turn.query.slots, slot)), None)
    if turn.diagnosis is None or found is None:
        return None
    kind, w = _KINDS[found[0]], words(turn)
    every = _every(w, kind, turn)
    if not every:
        return None
    name, told = _called(found[1], every)
    if not told:
        return _not_told(turn, w, kind, found[1], every)
    return _reply(turn, w, kind, name, sorted(told, key=lambda x: -x.number("share")))


def _every(w: Words, kind: _Kind, turn: Turn) -> list[_Told]:
    """All that is told of the kind, of the ranks that are asked about."""
    facts, out = w.d.facts, []
    where = scoped(w.d, Slots(rank=turn.query.slots.rank))
    for s in facts.subjects(kind.scope):
        if where.subjects and s.parent not in where.subjects:
            continue
        names = [n for n in facts.facts if n.startswith(kind.facts)]
        seen = {n: o for n in names if (o := facts.current(n, s)) is not None and o.status is Status.OK}
        if seen:
            out.append(_Told(s, {n.removeprefix(kind.facts): o for n, o in seen.items()}))
    return out


def _called(said: str, every: list[_Told]) -> tuple[str, list[_Told]]:
    """What has this name; else the one whose name begins so, or holds it, that takes most."""
    low = " ".join(clean(said).split()).casefold()
    for fits in (lambda x: x == low, lambda x: x.startswith(low), lambda x: low in x):
        found = [t for t in every if fits(t.subject.id.casefold())]
        if found:
            name = max(found, key=lambda t: t.number("share")).subject.id
            return name, [t for t in every if t.subject.id == name]
    return said, []


def _not_told(turn: Turn, w: Words, kind: _Kind, said: str, every: list[_Told]) -> Reply:
    """It is not among those that take most: how little it can be."""
    least = min(t.number("share") for t in every)
    name, ranks = excerpt(said, NAME), len({t.subject.parent for t in every})
    n = len(every) // max(1, ranks)
    head = w.t(
        f"{kind.en.capitalize()} {name} is not among the {n} that take most time: each of those takes {digits(least)} % or more.",
        f"{kind.zh} {name} 不在耗时最多的 {n} 个之列：它们各占 {digits(least)} % 以上。",
    )
    hint = w.t(
        f"All of them: gpudiag trace {kind.command} --top 1000 FILE",
        f"查看全部：gpudiag trace {kind.command} --top 1000 文件",
    )
    return Reply(turn.lang, head, (Paragraph(hint),), settled=False, suggestions=suggest(turn.lang, "next"),
                 data={"answer": "named", "kind": kind.en, "name": said, "ranks": []})  # fmt: skip


def _reply(turn: Turn, w: Words, kind: _Kind, name: str, told: list[_Told]) -> Reply:
    first, asked = told[0], _class_question(kind, told[0], name)
    rest = _class_answer(turn, asked) if asked is not None else None
    head = _head(w, kind, name, first, len(told))
    parts: list[Part] = [Fields(_fields(w, first))]
    if len(told) > 1:
        parts.append(_table(w, told))
    if rest is not None and asked is not None:
        said = asked.in_(w.lang)
        parts += [Paragraph(f"{said[:1].upper()}{said[1:]} {rest.headline}"), *rest.parts]
    data = {"answer": "named", "kind": kind.en, "name": name, "ranks": [
        {"subject": str(t.subject.parent), **{n: o.value for n, o in t.values.items()}} for t in told]}  # fmt: skip
    return Reply(turn.lang, head, tuple(parts), focus=rest.focus if rest is not None else "",
                 suggestions=suggest(turn.lang, "why", "evidence", "next"), data=data)  # fmt: skip


def _head(w: Words, kind: _Kind, name: str, first: _Told, ranks: int) -> str:
    """``Kernel X takes 31 % of the time of all kernels: 1240 ms in 312 calls.``"""
    share, ms, calls = digits(first.number("share")), digits(first.number("ms")), round(first.number("calls"))
    short = excerpt(name, NAME)
    if kind.scope is Scope.KERNEL:
        en, zh = "of the time of all kernels", "（占全部 kernel 时间）"
    else:
        en, zh = "of the device time, by the kernels that it launches itself", "（占设备时间，按其直接启动的 kernel）"
    place, place_zh = "", ""
    if ranks > 1 and first.subject.parent is not None:
        rank = {lang: subject_name(first.subject.parent, lang) for lang in ("en", "zh")}
        place, place_zh = f" on {rank['en']}, the most of {ranks}", f"（{rank['zh']}，{ranks} 个中最多）"
    times = "call" if calls == 1 else "calls"
    return w.t(
        f"{kind.en.capitalize()} {short} takes {share} % {en}: {ms} ms in {calls} {times}{place}.",
        f"{kind.zh} {short} 占 {share} %{zh}：{calls} 次共 {ms} ms{place_zh}。",
    )


def _fields(w: Words, t: _Told) -> tuple[tuple[str, str], ...]:
    calls = t.number("calls")
    each = digits(1000 * t.number("ms") / calls) if calls else ""
    rows = [(w.t("each", "每次"), f"{each} us" if each else "")]
    if (kind_of := t.values.get("class")) is not None:
        rows.append((w.t("class", "类别"), str(kind_of.value)))
    if "all_ms" in t.values:
        rows += [
            (w.t("with those it calls", "含其调用的算子"), f"{digits(t.number('all_ms'))} ms"),
            (w.t("on the host", "主机上"), f"{digits(t.number('host_ms'))} ms"),
        ]
    sources = dict.fromkeys(o.source.call for o in t.values.values())
    return (*rows, (w.t("source", "来源"), ", ".join(clean(s) for s in sources)))


def _table(w: Words, told: list[_Told]) -> Table:
    head = (w.t("where", "位置"), w.t("share", "占比"), w.t("time", "时间"), w.t("calls", "次数"))
    rows = tuple(
        (subject_name(t.subject.parent, w.lang) if t.subject.parent is not None else "", f"{digits(t.number('share'))} %",
         f"{digits(t.number('ms'))} ms", str(round(t.number("calls"))))
        for t in told[:ROWS]
    )  # fmt: skip
    return Table(head, rows)


def _class_question(kind: _Kind, t: _Told, name: str) -> Text | None:
    """What is asked of work of its class; None where nothing more is known of it than how long it takes."""
    from assistant.trace import questions

    found = t.values.get("class")
    named = questions.kernel(name, str(found.value) if found is not None else "")
    asked = named if kind.scope is Scope.KERNEL else questions.frame(name, "op")
    return None if asked is questions.WORST else asked


def _class_answer(turn: Turn, asked: Text) -> Reply | None:
    """How much it is of the whole, what was concluded of it, what to change."""
    from assistant.dialogue._bottleneck import answer as about

    slots = Slots(rank=turn.query.slots.rank)
    return about(replace(turn, query=replace(turn.query, text=asked.in_(turn.lang), slots=slots)))
