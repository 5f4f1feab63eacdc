from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge import waits
from knowledge.observation import Observation, Status
from probes.capture.offcpu import _offcpu_bpf, _offcpu_perf, _offcpu_why, offcpu, offcpu_facts
from probes.capture.offcpu._offcpu_spans import Spans, Standing, function, state_letter
from probes.capture.offcpu.offcpu_document import OffCpuDoc, restored
from probes.capture.offcpu.offcpu_join import Joined, join
from probes.capture.stacks import stacks
from probes.capture.stacks.stack_document import StackDoc
from tests.components import cannot
from tests.probes.capture.loads import python, subject, target
from tests.probes.capture.real_processes import as_nobody, in_state, started, uninterruptible
from tests.probes.live.machine import NOBODY, need_nobody

# Each thread waits for one thing, in a function of its own name, which is also its name in the kernel.
WAITS = """
import os, sys, threading, time
held = threading.Lock(); held.acquire()
ours, theirs = os.pipe()
def named():
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file: file.write(sys._getframe(1).f_code.co_name)
def sleeper():
    named()
    while True: time.sleep(0.03)
def locker():
    named()
    held.acquire()
def piper():
    named()
    while True: os.read(ours, 1)
def feeder():
    named()
    while True:
        time.sleep(0.01)
        os.write(theirs, b"x")
def reader():
    named()
    fd = os.open(sys.argv[1], os.O_RDONLY)
    while True:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        for at in range(0, os.fstat(fd).st_size, 1 << 20): os.pread(fd, 1 << 20, at)
        time.sleep(0.05)
for work in (locker, piper, feeder, reader, sleeper):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("ready", flush=True)
while True: time.sleep(0.05)
"""
PING_PONG = """
import os, threading
a, b = os.pipe(); c, d = os.pipe()
def answer():
    while True: os.write(d, os.read(a, 1))
threading.Thread(target=answer, daemon=True).start()
print("ready", flush=True)
while True:
    os.write(b, b"x")
    os.read(c, 1)
"""
LAUNCHER = """
import ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
while True:
    for _ in range(10): library.launch_it(1)
    time.sleep(0.005)
"""


def tool(name: str) -> str:
    """The tool; skips where it is not here or not permitted."""
    if name == "perf" and shutil.which("perf") is None:
        cannot("perf", "perf is not installed")
    if name == "bpftrace" and (why := _offcpu_bpf.refused()):
        cannot("bpftrace", _offcpu_why.why(why).why.en)
    if os.geteuid() != 0:
        pytest.skip("recording the kernel's stacks needs root")
    return name


def recorded(pids: list[int], *tools: str, seconds: float = 1.2, busiest: int = 10**9) -> OffCpuDoc:
    limits = dict.fromkeys(offcpu.TOOLS, busiest)
    with offcpu.Recording(pids, seconds, tools=tools or offcpu.TOOLS, busiest=limits) as recording:
        time.sleep(seconds)
    return recording.document


def thread(doc: OffCpuDoc, name: str) -> str:
    return next(tid for tid, row in doc["threads"].items() if row["name"] == name)


