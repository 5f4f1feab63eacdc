"""The findings of a diagnosis as a tree: causes with what they explain below them, then what is ruled out, undecided and unseen.

The same problem on several things is one entry with the things below it, so that eight GPUs that are held down by one
power supply are one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from assistant.dialogue._words import Words, filled, words_of
from assistant.proofs import questions
from assistant.render.labels import label, localised
from knowledge.language import Text
from knowledge.observation import Scope
from knowledge.record import dataclass
from knowledge.text import clean, opened
from rules.engine import Grade, Role

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from knowledge.observation import Subject
    from rules.engine import Finding, Undecided


_FACT = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+\b")


class Kind(StrEnum):
    """What an entry of the tree is."""

    VERDICT = "verdict"  # that nothing was found, or that nothing can be said
    CAUSE = "cause"
    SYMPTOM = "symptom"
    SECTION = "section"  # a title with entries below it
    RULED_OUT = "ruled_out"
    UNDECIDED = "undecided"
    UNSEEN = "unseen"  # what could not be looked at
    NOTE = "note"  # what happened to an input


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the tree."""

    key: str  # the finding's id; it names the entry across two looks
    kind: Kind
    title: str
    depth: int = 0
    severity: str = ""  # of the verdict its state
    grade: str = ""  # in a word, unless it is confirmed
    action: str = ""  # the action word
    count: int = 0  # of a section and of several things: how many
    under: str = ""  # key of the entry that hides it when that is folded
    leads: bool = False  # others stand `under` it
    folded: bool = False  # at first
    findings: tuple[Finding, ...] = ()  # the same on several things
    undecided: tuple[Undecided, ...] = ()
    text: str = ""  # of what has no proof: the whole of it
    question: str = ""  # "explain this"


def outline(d: Diagnosis, lang: str) -> tuple[Entry, ...]:
    """The whole tree, from top to bottom."""
    w = words_of(d, lang)
    causes = tuple(_findings(w, d))
    top = () if causes else (_verdict(w),)
    below = (*_ruled_out(w), *_undecided(w), *_unseen(w), *_notes(w))
    if causes:
        return (*causes, *below)
    # Where nothing was found, what is open and what could not be seen is the news.
    return (*top, *(replace(e, folded=e.folded and e.depth > 0) for e in below))


def shown(entries: Sequence[Entry], folded: frozenset[str] | set[str]) -> tuple[Entry, ...]:
    """What is left when the entries with these keys are folded."""
    hidden: set[str] = set()
    out = []
    for e in entries:
        if e.under in folded or e.under in hidden:
            hidden.add(e.key)
        else:
            out.append(e)
    return tuple(out)


def owner(entries: Sequence[Entry], target: str) -> Entry | None:
    """The entry of a finding: by its id, its rule, or as one of several things."""
    for e in entries:
        if e.key == target:
            return e
    for e in entries:
        if any(target in (f.id, f.rule.id) for f in e.findings) or any(u.rule.id == target for u in e.undecided):
            return e
    return None


# --- nothing found ------------------------------------------------------------------------


def _verdict(w: Words) -> Entry:
    v = w.d.verdict
    said = clean(v.text.in_(w.lang))
    return Entry("verdict", Kind.VERDICT, said, severity=str(v.state), text=said, question=questions.why(w.lang))


# --- causes and what they explain ---------------------------------------------------------


def _findings(w: Words, d: Diagnosis) -> Iterator[Entry]:
    below = _below(d)
    yield from _level(
        w, [f for f in d.findings if f.id not in {x.id for group in below.values() for x in group}], below, 0, ""
    )


