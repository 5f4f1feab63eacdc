"""What a light round may and may not conclude: the log joined without a gap, stand-ins, and nothing cleared by it."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.machine import Look, Wish
from assistant.watch.pace import AHEAD, FULL, KERNEL, WHOLE_LOG, Pace
from knowledge.observation import Clock, Event, Observation, Source, Status, node
from probes.runner import ProbeResult

S = 10**9
START = 1_780_000_000 * S
NODE = node("n1")


def event(at: int, code: int = 79) -> Observation:
    return Observation(
        "xid", NODE, Event(code), source=Source(KERNEL), at=at, clock=Clock.REALTIME, excerpt=f"Xid {code} {at}"
    )


def log(since: int, until: int, *events: Observation, readable: bool = True) -> ProbeResult:
    if not readable:
        denied = Observation("log.kernel.readable", NODE, None, Status.DENIED, Source(KERNEL))
        return ProbeResult(KERNEL, (denied,), Status.DENIED, "denied")
    base = [
        Observation("log.kernel.readable", NODE, True, source=Source(KERNEL)),
        *events,
        *(
            Observation(
                f, NODE, None, Status.NONE_SEEN, Source(KERNEL), at=until, clock=Clock.REALTIME, window=(since, until)
            )
            for f in ("xid", "sxid")
        ),
    ]
    return ProbeResult(KERNEL, tuple(base), Status.OK)


class Machine:
    """Answers as it is told, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], int | None]] = []
        self.now = START
        self.events: list[Observation] = []
        self.kept = START - 1000 * S  # from when on the log is there
        self.readable = True

    def look(self, wish: Wish, options: Mapping[str, Mapping[str, str]]) -> Look:
        since = options.get(KERNEL, {}).get("since")
        self.asked.append((wish.only, None if since is None else int(since)))
        start = max(self.kept, 0 if since is None else int(since))
        events = [e for e in self.events if (e.at or 0) >= start]
        results = [
            log(start, self.now, *events, readable=self.readable)
            if name == KERNEL
            else ProbeResult(name, (Observation("node.x", NODE, self.now, source=Source(name)),), Status.OK)
            for name in wish.only
        ]
        return Look("n1", tuple(results), (), self.now, None)

    def pass_(self, seconds: int) -> None:
        self.now += seconds * S


def windows(look: Look) -> set[tuple[int, int]]:
    return {o.window for o in look.observations if o.status is Status.NONE_SEEN and o.window}


def codes(look: Look) -> list[int | None]:
    return [o.value.code for o in look.observations if isinstance(o.value, Event)]


def test_a_light_round_asks_for_what_changes_and_keeps_the_rest_with_its_time() -> None:
    machine = Machine()
    pace = Pace(Wish(), machine.look)
    assert pace.take(False, 0.0).full
    machine.pass_(60)
    taken = pace.take(False, 60.0)
    assert not taken.full
    names, since = machine.asked[-1]
    assert set(names) >= {"nvml", KERNEL, "system"}
    assert "pci" not in names
    assert since == START - AHEAD
    told = {r.probe: r for r in taken.look.results}
    assert told["pci"].observations[0].value == START
    assert told["system"].observations[0].value == START + 60 * S
    assert taken.look.whole
    assert pace.take(False, FULL).full
    assert pace.take(True, FULL + 1).full


def test_the_log_grows_without_doubling_and_its_window_has_no_gap() -> None:
    machine = Machine()
    machine.events = [event(START - 100 * S), event(START - 5 * S, 13)]
    pace = Pace(Wish(), machine.look)
    pace.take(False, 0.0)
    machine.pass_(60)
    machine.events.append(event(START + 30 * S, 48))
    look = pace.take(False, 60.0).look
    assert codes(look) == [79, 13, 48]
    assert windows(look) == {(START - 1000 * S, START + 60 * S)}
    machine.pass_(60)
    assert codes(pace.take(False, 120.0).look) == [79, 13, 48]


def test_a_gap_in_the_log_or_one_that_cannot_be_read_is_read_as_a_whole() -> None:
    machine = Machine()
    machine.events = [event(START - 100 * S)]
    pace = Pace(Wish(), machine.look)
    pace.take(False, 0.0)
    machine.pass_(60)
    machine.kept = START + 30 * S  # the ring buffer wrapped
    look = pace.take(False, 60.0).look
    assert machine.asked[-1] == ((KERNEL,), None)
    assert windows(look) == {(START + 30 * S, START + 60 * S)}
    assert codes(look) == []
    machine.readable = False
    machine.pass_(60)
    look = pace.take(False, 120.0).look
    assert windows(look) == set(), "what cannot be read now is not known now"


def test_a_clock_that_was_set_back_hides_nothing() -> None:
    machine = Machine()
    pace = Pace(Wish(), machine.look)
    pace.take(False, 0.0)
    machine.pass_(-3600)
    machine.kept = machine.now - 1000 * S
    machine.events.append(event(machine.now - S, 48))
    look = pace.take(False, 60.0).look
    assert codes(look) == [48]
    machine.pass_(60)
    assert codes(pace.take(False, 120.0).look) == [48]
    assert machine.asked[-1][1] is not None


def test_the_whole_log_is_read_again_now_and_then() -> None:
    machine = Machine()
    pace = Pace(Wish(), machine.look)
    for minute in range(70):
        pace.take(False, minute * 60.0)
        machine.pass_(60)
    whole = [names for names, since in machine.asked if KERNEL in names and since is None]
    assert len(whole) == 1 + int(70 * 60 // WHOLE_LOG)


def test_a_stand_in_is_gone_when_the_other_answers_again() -> None:
    machine = Machine()
    pace = Pace(Wish(), machine.look)
    first = pace.take(True, 0.0).look
    assert "nvidia-smi" in {r.probe for r in first.results}  # this machine runs whatever it is asked for

    def without(wish: Wish, options: Mapping[str, Mapping[str, str]]) -> Look:
        look = machine.look(wish, options)
        return Look("n1", tuple(r for r in look.results if r.probe != "nvidia-smi"), (), machine.now, None)

    pace._look = without
    machine.pass_(60)
    assert "nvidia-smi" not in {r.probe for r in pace.take(False, 60.0).look.results}


def test_who_asks_for_one_probe_gets_that_one_each_time() -> None:
    machine = Machine()
    pace = Pace(Wish(only=("pci",)), machine.look)
    assert pace.take(False, 0.0).full
    assert pace.take(False, 60.0).full
    assert [names for names, _ in machine.asked] == [("pci",), ("pci",)]
