"""A machine's story through the history, in a file and on a server: what is kept, what changed, what trends say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from assistant import store
from assistant.changes import Changes
from assistant.render import changes as shown
from assistant.store.location import parse
from assistant.store.read import Run
from assistant.store.write import SLICES, Writer, opened
from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Clock, Observation, Scope, Series, Source, Status, Subject, gpu, node
from probes.runner import ProbeResult
from tests.assistant.store.history_lab import (
    DAY,
    GPU,
    HOST,
    MINUTE,
    T0,
    Machine,
    check,
    differing,
    earlier,
    kept,
    log,
    plain,
    reader,
    remember,
    rule_ids,
    rules,
    seen,
    since_last,
    values,
    xid,
)


def test_the_first_check_says_that_it_is_the_first(url: str) -> None:
    _, changes = check(url, Machine(), T0)
    assert isinstance(changes, Text)
    assert "no earlier check of n1" in changes.en
    _, changes = check(url, Machine(), T0 + MINUTE)
    assert differing(changes).since == T0
    assert not changes


@pytest.mark.slow
def test_a_counter_over_several_checks_makes_a_rule_speak(url: str) -> None:
    # 100 replays a minute on Gen4 x16, where NVIDIA's limit is 16: one check cannot know, a history does.
    machine = Machine()
    for minute in range(11):
        machine.replay = minute * 100
        diagnosis, changes = check(url, machine, T0 + minute * MINUTE)
        if minute == 0:
            assert "pcie-replay-rate" not in rule_ids(diagnosis)
    assert "pcie-replay-rate" in rule_ids(diagnosis)
    finding = next(f for f in diagnosis.findings if f.rule.id == "pcie-replay-rate")
    first, last = (o for o in finding.because if o.fact == "gpu.pcie.replay")
    assert first.source.call == "history: 10 samples since 2026-09-21T14:13:20Z"
    assert (first.value, last.value, last.source.call) == (0, 1000, "nvmlDeviceGetFieldValues(0)")
    assert [(c.fact, c.increase) for c in differing(changes).counters] == [("gpu.pcie.replay", 100)]
    with reader(url) as r:
        assert values(r, "gpu.pcie.replay") == tuple(range(0, 1100, 100))
        assert r.first_seen(HOST, "pcie-replay-rate", GPU) == T0 + 5 * MINUTE  # half of the window
        assert values(r, "gpu.temperature.core") == (40.0,) + (40.0,) * 1, (
            "unchanged: vouched for after ten minutes only"
        )


def test_a_counter_that_stands_still_is_known_to(url: str) -> None:
    machine = Machine(replay=5)
    recorder = store.Recorder(url, rules=rules().rules)
    for minute in range(40):
        at = T0 + minute * MINUTE
        assert kept(url, recorder, plain(machine.observations(at), at)) is None
    recorder.close()
    at = T0 + 40 * MINUTE
    found, _ = earlier(url, machine.observations(at), at, "boot-1")
    ends = [(o.at, o.value) for o in found if o.fact == "gpu.pcie.replay"]
    assert ends == [(at - 10 * MINUTE, 5), (at - MINUTE, 5)], "the ends of the rule's ten minutes are enough"
    from rules.evaluate import evaluate
    from rules.proof import Truth

    rule = rules()["pcie-replay-rate"]
    diagnosis = plain([*machine.observations(at), *found], at)
    assert evaluate(rule.when, GPU, diagnosis.facts).truth is Truth.FALSE
    assert evaluate(rule.when, GPU, plain(machine.observations(at), at).facts).truth is Truth.UNKNOWN


@pytest.mark.slow
def test_looks_of_hours_make_a_window_of_a_gpu_that_holds_the_same_memory(url: str) -> None:
    """Full, nothing, full again at looks ten minutes apart: of one program it is work in waves; of jobs that come and go it is not."""
    said: dict[str, bool] = {}
    for name, held in (("one program", (61_000, 60_500)), ("one job after the other", (61_000, 300))):
        machine = Machine()
        for look in range(13):
            at = T0 + DAY * len(said) + 10 * look * MINUTE
            machine.more = [
                seen("gpu.utilization.core", 99 * (look % 2), at),
                seen("gpu.memory.used", held[look % 2], at),
            ]
            diagnosis, _ = check(url, machine, at)
        said[name] = "gpu-starved-in-waves" in rule_ids(diagnosis)
    assert said == {"one program": True, "one job after the other": False}
    for look in range(13):
        at = T0 + 3 * DAY + 10 * look * MINUTE
        machine.more = [seen("gpu.utilization.core", 0, at), seen("gpu.memory.used", 61_000, at)]
        diagnosis, _ = check(url, machine, at)
    assert "gpu-held-and-idle" in rule_ids(diagnosis), "two hours of nothing"


@pytest.mark.slow
def test_looks_of_hours_make_a_window_of_each_mig_instance(url: str) -> None:
    """Two instances of one GPU: what the first does little of for two hours is sure, and says nothing of the second, which works."""
    parts = {name: Subject(Scope.MIG, name, GPU) for name in ("3", "5")}
    grades = []
    for look in range(13):
        at = T0 + 10 * look * MINUTE
        machine = Machine()
        machine.more = [
            seen(f"mig.{what}", value, at, parts[name])
            for name, sm in (("3", 6.0), ("5", 88.0))
            for what, value in (
                ("activity.graphics", 99.0),
                ("activity.sm", sm),
                ("activity.tensor", sm / 2),
                ("memory.used", 9_000),
            )
        ]
        diagnosis, _ = check(url, machine, at)
        found = [f for f in diagnosis.findings if f.rule.id == "mig-instance-does-little"]
        assert [f.subject for f in found] == [parts["3"]]
        grades.append(str(found[0].grade))
    assert (grades[0], grades[-1]) == ("probable", "confirmed")


def test_an_old_value_never_stands_for_a_failed_reading(url: str) -> None:
    machine = Machine(replay=5)
    for minute in range(3):
        check(url, machine, T0 + minute * MINUTE)
    at = T0 + 3 * MINUTE
    failed = [log(at), seen("gpu.pcie.replay", None, at, status=Status.FAILED)]
    assert earlier(url, failed, at) == ([], None)
    assert earlier(url, [log(at)], at) == ([], None)
    other = replace(seen("gpu.pcie.replay", 9, at), source=Source("nvidia-smi-q", "nvidia-smi -q"))
    assert earlier(url, [other], at) == ([], None), "another probe is another counter"


def test_another_gpu_in_the_slot_begins_anew(url: str) -> None:
    machine = Machine(replay=1000)
    for minute in range(3):
        check(url, machine, T0 + minute * MINUTE)
    machine.uuid, machine.replay = "GPU-bbbb", 3000
    at = T0 + 3 * MINUTE
    now = machine.observations(at)
    assert earlier(url, now, at)[0] == []
    _, changes = check(url, machine, at)
    assert [(c.fact, c.before, c.after) for c in differing(changes).facts] == [("gpu.uuid", "GPU-aaaa", "GPU-bbbb")]
    assert differing(changes).counters == (), "its counters have nothing to do with the old one's"
    machine.replay = 3100
    found, _ = earlier(url, machine.observations(at + MINUTE), at + MINUTE)
    assert [o.value for o in found] == [3000]


def test_counters_of_another_boot_are_left_out(url: str) -> None:
    machine = Machine(replay=50)
    check(url, machine, T0)
    machine.boot, machine.replay = "boot-2", 70
    at = T0 + MINUTE
    assert earlier(url, machine.observations(at), at, "boot-2") == ([], None)
    _, changes = check(url, machine, at)
    changes = differing(changes)
    assert changes.rebooted is True
    (counter,) = changes.counters
    assert (counter.increase, counter.restarted) == (70, True), "not 20"


def test_a_finding_from_its_first_check_to_its_last(url: str) -> None:
    machine = Machine()
    check(url, machine, T0)
    machine.more = [xid(79, T0 + 30)]
    diagnosis, changes = check(url, machine, T0 + MINUTE)
    (key,) = [f.id for f in diagnosis.findings if f.xid == 79]
    assert [f.id for f in differing(changes).new] == [key]
    assert differing(changes).state == ("ok", "unhealthy")
    _, changes = check(url, machine, T0 + 2 * MINUTE)
    assert not differing(changes).new
    assert [(f.id, at) for f, at in differing(changes).still] == [(key, T0 + MINUTE)]
    machine.more = []
    _, changes = check(url, machine, T0 + 3 * MINUTE)
    assert [(p.key, p.opened_at, p.last_at) for p in differing(changes).cleared] == [
        (key, T0 + MINUTE, T0 + 2 * MINUTE)
    ]
    _, changes = check(url, machine, T0 + 4 * MINUTE)
    assert not differing(changes)
    with reader(url) as r:
        runs = r.runs(HOST)
        assert [[f.key for f in r.findings_of(run)] for run in reversed(runs)] == [[], [key], [key], [], []]
        assert [run.state for run in reversed(runs)] == ["ok", "unhealthy", "unhealthy", "ok", "ok"]
        assert r.open_findings(HOST) == []
        (episode,) = r.episodes(HOST, "gpu-fell-off-bus", GPU)
        assert episode.how == "cleared"


def test_what_could_not_be_looked_at_is_not_cleared(url: str) -> None:
    machine = Machine(more=[xid(79, T0 - 30)])
    diagnosis, _ = check(url, machine, T0)
    key = diagnosis.findings[0].id
    machine.log_read = False
    _, changes = check(url, machine, T0 + MINUTE)
    assert differing(changes).cleared == ()
    assert [(u.finding.key, u.missing) for u in differing(changes).unseen] == [(key, ("xid",))]
    machine.log_read = True
    _, changes = check(url, machine, T0 + 2 * MINUTE)
    assert [(f.id, since) for f, since in differing(changes).still] == [(key, T0)], (
        "it was there all the time, as far as known"
    )
    machine.more = []
    with reader(url) as r:
        assert [f.how for f in r.episodes(HOST, "gpu-fell-off-bus", GPU)] == ["changed", ""]
    _, changes = check(url, machine, T0 + 3 * MINUTE)
    assert [p.key for p in differing(changes).cleared] == [key]


def test_a_log_that_begins_later_clears_nothing_but_a_reboot_does(url: str) -> None:
    machine = Machine(more=[xid(79, T0 - 30)])
    check(url, machine, T0)
    at = T0 + MINUTE
    rotated = [log(at, since=T0), *Machine(log_read=False).observations(at)]
    changes = differing(since_last(url, plain(rotated, at), "boot-1"))
    assert len(changes.unseen) == 1
    assert not changes.cleared
    changes = differing(since_last(url, plain(rotated, at), "boot-2"))
    assert len(changes.cleared) == 1
    assert not changes.unseen


def test_more_of_it_is_worse(url: str) -> None:
    machine = Machine(more=[xid(94, T0 - 50)])
    check(url, machine, T0)
    machine.more = [xid(94, T0 - 50), xid(94, T0 + 20, 2)]
    _, changes = check(url, machine, T0 + MINUTE)
    assert [s.what for s in differing(changes).worse] == [(("count", "1", "2"),)]
    machine.more = [xid(94, T0 + 20, 1)]
    _, changes = check(url, machine, T0 + 2 * MINUTE)
    assert (differing(changes).worse, differing(changes).eased) == ((), ()), "a rotated log is no relief"


def test_the_same_line_is_one_event(url: str) -> None:
    machine = Machine(more=[xid(79, T0 - 30)])
    check(url, machine, T0)
    for hour in range(1, 4):
        machine.more = [xid(79, T0 - 30, line=hour), xid(79, T0 + hour)]
        check(url, machine, T0 + hour * 60 * MINUTE)
    with reader(url) as r:
        events = r.events_since(HOST, 0)
        assert (events[0].kind, events[0].code, events[0].at, events[0].count) == ("xid", 79, T0 - 30, 1)
        assert [e.at for e in events] == [T0 - 30, T0 + 1, T0 + 2, T0 + 3]
        assert (events[0].first_seen, events[0].last_seen) == (T0, T0 + 180 * MINUTE)
        assert [e.at for e in r.events_since(HOST, T0 + 100 * MINUTE)] == [T0 + 2, T0 + 3]


def test_seconds_since_boot_are_told_apart_by_the_boot(url: str) -> None:
    line = replace(xid(79, 100), clock=Clock.BOOT)
    for number, boot in enumerate(("boot-1", "boot-1", "boot-2")):
        machine = Machine(boot=boot, more=[line, line] if number == 1 else [line])
        check(url, machine, T0 + number * MINUTE)
    with reader(url) as r:
        assert [(e.boot_id, e.at, e.clock) for e in r.events_since(HOST, 0)] == [
            ("boot-1", 100, "boot"),
            ("boot-2", 100, "boot"),
        ]


def test_changed_facts_of_the_machine(url: str) -> None:
    machine = Machine()
    check(url, machine, T0)
    machine.vbios = "96.00.02"
    diagnosis, changes = check(url, machine, T0 + MINUTE)
    changes = differing(changes)
    assert [(c.fact, c.subject, c.before, c.after) for c in changes.facts] == [
        ("gpu.vbios", GPU, "96.00.01", "96.00.02")
    ]
    text = shown.text(changes, "en")
    assert "GPU 0000:3b:00.0: gpu.vbios 96.00.01 -> 96.00.02" in text
    assert "1 min ago, 2026-09-21 14:13:20Z (on the node)" in text
    assert diagnosis.verdict.state == "ok"


def test_the_software_that_changed_since_it_last_worked(url: str) -> None:
    machine = Machine(vbios="96.00.01")
    first = since_last(url, plain(machine.observations(T0), T0), good=True)
    assert isinstance(first, Text)
    good, _ = check(url, machine, T0)
    assert good.verdict.state == "ok"
    machine.vbios, machine.more = "96.00.02", [xid(79, T0 + 30)]
    check(url, machine, T0 + MINUTE)
    now = plain(machine.observations(T0 + 2 * MINUTE), T0 + 2 * MINUTE)
    against_last = differing(since_last(url, now))
    assert against_last.since == T0 + MINUTE
    assert not against_last.software
    changes = differing(since_last(url, now, good=True))
    assert changes.since == T0
    assert [(c.before, c.after) for c in changes.software] == [("96.00.01", "96.00.02")]
    assert "Since the last good check" in shown.text(changes, "en")
    assert shown.plain(changes)["against"] == "last_good"
    line = shown.updates(changes, "en")
    assert line.startswith("changed since the last good check (")
    assert "gpu.vbios 96.00.01 -> 96.00.02; all of it: gpudiag check --since-good" in line
    assert "gpu.vbios 96.00.01 -> 96.00.02" in shown.updates(changes, "zh")


def test_an_older_bundle_stands_by_itself(url: str) -> None:
    machine = Machine(replay=100)
    check(url, machine, T0)
    check(url, machine, T0 + 20 * MINUTE)
    old = Machine(replay=40, more=[xid(79, T0)])
    check(url, old, T0 + 10 * MINUTE, origin="bundle")
    check(url, old, T0 + 10 * MINUTE, origin="bundle")  # once more: nothing new
    with reader(url) as r:
        assert len(r.runs(HOST)) == 3
        assert values(r, "gpu.pcie.replay") == (100, 40, 100)
        last, bundle, _ = r.runs(HOST)
        assert bundle.late
        assert [f.xid for f in r.findings_of(bundle)] == [79]
        assert r.findings_of(last) == []
        assert r.open_findings(HOST) == []
        assert r.last_run(HOST) == last


def test_what_a_probe_no_longer_tells_is_not_kept_alive(url: str) -> None:
    machine = Machine(replay=100)
    check(url, machine, T0)
    machine.nvml_read = False
    check(url, machine, T0 + 30 * MINUTE)  # not read at all: nothing is said
    with reader(url) as r:
        assert values(r, "gpu.pcie.replay") == (100,)
    at = T0 + 60 * MINUTE
    assert remember(url, plain([log(at), seen("gpu.uuid", "GPU-aaaa", at)], at)) is None  # read, but not told
    check(url, machine, T0 + 61 * MINUTE)
    with reader(url) as r:
        (line,) = r.lines(HOST, "gpu.pcie.replay")
        assert [(s.at, s.cell.status) for s in line.samples] == [(T0, "ok"), (at, "not_asked")]


def test_a_failed_reading_is_kept_with_its_reason(url: str) -> None:
    check(url, Machine(), T0)
    at = T0 + MINUTE
    remember(url, plain([seen("gpu.temperature.core", None, at, status=Status.FAILED)], at))
    with reader(url) as r:
        (line,) = r.lines(HOST, "gpu.temperature.core")
        assert [s.cell.status for s in line.samples] == ["ok", "failed"], "a change of status is never passed over"


def test_kinds_of_values(url: str) -> None:
    values_: list[tuple[str, object]] = [
        ("gpu.energy", 2.0**60), ("gpu.ecc.aggregate.corrected.total", 2**61), ("gpu.ecc.mode", True),
        ("gpu.compute_mode", "default"), ("gpu.name", "NVIDIA H100 中文 'x'"), ("gpu.power.draw", 71.25),
    ]  # fmt: skip
    batch = [seen(fact, value, T0) for fact, value in values_]  # type: ignore[arg-type]  # one of the scalars
    batch.append(
        Observation("node.pci.gone", node(HOST), ("0000:01:00.0", "b"), source=NVML, at=T0, clock=Clock.REALTIME)
    )
    batch.append(seen("gpu.clock.sm", 5, T0))
    remember(url, plain(batch, T0))
    from assistant.store.codec import decode

    with reader(url) as r:
        found = {k.fact: decode(last.cell, r.vocabulary.get(k.fact)) for k, last in r.latest(HOST).items()}
    assert found == dict(values_) | {"node.pci.gone": ("0000:01:00.0", "b"), "gpu.clock.sm": 5}
    assert type(found["gpu.clock.sm"]) is int
    assert type(found["gpu.ecc.mode"]) is bool


NVML = Source("nvml", "nvml")


def test_what_a_stranger_wrote_is_stored_without_harm(url: str) -> None:
    evil = "a\0b'; DROP TABLE run; --"
    for minute in range(2):
        at = T0 + minute * MINUTE
        line = replace(xid(79, T0), excerpt=evil + "\ud800", source=Source("kernel-log", "k\udcff.log", 1))
        device = gpu("unknown:\ud800/%2f", HOST)
        assert (
            remember(url, plain([seen("gpu.name", evil, at), seen("gpu.uuid", "x", at, subject=device), line], at))
            is None
        )
    with reader(url) as r:
        assert len(r.runs()) == 2
        (event,) = r.events_since(HOST, 0)
        assert event.line.startswith("ab'; DROP")
        (name,) = [k for k, _ in r.facts(HOST) if k.fact == "gpu.name"]
        assert len(r.lines(HOST, name.fact)[0].samples) == 2
    assert rows_of(url, "observation") == 2, "the same words again are no new row"


def test_processes_and_documents_leave_no_samples(url: str) -> None:
    pid = Subject(node(HOST).scope.__class__("process"), "4242", node(HOST))
    remember(url, plain([seen("gpu.temperature.core", 40, T0), seen("gpu.temperature.core", 1, T0, subject=pid)], T0))
    with reader(url) as r:
        assert [k.subject for k, _ in r.facts(HOST)] == ["node:n1/gpu:0000:3b:00.0"]


def test_without_a_time_or_a_name_nothing_is_kept(url: str) -> None:
    timeless = plain([seen("gpu.temperature.core", 40, T0)], T0)
    said = store.remember(url, HOST, replace(timeless, as_of=None))
    assert said is not None
    assert "tells the time" in said
    said = store.remember(url, "", timeless)
    assert said is not None
    assert "--host" in said
    assert "--host" in (store.remember(url, "", timeless, lang="zh") or "")


def test_off_is_silent(tmp_path: object) -> None:
    diagnosis = plain([seen("gpu.temperature.core", 40, T0)], T0)
    assert store.remember("off", HOST, diagnosis) is None
    assert store.since_last("off", diagnosis, HOST) == store.OFF
    assert store.earlier("off", HOST, [seen("gpu.pcie.replay", 4, T0)], rules().rules) == ([], None)


def test_an_address_that_is_none_harms_nothing() -> None:
    diagnosis = plain([seen("gpu.temperature.core", 40, T0)], T0)
    assert "is not understood" in (store.remember("mysql://x", HOST, diagnosis) or "")
    assert "is not understood" in getattr(store.since_last("mysql://x", diagnosis, HOST), "en", "")


def test_an_old_bundle_is_compared_with_what_was_before_it(url: str) -> None:
    check(url, Machine(replay=1, vbios="1"), T0)
    check(url, Machine(replay=9, vbios="2", more=[xid(79, T0 + 15 * MINUTE)]), T0 + 20 * MINUTE)
    _, changes = check(url, Machine(replay=4, vbios="1"), T0 + 10 * MINUTE, keep=False)
    changes = differing(changes)
    assert changes.since == T0
    assert (changes.facts, changes.cleared, changes.unseen) == ((), (), ())
    assert [c.increase for c in changes.counters] == [3]


def test_probes_of_a_run_are_kept(url: str) -> None:
    diagnosis = plain([seen("gpu.temperature.core", 40, T0)], T0)
    results = [ProbeResult("nvml", (), Status.OK), ProbeResult("kernel-log", (), Status.DENIED, "needs CAP_SYSLOG")]
    assert store.remember(url, HOST, diagnosis, results, "watch") is None
    with reader(url) as r:
        (run,) = r.runs()
        assert isinstance(run, Run)
        assert dict(run.probes) == {"nvml": ["ok", ""], "kernel-log": ["denied", "needs CAP_SYSLOG"]}
        assert (run.origin, run.ruleset, run.exit) == ("watch", diagnosis.ruleset, int(diagnosis.exit))
        assert run.text == diagnosis.verdict.text


def test_nodes_of_a_team_do_not_mix(url: str) -> None:
    for host, replay in (("a1", 1), ("a2", 2)):
        device = gpu("0000:3b:00.0", host)
        diagnosis = plain([seen("gpu.pcie.replay", replay, T0, subject=device)], T0)
        assert store.remember(url, host, diagnosis, rules=rules().rules) is None
    with reader(url) as r:
        assert r.hosts() == ["a1", "a2"]
        assert [r.series("gpu.pcie.replay", gpu("0000:3b:00.0", h)).values for h in r.hosts()] == [(1.0,), (2.0,)]
        assert len(r.runs()) == 2
        assert len(r.runs("a1")) == 1


def test_a_series_is_a_series(url: str) -> None:
    machine = Machine()
    for minute in range(5):
        machine.replay = minute // 2
        check(url, machine, T0 + minute * MINUTE)
    with reader(url) as r:
        expected = Series(tuple(T0 + m * MINUTE for m in range(5)), (0.0, 0.0, 1.0, 1.0, 2.0))
        assert r.series("gpu.pcie.replay", GPU) == expected
        later = r.series("gpu.pcie.replay", GPU, since=T0 + 3 * MINUTE)
        assert later == Series(expected.times[3:], expected.values[3:]), (
            "the value in force when the window begins counts"
        )


# --- retention ----------------------------------------------------------------------------


def rows_of(url: str, table: str) -> int:
    location = parse(url)
    assert location is not None
    with opened(location).transaction() as c:
        return int(c.rows(f"SELECT count(*) FROM {table}", {})[0][0])


@pytest.mark.slow
def test_what_is_too_old_goes_a_little_with_every_check(url: str) -> None:
    machine = Machine(more=[xid(79, T0)])
    recorder = store.Recorder(url, days=2, rules=rules().rules)
    at = T0
    for number in range(2 * SLICES + 2):
        machine.replay = number
        if number == 1:
            machine.more = []
        at = T0 + number * DAY // 4
        assert kept(url, recorder, plain(machine.observations(at), at)) is None
    recorder.close()
    with reader(url) as r:
        series = r.series("gpu.pcie.replay", GPU)
        runs = r.runs(limit=10_000)
    # Two days at a check every six hours are 8 runs; what waits for its turn is at most one round more.
    assert len(series.times) <= SLICES + 10
    assert runs[-1].as_of >= at - 2 * DAY - SLICES * DAY // 4
    assert rows_of(url, "event") == 0, "24 days are over"
    assert rows_of(url, "finding") == 0


def test_prune_leaves_what_is_in_force(url: str) -> None:
    machine = Machine()
    check(url, machine, T0)
    machine.replay = 7
    check(url, machine, T0 + MINUTE)
    location = parse(url)
    assert location is not None
    writer = Writer(location, 3, vocabulary())
    taken = writer.prune()  # the wall clock is far from T0 either way
    assert writer.prune() == {"observation": 0, "run": 0, "event": 0, "finding": 0}
    writer.close()
    assert taken["run"] <= 1
    machine.vbios = "new"
    with reader(url) as r:
        assert r.last_run(HOST) is not None
        assert values(r, "gpu.pcie.replay")[-1] == 7
    _, changes = check(url, machine, T0 + 2 * MINUTE)
    assert [c.fact for c in differing(changes).facts] == ["gpu.vbios"]


def test_changes_as_data(url: str) -> None:
    machine = Machine()
    check(url, machine, T0)
    machine.more, machine.vbios, machine.replay = [xid(79, T0 + 5)], "x", 3
    _, changes = check(url, machine, T0 + MINUTE)
    changes = differing(changes)
    data = json.loads(json.dumps(shown.plain(changes)))
    assert data["schema"] == "gpudiag/changes/1"
    assert (data["since"], data["changed"], data["rebooted"]) == ("2026-09-21T14:13:20Z", True, False)
    assert data["new"] == [f.id for f in changes.new]
    assert data["counters"][0]["increase"] == 3
    for lang, word in (("en", "New"), ("zh", "新出现")):
        assert f"**{word}**" in shown.markdown(changes, lang)
        assert f"<h3>{word}</h3>" in shown.html(changes, lang)
    assert isinstance(changes, Changes)


@pytest.mark.parametrize("days", [1, 400])
def test_a_recorder_keeps_its_file_open(url: str, days: int) -> None:
    recorder = store.Recorder(url, days=days, rules=rules().rules)
    for minute in range(5):
        at = T0 + minute * MINUTE
        assert kept(url, recorder, plain(Machine(replay=minute).observations(at), at), "b", "watch") is None
    recorder.close()
    with reader(url) as r:
        assert values(r, "gpu.pcie.replay") == (0, 1, 2, 3, 4)
