"""Kernel logs of every kind, from the text to the answer: what happened, why, what to do; and laws that hold for all.

The cases stand in kernel_cases.yaml. A log says the same in whatever shape it is written down, amid
whatever other lines, and next to whatever else went wrong on another GPU.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from assistant.sources import parse_text
from knowledge.identity import normalise_pci
from knowledge.observation import Event, Scope, Status
from rules.engine import Finding, Role
from rules.loader import load
from rules.model import Severity
from tests.cases import each, in_turns
from tests.incidents.kernel_cases import Case, cases


def loud() -> list[Case]:
    return [c for c in cases() if not c.quiet]


def quiet() -> list[Case]:
    return [c for c in cases() if c.quiet]


def judge(text: str) -> Diagnosis:
    return diagnose(parse_text("kmsg", text), load())


@cache
def judged(log: str) -> Diagnosis:
    """What follows from the log of a case, as it stands: several laws ask for it."""
    return judge(log)


def printed(d: Diagnosis) -> set[tuple[str, int | None]]:
    """Every XID of the diagnosis' events, by GPU."""
    return {
        (o.subject.id, o.value.code)
        for o in d.events
        if o.fact == "xid" and o.status is Status.OK and isinstance(o.value, Event)
    }


def told(f: Finding) -> tuple[str, int | None, str, str]:
    place = "" if f.subject.scope is Scope.NODE else f.subject.id  # not every shape names the node
    return place, f.xid, f.rule.id, str(f.advice.bucket)


def test_there_is_a_case_for_every_workflow_and_enough_that_are_quiet() -> None:
    assert len({c.id for c in cases()}) == len(cases()) >= 160
    assert len(quiet()) >= 30
    codes = {code for c in cases() for _, code in c.printed}
    assert codes >= {13, 31, 45, 48, 63, 64, 74, 79, 94, 95, 109, 119, 120, 137, 140, 143, 154, *range(144, 151)}


@pytest.mark.slow
@each("case", loud, ids=lambda c: c.id)
def test_events_root_and_action(case: Case) -> None:
    d = judged(case.log)
    assert printed(d) == case.printed
    assert case.root is not None
    _, xid, rule, bucket = told(d.roots[0])
    assert (xid, rule, bucket) == (case.root["xid"], case.root["rule"], case.action)
    rest = [told(f) for f in d.roots[1:]]
    for pci, code, name, word in case.others:
        assert any(r[:3] == (normalise_pci(pci), code, name) and word in (None, r[3]) for r in rest), rest
    for name in case.symptoms:
        roles = [f.role for f in d.findings if f.rule.id == name]
        assert Role.SYMPTOM in roles, (name, roles)


@each("case", quiet, ids=lambda c: c.id)
def test_what_is_no_fault_stays_quiet(case: Case) -> None:
    d = judged(case.log)
    assert printed(d) == case.printed
    assert [told(f) for f in d.findings if f.severity is not Severity.INFO] == []


# --- the same messages, written down in another way -------------------------------------------

_STAMPS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\[ *(\d+\.\d+) ?\](?: ?\[ *[TC]\d+\])? ?"), "seconds"),
    (re.compile(r"\[(\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})\] ?"), "%a %b %d %H:%M:%S %Y"),
    (re.compile(r"(\w{3} +\d+ \d\d:\d\d:\d\d) "), "%Y %b %d %H:%M:%S"),
    (re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+)\+00:00 "), "iso"),
    (re.compile(r"\d+,\d+,(\d+),-;"), "microseconds"),
)
_SPEAKER = re.compile(r"(?P<host>[\w-]+ )?(?P<tag>kernel|[\w-]+\[\d+\]): (?:\[ *\d+\.\d+\] )?")
START = datetime(2025, 2, 11, 9, 31, 2, 250_000, tzinfo=UTC)


@dataclass(frozen=True)
class Message:
    """What one line says, how many seconds after the first, and whether the kernel says it."""

    after: float
    text: str
    kernel: bool = True


def _seconds(kind: str, word: str) -> float:
    if kind == "seconds":
        return float(word)
    if kind == "microseconds":
        return int(word) / 1e6
    if kind == "iso":
        return datetime.fromisoformat(f"{word}+00:00").timestamp()
    text = f"2025 {word}" if kind.startswith("%Y") else word
    return datetime.strptime(text, kind).replace(tzinfo=UTC).timestamp()


