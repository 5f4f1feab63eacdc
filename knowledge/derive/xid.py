"""XID and SXid events completed from the catalogues, and what follows from them.

* Each `xid` and `sxid` event gets its name, action, severity and the decoded fields of its body.
* A line "caused by previous Xid N" whose N has no line of its own on that GPU gives `xid_implied`.
* Each `xid` event that names a process tells how many processes had the same code on that GPU in the same moment.
* Each fault of a program (XID 13, 31) tells how many different programs had one on that GPU, and at that place of it, in a week;
  0 where the line names none.
* XID 74 of one link beside a fatal SXid of one port gives the link its other end.
* XID 154 gives `gpu.recovery_action`, the driver's latest word on the GPU, in each source.

Everything is computed anew from code and text, so the order of the observations and a second pass
change nothing.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType

from knowledge.catalog.decode import decode, decode_sxid
from knowledge.catalog.decode_firmware import BUCKETS, Recovery
from knowledge.catalog.nvlink5 import CODES as NVLINK5
from knowledge.catalog.nvlink5 import Fatality, NvLink5Decode, decode_nvlink5, why_not
from knowledge.catalog.sxid import advise, fatal_word, sxid
from knowledge.catalog.xid import Area, Severity, XidEntry, xid
from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Origin, Scalar, Status, Subject, how_many

Fields = Mapping[str, Scalar]
MOMENT = 5 * 10**9  # ns: programs do not fail together by chance
WEEK = 7 * 24 * 3600 * 10**9  # ns: programs that fail in turn, some only once in days
BURST = (
    180 * 10**9
)  # ns: what follows closer belongs to the same failure; it may take other programs of the job with it
_OF_PROGRAMS = (13, 31)  # faults for which NVIDIA asks whether different programs have them on the same GPU
_PYTHON = lazy(r"i?python|pt_|ray::|torchrun|accelerate|deepspeed", re.IGNORECASE)
_DERIVED = ("xid_implied", "gpu.recovery_action")


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with every XID and SXid event completed, then the derived observations."""
    batch = [_complete(o) for o in observations if not (o.fact in _DERIVED and o.origin is Origin.DERIVED)]
    batch = _other_ends(_in_turn(_together(batch)))
    events = [o for o in batch if _is_event(o, "xid")]
    return batch + _implied(events) + _recovery(events)


def _is_event(o: Observation, fact: str) -> bool:
    return o.fact == fact and o.status is Status.OK and isinstance(o.value, Event) and o.value.code is not None


def _complete(o: Observation) -> Observation:
    event = o.value
    if not isinstance(event, Event) or event.code is None or o.status is not Status.OK:
        return o
    text = str(event.get("text") or "")
    if o.fact == "xid":
        fields: Fields = {**event.fields, **xid_fields(event.code, text)}
    elif o.fact == "sxid":
        fields = {**_sxid_text(text), **event.fields}
        fields = {**fields, **sxid_fields(event.code, str(fields.get("severity_word") or ""))}
    else:
        return o
    return replace(o, value=Event(event.code, fields))


# --- XID ----------------------------------------------------------------------------------


def _together(batch: list[Observation]) -> list[Observation]:
    """The batch, `programs` filled in: how many processes had this code on this GPU within `MOMENT` before or after.

    What an event stands for may be of others: where that may lie in the moment they are the least.
    """
    groups: dict[tuple[Subject, int | None, Clock], list[tuple[int, int, int]]] = defaultdict(list)
    for i, o in enumerate(batch):
        if (
            _is_event(o, "xid")
            and isinstance(o.value, Event)
            and o.at is not None
            and isinstance(pid := o.value.get("pid"), int)
        ):
            groups[o.subject, o.value.code, o.clock].append((o.at, pid, i))
    out = list(batch)
    for rows in groups.values():
        folded = [_folded(batch[i]) for _, _, i in rows]
        if len({pid for _, pid, _ in rows}) < 2 and not any(folded):
            continue
        rows.sort()
        hidden, spans = _hidden(batch[i] for _, _, i in rows), _folded_spans(batch[i] for _, _, i in rows)
        seen: Counter[int] = Counter()
        first = last = 0
        known: dict[int, int] = {}  # time -> programs among the folded lines of its moment
        for at, _, i in rows:
            while last < len(rows) and rows[last][0] <= at + MOMENT:
                seen[rows[last][1]] += 1
                last += 1
            while rows[first][0] < at - MOMENT:
                seen[rows[first][1]] -= 1
                seen += Counter()  # without those that fell to none
                first += 1
            place = bisect_left(hidden, at - MOMENT, key=itemgetter(1))
            more = place < len(hidden) and hidden[place][0] <= at + MOMENT
            if spans and at not in known:
                known[at] = _programs_of(spans, at)
            programs = max(len(seen), _folded(batch[i]), known.get(at, 0))
            out[i] = _with(batch[i], {"programs": programs, **({"programs_at_least": True} if more else {})})
    return out


