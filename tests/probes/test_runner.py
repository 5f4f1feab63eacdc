"""Probes on recorded machines: nothing is silent, nothing that was not seen reassures, one that breaks hides no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.language import Text
from knowledge.observation import Event, Observation, Scope, Source, Status, node
from probes.bundle import BundleHost, write
from probes.host import CallKind, Host, RecordingHost, ReplayHost, Reply
from probes.live import Cost, ProbeRequest, ProbeSpec, ibstat, kernel_log, lspci, nvidia_smi, nvlink, probes
from probes.live._kernel_sources import FILES as KERNEL_FILES
from probes.runner import ProbeResult, run
from tests.cases import each

CAPTURES = Path(__file__).parent.parent / "captures"
XID = b"2026-03-03T12:00:01+0000 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.\n"
QUIET = b"2026-03-03T12:00:00+0000 n1 kernel: usb 1-1: new device\n2026-03-03T12:09:00+0000 n1 kernel: usb 1-1: gone\n"
JOURNAL, DMESG = kernel_log.COMMANDS


def capture(name: str) -> bytes:
    return (CAPTURES / name).read_bytes()


def ran(argv: Sequence[str], data: bytes = b"", code: int | None = 0, **more: object) -> Reply:
    return replace(Reply(CallKind.COMMAND, tuple(argv), data=data, exit_code=code), **more)  # type: ignore[arg-type]


def machine() -> list[Reply]:
    """A node on which every probe has an answer."""
    return [
        ran(nvidia_smi.ARGV, capture("smi/hopper-590-sick.txt")),
        ran(JOURNAL, QUIET + XID),
        ran(ibstat.ARGV, capture("network/ibstat.rails-down.txt")),
        ran(lspci.ARGV, capture("network/lspci.gpu-gone.txt")),
        ran(nvlink.STATES, capture("smi/nvlink-s.txt")),
        ran(nvlink.ERRORS, capture("smi/nvlink-e.txt")),
        Reply(CallKind.FILE, ("/var/log/fabricmanager.log",), data=capture("logs/fabricmanager-start.log")),
    ]


# The probes that `machine` answers: those that read a tool's output or a log, not a collector of ours.
TOOLS = {"nvidia-smi", "kernel-log", "ibstat", "lspci", "nvlink", "fabric-manager-log"}


def result(name: str, *replies: Reply, cap: int = 1 << 20) -> ProbeResult:
    spec = next(spec for spec in probes() if spec.name == name)
    (out,) = run(ReplayHost("n1", replies), [spec], cap=cap)
    return out


def of(out: ProbeResult, fact: str) -> list[Observation]:
    return [o for o in out.observations if o.fact == fact]


def one(out: ProbeResult, fact: str) -> Observation:
    (found,) = of(out, fact)
    return found


# --- the registry -------------------------------------------------------------------------


def test_every_probe_is_described_in_both_languages() -> None:
    specs = probes()
    assert [s.name for s in specs] == sorted({s.name for s in specs})
    assert len(specs) >= 6
    for spec in specs:
        assert spec.main
        assert set(spec.main) <= set(spec.provides), spec.name
        assert all(text.en and text.zh for text in (spec.title, *spec.side_effects)), spec.name
        assert spec.cost < Cost.HEAVY or not spec.default, "heavy probes are not run without being asked for"
        assert spec.instead_of == "" or spec.instead_of in {s.name for s in specs}


# --- laws ---------------------------------------------------------------------------------


def test_a_machine_that_answers_is_seen() -> None:
    results = run(ReplayHost("n1", machine()))
    assert {r.probe for r in results if r.status is Status.OK} >= TOOLS
    seen = {o.fact for r in results for o in r.observations if o.status is Status.OK}
    assert {"xid", "gpu.temperature.core", "port.state", "gpu.on_bus", "link.state", "link.errors.replay"} <= seen


@pytest.mark.slow
@given(st.permutations(machine()), st.sets(st.integers(0, 6)))
def test_a_bundle_gives_what_the_recording_gives(tmp_path_factory: pytest.TempPathFactory, replies: list[Reply], left_out: set[int]) -> None:  # fmt: skip
    kept = [r for i, r in enumerate(replies) if i not in left_out]
    recording = RecordingHost(ReplayHost("n1", kept, as_of=10**18))
    results = run(recording)
    assert results == run(ReplayHost("n1", reversed(kept), as_of=10**18))
    path = tmp_path_factory.mktemp("b") / "b.tgz"
    for told in (kept, recording.replies):
        write(path, "n1", told, 10**18, "0")
        assert repr(run(BundleHost(path))) == repr(results)


def test_an_empty_bundle_answers_nothing(tmp_path: Path) -> None:
    write(tmp_path / "b.zip", "n1", [], None, "0")
    results = run(BundleHost(tmp_path / "b.zip"), probes())
    assert len(results) == len(probes())
    for out in results:
        assert out.status is Status.NOT_ASKED
        assert {o.status for o in out.observations} == {Status.NOT_ASKED}
        spec = next(s for s in probes() if s.name == out.probe)
        assert {o.fact for o in out.observations} == set(spec.main)
        why = "no process was named" if spec.wants else "was not recorded"  # nobody asked it about anything
        assert all(why in o.detail for o in out.observations)


BAD = st.sampled_from([Status.UNSUPPORTED, Status.DENIED, Status.TIMEOUT, Status.FAILED])


@settings(deadline=None)
@given(BAD, st.binary(max_size=40), st.sampled_from(["", "why not"]))
def test_a_refusal_is_never_silent_and_never_reassures(status: Status, stderr: bytes, detail: str) -> None:
    calls = [(CallKind.COMMAND, r.call) for r in machine() if r.kind is CallKind.COMMAND] + [
        (CallKind.COMMAND, DMESG),
        *((CallKind.FILE, (path,)) for path in (*KERNEL_FILES, "/var/log/fabricmanager.log")),
    ]
    host = ReplayHost("n1", [Reply(kind, call, status, stderr=stderr, detail=detail) for kind, call in calls])
    for out in run(host):
        assert out.observations
        told = [(o.fact, o.value) for o in out.observations if o.status.answered]
        if told:  # that a driver tool does not come back is itself what is seen
            assert (status, told) == (Status.TIMEOUT, [("node.driver.state", "unresponsive")])
            continue
        assert all(o.detail for o in out.observations)
        assert out.status is (status if out.probe in TOOLS else Status.NOT_ASKED)


@pytest.mark.parametrize("reply", [pytest.param(reply, id=reply.title) for reply in machine()])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_output_that_was_broken_off_says_nothing_of_what_it_lacks(reply: Reply, share: float) -> None:
    data = reply.data[: int(len(reply.data) * share)]
    broken = replace(reply, data=data, status=Status.TIMEOUT, exit_code=None, detail="no answer in 30 s")
    observations = [o for r in run(ReplayHost("n1", [broken])) for o in r.observations]
    whole = {repr((o.fact, o.subject, o.value)) for r in run(ReplayHost("n1", [reply])) for o in r.observations}
    sums = {"node.gpu.listed", *nvlink.SUMS} | {
        o.fact for o in observations if o.fact.startswith(("node.ib", "node.pci"))
    }
    for o in observations:
        assert o.status is not Status.NONE_SEEN
        if o.status is Status.OK:
            assert o.fact not in sums
            if o.fact not in ("gpu.processes", "process.gpu_memory", "node.driver.state") and o.excerpt:
                assert repr((o.fact, o.subject, o.value)) in whole, "half a line was read as a value"
    assert any(o.status is Status.TIMEOUT for o in observations)


# --- the runner ---------------------------------------------------------------------------


def probe(name: str, say: Status = Status.OK, breaks: Exception | None = None, told: list[float] | None = None) -> ProbeSpec:  # fmt: skip
    def collect(request: ProbeRequest, host: Host) -> list[Observation]:
        if told is not None:
            told.append(request.deadline)
        if breaks is not None:
            raise breaks
        return [Observation("node.gpu.count", node(host.name), 8 if say is Status.OK else None, say)]

    main = ("node.gpu.count",)
    return ProbeSpec(name, Text(name, name), main, main, collect, deadline=20.0)


def test_a_probe_that_breaks_hides_no_other() -> None:
    seen: list[str] = []
    specs = [probe("c"), probe("b", breaks=KeyError("tem\nperature\x1b[0m")), probe("a")]
    results = run(ReplayHost("n1"), specs, on_progress=lambda p: seen.extend(p.waiting))
    assert seen == [r.probe for r in results] == ["a", "b", "c"]
    assert [r.status for r in results] == [Status.OK, Status.FAILED, Status.OK]
    broken = results[1]
    assert broken.detail.startswith("the probe broke: KeyError: ")
    assert broken.detail.isprintable()
    assert one(broken, "node.gpu.count").status is Status.FAILED


@each(
    ("sibling", "status", "excerpt", "state"),
    [
        (
            "system",
            Status.TIMEOUT,
            "nvmlInit: no answer in 24 s",
            None,
        ),  # the machine is starved: nothing is said of the driver
        (
            "system",
            Status.TIMEOUT,
            "no end after 25 s; process 7 cannot be killed (state D in nvidia_ioctl)",
            "unresponsive",
        ),
        ("system", Status.OK, "nvmlInit: no answer in 24 s", "unresponsive"),
        ("nvlink", Status.TIMEOUT, "nvmlInit: no answer in 24 s", "unresponsive"),  # it asks the same driver
    ],
)
def test_a_hang_is_none_where_what_needs_no_gpu_was_late_too(
    sibling: str, status: Status, excerpt: str, state: str | None
) -> None:
    hung = Observation(
        "node.driver.state", node("n1"), "unresponsive", source=Source("nvml", "nvmlInit"), excerpt=excerpt
    )
    late = Observation("node.load.1m", node("n1"), None, status, Source("system", "x"))
    late = late if status is Status.TIMEOUT else replace(late, value=1.0)
    specs = [
        replace(probe("nvml"), collect=lambda request, host: [hung]),
        replace(probe(sibling), collect=lambda request, host: [late]),
    ]
    out = {r.probe: r for r in run(ReplayHost("n1"), specs)}["nvml"]
    (told,) = out.observations
    assert told.value == state
    assert told.status is (Status.OK if state else Status.TIMEOUT)


def test_our_own_stop_is_not_swallowed() -> None:
    def collect(request: ProbeRequest, host: Host) -> list[Observation]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(ReplayHost("n1"), [replace(probe("a"), collect=collect)])


def test_a_probe_that_says_nothing_is_noticed() -> None:
    (out,) = run(ReplayHost("n1"), [replace(probe("a"), collect=lambda request, host: [])])
    assert (out.status, out.detail) == (Status.FAILED, "the probe said nothing")


def test_deadlines_are_handed_down_and_a_spent_budget_is_said() -> None:
    told: list[float] = []
    ticks = iter([100.0, 100.0, 115.0, 131.0])
    specs = [probe(name, told=told) for name in "abc"]
    results = run(ReplayHost("n1"), specs, budget=30, clock=lambda: next(ticks))
    assert told == [20.0, 15.0]
    assert [r.status for r in results] == [Status.OK, Status.OK, Status.NOT_ASKED]
    assert "time" in one(results[2], "node.gpu.count").detail


def test_without_a_budget_no_clock_is_read_and_seconds_come_only_when_asked_for() -> None:
    def never() -> float:
        raise AssertionError

    assert [r.seconds for r in run(ReplayHost("n1"), [probe("a")], clock=never)] == [None]
    ticks = iter([1.0, 3.5])
    assert [r.seconds for r in run(ReplayHost("n1"), [probe("a")], timing=True, clock=lambda: next(ticks))] == [2.5]


# --- stories ------------------------------------------------------------------------------


def test_the_kernel_log_comes_from_the_first_source_that_answers() -> None:
    denied = ran(JOURNAL, code=1, stderr=b"No journal files were opened due to insufficient permissions.\n")
    file = Reply(CallKind.FILE, ("/var/log/messages",), data=QUIET)
    out = result("kernel-log", denied, ran(DMESG, b"[    1.0] NVRM: Xid (PCI:0000:3b:00): 48, pid=1\n"), file)
    assert [o.value.code for o in of(out, "xid") if isinstance(o.value, Event)] == [48]
    assert {o.source.call for o in out.observations} == {"dmesg"}
    out = result("kernel-log", denied, ran(JOURNAL[:1], QUIET), file)
    assert {o.source.call for o in out.observations} == {"/var/log/messages"}
    assert one(out, "xid").status is Status.NONE_SEEN


def test_a_kernel_log_that_nobody_may_read_is_denied_with_every_reason() -> None:
    out = result(
        "kernel-log",
        ran(JOURNAL, b"-- No entries --\n"),
        ran(DMESG, code=1, stderr=b"dmesg: read kernel buffer failed: Operation not permitted\n"),
        Reply(CallKind.FILE, ("/var/log/messages",), Status.FAILED, detail="no such file"),
    )
    assert {o.status for o in out.observations} == {Status.DENIED}
    for part in (
        "holds no line of a kernel log",
        "Operation not permitted",
        "kern.log was not recorded",
        "no such file",
    ):
        assert part in out.detail


def test_a_log_without_its_middle_does_not_say_that_nothing_occurred() -> None:
    log = QUIET + b"".join(QUIET for _ in range(200)) + XID
    whole, cut = result("kernel-log", ran(JOURNAL, log)), result("kernel-log", ran(JOURNAL, log), cap=4000)
    assert one(whole, "sxid").status is Status.NONE_SEEN
    assert one(cut, "sxid").status is Status.FAILED
    assert "left out" in one(cut, "sxid").detail
    assert any(isinstance(o.value, Event) and o.value.code == 79 for o in of(cut, "xid"))


def test_a_report_without_its_middle_is_not_read_across_the_gap() -> None:
    out = result("nvidia-smi", ran(nvidia_smi.ARGV, capture("smi/hopper-590-sick.txt")), cap=4000)
    assert out.status is Status.FAILED
    assert {o.fact for o in out.observations} == set(nvidia_smi.MAIN)
    assert "left out" in out.detail


def test_ports_ahead_of_the_one_that_fails_are_used_and_not_counted() -> None:
    printed, _, _ = capture("network/ibstat.cut.txt").partition(b"ibpanic")
    for stderr in (b"ibpanic: [1] main: stat of IB device 'mlx5_8' failed: Invalid argument\n", b""):
        out = result("ibstat", ran(ibstat.ARGV, printed, 255, stderr=stderr))
        assert [o.value for o in of(out, "port.state")] == ["active"] * 3
        assert {o.status for o in out.observations if o.subject.scope is Scope.NODE} == {Status.FAILED}
        detail = one(out, "node.ib.ports.total").detail
        assert ("ibpanic" if stderr else "exit code 255") in detail


@each("stream", ["data", "stderr"])
def test_a_driver_that_does_not_answer_is_an_answer_on_either_stream(stream: str) -> None:
    said = b"Failed to initialize NVML: Driver/library version mismatch\n"
    out = result("nvidia-smi", ran(nvidia_smi.ARGV, code=18, **{stream: said}))
    assert one(out, "node.driver.state").value == "library_mismatch"
    assert one(out, "node.gpu.listed").status is Status.FAILED


def test_a_tool_that_is_not_there_and_a_tool_that_is_not_understood() -> None:
    gone = Reply(CallKind.COMMAND, nvidia_smi.ARGV, Status.FAILED, detail="nvidia-smi is not installed")
    out = result("nvidia-smi", gone)
    assert (out.status, out.detail) == (Status.FAILED, "nvidia-smi -q: nvidia-smi is not installed")
    out = result("lspci", ran(lspci.ARGV, b"lspci version 9, all new\n"))
    assert (out.status, out.detail) == (Status.FAILED, "lspci -vvv: the output does not tell: lspci version 9, all new")
    assert result("lspci", ran(lspci.ARGV)).detail == "lspci -vvv: printed nothing"


def test_gpus_without_nvlink_are_not_a_failure() -> None:
    listed = b"GPU 0: NVIDIA T900 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n"
    out = result("nvlink", ran(nvlink.STATES, listed), ran(nvlink.ERRORS, listed))
    for fact in nvlink.MAIN:
        assert (one(out, fact).status, one(out, fact).value) == (Status.UNSUPPORTED, None)
    out = result("nvlink", ran(nvlink.STATES, capture("smi/nvlink-s.txt")), ran(nvlink.ERRORS, listed, 1))
    assert one(out, "link.errors.replay").status is Status.FAILED
    assert {o.subject.scope for o in of(out, "gpu.nvlink.active")} == {Scope.GPU}


def test_a_daemon_s_message_counts_where_no_kernel_log_can_be_read() -> None:
    line = b"Mar  3 12:00:00 n1 systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.\n"
    first = Reply(CallKind.FILE, ("/var/log/kern.log",), data=line)
    second = Reply(CallKind.FILE, ("/var/log/messages",), data=line.replace(b"n1", b"n2"))
    out = result("kernel-log", first, second)
    assert one(out, "nvidia_service_failed").subject == node("n1")
    assert one(out, "log.kernel.readable").status is Status.FAILED