def messages(log: str) -> list[Message]:
    """The messages of a log in one of the usual shapes."""
    out: list[Message] = []
    first: float | None = None
    now = 0.0
    for line in log.strip("\n").split("\n"):
        rest, kernel = line, True
        for pattern, kind in _STAMPS:
            if found := pattern.match(rest):
                at, rest = _seconds(kind, found[1]), rest[found.end() :]
                first = at if first is None else first
                now = max(at - first, now + 0.0001)
                break
        else:
            now += 0.001
        if found := _SPEAKER.match(rest):
            kernel, rest = found["tag"] == "kernel", rest[found.end() :]
        out.append(Message(now, rest.rstrip(), kernel))
    return out


Shape = Callable[[Message], str]


def _at(m: Message) -> datetime:
    return START + timedelta(seconds=m.after)


def _ring(m: Message) -> str:
    return f"[{5000 + m.after:12.6f}]"


def _iso(m: Message, mark: str = ".") -> str:
    return _at(m).strftime(f"%Y-%m-%dT%H:%M:%S{mark}%f")


SHAPES: Mapping[str, Shape] = {
    "dmesg": lambda m: f"{_ring(m)} {m.text}",
    "dmesg with callers": lambda m: f"{_ring(m)}[ T{1946}] {m.text}",
    "dmesg with spaced callers": lambda m: f"{_ring(m)} [   C3] {m.text}",
    "dmesg -T": lambda m: f"[{_at(m):%a %b %e %H:%M:%S %Y}] {m.text}",
    "dmesg -x with iso": lambda m: f"kern  :warn  : {_iso(m, ',')}+00:00 {m.text}",
    "dmesg -r": lambda m: f"<4>{_ring(m)} {m.text}",
    "carriage returns": lambda m: f"{_ring(m)} {m.text}\r",
    "kmsg": lambda m: f"4,{int(m.after * 10) + 99},{round((5000 + m.after) * 1e6)},-;{m.text}",
    "syslog": lambda m: f"{_at(m):%b %e %H:%M:%S} gpu-07 kernel: {m.text}",
    "syslog with seconds": lambda m: f"{_at(m):%b %e %H:%M:%S} gpu-07 kernel: {_ring(m)} {m.text}",
    "syslog without a host": lambda m: f"{_at(m):%b %e %H:%M:%S} kernel: {m.text}",
    "syslog in Chinese": lambda m: f"{_at(m).month}月 {_at(m):%e %H:%M:%S} gpu-07 kernel: {m.text}",
    "syslog with iso time": lambda m: f"{_iso(m)}+00:00 gpu-07 kernel: {m.text}",
    "rfc 5424": lambda m: f"<4>1 {_iso(m)}Z gpu-07 kernel - - - {m.text}",
    "journal with unix time": lambda m: f"{_at(m).timestamp():.6f} gpu-07 kernel: {m.text}",
    "talosctl": lambda m: f"10.9.8.7: kern: warning: [{_iso(m)}Z]: {m.text}",
    "journal json": lambda m: json.dumps(
        {"__REALTIME_TIMESTAMP": str(round(_at(m).timestamp() * 1e6)), "_HOSTNAME": "gpu-07", "_TRANSPORT": "kernel",
         "SYSLOG_IDENTIFIER": "kernel", "PRIORITY": "4", "MESSAGE": m.text}
    ),
    "pdsh": lambda m: f"gpu-07: {_ring(m)} {m.text}",
    "grep over files": lambda m: f"/var/log/kern.log.1:{int(m.after * 10) + 7}:{_at(m):%b %e %H:%M:%S} gpu-07 kernel: {m.text}",
    "grep with context": lambda m: f"{int(m.after * 10) + 7}-{_iso(m)}+00:00 gpu-07 kernel: {_ring(m)} {m.text}",
    "container log": lambda m: f"{_iso(m)}Z stdout F {_ring(m)} {m.text}",
    "agent's json": lambda m: json.dumps({"level": "info", "ts": f"{_iso(m)}Z", "msg": f"kernel: {m.text}", "node": "gpu-07"}),
}  # fmt: skip
# Another tool passes the messages on: what is no XID then needs the kernel's own word.
QUOTES: Mapping[str, Shape] = {
    "a quotation": lambda m: f"> {_ring(m)} {m.text}",
    "an agent's event": lambda m: json.dumps({"time": f"{_iso(m)}Z", "reason": "KernelMessage", "message": m.text}),
    "a log line of an agent": lambda m: f"{_at(m):%Y/%m/%d %H:%M:%S} found \"{m.text.replace(chr(34), chr(39))}\"",
}  # fmt: skip
# Those that are not one message a line, one node or one boot.
_PLAIN = frozenset({"dmesg", "dmesg-thread", "dmesg-ctime", "syslog", "journal", "iso", "bare", "kmsg"})


