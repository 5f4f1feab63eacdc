"""Which part of a machine a question is about: names that people use, resolved to subjects through the facts.

"GPU 3" is an index; the facts know its PCI address. What is named and not known is kept, with what there is instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.intent.query import Query, Slots
from knowledge.identity import is_pci, normalise_pci
from knowledge.lazy import lazy
from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from rules.engine import Finding
    from rules.factbase import FactBase

KNOWN = 12  # names that are suggested instead of an unknown one, at most
WORD = 80  # characters of a name that somebody gave
_RANGE = lazy(r"\[([0-9,\- ]{1,200})\]")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A thing that was named and that the facts do not know."""

    slot: str  # field of `Slots`: gpu, pid, node, ...
    value: str  # as it was named
    known: tuple[str, ...]  # what there is of the kind, by the names that people use; at most `KNOWN`


@dataclass(frozen=True, slots=True)
class Scoped:
    """What a question is about.

    `subjects` are the things named (empty: nothing was named, or nothing of it is known: look at `unknown`).
    `about` are the findings on them, on their parts, on what they are part of, and on the GPUs and jobs that a named
    process uses; `others` the rest. Both keep the order of the diagnosis (roots first, worst first), and together
    they are all its findings. Where nothing was named all findings are `about`.
    """

    subjects: tuple[Subject, ...]
    unknown: tuple[Unknown, ...]
    about: tuple[Finding, ...]
    others: tuple[Finding, ...]
    named: bool  # whether the question names anything at all
    unnamed_node: bool = False  # the node was named, and the sources do not tell the name of theirs

    @property
    def narrow(self) -> bool:
        """Whether it is about less than a whole node."""
        return any(s.scope is not Scope.NODE for s in self.subjects)


def scoped(diagnosis: Diagnosis, slots: Slots) -> Scoped:
    """What of `diagnosis` the `slots` of a question mean. Pure; never raises for a name that is not known.

    * gpu: an index (`gpu.index`), a PCI address in any spelling, a UUID or the beginning of one (8 characters or more);
    * pid, rank, job: the subjects of that id, on every node and of every job; process: by `process.comm` or `process.command`,
      an inference server also by its engine;
    * node: by name, or by its part before the first dot; a node set ``gpu[001-064]`` means those of it that are known.
      The one node whose name nobody told is taken to be the one that is named (`unnamed_node`).

    A node that is named together with other things only narrows them.
    """
    facts = diagnosis.facts
    hosts, lost = _nodes(slots.node, facts)
    unnamed = bool(slots.node) and not lost and hosts == {""}
    found: dict[Subject, None] = {}
    unknown = list(lost)
    nowhere = bool(slots.node) and not hosts  # "gpu 5 on gpu-13", and nothing was read of gpu-13: no other node's GPU 5
    for slot, values, lookup in () if nowhere else _lookups(slots, facts):
        for value in values:
            hits = [s for s in lookup(value) if not hosts or s.host in hosts or not s.host]
            found.update(dict.fromkeys(hits))
            if not hits:
                unknown.append(Unknown(slot, excerpt(str(value), WORD), _known(slot, facts)))
    if not any((slots.gpu, slots.pid, slots.process, slots.rank, slots.job)):
        found.update((s, None) for s in facts.subjects(Scope.NODE) if s.id in hosts)
    named = bool(found or unknown)
    touched = _touched(found, facts)
    every = diagnosis.findings
    about = tuple(f for f in every if not named or _touches(f.subject, touched))
    kept = {f.id for f in about}
    return Scoped(tuple(found), tuple(unknown), about, tuple(f for f in every if f.id not in kept), named, unnamed)


_BUS = lazy(r"(?<![\w:.])([0-9][a-f]|[a-f][0-9])(?::00(?:\.0)?)?(?![\w:.])", re.IGNORECASE)


def by_bus(query: Query, facts: FactBase) -> Query:
    """The query with the GPU that people call by the bus number of its address ("the job on 9a"), where one that is known has it."""
    if any(query.slots) or query.pasted:
        return query
    buses = {s.id.partition(":")[2][:2]: s.id for s in facts.subjects(Scope.GPU) if is_pci(s.id)}
    named = dict.fromkeys(buses[found] for word in _BUS.findall(query.text) if (found := word.casefold()) in buses)
    return replace(query, slots=query.slots._replace(gpu=tuple(named))) if named else query


def belongs(subject: Subject, to: Sequence[Subject], facts: FactBase) -> bool:
    """Whether `subject` is one of `to`, a part of one, what one is part of, or what a named process or rank uses."""
    return _touches(subject, _touched(to, facts))


def gpu_index(subject: Subject, facts: FactBase) -> int | None:
    """The index of a GPU, when the facts tell it."""
    o = facts.current("gpu.index", subject)
    return o.value if o is not None and o.status is Status.OK and isinstance(o.value, int) else None


def fine(turn: Turn) -> Scoped | None:
    """The part of a machine that the talk is about, when nothing wrong was found on it; else None."""
    from assistant.dialogue.verdict import decisive

    if turn.diagnosis is None or turn.base is None or turn.focus:
        return None
    where = scoped(turn.diagnosis, turn.base.slots)
    return where if where.narrow and not where.unknown and not decisive(where) else None


# --- lookups ------------------------------------------------------------------------------

_Lookup = Callable[[object], Iterable[Subject]]


def _lookups(slots: Slots, facts: FactBase) -> Sequence[tuple[str, Sequence[object], _Lookup]]:
    def by_id(scope: Scope) -> _Lookup:
        return lambda value: [s for s in facts.subjects(scope) if s.id == str(value)]

    return (
        ("gpu", slots.gpu, lambda value: _gpus(value, facts)),
        ("pid", slots.pid, by_id(Scope.PROCESS)),
        ("process", slots.process, lambda value: _processes(str(value), facts)),
        ("rank", slots.rank, by_id(Scope.RANK)),
        ("job", slots.job, lambda value: _jobs(str(value), facts)),
    )


