"""Codes that a person reports become events that were told; log lines fill the slots that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from assistant.intent.query import Intent, Slots
from assistant.intent.slots import slots
from knowledge.identity import UNKNOWN_PCI, is_pci
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Origin, Scope, Source, Subject, gpu, node
from knowledge.text import excerpt

TOLD = Source("told", "what was said")
_WITH_PROCESS = ("xid", "oom_kill", "hung_task")  # lines that name a process as the one it happened to
TELLS = (Intent.DIAGNOSE, Intent.VERDICT)
_NO = lazy(
    r"(?:(?<![a-z])(?:no|without|not|never|isn't|hasn't|wasn't|any)(?:\s+(?:an?|the|any|more|seen|new))*|没有|没|无|未|不是)[^0-9A-Za-z]{0,3}s?xid",
    re.IGNORECASE,
)


def events(intent: Intent, said: str, named: Slots) -> tuple[Observation, ...]:
    """The codes that are said to have happened. None of a question that only asks about them."""
    if intent not in TELLS or not (named.xid or named.sxid) or _NO.search(said):
        return ()
    host = named.node[0] if len(named.node) == 1 and "[" not in named.node[0] else ""
    line = excerpt(said)
    device = _device(named, host)
    switch = Subject(Scope.NVSWITCH, f"{UNKNOWN_PCI}?", node(host))
    pairs = [("xid", device, code) for code in named.xid] + [("sxid", switch, code) for code in named.sxid]
    return tuple(
        Observation(fact, subject, Event(code), source=TOLD, excerpt=line, origin=Origin.TOLD)
        for fact, subject, code in pairs
    )


def _device(named: Slots, host: str) -> Subject:
    if len(named.gpu) == 1:
        one = named.gpu[0]
        return gpu(f"index:{one}" if isinstance(one, int) else one, host)
    return gpu(f"{UNKNOWN_PCI}?", host)


def with_lines(said: Slots, observations: Sequence[Observation], text: str) -> Slots:
    """The slots of a message with log lines in it."""
    filled = {name: dict.fromkeys(values) for name, values in said._asdict().items()}
    for o in observations:
        _named_by(o, filled)
    inside = slots(text)[0]
    for name in ("xid", "sxid", "rank"):
        filled[name].update(dict.fromkeys(getattr(inside, name)))
    for name in ("gpu", "pid"):  # "GPU 3 has a total capacity ...": only where no line told it better
        if not filled[name]:
            filled[name].update(dict.fromkeys(getattr(inside, name)))
    return Slots(**{name: tuple(values) for name, values in filled.items()})


def _named_by(o: Observation, filled: dict[str, dict[Any, None]]) -> None:
    """Put what one line names into the slots."""
    if (host := o.subject.up(Scope.NODE)) is not None and host.id:
        filled["node"].setdefault(host.id)
    device = o.subject.up(Scope.GPU)
    if device is not None and is_pci(device.id):
        filled["gpu"].setdefault(device.id)
    if not isinstance(o.value, Event):
        return
    if o.fact in ("xid", "sxid") and o.value.code is not None:
        filled[o.fact].setdefault(o.value.code)
    if o.fact in _WITH_PROCESS:
        if isinstance(pid := o.value.get("pid"), int):
            filled["pid"].setdefault(pid)
        if isinstance(process := o.value.get("process"), str) and process:
            filled["process"].setdefault(process)
