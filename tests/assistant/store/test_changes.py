"""What changed, as a pure function, and the words for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.changes import FACTS_OF_INTEREST, Before, Changes, Now, compare, counts_trouble
from assistant.diagnosis import Diagnosis
from assistant.render import changes as render
from assistant.store.codec import Key, Last, collect, encode, subject_text
from assistant.store.read import PastFinding, Run
from knowledge.facts import Kind, vocabulary
from knowledge.observation import Clock, Event, Observation, Source, Status, Subject, gpu, node
from rules.engine import Finding
from tests.assistant.store.history_lab import GPU, HOST, MINUTE, T0, Machine, log, plain, seen, xid


def past_of(f: Finding, at: int = T0) -> PastFinding:
    """A finding as the history would give it back."""
    stands = tuple(sorted({(o.fact, subject_text(o.subject)) for o in (*f.events, *f.because)}))
    clock = next((o.clock for o in f.events if o.at is not None), Clock.NONE)
    return PastFinding(
        f.id, f.rule.id, f.xid, f.subject, f.title, str(f.severity), str(f.grade), str(f.role), str(f.advice.bucket),
        f.explained_by, len(f.events), *f.times, clock, at, at, 1, "", stands,
    )  # fmt: skip


def before_of(d: Diagnosis, boot: str = "b1") -> Before:
    """A diagnosis as the last run."""
    assert d.as_of is not None
    run = Run(
        1,
        HOST,
        d.as_of,
        "live",
        False,
        boot,
        "0",
        d.ruleset,
        str(d.verdict.state),
        str(d.verdict.usable),
        d.verdict.text,
        0,
        {},
    )
    known = {k: Last(s.cell, s.at or 0) for k, s in collect(o.inner for o in d.facts.observations).items()}
    return Before(run, tuple(past_of(f) for f in d.findings), known)


def now_of(d: Diagnosis, boot: str = "b1") -> Now:
    return Now(
        HOST, d.as_of, d.ruleset, str(d.verdict.state), str(d.verdict.usable), d.findings, d.undecided, d.facts, boot
    )


def diagnosed(at: int = T0, *more: Observation, **machine: object) -> Diagnosis:
    return plain([*Machine(**machine).observations(at), *more], at)  # type: ignore[arg-type]  # fields of Machine


def test_the_same_again_is_no_change() -> None:
    d = diagnosed(T0, xid(79, T0))
    changes = compare(before_of(d), now_of(d))
    assert not changes
    assert len(changes.still) == len(d.findings) > 0
    assert "Nothing changed." in render.text(changes, "en")
    assert "没有变化。" in render.text(changes, "zh")


CODES = st.frozensets(st.sampled_from([13, 31, 43, 48, 63, 74, 79, 94, 95, 119]), max_size=4)


@given(CODES, CODES)
def test_each_finding_is_in_one_place(then: frozenset[int], now: frozenset[int]) -> None:
    a = diagnosed(T0, *[xid(c, T0 - c, line=c) for c in sorted(then)])
    b = diagnosed(T0 + MINUTE, *[xid(c, T0 - c, line=c) for c in sorted(now)])
    changes = compare(before_of(a), now_of(b))
    old, new = {f.id for f in a.findings}, {f.id for f in b.findings}
    assert {f.id for f in changes.new} == new - old
    assert {p.key for p in changes.cleared} | {u.finding.key for u in changes.unseen} == old - new
    assert {f.id for f, _ in changes.still} == old & new
    assert {s.finding.id for s in (*changes.worse, *changes.eased)} <= old & new
    assert not {p.key for p in changes.cleared} & {u.finding.key for u in changes.unseen}
    back = compare(before_of(b), now_of(replace(a, as_of=T0 + 2 * MINUTE)))
    assert {f.id for f in back.new} == old - new


def test_nothing_read_clears_nothing() -> None:
    a = diagnosed(T0, xid(79, T0 - 5), seen("gpu.ecc.volatile.uncorrected.total", 3, T0))
    assert len(a.findings) >= 2
    silent = plain(
        [Observation("gpu.name", GPU, "H100", source=Source("x"), at=T0 + MINUTE, clock=Clock.REALTIME)], T0 + MINUTE
    )
    changes = compare(before_of(a), now_of(silent))
    assert changes.cleared == ()
    assert {u.finding.key for u in changes.unseen} == {f.id for f in a.findings}
    failed = plain(
        [log(T0 + MINUTE), seen("gpu.ecc.volatile.uncorrected.total", None, T0 + MINUTE, status=Status.FAILED)],
        T0 + MINUTE,
    )
    changes = compare(before_of(a), now_of(failed))
    assert {p.xid for p in changes.cleared} == {79}
    assert [u.missing for u in changes.unseen] == [("gpu.ecc.volatile.uncorrected.total",)]
    assert "needs gpu.ecc.volatile.uncorrected.total" in " ".join(render.text(changes, "en").split())


def test_a_gpu_that_is_gone_clears_nothing_of_itself() -> None:
    a = diagnosed(T0, seen("gpu.ecc.volatile.uncorrected.total", 3, T0))
    other = gpu("0000:5e:00.0", HOST)
    b = plain(
        [log(T0 + MINUTE), seen("gpu.ecc.volatile.uncorrected.total", 0, T0 + MINUTE, subject=other)], T0 + MINUTE
    )
    changes = compare(before_of(a), now_of(b))
    assert changes.cleared == ()
    assert len(changes.unseen) == 1


def test_a_process_that_is_gone_is_gone() -> None:
    def crash(pid: str) -> Observation:
        about = Subject(node().scope.__class__("process"), pid, node(HOST))
        fault = Event(None, {"process": "python3", "pid": int(pid), "kind": "segfault", "library": "libcuda.so"})
        return Observation(
            "process_fault", about, fault, source=Source("kernel-log", "dmesg", 1), at=T0, clock=Clock.REALTIME
        )

    looked = Observation(
        "process_fault",
        node(HOST),
        None,
        Status.NONE_SEEN,
        Source("kernel-log", "dmesg"),
        T0 + MINUTE,
        Clock.REALTIME,
        (T0, T0 + MINUTE),
    )
    a = diagnosed(T0, crash("4242"))
    assert [f.subject.id for f in a.findings] == ["4242"]
    assert len(compare(before_of(a), now_of(diagnosed(T0 + MINUTE, looked))).cleared) == 1
    assert len(compare(before_of(a), now_of(diagnosed(T0 + MINUTE))).unseen) == 1


def test_a_finding_that_nobody_can_look_for_is_forgotten_after_a_week() -> None:
    a = diagnosed(T0, xid(79, T0 - 5))
    before = before_of(a)
    old = Before(before.run, tuple(replace(f, how="unseen") for f in before.findings), before.known)
    day = 24 * 60 * MINUTE
    for days, count in ((6, 1), (8, 0)):
        later = replace(now_of(diagnosed(T0, log_read=False)), as_of=T0 + days * day)
        assert len(compare(old, later).unseen) == count


def test_worse_and_eased() -> None:
    d = diagnosed(T0, xid(94, T0 - 5))
    before = before_of(d)
    (finding,) = before.findings

    def against(**then: object) -> Changes:
        return compare(replace(before, findings=(replace(finding, **then),)), now_of(d))  # type: ignore[arg-type]  # fields

    now = d.findings[0]
    assert [s.what for s in against(severity="info").worse] == [(("severity", "info", str(now.severity)),)]
    assert [s.what for s in against(severity="critical").eased] == [(("severity", "critical", str(now.severity)),)]
    assert [s.what for s in against(grade="possible").worse] == [(("grade", "possible", str(now.grade)),)]
    mixed = against(severity="critical", count=0)
    assert (len(mixed.worse), len(mixed.eased)) == (0, 1), "the severity says more than the count"
    assert "级别" in render.text(mixed, "zh")
    only_action = against(bucket="RESET_GPU" if str(now.advice.bucket) != "RESET_GPU" else "IGNORE")
    assert not only_action.worse
    assert not only_action.eased


@pytest.mark.parametrize(
    ("then", "now", "boots", "grown"),
    [
        (5, 9, "aa", (4, False)),
        (9, 5, "aa", (5, True)),
        (5, 9, "ab", (9, True)),
        (5, 5, "aa", None),
        (5, 0, "aa", None),
        (5, 9, "", (4, False)),
    ],
)
def test_counters(then: int, now: int, boots: str, grown: tuple[int, bool] | None) -> None:
    a, b = diagnosed(T0, replay=then), diagnosed(T0 + MINUTE, replay=now)
    changes = compare(before_of(a, boots[:1]), now_of(b, boots[1:]))
    assert [(c.increase, c.restarted) for c in changes.counters] == ([grown] if grown else [])
    assert changes.rebooted is (None if not boots else boots[0] != boots[1])
    if grown and grown[1]:
        assert f"at least +{grown[0]}" in render.text(changes, "en")


def test_a_rounding_is_no_change() -> None:
    for after, count in ((700.1, 0), (650.0, 1)):
        a = diagnosed(T0, seen("gpu.power.limit", 700.0, T0))
        b = diagnosed(T0 + MINUTE, seen("gpu.power.limit", after, T0 + MINUTE))
        assert len(compare(before_of(a), now_of(b)).facts) == count


def test_a_value_that_failed_is_no_change() -> None:
    a = diagnosed(T0)
    b = plain([log(T0 + MINUTE), seen("gpu.vbios", None, T0 + MINUTE, status=Status.FAILED)], T0 + MINUTE)
    assert compare(before_of(a), now_of(b)).facts == ()


def test_the_facts_of_interest_stand_in_the_vocabulary() -> None:
    words = vocabulary()
    for name in FACTS_OF_INTEREST:
        assert words[name].kind in (Kind.STATE, Kind.GAUGE), name
    counted = {s.name for s in words if counts_trouble(s)}
    assert {
        "gpu.pcie.replay",
        "link.errors.crc_flit",
        "gpu.ecc.aggregate.uncorrected.total",
        "gpu.row_remap.uncorrectable",
        "nic.rx.dropped",
    } <= counted
    assert not counted & {"gpu.energy", "gpu.violation.power", "gpu.clock.event_time.sw_power_cap"}


def test_long_lists_are_cut_on_the_screen_but_not_in_data() -> None:
    a = diagnosed(T0)
    known = dict(before_of(a).known)
    more = []
    for number in range(40):
        link = Subject(node().scope.__class__("link"), str(number), GPU)
        more.append(seen("link.errors.crc_flit", number + 5, T0 + MINUTE, subject=link))
        known[Key("link.errors.crc_flit", subject_text(link), "nvml")] = Last(encode(replace(more[-1], value=1)), T0)
    changes = compare(replace(before_of(a), known=known), now_of(diagnosed(T0 + MINUTE, *more)))
    assert len(render.plain(changes)["counters"]) == 40
    text = render.text(changes, "en", 80)
    assert "28 more" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "more" not in render.text(changes, "en", verbose=True)


def test_strangers_words_do_no_harm() -> None:
    evil = "<script>[x](http://e)\x1b[31m"
    a, b = diagnosed(T0, vbios="1"), diagnosed(T0 + MINUTE, vbios=evil)
    changes = compare(before_of(a), now_of(b))
    assert "\x1b" not in render.text(changes, "en")
    assert "<script>" not in render.html(changes, "en")
    assert "<script>" not in render.markdown(changes, "en")