def plain() -> list[Case]:
    return [c for c in loud() if c.shape in _PLAIN and c.id not in ("two-nodes-same-slot", "two-boots")]


def outcome(d: Diagnosis) -> tuple[object, ...]:
    return printed(d), told(d.roots[0]) if d.roots else None, {told(f) for f in d.roots if f.xid is not None}


@cache
def expected(log: str) -> tuple[object, ...]:
    return outcome(judged(log))


_DRAWN: dict[tuple[object, ...], tuple[object, ...]] = {}


def drawn(text: str) -> tuple[object, ...]:
    """What follows from a log. Of logs that are read as the same observations one is judged, whatever their raw lines."""
    seen = parse_text("kmsg", text)
    said = tuple(
        (o.fact, o.subject, repr(o.value), o.status, o.source, o.at, o.clock, o.window, o.detail, o.origin)
        for o in seen
    )
    if said not in _DRAWN:
        _DRAWN[said] = outcome(diagnose(seen, load()))
    return _DRAWN[said]


@pytest.mark.slow
@each("case", plain, ids=lambda c: c.id)
def test_the_raw_line_decides_nothing(case: Case) -> None:
    """So `drawn` may leave it out."""
    without = [replace(o, excerpt="") for o in parse_text("kmsg", case.log)]
    assert outcome(diagnose(without, load())) == expected(case.log)


_BEGINNING = re.compile(r"[^:\d\[( ]*")


def kinds(case: Case) -> set[object]:
    """Who speaks in a case (NVRM, pcieport, INFO: how the kernel's messages begin), and what is concluded, as what, past or not."""
    speakers = {begins[0] for m in messages(case.log) if m.kernel and (begins := _BEGINNING.match(m.text))}
    return speakers | {(f.rule.id, f.role, f.past) for f in judged(case.log).findings}


@pytest.mark.slow
@each(("case", "shapes"), lambda: in_turns(plain(), tuple(SHAPES), kinds, 4), ids=lambda c: getattr(c, "id", ""))
def test_the_shape_of_the_lines_changes_nothing(case: Case, shapes: Sequence[str]) -> None:
    """The first case of each kind in all shapes, of the others each in another quarter of them."""
    said = [m for m in messages(case.log) if m.kernel]
    reference = drawn("\n".join(map(SHAPES["dmesg"], said)))
    if len(said) == len(messages(case.log)):
        assert reference == expected(case.log)
    wrong = {}
    for name in shapes:
        got = drawn("\n".join(map(SHAPES[name], said)) + "\n")
        if got != reference:
            wrong[name] = got
    assert wrong == {}, reference


def ended(case: Case) -> bool:
    return any(f.past for f in judged(case.log).findings)


@pytest.mark.slow
@each("case", lambda: [c for c in plain() if c.events and ended(c)], ids=lambda c: c.id)
def test_what_a_tool_passes_on_tells_no_cure(case: Case) -> None:
    """Nobody knows what it left out: a fault that the kernel's own log shows to be past stays there."""
    said = [m for m in messages(case.log) if m.kernel and "Xid" in m.text]
    quotes = [judge("\n".join(map(shape, said)) + "\n") for shape in QUOTES.values()]
    quoted = [
        d for d in quotes if not any(k.fact == "log.kernel.readable" and k.inner.value for k in d.facts.observations)
    ]
    assert quoted
    assert not any(f.past for d in quoted for f in d.findings)