def _folded(o: Observation) -> int:
    """How many programs are known to be among those that an event stands for, in one moment."""
    programs = o.value.get("programs_folded") if isinstance(o.value, Event) else None
    return programs if isinstance(programs, int) else 0


def _folded_spans(events: Iterable[Observation]) -> list[tuple[int, int, int]]:
    """Begin and end of what events stand for, and how many programs are among it in one moment; in order."""
    return sorted((*o.window, n) for o in events if o.window is not None and (n := _folded(o)))


def _programs_of(spans: Sequence[tuple[int, int, int]], at: int) -> int:
    """How many programs are among those of `spans` (see `_folded_spans`) that lie in the moment of `at` as a whole."""
    first, last = (
        bisect(spans, time, key=itemgetter(0))
        for bisect, time in ((bisect_left, at - MOMENT), (bisect_right, at + MOMENT))
    )
    return max((programs for _, end, programs in spans[first:last] if end <= at + MOMENT), default=0)


def _hidden(events: Iterable[Observation]) -> list[tuple[int, int]]:
    """The spans of time in which lie what `events` stand for, apart from each other and in order."""
    spans: list[tuple[int, int]] = []
    for begin, end in sorted(o.window for o in events if o.times > 1 and o.window is not None):
        if spans and begin <= spans[-1][1]:
            begin, end = spans[-1][0], max(end, spans.pop()[1])
        spans.append((begin, end))
    return spans


def _in_turn(batch: list[Observation]) -> list[Observation]:
    """The batch, `programs_on_gpu` and `programs_at_place` filled in: how many programs of different names failed one after another.

    A line without a program's name counts none. A program that fails on another GPU as well has the fault in itself: it is not
    counted. That it comes with any program (`any_program`) a person says, and no log.
    """
    where: dict[str, set[Subject]] = defaultdict(set)
    groups: dict[tuple[Subject, Clock], list[int]] = defaultdict(list)
    counts: dict[int, dict[str, Scalar]] = {}
    for i, o in enumerate(batch):
        if not (isinstance(o.value, Event) and _is_event(o, "xid") and o.value.code in _OF_PROGRAMS):
            continue
        if not (name := _program(o)):
            counts[i] = {
                "programs_on_gpu": 0,
                "programs_at_place": 0,
                "any_program": o.value.get("any_program") is True,
            }
        elif o.at is not None:
            where[name].add(o.subject)
            groups[o.subject, o.clock].append(i)
    for rows in groups.values():
        counts |= {i: {"programs_on_gpu": 1, "programs_at_place": 1, "any_program": False} for i in rows}
        own = [i for i in rows if len(where[_program(batch[i])]) == 1]
        places: dict[tuple[Scalar, ...], list[int]] = defaultdict(list)
        for i in own:
            if None not in (place := _place(batch[i])):
                places[place].append(i)
        for name, some in (("programs_on_gpu", own), *(("programs_at_place", found) for found in places.values())):
            for i, count in _turns(batch, some).items():
                counts[i][name] = count
    return [_with(o, counts[i]) if i in counts else o for i, o in enumerate(batch)]


def _other_ends(batch: list[Observation]) -> list[Observation]:
    """The batch, `switch` and `switch_link` filled in: the port of an NVSwitch that had a fatal error in the same moment, where each side names one alone."""
    ends: dict[tuple[str, Clock], tuple[list[int], list[Observation]]] = defaultdict(lambda: ([], []))
    for i, o in enumerate(batch):
        if not isinstance(o.value, Event) or o.at is None or not isinstance(o.value.get("link"), int):
            continue
        links, ports = ends[o.subject.host, o.clock]
        if _is_event(o, "xid") and o.value.code == 74:
            links.append(i)
        elif _is_event(o, "sxid") and o.value.get("fatal") is True:
            ports.append(o)
    out = list(batch)
    for links, ports in ends.values():
        named = {(o.subject.id, o.value.get("link")) for o in ports if isinstance(o.value, Event)}
        own = {(batch[i].subject, _field(batch[i], "link")) for i in links}
        if len(named) != 1 or len(own) != 1:
            continue
        ((switch, port),) = named
        for i in links:
            if any(abs((batch[i].at or 0) - (o.at or 0)) <= MOMENT for o in ports):
                out[i] = _with(batch[i], {"switch": switch, "switch_link": port})
    return out


