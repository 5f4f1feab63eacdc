"""What changed between two captures of one thing that were given together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from assistant.changes import FACTS_OF_INTEREST, counts_trouble
from assistant.diagnosis import bad_roots
from assistant.dialogue._words import suggest, words
from assistant.intent.changed import changed
from assistant.intent.window import window_of
from assistant.render.labels import label, listed
from assistant.render.lines import moment
from assistant.render.sheet import Items, Paragraph, Part, Table
from assistant.render.times import readable, when
from assistant.reply import Reply
from knowledge.facts import Kind, vocabulary
from knowledge.observation import Event, Observation, Origin, Status, Subject
from knowledge.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from assistant.dialogue._words import Words
    from rules.engine import Finding
    from rules.factbase import FactBase

ROWS = 24
Change = tuple[Observation, Observation]


def answer(turn: Turn) -> Reply | None:
    """What is gone, new and still there, then each value that differs; None where that is not asked, or one capture was given."""
    d, before = turn.diagnosis, turn.before
    if d is None or not changed(turn.query.text):
        return None
    w = words(turn)
    if before is None:
        return _of_samples(turn, w)
    changes = _differences(before, d)
    parts: list[Part] = [_table(w, changes[:ROWS])] if changes else []
    if len(changes) > ROWS:
        parts.append(Paragraph(label("more_lines", w.lang).format(n=len(changes) - ROWS)))
    return Reply(
        turn.lang, _head(w, before, changes), tuple(parts), settled=True,
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "changed", "values": len(changes)},
    )  # fmt: skip


def _of_samples(turn: Turn, w: Words) -> Reply | None:
    """Each state that changed once within the samples of a file, in the time that is asked about; None where none did."""
    window = window_of(turn.query.text, "")
    places = dict.fromkeys(k.inner.subject for k in w.d.facts.observations)
    found = [c for s in places for c in state_changes(w.d.facts, s)]
    last = max((b.at or 0 for _, b in found), default=0)
    kept = sorted((c for c in found if window is None or window.has(c[1].at or 0, last)), key=lambda c: c[1].at or 0)
    if not kept:
        return None
    more = tuple(since(w, *c) for c in kept[1:ROWS])
    return Reply(turn.lang, since(w, *kept[0]), (Items(more),) if more else (), settled=True,
                 suggestions=suggest(turn.lang, "why", "next", "evidence"), data={"answer": "changed", "values": len(kept)})  # fmt: skip


def since(w: Words, before: Observation, after: Observation) -> str:
    """Since when a state is what it is, and what it was before."""
    told, then = w.seen(after, places=False), w.seen(before, places=False)
    at = moment(after)
    return w.t(f"Since {at}: {told}; before: {then}.", f"自 {at} 起：{told}；之前：{then}。")


def since_when(w: Words, f: Finding) -> str:
    """Since when a state of what a finding is about is what it is, where earlier samples say otherwise; else when it was read."""
    work = w.d.facts.current("gpu.work.before", f.subject)
    if work is not None and work.at is not None and any(o.fact.startswith("gpu.work.") for o in f.because):
        return w.t(f"Since {moment(work)}.", f"自 {moment(work)} 起。")
    changes = sorted(state_changes(w.d.facts, f.subject), key=lambda c: c[1].at or 0)
    if changes:
        return since(w, *changes[0])
    times = sorted((o for o in f.because if o.at is not None), key=lambda o: o.at or 0)
    read = moment(times[-1]) if times else ""
    return w.t(f"Read at {read}; when it began is not told.", f"读取时间：{read}；何时开始未知。") if read else ""


def state_changes(facts: FactBase, subject: Subject) -> Iterator[Change]:
    """Of each state of a thing the two samples between which it changed, where it did so once: a limit that was lowered."""
    for fact in sorted(facts.facts):
        if facts.vocabulary[fact].kind is not Kind.STATE:
            continue
        samples = sorted((o for o in facts.of(fact, subject) if o.at is not None and o.status.answered), key=lambda o: o.at or 0)  # fmt: skip
        changes = [(a, b) for a, b in pairwise(samples) if a.value != b.value and a.clock is b.clock]
        if len(changes) == 1:
            yield changes[0]


def _gap(w: Words) -> str:
    """What stands between two sentences."""
    return "" if w.lang == "zh" else " "


def _head(w: Words, before: Diagnosis, changes: Sequence[Change]) -> str:
    was, now = bad_roots(before.findings), bad_roots(w.d.findings)
    then, last = ({f.id for f in found} for found in (was, now))
    groups = (
        (w.t("Gone", "已消失"), [f for f in was if f.id not in last]),
        (w.t("New", "新出现"), [f for f in now if f.id not in then]),
        (w.t("Still there", "仍然存在"), [f for f in now if f.id in then]),
    )
    said = [f"{name}{w.t(': ', '：')}{_titles(w, found)}{w.t('.', '。')}" for name, found in groups if found]
    if not said:
        said = [w.t("Nothing wrong was found in either.", "两份中都未发现问题。")]
    n = len(changes)
    span = _span(changes)
    values = w.t(f"{n} values differ{span and f', {span}'}.", f"有 {n} 项数值不同{span and f'，{span}'}。")
    return _gap(w).join([*said, values if n else w.t("No value differs.", "数值没有变化。")])


def _titles(w: Words, found: Sequence[Finding]) -> str:
    names = [w.title(f) for f in found]
    return listed([*names[:3], *([f"+{len(names) - 3}"] if len(names) > 3 else [])], w.lang, ";")


def _span(changes: Sequence[Change]) -> str:
    if not changes:
        return ""
    first, last = (readable(when(o)) for o in changes[0])
    return f"{first} -> {last}" if first and last else ""


def _differences(before: Diagnosis, now: Diagnosis) -> list[Change]:
    """Each value of the earlier capture that the later one tells otherwise; what matters ahead of what a job changes."""
    sources = {o.source.probe for k in before.facts.observations if (o := k.inner).origin is Origin.MEASURED}
    found: list[Change] = []
    for key in dict.fromkeys((k.fact, k.inner.subject) for k in before.facts.observations):
        a, b = before.facts.current(*key), now.facts.current(*key)
        if a is not None and b is not None and b.source.probe in sources and _differ(a, b):
            found.append((a, b))
    return sorted(found, key=lambda c: (not _matters(c[0].fact), c[0].fact, str(c[0].subject)))


def _matters(fact: str) -> bool:
    """Whether it tells how the machine is set up or what goes wrong on it, not what it does at the moment."""
    return fact in FACTS_OF_INTEREST or counts_trouble(vocabulary()[fact]) or "recovery" in fact


def _differ(a: Observation, b: Observation) -> bool:
    told = Status.OK in (a.status, b.status) and a.status.answered and b.status.answered
    return told and not isinstance(a.value, Event) and not isinstance(b.value, Event) and a.value != b.value


def _table(w: Words, changes: Sequence[Change]) -> Table:
    rows = tuple((clean(w.seen(a, places=False)), clean(w.seen(b, places=False))) for a, b in changes)
    return Table((w.t("before", "之前"), w.t("after", "之后")), rows)