def _below(d: Diagnosis) -> dict[str, list[Finding]]:
    """Each symptom below the one of its causes that stands nearest to it: the one at the end of the longest chain."""
    by_id = {f.id: f for f in d.findings}
    order = {f.id: n for n, f in enumerate(d.findings)}
    depths: dict[str, int] = {}

    def depth(f: Finding) -> int:
        if f.id not in depths:
            depths[f.id] = 0  # engine.relate makes no circles; a hostile one ends here
            known = [by_id[i] for i in f.explained_by if i in by_id]
            depths[f.id] = 1 + max((depth(c) for c in known), default=-1) if f.role is Role.SYMPTOM else 0
        return depths[f.id]

    for f in d.findings:
        depth(f)
    out: dict[str, list[Finding]] = {}
    for f in d.findings:
        causes = [i for i in f.explained_by if i in by_id and depths[i] < depths[f.id]]
        if f.role is Role.SYMPTOM and causes:
            out.setdefault(max(causes, key=lambda i: (depths[i], -order[i])), []).append(f)
    return out


def _level(
    w: Words,
    findings: Sequence[Finding],
    below: dict[str, list[Finding]],
    depth: int,
    under: str,
    about: Subject | None = None,
) -> Iterator[Entry]:
    kind = Kind.SYMPTOM if depth else Kind.CAUSE
    for group in _groups(findings):
        f, effects = group[0], [e for g in group for e in below.get(g.id, ())]
        several = len(group) > 1
        key = f"{len(group)} {f.id}" if several else f.id
        yield Entry(
            key=key, kind=kind, title=_title(w, group, about), depth=depth, severity=str(f.severity), grade=_doubt(w, f),
            action=str(f.advice.bucket), count=len(group) if several else 0, under=under, leads=several or bool(effects),
            folded=several and not effects, findings=tuple(group), question=questions.of_finding(f, w.d, w.lang),
        )  # fmt: skip
        if several:
            yield from _each(w, group, kind, depth + 1, key, bool(effects))
        yield from _level(w, effects, below, depth + 1, key, None if several else f.subject)


def _each(w: Words, group: Sequence[Finding], kind: Kind, depth: int, under: str, beside: bool) -> Iterator[Entry]:
    """The same finding on each thing; folded away where effects stand `beside` them."""
    if beside:
        said = w.t(f"each of the {len(group)}", f"逐一列出这 {len(group)} 项")
        yield Entry(f"each {under}", Kind.SECTION, said, depth, under=under, leads=True, folded=True, findings=tuple(group),
                    question=questions.of_finding(group[0], w.d, w.lang))  # fmt: skip
        under, depth = f"each {under}", depth + 1
    for f in group:
        yield Entry(
            f.id, kind, w.view.name(f.subject), depth, str(f.severity), _doubt(w, f), str(f.advice.bucket), under=under,
            findings=(f,), question=questions.of_finding(f, w.d, w.lang),
        )  # fmt: skip


