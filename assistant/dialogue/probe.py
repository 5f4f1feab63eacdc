"""Show a value, look at one thing: the facts that were asked for, as they are, with where each comes from.

Nothing is concluded here; what stands on a value is marked, and where there is no value stands why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import no_gpu
from assistant.dialogue import _running
from assistant.dialogue._scope import Scoped, belongs, scoped
from assistant.dialogue._shown import Marks, marks_of, said, span, table
from assistant.dialogue._traced import bottleneck
from assistant.dialogue._words import Words, nothing_yet, suggest, words
from assistant.planner.asked import asked_facts, givers, named_probes, wanted
from assistant.planner.goal import only_by_looking
from assistant.render.labels import listed, reason_name, tight
from assistant.render.meanings import called
from assistant.render.sheet import Fields, Items, Paragraph, Part
from assistant.reply import Reply
from knowledge.facts import FactSpec, Kind, vocabulary
from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from assistant.intent.query import Query
    from probes.live import ProbeSpec
    from rules.factbase import FactBase

ROWS = 40  # of one answer: eight GPUs with five values each
LAST = 10  # events that are shown, the newest ones
CLOSEST = 6  # facts that are offered when none was understood
SUMMED = 3  # facts of which the headline tells the range of each

__all__ = ["answer", "wanted", "wanted_probes"]


def wanted_probes(query: Query, available: Sequence[ProbeSpec]) -> tuple[str, ...]:
    """The probes to run for `query`: those that it names, and for each fact the cheapest that tells it.

    A probe that is not run by default is among them only when it is named, or nothing else tells the fact: whoever
    runs them asks first where `assistant.planner` would.
    """
    facts = wanted(query)
    named = named_probes(query.text, available, tools_only=bool(facts))
    return tuple(dict.fromkeys((*named, *givers(facts, available))))


def answer(turn: Turn) -> Reply:
    """The values of the facts that were asked for."""
    from probes.live import probes

    facts = asked_facts(turn.query)
    named = named_probes(turn.query.text, probes(), tools_only=bool(facts))
    if only_by_looking(turn.query) and (running := _running.about(turn)) is not None:
        return _running.answer(turn, running)  # "show the stack of pid 4242"
    if not facts and not named:
        return bottleneck(turn) or _not_understood(turn)
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w = words(turn)
    where = scoped(turn.diagnosis, turn.query.slots)
    strange = [u for u in where.unknown if u.known or u.slot != "node"]  # nothing was looked at: no node is known yet
    if strange and not where.subjects and (task := _found_out(turn)) is not None:
        return task
    if strange and not where.subjects:
        return _nowhere(turn, w, where)
    rows = _rows(w, facts or _told_by(named, turn.diagnosis.facts), where)
    if not rows:
        return _found_out(turn) or _nothing_told(turn, w, facts, named)
    return _shown(turn, w, facts, rows, named)


def _found_out(turn: Turn) -> Reply | None:
    """Who uses a GPU that is none of this machine's: how that is found out there."""
    from assistant.dialogue import fix
    from assistant.intent.query import Topic
    from assistant.intent.slots import slots
    from assistant.intent.tasks import asked_who

    text = turn.query.text
    task = asked_who(text, slots(text).marked)
    return fix.task(turn, Topic(f"howto {task}", 0.0)) if task else None


# --- what there is ------------------------------------------------------------------------


def _told_by(named: Sequence[str], facts: FactBase) -> tuple[str, ...]:
    """The known facts that the named probes provide, those first that they are run for."""
    from probes.live import probes

    specs = [s for s in probes() if s.name in named]
    every = [*(f for s in specs for f in s.main), *(f for s in specs for f in s.provides)]
    return tuple(dict.fromkeys(f for f in every if f in facts.facts))


