"""What a boot, a reset or a load of the driver ends, what comes back, and what none of them ends.

The laws, for any sequence of faults and cures over nodes, GPUs and logs: a fault that is not followed by a cure of its own
node (or GPU), in its own log or by a shared clock, is never past; one that is, and is not seen again, always is; and what
another node's log tells changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Source, Status, Subject, gpu, node
from rules.engine import Finding, Grade, Role, run
from rules.factbase import FactBase
from rules.life import CURES, LONG_AGO, moment, span
from rules.loader import load
from rules.model import Bucket, Cure, Rule, Severity, Usable
from tests.cases import each

SECOND, HOUR = 10**9, 3600 * 10**9
NODES, GPUS = ("n1", "n2"), ("0000:3b:00.0", "0000:5e:00.0")
LOST, PAGE_FAULT = 79, 31
RULES = load().rules


@dataclass(frozen=True)
class Happening:
    """One line of a log: a fault (its XID) or a cure (its fact)."""

    what: int | str
    node: str = "n1"
    gpu: str = GPUS[0]


def seen(
    log: list[Happening], call: str = "kern.log", start: int = 0, clock: Clock = Clock.REALTIME
) -> list[Observation]:
    """The lines of a log, one an hour, and that it was read from its first line to an hour behind the last."""
    out = []
    for i, h in enumerate(log):
        subject: Subject = node(h.node) if h.what in ("boot", "driver_loaded") else gpu(h.gpu, h.node)
        fact, value = ("xid", Event(h.what, {})) if isinstance(h.what, int) else (h.what, Event(None, {}))
        out.append(
            Observation(
                fact, subject, value, source=Source("kernel-log", call, i + 1), at=start + i * HOUR, clock=clock
            )
        )
    window = start, start + len(log) * HOUR
    silence = Observation("xid", node(""), None, Status.NONE_SEEN, Source("kernel-log", call), window[1], clock, window)
    for name in NODES:
        out += [replace(silence, subject=node(name)), replace(silence, subject=node(name), fact="xid_implied")]
    return out


def found(*logs: list[Observation], code: int = LOST) -> dict[tuple[str, str], Finding]:
    """The findings about an XID by node and GPU."""
    facts = FactBase([o for log in logs for o in log], vocabulary())
    return {(f.subject.host, f.subject.id): f for f in run(RULES, facts).findings if f.xid == code}


HAPPENINGS = st.builds(
    Happening,
    st.sampled_from([LOST, LOST, "boot", "driver_loaded", "gpu_reset"]),
    st.sampled_from(NODES),
    st.sampled_from(GPUS),
)
REBOOT = Happening("boot")
FAULT = Happening(LOST)


@given(st.lists(HAPPENINGS, max_size=8))
def test_a_fault_is_past_exactly_when_it_was_cured_and_not_seen_again(log: list[Happening]) -> None:
    for (host, device), f in found(seen(log)).items():
        own = [h for h in log if h.node == host and (h.what == "boot" or (h.what == LOST and h.gpu == device))]
        faults = [i for i, h in enumerate(own) if h.what == LOST]
        cured = [i for i, h in enumerate(own) if h.what == "boot"]  # RESTART_BM: neither a reset nor a reload
        again = any(min(faults) < c < max(faults) for c in cured)
        past = not again and bool(cured) and max(cured) > max(faults)
        assert (f.past, f.life is not None and f.life.again) == (past, again), log


@given(st.lists(HAPPENINGS, max_size=6), st.lists(HAPPENINGS, max_size=6), st.booleans())
def test_another_log_without_a_shared_clock_or_name_cures_nothing(
    one: list[Happening], two: list[Happening], named: bool
) -> None:
    """Whatever it holds: it can only make a fault one that is there."""
    clock = Clock.LOCAL if named else Clock.REALTIME
    nameless = (lambda log: log) if named else (lambda log: [o.about(_nameless(o.subject)) for o in log])
    first, second = nameless(seen(one, "a.log", 0, clock)), nameless(seen(two, "b.log", 100 * HOUR, clock))
    alone, both = found(first), found(first, second)
    for key, f in alone.items():
        assert not both[key].past or f.past
        assert both[key].advice.usable.rank >= f.advice.usable.rank
        assert both[key].severity.rank >= f.severity.rank


def _nameless(subject: Subject) -> Subject:
    return gpu(subject.id) if subject.parent is not None else node("")


@given(st.lists(HAPPENINGS, max_size=8), st.lists(HAPPENINGS.map(lambda h: replace(h, node="n2")), max_size=6))
def test_what_happens_on_another_node_changes_nothing(log: list[Happening], other: list[Happening]) -> None:
    mine = [replace(h, node="n1") for h in log]
    alone, both = found(seen(mine)), found(seen(mine), seen(other, "other.log"))
    for key, f in alone.items():
        assert (both[key].life, both[key].severity, both[key].advice) == (f.life, f.severity, f.advice)


@given(st.lists(HAPPENINGS, min_size=1, max_size=6))
def test_a_fault_that_follows_is_never_milder_than_one_alone(log: list[Happening]) -> None:
    alone = found(seen([FAULT]))["n1", GPUS[0]]
    last = found(seen([*log, FAULT]))["n1", GPUS[0]]
    assert not last.past
    assert last.severity is alone.severity
    assert last.advice.usable.rank >= alone.advice.usable.rank


def test_a_past_fault_is_told_with_what_ended_it_and_confirmed_first() -> None:
    f = found(seen([FAULT, REBOOT, Happening(PAGE_FAULT)]))["n1", GPUS[0]]
    assert f.past
    assert f.counts
    assert f.life is not None
    assert (f.life.kind, f.life.quiet) == (Cure.REBOOT, 2 * HOUR)
    assert (
        f.title.en
        == "GPU had fallen off the bus before the reboot of 1970-01-01 01:00 UTC; nothing of it in the 2 hours since"
    )
    assert f.title.zh == "GPU 从总线上掉线（在 1970-01-01 01:00 UTC 重启之前；此后 2 小时内未再出现）"
    assert (f.severity, f.advice.usable, f.advice.bucket) == (Severity.WARNING, Usable.UNKNOWN, Bucket.MONITOR)
    assert f.advice.command == f"nvidia-smi -q -i {GPUS[0]}"
    assert f.life.cure in f.advice.because


@pytest.mark.parametrize(("hours", "over"), [(23, False), (25, True)])
def test_a_day_of_silence_behind_the_cure_ends_the_alarm(hours: int, over: bool) -> None:
    log = [replace(o, window=(0, (hours + 1) * HOUR)) if o.window else o for o in seen([FAULT, REBOOT])]
    f = found(log)["n1", GPUS[0]]
    assert f.life is not None
    assert (f.past, f.life.over, f.counts) == (True, over, not over)
    assert f.severity is (Severity.INFO if over else Severity.WARNING)
    assert "had fallen off the bus before the reboot" in f.title.en


def test_what_came_back_after_the_reboot_asks_for_an_inspection() -> None:
    f = found(seen([FAULT, REBOOT, FAULT]))["n1", GPUS[0]]
    assert f.title.en == "GPU has fallen off the bus again after the reboot at 1970-01-01 01:00 UTC"
    assert (f.advice.bucket, f.advice.usable) == (Bucket.CHECK_MECHANICALS, Usable.NO)
    assert f.advice.text.en.startswith("The reboot did not help")
    assert f.advice.then == ()


def test_it_stays_come_back_although_the_node_was_rebooted_once_more() -> None:
    f = found(seen([FAULT, REBOOT, FAULT, REBOOT]))["n1", GPUS[0]]
    assert not f.past
    assert f.advice.bucket is Bucket.CHECK_MECHANICALS


def test_what_came_back_after_a_reset_asks_for_the_reboot() -> None:
    log = [Happening(119), Happening("gpu_reset"), Happening(119)]
    f = found(seen(log), code=119)["n1", GPUS[0]]
    assert f.advice.bucket is Bucket.RESTART_BM
    assert f.title.en.endswith(" again after the reset at 1970-01-01 01:00 UTC")
    assert found(seen(log[:2]), code=119)["n1", GPUS[0]].past


def test_a_repair_that_could_not_be_written_is_over_with_nothing() -> None:
    for cure in CURES:
        f = found(seen([Happening(64), Happening(cure)]), code=64)["n1", GPUS[0]]
        assert f.life is None
        assert f.advice.usable.stops


@each("code", [48, 95])
def test_bad_memory_is_mended_by_what_applies_the_repair_and_its_state_confirms_that(code: int) -> None:
    for cure in CURES:
        f = found(seen([Happening(code), Happening(cure)]), code=code)["n1", GPUS[0]]
        assert f.past is (cure != "driver_loaded")
        assert not f.past or (f.advice.usable is Usable.UNKNOWN and "remapped rows" in f.advice.text.en)


def test_another_face_of_a_fault_behind_its_cure_is_the_fault_come_back() -> None:
    f = found(seen([Happening(48), Happening("gpu_reset"), Happening(95)]), code=95)["n1", GPUS[0]]
    assert f.life is not None
    assert f.life.again
    assert f.advice.bucket is Bucket.CONTACT_SUPPORT
    assert "which was for XID 48" in f.title.en
    other = [Happening(48, gpu=GPUS[1]), Happening("gpu_reset", gpu=GPUS[1]), Happening(95)]
    assert found(seen(other), code=95)["n1", GPUS[0]].life is None


@each("code", [48, 95, 109, 119])
def test_a_reset_that_failed_asks_for_more_than_a_reset(code: int) -> None:
    log = [Happening(code), Happening("gpu_reset_failed")]
    f = found(seen(log), code=code)["n1", GPUS[0]]
    assert not f.past
    assert (f.advice.bucket, f.advice.command) == (Bucket.RESTART_BM, "ipmitool chassis power cycle")
    after = found(seen([*log, REBOOT]), code=code)["n1", GPUS[0]]
    assert after.past, "the reboot behind it did more"
    elsewhere = [Happening(code), Happening("gpu_reset_failed", gpu=GPUS[1])]
    assert found(seen(elsewhere), code=code)["n1", GPUS[0]].life is None


def test_a_log_that_was_not_read_beyond_the_cure_says_nothing_about_it() -> None:
    without = [o for o in seen([FAULT, REBOOT]) if o.status is not Status.NONE_SEEN]
    assert not found(without)["n1", GPUS[0]].past


@each("order", ["the lines", "the times"])
def test_where_lines_and_times_contradict_each_other_nothing_is_over(order: str) -> None:
    fault, boot, *rest = seen([FAULT, REBOOT])
    fault = (
        replace(fault, source=Source("kernel-log", "kern.log", 3))
        if order == "the times"
        else replace(fault, at=3 * HOUR)
    )
    assert not found([fault, boot, *rest])["n1", GPUS[0]].past


@pytest.mark.parametrize(
    ("told", "past"), [(0, True), (3 * HOUR, False), (None, False)], ids=["before", "after", "when, nobody knows"]
)
def test_a_value_that_says_it_is_there_outweighs_the_cure_unless_it_is_older(told: int | None, past: bool) -> None:
    gone = Observation(
        "gpu.nvml.reachable", gpu(GPUS[0], "n1"), False, source=Source("nvml", "nvml"), at=told,
        clock=Clock.NONE if told is None else Clock.REALTIME,
    )  # fmt: skip
    log = [
        replace(o, at=o.at + HOUR if o.at is not None else None, window=o.window and (HOUR, o.window[1] + HOUR))
        for o in seen([FAULT, REBOOT])
    ]
    assert found([*log, gone])["n1", GPUS[0]].past is past


@pytest.mark.parametrize(
    ("told", "past"), [(0, False), (9 * HOUR, True), (None, False)], ids=["before", "after", "when, nobody knows"]
)
def test_only_a_later_look_takes_an_event_back(told: int | None, past: bool) -> None:
    """What could confirm it and does not: a GPU that is reachable may have been so before it was lost."""
    well = Observation(
        "gpu.nvml.reachable", gpu(GPUS[0], "n1"), True, source=Source("nvml", "nvml"), at=told,
        clock=Clock.NONE if told is None else Clock.REALTIME,
    )  # fmt: skip
    f = found([*seen([Happening(PAGE_FAULT), FAULT]), well])["n1", GPUS[0]]
    assert (f.past, f.counts) == (past, True)
    assert f.grade is Grade.POSSIBLE
    assert f.advice.usable is (Usable.UNKNOWN if past else Usable.NOT_YET)


@pytest.mark.parametrize(("rebooted", "role"), [(False, Role.SYMPTOM), (True, Role.ROOT)])
def test_what_is_over_is_the_cause_of_nothing_that_comes_later(rebooted: bool, role: Role) -> None:
    log = seen([FAULT, REBOOT, Happening(119)])
    close = {0: 0, HOUR: 60 * SECOND, 2 * HOUR: 90 * SECOND}  # so near that one would explain the other
    log = [replace(o, at=close.get(o.at or 0, o.at)) for o in log if rebooted or o.fact != "boot"]
    assert found(log, code=119)["n1", GPUS[0]].role is role


@pytest.mark.parametrize(("hours", "told"), [(23, False), (25, True), (19 * 24, True)])
def test_what_is_long_ago_says_so(hours: int, told: bool) -> None:
    log = seen([Happening(PAGE_FAULT)])
    log = [replace(o, window=(0, hours * HOUR)) if o.window else o for o in log]
    title = found(log, code=PAGE_FAULT)["n1", GPUS[0]].title
    assert told is (hours * HOUR >= LONG_AGO)
    assert ("before the log ends" in title.en, "距日志结束" in title.zh) == (told, told)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (12, "12 s"), (119, "119 s"), (120, "2 min"), (3600, "1 h"), (6 * 3600, "6 h"), (19 * 86400, "19 d")],
)
def test_durations(seconds: int, said: str) -> None:
    assert span(seconds * SECOND).en == said


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        (Clock.REALTIME, "2026-11-23 02:55 UTC"),
        (Clock.LOCAL, "2026-11-23 02:55"),
        (Clock.YEARLESS, "11-23 02:55"),
        (Clock.BOOT, ""),
    ],
)
def test_moments(clock: Clock, said: str) -> None:
    at = 1795402500 * SECOND
    assert moment(Observation("boot", node("n1"), Event(), at=at, clock=clock)) == said


def test_every_grave_rule_about_events_says_what_ends_it() -> None:
    lacking = [r.id for r in RULES if _grave_without(r)]
    assert lacking == []


def _grave_without(rule: Rule) -> bool:
    return rule.cured_by == () and rule.uncured == Text("")
