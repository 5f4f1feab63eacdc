"""Which machine a question is about, and why one cannot be looked at from here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.intent import setting
from assistant.intent.query import Intent, of_process
from assistant.session import phrases
from assistant.session.inventory import Inventory, Known, Unknown, resolve
from assistant.session.looking import fresh
from assistant.session.nodeset import expand, is_set
from assistant.session.state import Frame, Origin, State
from knowledge.observation import Scope

if TYPE_CHECKING:
    from assistant.intent.query import Query
    from assistant.reply import Reply
    from assistant.session.steps import Said


def machine_of(inventory: Inventory, state: State, query: Query, event: Said) -> Origin:
    """The machine that a question is about: the one that it names, else the one that was given, else the one that the talk
    is about for as long as what was seen of it is new; else this one."""
    frame = state.frame
    if query.slots.node:
        found = {_known(name, inventory) for name in query.slots.node}
        return Origin(host=found.pop()) if len(found) == 1 and found <= inventory.reach else Origin()
    if event.origin.host:
        return Origin(host=event.origin.host)
    goes_on = frame.origin.live and frame.origin.host and frame.seen and fresh(state, frame, event.at)
    return frame.origin if goes_on else Origin()


# Trouble that a machine without a GPU has too; one that does not answer is none that is typed on.
_OF_ANY_MACHINE = frozenset({"disk-trouble"})


def tells(query: Query) -> bool:
    """Whether a sentence states something as so."""
    return bool(query.observations or query.unread or query.fine)


_ENGINES = frozenset({"vllm", "sglang", "tgi", "tritonserver", "trtllm", "trtllm-serve", "ollama"})
# Told of a node or a job, and measured only where GPUs are.
_OF_GPUS = ("node.gpu.", "node.pci.gpu_count", "benchmark.collective.", "benchmark.h2d", "job.throughput")


def about_elsewhere(origin: Origin, query: Query) -> bool:
    """Whether a sentence can only be about a machine with a GPU, and does not say that it is this one.

    Without a GPU here, nothing of this machine answers it.
    """
    if not origin.live or origin.host or query.intent not in (Intent.DIAGNOSE, Intent.VERDICT):
        return False
    if query.page.startswith("advice "):
        return True
    of_gpus = any(o.subject.up(Scope.GPU) is not None or o.fact.startswith(_OF_GPUS) for o in query.observations)
    coded = query.slots.xid or query.slots.sxid
    # a PID beside a code is of the machine that logged it, and a model server runs where GPUs are
    engine = not query.slots.pid and _ENGINES.issuperset(query.slots.process)
    named_here = of_process(query) and not (query.pasted or coded or engine)
    if (named_here and not phrases.another_machine(query.text)) or (phrases.this_machine(query.text) and not of_gpus):
        return False
    if phrases.speaks_of_jobs(query.text) or setting.of_work(query.text):
        return True
    if query.intent is Intent.VERDICT and phrases.in_general(query):
        return True  # "how long does an RMA take": of no machine in particular
    return tells(query) or bool(set(query.symptoms) - _OF_ANY_MACHINE) or _of_its_own(query)


def _of_its_own(query: Query) -> bool:
    """Whether a question names something that is none of a machine without a GPU: a GPU, a code, a line that was pasted, a
    reading of GPUs, a model ("A100 40 GB or 80 GB, which has more bandwidth")."""
    if query.slots.gpu and query.intent is not Intent.DIAGNOSE:
        return False  # that no such GPU is known the verdict says itself
    from assistant.intent.things import MODEL

    named = query.slots.gpu or query.slots.xid or query.slots.sxid or query.pasted
    if named or any(name.startswith("gpu.") for name in query.facts):
        return True
    return MODEL.search(query.text) is not None or phrases.speaks_of_gpus(query.text)


def answered(frame: Frame) -> bool:
    """Whether there is something that a follow-up can be about: what was seen or told, or what is known of a symptom."""
    known = frame.query is not None and bool(frame.query.symptoms) and bool(frame.headline)
    return bool(frame.seen or frame.told) or known


def about(query: Query, host: str) -> Query:
    """`query`, said to be about the node `host`, whatever it was called."""
    from assistant.intent.echo import echo

    return echo(replace(query, slots=query.slots._replace(node=(host,))))


def elsewhere(inventory: Inventory, query: Query, origin: Origin) -> Reply | None:
    """Why the named node cannot be looked at; None when it can, or none is named."""
    if not query.slots.node or not origin.live or origin.host:
        return None
    reach: dict[str, None] = {}
    for name in query.slots.node:
        found = resolve(name, inventory)
        if isinstance(found, Unknown):
            return phrases.unknown_node(name, found.suggestions, query.lang, inventory.hosts)
        if inventory.is_here(name):
            continue
        members = _members(found.name, inventory)
        if not inventory.reach.issuperset(members):
            return phrases.not_here(name, inventory.here, query.lang)
        reach.update(dict.fromkeys(members))
    return phrases.one_at_a_time(list(reach), query.lang) if reach else None


def cut_off(state: State, frame: Frame, lang: str) -> Reply | None:
    """What to say of a connection that broke, after which nothing more is asked for in a turn; None when none did."""
    lost = next((s for s in (state.seen[n] for n in frame.seen) if s.lost), None)
    return phrases.unreached(lost.host, lost.lost.in_(lang), lang, partly=True) if lost is not None else None


def _known(name: str, inventory: Inventory) -> str:
    """The node that `name` means; empty when it means none, or this one."""
    found = resolve(name, inventory)
    return found.name if isinstance(found, Known) and found.name != inventory.here else ""


def _members(name: str, inventory: Inventory) -> tuple[str, ...]:
    """The nodes of a set, by the names that they are known by."""
    return tuple(_known(n, inventory) for n in expand(name)) if is_set(name) else (name,)