def _rows(w: Words, names: Iterable[str], where: Scoped) -> list[Observation]:
    """The observations that count, by fact and place; of events the newest."""
    facts = w.d.facts
    out: list[Observation] = []
    for name in names:
        spec = facts.vocabulary.get(name)
        if spec is None:
            continue
        if spec.kind is Kind.EVENT:
            out += _events(name, facts, where)
            continue
        scopes = (Scope.JOB, Scope.DOCUMENT) if spec.scope is Scope.JOB else (spec.scope,)  # a log is that of a job
        places = [s for scope in scopes for s in facts.subjects(scope) if _meant(s, spec, where, facts)]
        if not places and spec.scope is not Scope.NODE:  # why nobody could tell stands on the node
            places = [s for s in facts.subjects(Scope.NODE) if not where.named or belongs(s, where.subjects, facts)]
        out += [o for s in places if (o := facts.current(name, s)) is not None]
    return out


def _events(name: str, facts: FactBase, where: Scoped) -> list[Observation]:
    found = [o for o in facts.events(name) if not where.named or belongs(o.subject, where.subjects, facts)]
    if found:
        return list(found[-LAST:])
    places = {s: None for scope in Scope for s in facts.subjects(scope)}
    silent = [
        o for s in places for o in facts.silences(name, s) if not where.named or belongs(s, where.subjects, facts)
    ]
    return silent[:1]


def _meant(subject: Subject, spec: FactSpec, where: Scoped, facts: FactBase) -> bool:
    """Whether the question is about this subject: itself, a part of it, what it is part of, or what uses it."""
    if not where.named:
        return True
    if belongs(subject, where.subjects, facts):
        return True
    return any(s in where.subjects for s in facts.related(subject, Scope.GPU)) and spec.scope is Scope.PROCESS


# --- answers ------------------------------------------------------------------------------


def _shown(turn: Turn, w: Words, facts: Sequence[str], rows: Sequence[Observation], named: Sequence[str]) -> Reply:
    marks = marks_of(w)
    told = [o for o in rows if o.status.answered]
    ordered = sorted(rows, key=lambda o: (o.status is not Status.OK, not o.status.answered))  # stable: else as found
    parts: list[Part] = []
    if len(ordered) > 1 or marks.get((ordered[0].fact, ordered[0].subject)) or not told:
        parts.append(table(w, ordered[:ROWS], marks))
    rest = len(ordered) - ROWS
    if rest > 0:
        parts.append(Paragraph(w.t(f"{rest} more values are known.", f"另有 {rest} 个值。")))
    parts += _meanings(w, facts)
    missing = [f for f in facts if not any(o.fact == f for o in rows)]
    if missing:
        names = listed(missing, w.lang)
        parts.append(Paragraph(w.t(f"Nothing told: {names}.", f"没有来源给出：{names}。")))
    parts += w.section("What stands on these values", "基于这些值的结论", _conclusions(w, ordered, marks))
    return Reply(
        turn.lang,
        _headline(w, ordered, told, facts, named),
        tuple(parts),
        settled=bool(told),
        suggestions=suggest(turn.lang, "verdict", "rerun"),
        data={"answer": "probe", "values": [_data(o) for o in ordered[:ROWS]], "probes": list(named)},
    )


def _headline(
    w: Words, ordered: Sequence[Observation], told: Sequence[Observation], facts: Sequence[str], named: Sequence[str]
) -> str:
    if not told:
        first = ordered[0]
        why = reason_name(f"{first.status}: {first.detail}" if first.detail else str(first.status), w.lang)
        what = first.fact if len({o.fact for o in ordered}) == 1 else w.t("these values", "这些值")
        return clean(w.t(f"There is no value of {what}: {why}.", f"{what} 没有值：{why}。"))
    if len(ordered) == 1:
        return said(w, told[0])
    if not facts:
        tools = listed(named, w.lang)
        return w.t(
            f"{len(told)} values are known of what {tools} tells.", f"{tools} 所能给出的值中已知 {len(told)} 个。"
        )
    names = list(dict.fromkeys(o.fact for o in told))
    if len(names) <= SUMMED:
        each = [_summed(w, [o for o in told if o.fact == name]) for name in names]
        if all(each):
            return ("" if w.lang == "zh" else " ").join(each)
    every = w.d.facts.vocabulary
    what = listed((called(name, every, w.lang) for name in names[:4]), w.lang, ";")
    return w.t(f"{len(told)} values: {what}.", f"{len(told)} 个值：{what}。")