def _field(o: Observation, name: str) -> Scalar:
    return o.value.get(name) if isinstance(o.value, Event) else None


def _with(o: Observation, fields: Fields) -> Observation:
    assert isinstance(o.value, Event)
    return replace(o, value=Event(o.value.code, {**o.value.fields, **fields}))


def _program(o: Observation) -> str:
    """The name of the program without a number at its end; all of Python's own are one: the script is not told."""
    name = str(o.value.get("process") or "") if isinstance(o.value, Event) else ""
    return "python" if _PYTHON.match(name) else name.rstrip("0123456789._-") or name


def _place(o: Observation) -> tuple[Scalar, ...]:
    """GPC and TPC; of a page fault the client, with its GPC where the line tells that."""
    if not isinstance(o.value, Event):
        return (None,)
    if o.value.code == 31:
        return o.value.get("client"), o.value.get("gpc") or 0
    return o.value.get("gpc"), o.value.get("tpc")


def _turns(batch: Sequence[Observation], rows: Sequence[int]) -> dict[int, int]:
    """How many programs failed in the week in which most did, for its events; of each burst the first program counts."""
    timed = sorted(((batch[i].at or 0, _program(batch[i]), i) for i in rows), key=lambda row: row[:2])
    firsts: list[tuple[int, str]] = []
    before = -math.inf
    for at, name, _ in timed:
        if at - before > BURST:
            firsts.append((at, name))
        before = at
    weeks = ((start, {name for at, name in firsts if start <= at <= start + WEEK}) for start, _ in firsts)
    start, names = max(weeks, key=lambda week: len(week[1]), default=(0, set()))
    return {i: len(names) if start <= at <= start + WEEK else 1 for at, _, i in timed}


@lru_cache(maxsize=4096)
def xid_fields(code: int, text: str) -> Fields:
    """What catalogue and body say about one line; `bucket` is the action that NVIDIA has for exactly this line."""
    body = {"text_conflict": 0, **decode(code, text)}
    entry = xid(code)
    if entry is None:
        unknown = f"XID {code} is not in the catalogue"
        return MappingProxyType({**body, "catalogued": False, "decoded": False, "bucket": "", "undecodable": unknown})
    fields = {**body, **_entry_fields(entry)}
    if code in NVLINK5:
        fields |= _nvlink5_fields(code, body)
    elif code == 74 and "link_class" not in body:
        fields |= {"decoded": False, "undecodable": "the line does not hold the seven registers whole"}
    elif code == 154:
        fields |= _recovery_fields(body)
    return MappingProxyType(fields)


def _entry_fields(entry: XidEntry) -> dict[str, Scalar]:
    return {
        "catalogued": True, "decoded": True, "mnemonic": entry.mnemonic, "title": entry.title.en,
        "title_zh": entry.title.zh, "bucket": str(entry.immediate), "investigate": str(entry.investigate),
        "role": str(entry.role), "severity": str(entry.severity), "area": str(entry.scope),
        "has_workflow": bool(entry.workflow),
    }  # fmt: skip


def _nvlink5_fields(code: int, body: Fields) -> dict[str, Scalar]:
    """The table's row, or why there is none; then the catalogue's "decode it" stays as the action."""
    unit, info, status = str(body.get("unit") or ""), _number(body.get("intrinfo")), _number(body.get("error_status"))
    found = decode_nvlink5(code, unit, info, status)
    if found is None:
        return {"decoded": False, "undecodable": why_not(code, info, status).en}
    return {
        "unit": found.unit, "layout": str(found.layout), "reason": found.reason, "bucket": found.action,
        "investigate": found.investigate, "nvlink_severity": found.severity, "severity": str(_severity(found)),
        "promoted": found.promoted, "impact": found.impact, "decode_row": found.row,
        **({"caveats": " ".join(c.en for c in found.caveats)} if found.caveats else {}),
    }  # fmt: skip


def _number(word: Scalar) -> int | None:
    return int(word, 16) if isinstance(word, str) else None


def _severity(found: NvLink5Decode) -> Severity:
    """NVIDIA's action counts, not the printed word: reason 38 of XID 149 prints Fatal and is to be ignored."""
    if found.action == "RESET_GPU":
        return Severity.CRITICAL
    if found.action == "IGNORE":
        return Severity.WARNING
    return Severity.ERROR if found.fatality is Fatality.NONFATAL else Severity.CRITICAL


