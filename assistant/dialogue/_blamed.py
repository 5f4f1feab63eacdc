"""What a finding names of a kind: its subject, what that is part of, and the ranks, hosts, NICs, processes and jobs of its lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.dialogue._words import Words
from assistant.intent.lines import meant
from assistant.render.labels import UNSAID
from knowledge.language import Text
from knowledge.observation import Event, Observation, Scope, Subject
from knowledge.text import clean
from rules.engine import Program, program_of

if TYPE_CHECKING:
    from rules.engine import Finding

# The fields of events that name a thing of a kind, the surest first
_FIELDS = {
    Scope.RANK: (("rank", Text("rank {}", "rank {}")), ("local_rank", Text("local rank {}", "local rank {}")), ("task", Text("task {}", "task {}"))),
    Scope.NODE: (("host", Text("node {}", "节点 {}")),),
    Scope.NIC: (("hca", Text("NIC {}", "网卡 {}")), ("interface", Text("NIC {}", "网卡 {}"))),
    Scope.GPU: (("gpu", Text("GPU {}", "GPU {}")), ("cuda_device", Text("CUDA device {}", "CUDA 设备 {}"))),
    Scope.JOB: (("job", Text("job {}", "作业 {}")), ("step", Text("job {}", "作业 {}"))),
}  # fmt: skip
# How the facts of a rank name where it ran
_OF_RANK = {
    Scope.NODE: ("rank.on_node", Text("node {}", "节点 {}")),
    Scope.PROCESS: ("rank.is_process", Text("pid {}", "进程 {}")),
    Scope.GPU: ("rank.uses_gpu", Text("GPU {}", "GPU {}")),
}  # fmt: skip
_EITHER = Text(
    " {} only logged it: its peer {} or the path between may be at fault as well.",
    "{} 只是记录方：对端 {} 或中间链路也可能有问题。",
)
FEW = 4  # ranks: so many are named one by one
_PORTS = ("node.ib.rails.down_ports", "node.ib.rails.slow_ports")
_OF_PEERS = ("imex_connection_lost",)  # told by the node that is left, of the one that went away
_TASKS = ("rank_failed",)  # the kinds of events whose field `task` is one of the job
_REPORTED = ("nccl_watchdog_timeout", "nccl_desync")  # every rank tells these: who tells it is not to blame for it
_RANKS = (
    "job.nccl.timeout.missing_ranks",
    "job.nccl.timeout.min_seq_rank",
    "job.slow_rank",
    "job.hung.rank",
    "job.ranks.missing_here",
)


class Blamed(NamedTuple):
    """A thing by name, and the worst that was found on it."""

    name: str
    finding: Finding
    subject: Subject | None  # None: only a line of a log names it


def of_kind(f: Finding, kind: Scope | None, w: Words, asked: str = "") -> Iterator[Blamed]:
    """The things of the kind that a finding is about. `asked`: the words of the question, whose lines go first."""
    here = f.subject if kind is None else f.subject.up(kind)
    if here is None and kind is Scope.NIC:
        here = f.subject.up(Scope.PORT)
    of_peer = kind is Scope.NODE and any(o.fact in _OF_PEERS for o in f.events)
    if here is not None and here.id and not of_peer:  # a node whose name nobody told names nothing
        yield Blamed(clean(w.view.name(here)), f, here)
        return
    if kind is None:
        return
    if kind is Scope.PROCESS and (program := program_of(f.events)) is not None:
        yield Blamed(program.words.in_(w.lang), f, None)
        return
    if kind is Scope.RANK and (ranks := list(_ranks(f))):  # those that it blames, and not all that report
        yield from (Blamed(f"rank {rank}", f, None) for rank in ranks)
        return
    if kind in _OF_RANK and (named := list(_by_rank(f, kind, w))):
        yield from (Blamed(name, f, None) for name in named)
        return
    for events in _lines(f, kind, w, asked):
        if names := named_in(events, kind, w):
            known = {clean(w.view.name(s)): s for s in w.d.facts.subjects(kind)}
            yield from (Blamed(name, f, known.get(name)) for name in names)
            return
    if kind is Scope.NIC and (ports := list(_ports(f))):
        yield from (Blamed(Text("NIC {}", "网卡 {}").in_(w.lang).format(port), f, None) for port in ports)
        return
    if f.subject.scope in (Scope.NODE, Scope.DOCUMENT) or kind is Scope.RANK:
        return  # whatever else is on the node, or in the log, is not to blame for it
    for s in w.d.facts.related(f.subject, kind):
        if s.id:
            yield Blamed(clean(w.view.name(s)), f, s)


def _by_rank(f: Finding, kind: Scope, w: Words) -> Iterator[str]:
    """Where the ranks ran that a finding blames, or that alone tell it: their node, process or GPU, as other lines name it."""
    own = [str(s.id) for s in (f.subject, *(o.subject for o in f.events)) if s.scope is Scope.RANK]
    ranks = list(_ranks(f)) or list(dict.fromkeys(own))
    fact, said = _OF_RANK[kind]
    for s in w.d.facts.subjects(Scope.RANK) if len(ranks) <= FEW else ():
        if s.id in ranks and (o := w.d.facts.current(fact, s)) is not None and isinstance(o.value, str):
            yield f"{said.in_(w.lang).format(clean(o.value.partition(':')[2]))} (rank {s.id})"


def other_end(f: Finding, w: Words) -> str:
    """That the node which logged a failed completion is one end of the path, and no more to blame than the other."""
    for o in f.events:
        v = o.value
        if (
            isinstance(v, Event)
            and v.get("kind") == "ib_completion"
            and (host := v.get("host"))
            and (peer := v.get("peer"))
        ):
            return _EITHER.in_(w.lang).format(clean(str(host)), clean(str(peer)))
    return ""


def _ports(f: Finding) -> Iterator[str]:
    """The ports that the evidence of a finding names."""
    for o in f.because:
        if o.fact in _PORTS and isinstance(o.value, tuple):
            yield from map(clean, o.value)


def elsewhere(found: Iterable[Finding], kind: Scope, w: Words) -> list[str]:
    """What other lines that were read name of a kind: of a finding whose own lines name none."""
    about = {s for f in found for s in f.subject.ancestors() if s.scope is Scope.GPU}
    out = []
    for o in w.d.events:
        on = o.subject.up(Scope.GPU)
        name_on = clean(w.view.name(on)) if on is not None and kind is not Scope.GPU else ""
        place = w.t(f" on {name_on}", f"（在 {name_on} 上）") if name_on else ""
        out += [
            f"{name}{place}"
            for name in named_in([o], kind, w)
            if on is None or on not in about or kind is not Scope.GPU
        ]
    return list(dict.fromkeys(out))


def named_in(events: Iterable[Observation], kind: Scope, w: Words) -> list[str]:
    """The names of things of a kind that events give, each once."""
    return list(dict.fromkeys(clean(name) for o in events for name in _names(o, kind, w)))


def _names(o: Observation, kind: Scope, w: Words) -> Iterator[str]:
    if not isinstance(o.value, Event) or (kind is Scope.RANK and o.fact in _REPORTED):
        return
    if kind is Scope.NODE and o.fact in _OF_PEERS and (peer := o.value.get("peer")) is not None:
        yield Text("node {} ({})", "节点 {}（{}）").in_(w.lang).format(peer, o.value.get("address"))
        return
    here = o.subject.up(kind)
    if here is not None and here.id and here.id != UNSAID:
        yield w.view.name(here)
        return
    if kind is Scope.PROCESS:
        pid, name = o.value.get("pid"), o.value.get("process")
        if isinstance(pid, int):
            yield Program(name if isinstance(name, str) and name[:1] != "<" else "", pid).words.in_(w.lang)
        return
    for field, said in _FIELDS.get(kind, ()):
        value = o.value.get(field)
        if value is None or value == "" or (field == "task" and o.fact not in _TASKS):
            continue
        yield said.in_(w.lang).format(str(value).partition(".")[0] if kind is Scope.JOB else value)
        return


def _lines(f: Finding, kind: Scope, w: Words, asked: str) -> Iterator[Sequence[Observation]]:
    """The lines of a finding and of what it explains: those that are asked for first, then its own, then those of its reason.

    Of processes only the lines of its own GPU: what runs on another one is not to blame for it.
    """
    for events in _of_finding(f, kind, w, asked):
        yield [o for o in events if kind is not Scope.PROCESS or _same_gpu(o.subject, f.subject)]


def _same_gpu(a: Subject, b: Subject) -> bool:
    one, other = a.up(Scope.GPU), b.up(Scope.GPU)
    return one is None or other is None or one == other


def _of_finding(f: Finding, kind: Scope, w: Words, asked: str) -> Iterator[Sequence[Observation]]:
    effects = [o for x in w.d.findings if x.id in f.explains for o in x.events]
    reasons = {o.value.get("reason") for o in f.events if isinstance(o.value, Event)} - {None}
    if asked:
        yield meant(asked, (*f.events, *effects))
        yield meant(asked, w.d.events)
    yield f.events
    yield [o for o in (*effects, *w.d.events) if isinstance(o.value, Event) and o.value.get("reason") in reasons]
    yield effects
    if kind is Scope.JOB:  # what ran there is told by other lines
        yield [o for o in w.d.events if o.subject.host == f.subject.host]


def _ranks(f: Finding) -> Iterator[str]:
    """The ranks that the evidence of a finding blames."""
    for o in f.because:
        if o.fact in _RANKS and o.status.answered and o.value is not None:
            yield from map(str, o.value) if isinstance(o.value, tuple) else (str(o.value),)