def _summed(w: Words, told: Sequence[Observation]) -> str:
    """One sentence of all values of a fact; empty where one does not hold them."""
    return said(w, told[0]) if len(told) == 1 else span(w, told)


def _meanings(w: Words, facts: Sequence[str]) -> list[Part]:
    """What the facts that were asked for are."""
    specs = [spec for name in facts[:CLOSEST] if (spec := w.d.facts.vocabulary.get(name))]
    return [Fields(tuple((s.name, s.meaning.in_(w.lang)) for s in specs))] if specs else []


def _conclusions(w: Words, rows: Sequence[Observation], marks: Marks) -> tuple[str, ...]:
    found = {f.id: f for o in rows for f in marks.get((o.fact, o.subject), ())}
    return tuple(f"{w.title(f)} ({f.rule.id})" for f in list(found.values())[:CLOSEST])


def _data(o: Observation) -> dict[str, object]:
    from assistant.dialogue.evidence import row_data

    return row_data(o)


# --- nothing to show ----------------------------------------------------------------------


def _nothing_told(turn: Turn, w: Words, facts: Sequence[str], named: Sequence[str]) -> Reply:
    """Nobody was asked, or nobody said anything: which probes would tell."""
    from probes.active import is_test
    from probes.live import probes

    tellers = named or givers(facts, probes())
    what = listed(facts or named, w.lang)
    lines = [f"gpudiag test {name}" if is_test(name) else f"{turn.check} --probe {name}" for name in tellers]
    head = w.t(f"Nothing that was looked at tells {what}.", f"已查看的内容中没有 {what}。")
    if no_gpu(w.d.facts) and not turn.far and all(name.startswith("gpu.") for name in facts):
        head = w.t(
            "No GPU is on the bus of this machine; on the one meant a command tells it.",
            "本机总线上没有 GPU；请在所指的机器上运行以下命令。",
        )
    if not tellers:
        head = w.t(f"No probe tells {what}.", f"没有探针能给出 {what}。")
    return Reply(
        turn.lang, head, (*w.section("What would tell", "可由以下命令得到", lines), *_meanings(w, facts)),
        settled=False, suggestions=suggest(turn.lang, "verdict", "help"),
        data={"answer": "probe", "values": [], "probes": list(tellers)},
    )  # fmt: skip


def _nowhere(turn: Turn, w: Words, where: Scoped) -> Reply:
    """What the question names is not among what is known."""
    words = {"gpu": "GPU", "node": w.t("node", "节点"), "job": w.t("job", "作业"), "pid": w.t("process", "进程"),
             "process": w.t("process", "进程")}  # fmt: skip
    lost = listed((f"{words.get(u.slot, u.slot)} {u.value}" for u in where.unknown), w.lang)
    known = [
        w.t(f"There is: {', '.join(u.known)}", f"已知的有：{'、'.join(u.known)}") for u in where.unknown if u.known
    ]
    return Reply(
        turn.lang, w.t(f"No {lost} is known.", tight(f"没有 {lost} 的信息。", w.lang)),
        (Items(tuple(known)),) if known else (), settled=False, data={"answer": "probe", "values": []},
    )  # fmt: skip


def _not_understood(turn: Turn) -> Reply:
    """No value was understood: the closest ones that can be shown."""
    from assistant.find import search

    known = vocabulary()
    found = [t.name for t in search(turn.query.text, CLOSEST, ("fact",)) if t.name in known]
    found.sort(key=lambda name: not name.startswith("gpu."))  # a "temperature" without another word is a GPU's
    zh = turn.lang == "zh"
    head = "没有听懂要看哪个值。" if zh else "Which value to show was not understood."
    rows = tuple((name, known[name].meaning.in_(turn.lang)) for name in found)
    lead = Paragraph("可以显示的相近的值：" if zh else "The closest that can be shown:")
    asks = tuple(f"显示 {name}" if zh else f"show {name}" for name in found[:3])
    return Reply(
        turn.lang, head, (lead, Fields(rows)) if rows else (), settled=False,
        suggestions=asks or suggest(turn.lang, "help"), data={"answer": "probe", "closest": found},
    )  # fmt: skip