def _doubt(w: Words, f: Finding) -> str:
    """The grade, where it is not that of most findings."""
    return "" if f.grade is Grade.CONFIRMED else w.grade(f)


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The same problem with the same action, whatever it is about; the order stays."""
    groups: dict[object, list[Finding]] = {}
    for f in findings:
        key = (f.rule.id, f.title.en, f.severity, f.grade, f.advice.bucket, f.subject.scope, f.role)
        groups.setdefault(key, []).append(f)
    return list(groups.values())


def _title(w: Words, group: Sequence[Finding], about: Subject | None = None) -> str:
    """The problem and what it is about; that is not said again of what stands below it (`about`), nor of the only node."""
    f, subjects = group[0], [g.subject for g in group]
    known = subjects[0] == about or (subjects[0].scope is Scope.NODE and w.view.one_host)
    bare = len(group) == 1 and known
    said = clean(localised(f.title.in_(w.lang), f.subject, w.lang)) if bare else w.rule_title(f.title, subjects)
    times = sum(g.count for g in group)
    if times > len(group):
        said += ("" if said.endswith("）") else " ") + label("copies", w.lang).format(n=times)
    return said


# --- the sections below -------------------------------------------------------------------


def _section(w: Words, key: str, entries: Sequence[Entry], count: int) -> Iterator[Entry]:
    if entries:
        yield Entry(f"section {key}", Kind.SECTION, label(key, w.lang), count=count, leads=True, folded=True,
                    question=questions.of_section(key, w.lang))  # fmt: skip
        yield from entries


def _ruled_out(w: Words) -> Iterator[Entry]:
    groups = _groups(w.d.ruled_out)
    yield from _section(w, "ruled_out_title", [
        Entry(f"out {g[0].id}", Kind.RULED_OUT, _title(w, g), 1, str(g[0].severity), w.grade(g[0]), under="section ruled_out_title",
              findings=tuple(g), question=questions.why_not(g[0].rule, g[0].subject, w.d, w.lang)) for g in groups
    ], len(groups))  # fmt: skip


def _undecided(w: Words) -> Iterator[Entry]:
    """The rules that wait for something: those that speak for themselves, then those that a healthy machine has as well."""
    by_rule: dict[str, list[Undecided]] = {}
    for u in w.d.undecided:
        by_rule.setdefault(u.rule.id, []).append(u)
    ranked = sorted(by_rule.values(), key=lambda g: (-g[0].rule.severity.rank, g[0].rule.id))
    tells = [any(w.view.gaps.worth_saying(u) for u in g) for g in ranked]
    telling = [g for g, yes in zip(ranked, tells, strict=True) if yes]
    others = [g for g, yes in zip(ranked, tells, strict=True) if not yes]
    entries = [_open(w, g, 1, "section undecided") for g in telling]
    if others:
        n, more = len(others), "more " if telling else ""
        said = Text(
            f"{n} {more}that a healthy machine has as well", f"{'另有 ' if telling else ''}{n} 项，正常机器上也会有"
        )
        rest = Entry("undecided rest", Kind.SECTION, said.in_(w.lang), 1, under="section undecided", leads=True, folded=True,
                     question=questions.of_section("undecided", w.lang))  # fmt: skip
        entries += [rest, *(_open(w, g, 2, rest.key) for g in others)]
    yield from _section(w, "undecided", entries, len(ranked))


def _open(w: Words, group: Sequence[Undecided], depth: int, under: str) -> Entry:
    u, subjects = group[0], [x.subject for x in group]
    here = u.subject.scope is Scope.NODE and w.view.one_host
    title = clean(filled(u.rule).in_(w.lang)) if here else w.rule_title(filled(u.rule), subjects)
    return Entry(
        f"open {u.rule.id}", Kind.UNDECIDED, title, depth, str(u.rule.severity), under=under, undecided=tuple(group),
        count=len(group) if len(group) > 1 else 0,
        question=questions.why_not(u.rule, u.subject if len(group) == 1 else None, w.d, w.lang),
    )  # fmt: skip


def _unseen(w: Words) -> Iterator[Entry]:
    from assistant.render.view import Builder

    short = w.view.gaps.unseen()
    whole = Builder(w.d, w.lang, w.view.tells, verbose=True).gaps.unseen()
    entries = [
        Entry(f"unseen {n}", Kind.UNSEEN, said, 1, under="section could_not_see", text=text, question=_about(w, text))
        for n, (said, text) in enumerate(zip(map(opened, short), whole, strict=True))
    ]  # fmt: skip
    yield from _section(w, "could_not_see", entries, len(entries))


def _about(w: Words, text: str) -> str:
    """The question about the first fact that a line names."""
    found = next((name for name in _FACT.findall(text) if name in w.d.facts.vocabulary), "")
    return questions.of_topic(f"fact {found}", w.lang) if found else questions.of_section("could_not_see", w.lang)


def _notes(w: Words) -> Iterator[Entry]:
    said = [clean(n) for n in dict.fromkeys(w.d.notes)]
    entries = [Entry(f"note {n}", Kind.NOTE, text, 1, under="section notes", text=text,
                     question=questions.of_section("could_not_see", w.lang)) for n, text in enumerate(said)]  # fmt: skip
    yield from _section(w, "notes", entries, len(entries))
