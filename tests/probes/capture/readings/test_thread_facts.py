"""Facts of threads: real processes with one thing the matter, and what must be said where something could not be read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.observation import Scope, Status, Subject, node
from probes.capture.readings import cgroup_facts, node_facts, thread_facts
from tests.live_jobs import python as interpreter
from tests.probes.capture import loads
from tests.probes.capture.loads import facts, python, sampled, value
from tests.probes.capture.real_processes import started, state, uninterruptible

pytestmark = pytest.mark.process

STORAGE = ("ext", "xfs", "btrfs", "f2fs")


@pytest.fixture
def one_cpu() -> Iterator[int]:
    """A CPU on which this test may start what it likes."""
    before = os.sched_getaffinity(0)
    yield min(before)
    os.sched_setaffinity(0, before)


# --- real processes -----------------------------------------------------------------------


def test_a_cpu_quota_is_told_with_what_it_cost() -> None:
    with loads.quota(0.01) as group, python(loads.BURN) as pid:
        loads.put(group / "cgroup.procs", str(pid))
        found = facts(sampled(pid).threads, pid)
    assert value(found, "process.cgroup.cpu.limit") == 0.01
    assert (
        value(found, "process.cgroup.throttled.share") > 20
    )  # 95 on an idle machine, less where others hold the CPUs as well
    assert value(found, "process.cgroup.throttled.periods.share") > 30
    assert value(found, "process.window.cpu") < 0.2
    assert str(group) in found["process.cgroup.throttled.share"].excerpt


def test_the_quota_of_a_group_above_counts() -> None:
    with loads.quota(0.01) as group, python(loads.BURN) as pid:
        inner = group / "inner"
        try:
            inner.mkdir()
            loads.put(inner / "cgroup.procs", str(pid))
        except OSError as error:
            pytest.skip(f"no group within a group here: {error}")
        try:
            found = facts(sampled(pid).threads, pid)
        finally:
            loads.put(group / "cgroup.procs", str(pid))
            inner.rmdir()
    assert value(found, "process.cgroup.cpu.limit") == 0.01
    assert found["process.cgroup.cpu.limit"].source.call == str(group)
    assert value(found, "process.cgroup.throttled.share") > 20


def test_without_a_quota_nothing_is_held_back() -> None:
    with python(loads.BURN) as pid:
        for _ in range(8):  # where others hold the CPUs it may get little of one while it is looked at
            found = facts(sampled(pid).threads, pid)
            if value(found, "process.window.cpu") > 0.1:
                break
    if found["process.cgroup.cpu.limit"].status is Status.OK:
        pytest.skip("this test runs under a CPU quota itself")
    assert found["process.cgroup.cpu.limit"].status is Status.NOT_APPLICABLE
    assert value(found, "process.window.cpu") > 0.1


@pytest.mark.parametrize("minor", [8, 9, 10, 11, 12, 13])
def test_a_fight_for_the_interpreters_lock(minor: int) -> None:
    path = interpreter(3, minor)
    with started([path, "-I", "-S", "-c", loads.FIGHT]) as pid:
        for seconds in (0.6, 3, 9):  # it waits for a CPU as well: the fewer it gets, the more looks it takes
            threads = sampled(pid, seconds=seconds).threads
            found = facts(threads, pid)
            if value(found, "thread.gil_wait.share") > 5:
                break
    assert value(found, "thread.gil_wait.share") > 5  # two thirds, less what it waits for a CPU
    assert "interpreter" in found["thread.gil_wait.share"].excerpt
    assert len(threads["rows"][str(pid)]) == 3


def test_who_sleeps_does_not_wait_for_the_interpreters_lock() -> None:
    with python("import time; print('ready', flush=True); time.sleep(60)") as pid:
        found = facts(sampled(pid).threads, pid)
    assert value(found, "thread.gil_wait.share") == 0
    assert value(found, "thread.cpu.share") < 1
    assert value(found, "process.window.runnable") < 0.1


def test_without_the_interpreters_place_no_wait_is_invented() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            found = facts(sampled(child.pid, seconds=0.6).threads, child.pid)
        finally:
            child.kill()
    assert found["thread.gil_wait.share"].status is Status.UNSUPPORTED
    assert found["thread.gil_wait.share"].detail


def test_a_starved_run_queue(one_cpu: int) -> None:
    with ExitStack() as stack:
        os.sched_setaffinity(0, {one_cpu})
        pids = [stack.enter_context(python(loads.BURN)) for _ in range(4)]
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        document = sampled(*pids).threads
    for pid in pids:
        found = facts(document, pid)
        assert value(found, "thread.runqueue.share") > 40
        assert value(found, "thread.cpu.share") < 60
        assert value(found, "process.window.migrations") == 0
    told = {o.fact: o for o in node_facts.observations(document, loads.HOST)}
    assert value(told, "node.window.run_queue") > 2
    assert value(told, "node.window.swap.in") >= 0


def test_a_reader_that_misses_the_page_cache(tmp_path: Path) -> None:
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(tmp_path)], capture_output=True, text=True, check=True).stdout
    if not kind.startswith(STORAGE):
        pytest.skip(f"files of tests lie on {kind.strip()}, which has no storage behind it")
    path = tmp_path / "data"
    with path.open("wb") as file:
        for _ in range(32):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    with python(loads.READER, str(path)) as pid, python(loads.BURN) as idle:
        document = sampled(pid, idle).threads
    found = facts(document, pid)
    assert value(found, "process.window.read") > 1 << 20
    assert value(found, "process.window.read.miss.share") > 50
    # as the worker of another process, it reads for that one
    found = facts(document, idle, pid)
    assert value(found, "process.window.read") > 1 << 20
    assert facts(document, idle)["process.window.read.miss.share"].status is Status.NOT_APPLICABLE


def test_uninterruptible_sleep(tmp_path: Path) -> None:
    with uninterruptible(tmp_path) as pid:
        found = facts(sampled(pid).threads, pid)
    assert value(found, "thread.blocked_io.share") == 100
    assert value(found, "thread.cpu.share") == 0


def test_swapped_out_memory() -> None:
    if len(Path("/proc/swaps").read_text().splitlines()) < 2:
        pytest.skip("this machine has no swap")
    with python(loads.BURN) as pid:
        assert value(facts(sampled(pid).threads, pid), "process.window.swap") >= 0


def test_a_process_that_ends_in_the_window(tmp_path: Path) -> None:
    def ended() -> bool:
        (tmp_path / "end").touch()
        return state(pid) == "Z"

    with python(loads.ENDS, str(tmp_path / "end")) as pid:
        document = sampled(pid, until=ended).threads
        found = facts(document, pid)
    states = document["rows"][str(pid)][str(pid)]["state"]
    assert states[0] is not None
    assert states[-1] in (None, "Z")  # its parent has not waited for it
    assert value(found, "thread.cpu.share") < 50


def test_a_process_that_is_not_there() -> None:
    document = sampled(4_000_000, seconds=0.4).threads
    for one in facts(document, 4_000_000).values():
        assert one.status is Status.FAILED
        assert "ended" in one.detail
    for one in facts(document, 5).values():
        assert one.status is Status.NOT_ASKED


def test_the_thread_that_drives_is_chosen() -> None:
    code = "import threading, time\ndef run():\n  while True: pass\nthreading.Thread(target=run, daemon=True).start()\n" \
           "print('ready', flush=True)\ntime.sleep(60)"  # fmt: skip
    with python(code) as pid:
        document = sampled(pid).threads
    tid = thread_facts.busiest(document, pid)
    assert tid not in (None, pid)
    assert value(facts(document, pid, driving=tid), "thread.cpu.share") > value(
        facts(document, pid), "thread.cpu.share"
    )
    assert facts(document, pid, driving=1)["thread.cpu.share"].status is Status.FAILED


def test_a_part_of_the_window_and_iterations() -> None:
    code = "import time\nprint('ready', flush=True)\nwhile True:\n  time.sleep(0.5)\n  end = time.monotonic() + 0.5\n" \
           "  while time.monotonic() < end: pass"  # fmt: skip
    with python(code) as pid:
        document = sampled(pid, seconds=2.5).threads
    at = document["at"]
    half = (at[0] + at[-1]) // 2
    whole = value(facts(document, pid), "thread.cpu.share")
    parts = [value(facts(document, pid, window=w), "thread.cpu.share") for w in ((at[0], half), (half, at[-1]))]
    assert min(parts) - 1 <= whole <= max(parts) + 1
    spans = [(at[0] + i * 250_000_000, at[0] + (i + 1) * 250_000_000) for i in range(8)]
    shares = thread_facts.in_windows(document, pid, pid, "cpu", spans)
    assert shares.max() > 2 * max(shares.min(), 1)  # the quarters of a second in which it sleeps, and the others
    empty = facts(document, pid, window=(0, 1))
    assert empty["thread.cpu.share"].status is Status.FAILED


# --- the vocabulary, and documents of any kind ----------------------------------------------


def test_every_fact_is_in_the_vocabulary() -> None:
    known = vocabulary()
    told = set(thread_facts.FACTS) | {
        "node.window.run_queue",
        "node.window.swap.in",
        "node.window.nic.rx",
        "node.window.nic.tx",
    }
    assert [fact for fact in told if fact not in known] == []
    with python(loads.BURN) as pid:
        document = sampled(pid, seconds=0.6).threads
    for one in facts(document, pid).values():
        kinds = {"float": float, "int": int}[known[one.fact].type.value]
        assert one.value is None or isinstance(one.value, kinds), one


def test_a_document_that_could_not_be_had() -> None:
    document = {"schema": "gpudiag/job-samples/1", "status": "denied", "detail": "EPERM"}
    found = facts(document, 7)
    assert set(found) == set(thread_facts.FACTS)
    assert {o.status for o in found.values()} == {Status.DENIED}
    assert all("root" in o.detail for o in found.values())
    assert {o.status for o in node_facts.observations(document, "h")} == {Status.DENIED}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 63) | st.floats(allow_nan=True) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
        ["at", "rows", "7", "state", "cpu", "wait", "gil", "process", "io", "read_bytes", "rchar", "cgroup", "of", "cpu_number",
         "status", "detail", "vmstat", "pswpin", "network", "eth0", "rx_bytes", "numa", "nodes", "0", "bytes", "clocks", "running",
         "migrations", "swap", "threads", "quota_us", "throttled_ns", "rdma", "mlx5_0/ports/1"]), inner, max_size=6),
    max_leaves=30,
)  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(["at", "rows", "process", "cgroup", "vmstat", "network", "rdma", "running", "clocks"]), JSON
    )
)
def test_no_document_raises(document: dict[str, Any]) -> None:
    found = facts(document, 7)
    assert set(found) == set(thread_facts.FACTS)
    for one in [*found.values(), *node_facts.observations(document, "h")]:
        assert (one.value is None) == (one.status is not Status.OK)
        assert one.status is Status.OK or one.detail


def test_numa_pages_on_the_wrong_node() -> None:
    row = {"state": ["R", "R", "R"], "cpu": [0, 10, 20], "cpu_number": [1, 0, 1]}
    about = {"at": [0, 10**9], "nodes": {"0": "0-1", "1": "2,3"}, "cpus_allowed": "0-3",
             "numa": {"bytes": {"0": 3 << 20, "1": 9 << 20}, "complete": True}}  # fmt: skip
    document = {"at": [0, 5 * 10**8, 10**9], "rows": {"7": {"7": row}}, "process": {"7": about}}
    one = facts(document, 7)["process.window.remote_memory.share"]
    assert one.value == 75.0
    assert "N1=9 MiB" in one.excerpt
    about["nodes"] = {"0": "0-3"}
    assert facts(document, 7)["process.window.remote_memory.share"].status is Status.NOT_APPLICABLE


def test_rdma_ports_are_network_adapters() -> None:
    document = {"rdma": {"at": [0, 10**9], "mlx5_0/ports/1": {"port_rcv_data": [0, 250], "port_xmit_data": [100, 350]}}}
    found = {(o.fact, o.subject): o.value for o in node_facts.observations(document, "h")}
    adapter = Subject(Scope.NIC, "mlx5_0", node("h"))
    assert found["node.window.nic.rx", adapter] == 1000
    assert found["node.window.nic.tx", adapter] == 1000


@pytest.mark.parametrize(
    ("held", "used", "expected"),
    [
        (0.5, 0.5, 50.0),  # one thread, half a core allowed
        (3.0, 1.0, 75.0),  # four threads on four CPUs, one core allowed: each CPU stands still for three quarters
        (0.05, 0.1, 5.0),  # a burst: it stood still for a twentieth of the window and had nothing to do for the rest
        (0.0, 1.0, 0.0),
        (2.0, None, 100.0),
    ],
)
def test_how_long_a_group_stood_still(held: float, used: float | None, expected: float) -> None:
    assert cgroup_facts.stood(held * 1e9, None if used is None else used * 1e9, 1.0) == pytest.approx(expected)


@given(st.floats(0, 1e12), st.none() | st.floats(0, 1e12), st.floats(0.01, 100))
def test_standing_still_is_a_share(held: float, used: float | None, seconds: float) -> None:
    assert 0 <= cgroup_facts.stood(held, used, seconds) <= 100


def test_lists_of_cpus() -> None:
    assert thread_facts.cpus("0-2,8,10-11") == {0, 1, 2, 8, 10, 11}
    for wrong in ("", "x", "1-", "-3", "0-99999999"):
        assert thread_facts.cpus(wrong) <= {1}