@pytest.mark.slow
@each("case", lambda: [c for c in plain() if c.events and not ended(c)], ids=lambda c: c.id)
def test_a_message_that_a_tool_passes_on_counts(case: Case) -> None:
    said = [m for m in messages(case.log) if m.kernel and "Xid" in m.text]
    reference = drawn("\n".join(map(SHAPES["dmesg"], said)))
    wrong = {}
    for name, shape in QUOTES.items():
        got = drawn("\n".join(map(shape, said)) + "\n")
        if got != reference:
            wrong[name] = got
    assert wrong == {}, reference


_ADDRESS = re.compile(r"Xid \(PCI:([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})\)")


@pytest.mark.slow
@each("case", lambda: [c for c in plain() if _ADDRESS.search(c.log)][::3], ids=lambda c: c.id)
def test_the_spelling_of_an_address_changes_nothing(case: Case) -> None:
    for spelling in ("Xid ({0})", "Xid (PCI:{0}.0)", "Xid (PCI:0000{0})", "Xid (PCI:{0} GPU-I:05)"):
        respelled = _ADDRESS.sub(lambda m, s=spelling: s.format(m[1]), case.log)  # type: ignore[misc]
        assert drawn(respelled) == expected(case.log), spelling
    upper = _ADDRESS.sub(lambda m: f"Xid (PCI:{m[1].upper()})", case.log)
    assert drawn(upper) == expected(case.log)


NOISE = (
    "usb 3-1: new high-speed USB device number 79 using xhci_hcd",
    "audit: type=1400 audit(1739266262.048:154): apparmor=\"STATUS\" operation=\"profile_load\" pid=48 comm=\"snap\"",
    "nvidia-uvm: Loaded the UVM driver, major device number 508.",
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth79: link becomes ready",
    "perf: interrupt took too long (4931 > 4921), lowering kernel.perf_event_max_sample_rate to 40500",
    "hrtimer: interrupt took 126323 ns",
    "docker0: port 3(veth8ef0) entered forwarding state",
    "EXT4-fs (sda2): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none.",
)  # fmt: skip


TAILS = (("dmesg", 40), ("syslog", 2))  # a long tail behind it, and a short one


@pytest.mark.slow
@each("case", plain, ids=lambda c: c.id)
def test_other_lines_in_between_change_nothing(case: Case) -> None:
    said = [m for m in messages(case.log) if m.kernel]
    reference = drawn("\n".join(map(SHAPES["dmesg"], said)))
    mixed: list[Message] = []
    for i, m in enumerate(said):
        mixed += [Message(m.after, NOISE[i % len(NOISE)]), m]
    for shape, often in TAILS:
        tail = [Message(said[-1].after + i, text) for i, text in enumerate(NOISE * often)]
        assert drawn("\n".join(map(SHAPES[shape], [*mixed, *tail]))) == reference, shape


@pytest.mark.slow
@each("case", plain, ids=lambda c: c.id)
def test_the_same_log_twice_says_the_same(case: Case) -> None:
    once = "\n".join(map(SHAPES["dmesg -T"], [m for m in messages(case.log) if m.kernel])) + "\n"
    assert drawn(once + once) == drawn(once)


def pairs() -> list[tuple[Case, Case]]:
    """Each case with the next but six whose GPUs are others."""
    known = [c for c in plain() if c.root is not None and c.root["xid"] is not None]
    out = []
    for i, one in enumerate(known):
        for other in (*known[i + 6 :], *known):
            if not {p for p, _ in one.printed} & {p for p, _ in other.printed}:
                out.append((one, other))
                break
    return out


@pytest.mark.slow
@each("pair", pairs, ids=lambda p: f"{p[0].id}+{p[1].id}")
def test_two_faults_on_two_gpus_give_two_roots(pair: tuple[Case, Case]) -> None:
    """A week apart, so that neither can be taken for the other's effect."""
    first, second = ([m for m in messages(c.log) if m.kernel] for c in pair)
    later = [Message(m.after + first[-1].after + 8 * 86_400, m.text) for m in second]
    d = judge("\n".join(map(SHAPES["dmesg -T"], [*first, *later])))
    assert printed(d) == pair[0].printed | pair[1].printed
    roots = [told(f)[1:] for f in d.roots]
    for case in pair:
        assert case.root is not None
        assert (case.root["xid"], case.root["rule"], case.action) in roots