def facts(doc: object, python: object, pid: int, **more: Any) -> dict[str, Observation]:
    return {o.fact: o for o in offcpu_facts.observations(doc, python, target(pid), subject(pid), **more)}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A process whose threads wait for different things."""
    file = tmp_path_factory.mktemp("offcpu") / "data"
    file.write_bytes(os.urandom(32 << 20))
    os.sync()
    with python(WAITS, str(file)) as pid:
        yield pid


# --- real processes -----------------------------------------------------------------------


@pytest.mark.machine
@pytest.mark.parametrize("name", offcpu.TOOLS)
def test_each_thread_is_seen_in_what_it_waits_for(waiting: int, name: str) -> None:
    with stacks.Recording([waiting], 50, 5.0) as python_stacks:
        doc = recorded([waiting], tool(name))
    assert not doc["error"], doc["error"]
    assert json.loads(json.dumps(doc)) == doc
    assert restored(doc) == doc
    samples = python_stacks.documents[waiting]
    for function_name, kind in (("sleeper", "sleep"), ("locker", "lock"), ("piper", "pipe"), ("feeder", "sleep")):
        tid = thread(doc, function_name)
        found = join(doc, samples, tid)
        assert found.top() == kind, (function_name, found.kinds)
        assert found.share() > 50
        assert sum(found.kinds.values()) == found.off <= found.covered
        told = facts(doc, samples, waiting, driving=int(tid))
        assert told["offcpu.kind"].value == kind
        assert str(told["offcpu.function"].value).startswith(f"{function_name} (")
        assert told["offcpu.kernel.function"].value == found.kernel_function(kind) != ""
    assert (
        join(doc, samples, thread(doc, "locker")).share("lock") > 99
    )  # it was never switched: the records say nothing of it


@pytest.mark.machine
@pytest.mark.parametrize("name", offcpu.TOOLS)
def test_a_reader_whose_file_is_not_in_memory_waits_for_storage(waiting: int, tmp_path: Path, name: str) -> None:
    if subprocess.run(
        ["stat", "-f", "-c", "%T", str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.strip() in ("tmpfs", "ramfs"):
        pytest.skip("temporary files are kept in memory here")
    doc = recorded([waiting], tool(name), seconds=2.0)
    found = join(doc, None, thread(doc, "reader"))
    assert found.kinds["page_cache"] > 0, found.kinds
    assert found.kernel_function("page_cache")


@pytest.mark.machine
@pytest.mark.parametrize("name", offcpu.TOOLS)
def test_a_thread_in_state_d_all_the_time(tmp_path: Path, name: str) -> None:
    tool(name)
    with uninterruptible(tmp_path) as pid:
        doc = recorded([pid], name)
    found = join(doc, None, str(pid))
    assert found.top() == "child", (found.kinds, doc)
    assert found.share() > 99
    assert {span[3] for span in doc["threads"][str(pid)]["off"]} == {"D"}
    told = facts(doc, None, pid)
    assert told["offcpu.kind"].value == "child"
    assert told["offcpu.function"].status is Status.NOT_ASKED  # of Python nothing is known


@pytest.mark.process
def test_several_processes_are_one_recording(waiting: int) -> None:
    tool("perf")
    with python("import time; print('ready', flush=True)\nwhile True: time.sleep(0.02)") as other:
        doc = recorded([waiting, other], "perf")
    assert {t["pid"] for t in doc["threads"].values()} == {waiting, other}
    assert doc["tool"].startswith("perf")
    assert doc["method"] in _offcpu_perf.METHODS
    assert offcpu.failure(doc) is None
    assert offcpu_facts.spent(doc, other) > 0
    assert facts(doc, None, other)["offcpu.kind"].value == "sleep"


@pytest.mark.process
def test_threads_that_are_switched_too_often_are_looked_at_from_outside() -> None:
    tool("perf")
    with python(PING_PONG) as pid:
        doc = recorded([pid], seconds=0.3, busiest=-1)  # it may not come onto a CPU at all while it is looked at
    assert (doc["method"], doc["code"]) == ("samples", "busy")
    assert "times a second" in doc["error"]
    refusal = offcpu.failure(doc)
    assert refusal is not None
    assert refusal.why.zh != refusal.why.en


@pytest.mark.process
def test_no_child_stays_and_a_second_stop_does_nothing(waiting: int) -> None:
    tool("perf")
    before = set(psutil.Process().children())  # a database for other tests begins and ends processes at any time
    recording = offcpu.Recording([waiting], 30.0)
    recording.start()
    begun = set(psutil.Process().children()) - before
    begun |= {below for child in begun for below in child.children(recursive=True)}
    assert begun
    doc = recording.stop()
    assert not [p for p in begun if p.is_running()]
    assert not set(psutil.Process().children()) - before
    assert recording.stop() == doc


@pytest.mark.process
def test_what_has_ended_is_said_and_others_are_recorded_all_the_same(waiting: int) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert recorded([gone.pid], seconds=0.1)["code"] == "ended"
    tool("perf")
    doc = recorded([gone.pid, waiting], "perf", seconds=0.5)
    assert not doc["error"]
    assert doc["threads"]


@pytest.mark.machine
def test_a_user_who_may_not_use_perf_still_sees_the_functions(tmp_path: Path) -> None:
    need_nobody()
    if _offcpu_why.setting(_offcpu_why.PARANOID) in ("-1", "0", "1"):
        pytest.skip("anybody may use perf here")
    with started([*NOBODY, "/bin/sh", "-c", "echo ready; exec sleep 60"]) as pid:
        doc = _as_nobody(pid)
    assert doc["method"] == "samples"
    if shutil.which("perf"):
        assert doc["code"] == "not-permitted"
        assert "perf_event_paranoid" in doc["error"]
        assert "CAP_PERFMON" in doc["error"]
    told = facts(doc, None, pid)
    assert told["offcpu.share"].value == pytest.approx(100, abs=1)
    assert told["offcpu.kind"].value == "sleep", doc
    strangers = facts(_as_nobody(os.getpid()), None, os.getpid())["offcpu.kind"]
    assert strangers.status is Status.DENIED
    assert "CAP_SYS_PTRACE" in strangers.detail


NOBODYS = """
import json, sys, time
from probes.capture.offcpu import offcpu
with offcpu.Recording([int(sys.argv[1])], 5.0) as recording: time.sleep(0.6)
print(json.dumps(recording.document))
"""


def _as_nobody(pid: int) -> OffCpuDoc:
    """A recording by a user without rights."""
    found = restored(as_nobody(NOBODYS, str(pid)))
    assert found is not None
    return found


# --- launches -----------------------------------------------------------------------------


@pytest.mark.machine
def test_calls_of_a_library_are_counted_by_thread(tmp_path: Path, require: Any) -> None:
    tool("bpftrace")
    library = tmp_path / "liblaunches.so.1"
    source = tmp_path / "launches.c"
    source.write_text('void launch_it(int x) { __asm__ volatile("" :: "r"(x)); }\n')
    subprocess.run(
        [require("cc"), "-shared", "-fPIC", "-O0", "-fno-omit-frame-pointer", "-o", str(library), str(source)],
        check=True,
    )
    wanted = {"liblaunches.so": ("launch_it", "launch_it_newer")}  # one that this release does not have
    with python(LAUNCHER, str(library)) as pid:
        assert _offcpu_bpf.library_of(pid, wanted) == (str(library), "liblaunches.so")
        with offcpu.Recording([pid], 1.0, libraries=wanted, tools=("samples",)) as recording:
            time.sleep(1.0)
            os.kill(pid, signal.SIGSTOP)  # else it goes on while one count is printed and then the other
            in_state(pid, "T")
        doc = recording.document
        os.kill(pid, signal.SIGCONT)
        found = doc["launches"][str(pid)]
        assert not found["error"], found
        assert [[tid, name] for tid, name, _ in found["counts"]] == [[pid, "launch_it"]]
        assert sum(calls for *_, calls in found["stacks"]) == pytest.approx(found["counts"][0][2], abs=50)
        assert found["stacks"][0][1][-1].startswith("launch_it")
        told = facts(doc, None, pid)["launches.rate"]
        assert isinstance(told.value, float)
        assert told.value > 0
        assert "launch_it" in told.source.call
        without = offcpu.Recording([pid], 0.1, launches=True, tools=("samples",))
        without.start()
        assert without.stop()["launches"][str(pid)]["code"] == "no-library"
    assert facts(without.document, None, pid)["launches.rate"].status is Status.NOT_APPLICABLE


# --- pure ---------------------------------------------------------------------------------

# perf script -F pid,tid,time,event,trace,ip,sym --ns --show-switch-events --show-lost-events (perf 6.1)
SCRIPT = """\
   42/42   100.000001000: PERF_RECORD_SWITCH IN
   42/42   100.000002000:  sched:sched_switch: prev_comm=a b prev_pid=42 prev_prio=120 prev_state=S ==> next_comm=x next_pid=7 next_prio=120
