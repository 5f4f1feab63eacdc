"""Codes that a person reports become events that were told; log lines fill the slots that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from assistant.intent.query import Intent, Slots
from assistant.intent.slots import Named, slots
from knowledge.identity import UNKNOWN_PCI, is_pci
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Origin, Scope, Source, Subject, gpu, node
from knowledge.text import excerpt

TOLD = Source("told", "what was said")
_WITH_PROCESS = ("xid", "oom_kill", "hung_task")  # lines that name a process as the one it happened to
TELLS = (Intent.DIAGNOSE, Intent.VERDICT)
_I = re.IGNORECASE
_NO = lazy(
    r"(?:(?<![a-z])(?:no|without|not|never|isn't|hasn't|wasn't|any)(?:\s+(?:an?|the|any|single|more|seen|new))*|没有|没|无|未|不是)[^0-9A-Za-z]{0,3}$",
    _I,
)
_NONE = lazy(r"^[^,.;，。；]{0,6}(?:都没|没有|没出|未出|(?<![a-z])(?:none|zero)(?![a-z]))", _I)
# Where another thing begins, from the strongest to the weakest.
_PARTS = lazy(r"[,;.!?，；。！？\n]|(?<![a-z])(?:and|but|while)(?![a-z])|但是?|而且?", _I)
_CLAUSES = lazy(r"[,;!?，；。！？\n]|\.(?=\s)|(?<![a-z])but(?![a-z])|但是?", _I)


def events(intent: Intent, said: str, named: Named, *, any_program: bool = False) -> tuple[Observation, ...]:
    """The codes that are said to have happened, each of the GPUs that stand with it. None of a question that only asks about them.

    `any_program`: they are said to stay with the GPU whichever program runs.
    """
    if intent not in TELLS or not (named.slots.xid or named.slots.sxid):
        return ()
    filled = named.slots
    host = node(filled.node[0] if len(filled.node) == 1 and "[" not in filled.node[0] else "")
    line, out = excerpt(said), list[Observation]()
    for kind, codes in (("xid", filled.xid), ("sxid", filled.sxid)):
        spans = [(start, end) for start, end, slot in named.spans if slot == kind]
        for code in codes:
            whole = re.compile(rf"(?<![0-9]){code}(?![0-9])")
            told = [span for span in spans if whole.search(said, *span)]
            if told and all(_NO.search(said[max(0, s - 40) : s]) or _NONE.search(said[e : e + 12]) for s, e in told):
                continue
            clause = _clause(said, told[0]) if told else ""
            fields: dict[str, str | bool] = {}
            of = [Subject(Scope.NVSWITCH, f"{UNKNOWN_PCI}?", host)]
            if kind == "xid":
                fields = {"any_program": True} if any_program else {}
                fields |= _recovery(clause) if code == RECOVERS else {}
                of = [
                    gpu(called, host.id) for called in (_beside(said, told[0], named) if told else (f"{UNKNOWN_PCI}?",))
                ]
            else:
                fields = {"severity_word": "Fatal"} if _FATAL.search(clause) else {}
                if switch := _SWITCH.search(clause):
                    of = [Subject(Scope.NVSWITCH, f"index:{switch[1]}", host)]
            out += [
                Observation(kind, s, Event(code, fields), source=TOLD, excerpt=line, origin=Origin.TOLD) for s in of
            ]
    return tuple(out)


_SWITCH = lazy(r"nvswitch[ #-]?([0-9]{1,3})(?![0-9])", _I)
# of a switch's error its own word decides, where the catalogue has none
_FATAL = lazy(r"(?<![a-z-])(?<!not )(?<!non )fatal(?![a-z])|(?<![非不])致命", _I)


RECOVERS = 154  # the XID by which the driver says what would mend the GPU


def _recovery(clause: str) -> dict[str, str]:
    """The action that stands last beside that code: "Xid 154 GPU Reset Required", "... from None to Node Reboot"."""
    from knowledge.facts import vocabulary

    plain = clause.casefold().replace("&", "and")
    at = {value: plain.rfind(value.replace("_", " ")) for value in vocabulary()["gpu.recovery_action"].values}
    last = max(at, key=lambda value: (at[value], len(value)))
    return {"recovery": last} if at[last] >= 0 else {}


def _clause(said: str, code: tuple[int, int]) -> str:
    """The clause that names a code."""
    places = [m.start() for m in _CLAUSES.finditer(said)]
    start = max((p for p in places if p < code[0]), default=0)
    return said[start : min((p for p in places if p >= code[1]), default=len(said))]


def _beside(said: str, code: tuple[int, int], named: Named) -> tuple[str, ...]:
    """The GPUs that a code is told of, by their ids: those that stand in the same part of its clause, else in its clause, else
    the only ones named, else so many of which nobody said which ("on all 8 GPUs")."""
    from assistant.intent.numerals import numerals
    from assistant.intent.things import UNSAID, group
    from assistant.intent.things import named as called

    spans = [(start, end) for start, end, slot in named.spans if slot == "gpu"]
    for cuts in (_PARTS, _CLAUSES):
        places = [m.start() for m in cuts.finditer(said) if not any(s <= m.start() < e for s, e in (*spans, code))]
        start = max((p for p in places if p < code[0]), default=0)
        stop = min((p for p in places if p >= code[1]), default=len(said))
        inside = [s for s in spans if start <= s[0] < stop]
        if inside:
            near = min(inside, key=lambda s: (min(abs(s[0] - code[1]), abs(code[0] - s[1])), s))
            return tuple(map(called, slots(said[near[0] : near[1]]).slots.gpu))
    if len(spans) == 1:
        return tuple(map(called, named.slots.gpu))
    some = group(numerals(_clause(said, code)))
    return (f"{UNSAID}x{some.some}" if some is not None and some.some > 1 else UNSAID,)


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