def _gpus(value: object, facts: FactBase) -> list[Subject]:
    gpus = facts.subjects(Scope.GPU)
    if isinstance(value, int):
        found = [
            s
            for s in gpus
            if gpu_index(s, facts) == value or (not is_pci(s.id) and s.id.partition(":")[2] == str(value))
        ]  # index:3, amd:3
        return found or _called(f"GPU{value}", facts)
    text = str(value).strip()
    address = normalise_pci(text)
    if is_pci(address):
        return [s for s in gpus if s.id == address]
    wanted = text.casefold()
    if len(wanted) < 8:  # "GPU-5e1f": as short as tools print a UUID
        return []
    return [s for s in gpus if any(u.casefold().startswith(wanted) for u in (s.id, _text("gpu.uuid", s, facts)) if u)]


def _called(name: str, facts: FactBase) -> list[Subject]:
    """The one GPU whose lines call it so: "waiting for RPC response from GPU6 GSP"."""
    word = re.compile(rf"\b{name}\b")
    lines = (o for o in facts.events("xid") if word.search(o.excerpt))
    found = {s for o in lines if (s := o.subject.up(Scope.GPU)) is not None}
    return list(found) if len(found) == 1 else []


def _processes(name: str, facts: FactBase) -> list[Subject]:
    wanted = name.strip().casefold()
    if not wanted:
        return []
    out = []
    for s in facts.subjects(Scope.PROCESS):
        words = _text("process.command", s, facts).casefold().split()
        ends = {w.rpartition("/")[2] for w in words}
        if wanted == _text("process.comm", s, facts).casefold() or wanted in ends or wanted in words:
            out.append(s)
    engine = "triton" if wanted in ("tritonserver", "trtllm") else wanted
    return out + [s for s in facts.subjects(Scope.OBJECT) if _text("serving.engine", s, facts) == engine]


def _jobs(name: str, facts: FactBase) -> list[Subject]:
    wanted = name.strip().casefold()
    return [
        s
        for s in facts.subjects(Scope.JOB)
        if wanted and wanted in (s.id.casefold(), _text("job.name", s, facts).casefold())
    ]


def _text(fact: str, subject: Subject, facts: FactBase) -> str:
    o: Observation | None = facts.current(fact, subject)
    return o.value if o is not None and o.status is Status.OK and isinstance(o.value, str) else ""


def _nodes(names: Sequence[str], facts: FactBase) -> tuple[set[str], list[Unknown]]:
    """Hosts that are meant (empty: all), and names that mean none."""
    known = [s.id for s in facts.subjects(Scope.NODE)]
    hosts: set[str] = set()
    unknown = []
    for name in names:
        hits = [host for host in known if host and _names(name, host)]
        if not hits and not any(known):
            hits = known[:1]  # [""]: the one node whose name nobody told
        hosts.update(hits)
        if not hits:
            unknown.append(Unknown("node", excerpt(name, WORD), tuple(sorted(filter(None, known)))[:KNOWN]))
    return hosts, unknown


def _names(said: str, host: str) -> bool:
    """Whether a name, or a node set, means `host`: the part before the first dot is enough."""
    said, host = said.casefold(), host.casefold()
    if said == host or said.partition(".")[0] == host.partition(".")[0]:
        return True
    found = _RANGE.search(said)
    if found is None:
        return False
    head, tail = said[: found.start()], said[found.end() :]
    middle = host[len(head) : len(host) - len(tail)] if host.startswith(head) and host.endswith(tail) else ""
    return middle.isdigit() and len(middle) <= 12 and any(_within(int(middle), part) for part in found[1].split(","))


def _within(number: int, part: str) -> bool:
    low, _, high = part.strip().partition("-")
    if not low.isdigit() or (high and not high.isdigit()):
        return False
    return int(low) <= number <= int(high or low)


def _known(slot: str, facts: FactBase) -> tuple[str, ...]:
    if slot == "gpu":
        numbered = [(i, s) for s in facts.subjects(Scope.GPU) if (i := gpu_index(s, facts)) is not None]
        if numbered:
            return tuple(f"{i} ({s.id})" for i, s in sorted(numbered, key=lambda n: n[0]))[:KNOWN]
    scope = {"gpu": Scope.GPU, "pid": Scope.PROCESS, "process": Scope.PROCESS, "rank": Scope.RANK, "job": Scope.JOB}[
        slot
    ]
    of = facts.subjects(scope)
    if slot == "process":
        names = [_text("process.comm", s, facts) for s in of]
    else:
        names = sorted((s.id for s in of), key=lambda n: (len(n), n))
    return tuple(clean(n) for n in dict.fromkeys(filter(None, names)))[:KNOWN]


# --- reach --------------------------------------------------------------------------------


def _touched(named: Iterable[Subject], facts: FactBase) -> set[Subject]:
    """The things named, the processes of a server, and the GPUs, jobs and containers that a process or rank of these uses."""
    out = set(named)
    for s in tuple(out):
        if s.scope is Scope.OBJECT:
            out.update(facts.related(s, Scope.PROCESS))
    for s in tuple(out):
        if s.scope in (Scope.PROCESS, Scope.RANK):
            for scope in (Scope.GPU, Scope.JOB, Scope.CONTAINER, Scope.PROCESS, Scope.RANK):
                out.update(facts.related(s, scope))
    return out


def _touches(subject: Subject, touched: set[Subject]) -> bool:
    return any(s in touched for s in subject.ancestors()) or any(subject in t.ancestors() for t in touched)