\tffffffff821f8298 __schedule+0x618
\tffffffff821f8c03 schedule
\tffffffff816c5f46 nfs_file_read.isra.0
\tffffffff816b855c vfs_read

   42/42   100.000002500: PERF_RECORD_SWITCH OUT
   42/42   100.000012000: PERF_RECORD_SWITCH IN
   42/43   100.000012500:          1 context-switches:k:
\tffffffff8143f236 futex_do_wait

   42/43   100.000013000: PERF_RECORD_SWITCH OUT preempt
   42/43   100.000015000: PERF_RECORD_SWITCH IN
   42/42   100.000016000: cpu-clock/freq=49/k:
\tffffffff8143f236 clear_page_erms

 PERF_RECORD_LOST lost 12
   99/99   100.000002500: PERF_RECORD_SWITCH OUT
   42/42   100.000020000:  sched:sched_switch: prev_comm=a prev_pid=42 prev_prio=120 prev_state=D|K ==> next_comm=x next_pid=7 next_prio=120
\tffffffff821f8298 io_schedule
"""
S = 100 * 10**9


def _read(text: str, **standing: Any) -> tuple[Spans, dict[str, Any]]:
    spans = Spans([42])
    _offcpu_perf.read(spans, text.splitlines(keepends=True))
    return spans, dict(spans.threads(S, S + 30_000, standing.get("before", {}), standing.get("after", {})))


def test_what_perf_prints_becomes_spans() -> None:
    stood = Standing(42, "a", "S", 5, ("vfs_read", "pipe_read"))
    other = Standing(42, "idle", "S", 7, ("do_epoll_wait",))
    spans, threads = _read(SCRIPT, before={42: stood, 44: other}, after={42: stood, 43: stood, 44: other})
    names = [[spans.functions[i] for i in s] for s in spans.stacks]
    assert set(threads) == {"42", "43", "44"}  # 99 is not of the targets
    off = [[since - S, ns, names[stack], state] for since, ns, stack, state in threads["42"]["off"]]
    assert off == [
        [0, 1000, ["vfs_read", "pipe_read"], "S"],  # before it was first seen, it stood there
        [2000, 10_000, ["vfs_read", "nfs_file_read", "schedule", "__schedule"], "S"],
        [20_000, 10_000, ["io_schedule"], "D"],  # until the end
    ]
    assert threads["43"]["off"] == [[S + 12_500, 2500, names.index(["futex_do_wait"]), "R"]]
    assert [[at - S, names[n]] for at, n in threads["42"]["on"]] == [[16_000, ["clear_page_erms"]]]
    assert threads["44"]["off"] == [[S, 30_000, names.index(["do_epoll_wait"]), "S"]]  # never switched
    assert spans.lost == 12


def test_what_bpftrace_prints_becomes_spans() -> None:
    text = (
        "Attaching 3 probes...\noff 42 43 100000000100 5000 1\n\tffffffff821f8298 __schedule+1560\n\tffffffff8143f236 ll_file_read+70\n\n"
        "off 42 44 100000000000 7000 1\nLost 3 events\n\n@t[42]: 100000010000\n@t[45]: 100000010000\n"
    )
    spans = Spans([42])
    before = {44: Standing(42, "b", "S", 1, ("do_wait",))}
    after = {42: Standing(42, "a", "D", 1, ("nfs_wait_bit_killable",)), 45: Standing(42, "c", "R", 1, ())}
    _offcpu_bpf.read(spans, text, before, after, S + 30_000)
    threads = spans.threads(S, S + 30_000, {}, {})
    told = {
        tid: [[*row[:2], [spans.functions[i] for i in spans.stacks[row[2]]], row[3]] for row in t["off"]]
        for tid, t in threads.items()
    }
    assert told == {
        "42": [[S + 10_000, 20_000, ["nfs_wait_bit_killable"], "D"]],
        "43": [[S + 100, 5000, ["ll_file_read", "__schedule"], "S"]],
        "44": [[S, 7000, ["do_wait"], "S"]],
    }
    assert spans.lost == 3


def test_names_and_states() -> None:
    assert function("futex_do_wait+0x46/0x90") == "futex_do_wait"
    assert function("__schedule+1560") == "__schedule"
    assert function("finish_task_switch.isra.0 ([kernel.kallsyms])") == "finish_task_switch"
    assert function("[unknown]") == "?"
    assert [state_letter(s) for s in ("S", "R+", "D|K", "0", "1", "2", "258", "32", "256")] == [
        "S",
        "R",
        "D",
        "R",
        "S",
        "D",
        "D",
        "X",
        "R",
    ]


@given(st.text(alphabet="42/ .:PERFCODSWITHN\tabcf_0=>\n", max_size=400))
def test_any_text_is_read(text: str) -> None:
    for cut in (text, text + SCRIPT, SCRIPT + text):
        _, threads = _read(cut)
        for row in threads.values():
            assert all(ns > 0 for _, ns, *_ in row["off"])
    _offcpu_bpf.read(Spans([42]), text, {}, {}, S)
    _offcpu_bpf.read_launches(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=4) | st.dictionaries(st.sampled_from(["threads", "off", "on", "stacks", "functions", "launches", "counts", "42", "began", "ended"]), x, max_size=5), max_leaves=30))  # fmt: skip
def test_any_document_gives_facts_or_reasons(value: object) -> None:
    told = facts(value, value, 42)
    assert set(told) == set(offcpu_facts.FACTS)
    assert all(o.detail for o in told.values() if o.status is not Status.OK)


def _document(spans: list[tuple[int, int, int, str]], began: int = 0, ended: int = 10**9) -> OffCpuDoc:
    doc = offcpu.empty("nothing")
    names = ["vfs_read", "nfs_file_read", "schedule", "nvidia_unlocked_ioctl", "down", "shrink_node", "do_nanosleep"]
    rows: list[list[Any]] = [list(s) for s in spans]
    return {
        **doc, "error": "", "code": "", "method": "sched_switch", "tool": "perf", "began": began, "ended": ended, "functions": names,
        "stacks": [[0, 1, 2], [3, 4, 2], [5, 2], [6, 2]], "threads": {"42": {"pid": 42, "name": "m", "off": rows, "on": []}},
    }  # fmt: skip


def _python(rows: list[list[int]]) -> StackDoc:
    return {
        "tool": "py-spy", "rate": 50, "began": 0, "ended": 10**9, "error": "", "frames": [["load", "/w/train.py", 3], ["step", "/w/train.py", 9]],
        "stacks": [[0], [1]], "threads": {"42": {"name": "MainThread", "samples": rows}},
    }  # fmt: skip


def test_time_off_the_cpu_lies_under_the_python_frame() -> None:
    ms = 10**6
    doc = _document(
        [(0, 100 * ms, 0, "D"), (200 * ms, 300 * ms, 1, "S"), (600 * ms, 50 * ms, 2, "S"), (700 * ms, 20 * ms, 3, "R")]
    )
    found = join(doc, _python([[0, 300 * ms, 0], [300 * ms, 700 * ms, 1]]), "42")
    assert found.kinds == Counter(nfs=100 * ms, driver=300 * ms, reclaim=50 * ms, preempted=20 * ms)
    assert found.function("driver") == ("step (train.py:9)", "nvidia_unlocked_ioctl", 200 * ms)
    assert found.function("nfs", "lustre") == ("load (train.py:3)", "nfs_file_read", 100 * ms)
    told = facts(doc, _python([[0, 300 * ms, 0], [300 * ms, 700 * ms, 1]]), 42)
    assert {f: told[f].value for f in told if told[f].status is Status.OK} == {
        "offcpu.share": 47.0, "offcpu.kind": "driver", "offcpu.kind.share": 30.0, "offcpu.function": "step (train.py:9)",
        "offcpu.kernel.function": "nvidia_unlocked_ioctl", "offcpu.driver.share": 30.0, "offcpu.driver.function": "step (train.py:9)",
        "offcpu.memory.share": 5.0, "offcpu.memory.function": "step (train.py:9)", "offcpu.shared_storage.share": 10.0,
        "offcpu.shared_storage.function": "load (train.py:3)",
    }  # fmt: skip
    half = facts(doc, None, 42, window=(0, 500 * ms))
    assert half["offcpu.share"].value == 80.0
    assert half["offcpu.function"].status is Status.NOT_ASKED


def test_what_is_missing_is_said() -> None:
    assert facts(None, None, 42)["offcpu.share"].status is Status.NOT_ASKED
    refused = facts(offcpu.empty("not-permitted"), None, 42)["offcpu.share"]
    assert refused.status is Status.DENIED
    assert "perf_event_paranoid" in refused.detail
    assert "CAP_PERFMON" in refused.detail
    unnamed = {**_document([(0, 9 * 10**8, -1, "S")]), "error": "x", "code": "no-symbols"}
    told = facts(unnamed, None, 42)
    assert told["offcpu.share"].value == 90.0
    assert told["offcpu.kind"].status is Status.DENIED
    assert "kptr_restrict" in told["offcpu.kind"].detail
    assert facts(_document([]), None, 42)["offcpu.kind"].status is Status.NONE_SEEN
    assert facts(_document([], ended=10), None, 42)["offcpu.share"].status is Status.FAILED


spans_of_a_thread = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(-1, 3), st.sampled_from("SDR?")), max_size=8
)


@given(spans_of_a_thread, spans_of_a_thread, st.integers(0, 400), st.integers(0, 400))
def test_the_parts_add_up(
    spans: list[tuple[int, int, int, str]], samples: list[tuple[int, int, int, str]], low: int, high: int
) -> None:
    def laid(rows: list[tuple[int, int, int, str]]) -> list[tuple[int, int, int, str]]:
        at, out = 0, []
        for gap, ns, stack, state in rows:
            out.append((at + gap, ns, stack, state))
            at += gap + ns
        return out

    doc = _document(laid(spans), ended=800)
    rows = [[at, ns, abs(stack) % 2] for at, ns, stack, _ in laid(samples)]
    found: Joined = join(doc, _python(rows), "42", window=(low, high))
    inside = sum(max(0, min(s[0] + s[1], high, 800) - max(s[0], low)) for s in laid(spans))
    assert found.off == inside == sum(found.kinds.values()) == found.tally.total == sum(found.kernel.values())
    assert 0 <= found.off <= found.covered
    assert set(found.kinds) <= set(waits.waits())


def test_how_perf_is_called(tmp_path: Path) -> None:
    argv = _offcpu_perf.command("perf", "sched_switch", [1, 2], 2.2, tmp_path, "5,6")
    assert argv[argv.index("-p") + 1] == "1,2"
    assert argv[-2:] == ["sleep", "3"]
    assert "--per-thread" not in argv
    assert not _offcpu_perf.per_thread(40, 16)
    assert _offcpu_perf.per_thread(400, 192)
    wide = _offcpu_perf.command("perf", "sched_switch", [1], 2.2, tmp_path, "5,6", wide=True)
    assert "--per-thread" in wide


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Error:\nAccess to performance monitoring and observability operations is limited.", "not-permitted"),
        ("Error:\tNo permissions to read /sys/kernel/tracing/events/sched/sched_switch", "not-permitted"),
        ("Couldn't create thread/CPU maps: No such process", "ended"),
        ("ERROR: bpftrace currently only supports running as the root user.", "bpf-not-permitted"),
        ("No probes to attach", "no-probe"),
        ("Error: unknown option `control=fd:5,6'", "old-perf"),
        ("something else", "failed"),
    ],
    ids=["paranoid", "tracefs", "ended", "bpf", "probe", "old", "other"],
)
def test_failures_are_told_apart(said: str, code: str) -> None:
    assert _offcpu_why.code_of(said) == code
    refusal = _offcpu_why.why(code, "detail", paranoid="4")
    assert refusal.why.en
    assert refusal.why.zh
    assert sys.getsizeof(refusal.remedy.en) > 0