_RECOVERY_SEVERITY: Mapping[Recovery, Severity] = {
    Recovery.NONE: Severity.INFO,
    Recovery.DRAIN_P2P: Severity.WARNING,
    Recovery.RECOVER_IMEX: Severity.ERROR,
    Recovery.DRAIN_AND_RESET: Severity.ERROR,
    Recovery.GPU_RESET: Severity.CRITICAL,
    Recovery.NODE_REBOOT: Severity.CRITICAL,
    Recovery.BUS_RESET: Severity.CRITICAL,
    Recovery.SYSTEM_REBOOT: Severity.CRITICAL,
    Recovery.UNKNOWN: Severity.ERROR,
}


def _recovery_fields(body: Fields) -> dict[str, Scalar]:
    word = body.get("recovery")
    if not isinstance(word, str) or word == Recovery.UNKNOWN:
        number = body.get("recovery_to")
        why = "the new action is cut off" if number is None else f"recovery action {number} is not in the driver's list"
        return {"decoded": False, "undecodable": why}
    action = Recovery(word)
    return {"bucket": BUCKETS[action], "severity": str(_RECOVERY_SEVERITY[action])}


# --- SXid ---------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _sxid_text(text: str) -> Fields:
    return MappingProxyType(decode_sxid(text))


@lru_cache(maxsize=4096)
def sxid_fields(code: int, word: str) -> Fields:
    """What the catalogue says about one SXid, and what the word of its line makes of it."""
    entry, advice = sxid(code), advise(code, word)
    fields: dict[str, Scalar] = {
        "catalogued": entry is not None, "decoded": entry is not None, "bucket": advice.bucket,
        "area": str(Area.FABRIC), "advice": advice.text.en,
    }  # fmt: skip
    if advice.severity:
        fields["severity"] = str(advice.severity)
    fatal = (
        entry.fatal(word) if entry is not None else fatal_word(word)
    )  # an unknown code: its line says it all the same
    if fatal is not None:
        fields["fatal"] = fatal
    if entry is not None:
        fields |= {
            "mnemonic": entry.mnemonic, "title": entry.title.en, "title_zh": entry.title.zh, "unit": str(entry.unit),
            "always_fatal": entry.always_fatal, "recovery": str(entry.recovery),
        }  # fmt: skip
    return MappingProxyType(fields)


# --- what follows -------------------------------------------------------------------------


def _order(o: Observation) -> tuple[int, int, int]:
    """Time first, then the line; an event without a time comes first, since nothing says that it is newer."""
    return (o.at is not None, o.at or 0, o.source.line or 0)


def _stable(o: Observation) -> tuple[tuple[int, int, int], str, str, str]:
    return (_order(o), o.clock, o.source.call, o.excerpt)


def _implied(events: Iterable[Observation]) -> list[Observation]:
    """One event for each XID that a GPU's lines name as their cause and that has no line of its own there."""
    printed: set[tuple[Subject, int | None]] = set()
    named: dict[tuple[Subject, int], list[Observation]] = {}
    for o in events:
        assert isinstance(o.value, Event)
        printed.add((o.subject, o.value.code))
        cause = o.value.get("caused_by")
        if isinstance(cause, int):
            named.setdefault((o.subject, cause), []).append(o)
    out = []
    for (subject, code), lines in named.items():
        if (subject, code) in printed:
            continue
        first = min(lines, key=_stable)
        fields = implied_fields(code) | {"named_by": 45, "lines": how_many(lines)}
        out.append(replace(first, fact="xid_implied", value=Event(code, fields), origin=Origin.DERIVED))
    return sorted(out, key=lambda o: (str(o.subject.host), o.subject.id, _stable(o), str(o.value)))


def implied_fields(code: int) -> dict[str, Scalar]:
    """The catalogue's view of a code of which only the number is known."""
    entry = xid(code)
    if entry is None:
        return {"catalogued": False, "decoded": False, "bucket": ""}
    fields = _entry_fields(entry)
    if entry.decode in ("nvlink5", "nvlink74", "recovery154"):
        fields["decoded"] = False
    return fields


def _recovery(events: Iterable[Observation]) -> list[Observation]:
    """The latest recovery action of each GPU in each source; times of different clocks are never compared."""
    groups: dict[tuple[Subject, str, str], list[Observation]] = {}
    for o in events:
        assert isinstance(o.value, Event)
        if o.value.code == 154 and isinstance(o.value.get("recovery"), str):
            groups.setdefault((o.subject, o.source.call, o.clock), []).append(o)
    out = []
    for lines in groups.values():
        timed = all(o.at is not None for o in lines)
        last = max(lines, key=_stable if timed else lambda o: ((0, o.source.line or 0, 0), "", "", o.excerpt))
        assert isinstance(last.value, Event)
        word = last.value.get("recovery")
        out.append(replace(last, fact="gpu.recovery_action", value=word, origin=Origin.DERIVED))
    return sorted(out, key=lambda o: (str(o.subject.host), o.subject.id, _stable(o)))
