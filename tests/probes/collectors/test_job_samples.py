"""The collector `job_samples` as a child process: real threads, as root and as nobody, recorded trees, signals and bounds."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probes.collectors import job_samples as collector
from tests.cases import each
from tests.live_jobs import Job
from tests.live_jobs import python as interpreter
from tests.probes.capture import loads
from tests.probes.capture.loads import python
from tests.probes.capture.real_processes import catches
from tests.probes.collectors.collecting import FOLDER, collect, document
from tests.probes.collectors.process_tree import Tree
from tests.probes.live.machine import need_nobody

COLUMNS = {"state", "cpu", "wait", "syscall", "gil", "voluntary", "involuntary", "cpu_number"}


def looked(
    *pids: int, seconds: float = 0.6, more: tuple[str, ...] = (), root: Path | None = None, uid: int | None = None
) -> Any:
    """The collector's document."""
    words = [w for pid in pids for w in ("--pid", str(pid))]
    return document(collect("job_samples", root, *words, "--seconds", str(seconds), *more, uid=uid))


def aligned(found: dict[str, Any]) -> None:
    """Every column is as long as the times; counters never fall; times rise."""
    at = found["at"]
    assert at == sorted(at)
    assert len(found["took"]) == len(found["running"]) == len(at)
    for threads in found["rows"].values():
        for row in threads.values():
            for name in COLUMNS:
                column = row[name]
                assert isinstance(column, dict) or len(column) == len(at), name
            for name in ("cpu", "wait", "voluntary", "involuntary"):
                if isinstance(row[name], list):
                    values = [v for v in row[name] if v is not None]
                    assert values == sorted(values), name


@pytest.mark.process
def test_threads_that_come_and_go() -> None:
    with python(loads.COMES_AND_GOES) as pid:
        found = looked(pid, seconds=2.0)
    aligned(found)
    rows = found["rows"][str(pid)]
    assert len(rows) > 4
    born = [r for r in rows.values() if r["state"][0] is None]
    gone = [r for r in rows.values() if r["state"][-1] is None]
    assert born
    assert gone
    assert rows[str(pid)]["state"][0]


@pytest.mark.process
def test_many_threads_are_looked_at_less_often() -> None:
    with Job("threads.py") as job:
        found = looked(job.pid, seconds=2.0)
    aligned(found)
    rows = found["rows"][str(job.pid)]
    assert len(rows) == 151
    assert "151 threads" in found["slowed"]
    assert found["hz_all"] < found["hz"]
    counts = {tid: sum(v is not None for v in row["state"]) for tid, row in rows.items()}
    assert counts[str(job.pid)] == len(found["at"])  # the main thread, every time
    assert min(counts.values()) >= 2  # both ends at the least
    assert all(row["cpu"][0] is not None and row["cpu"][-1] is not None for row in rows.values())


@pytest.mark.process
def test_a_few_threads_are_looked_at_as_often_as_asked() -> None:
    with python("import time; print('ready', flush=True); time.sleep(60)") as pid:
        found = looked(pid, seconds=1.0)
        for _ in range(4):  # where others take the CPUs a look costs more, and it looks less often
            found = looked(pid, seconds=1.0) if found["slowed"] else found
    assert found["slowed"] == ""
    row = found["rows"][str(pid)][str(pid)]
    assert set(row["state"]) == {"S"}
    assert len({c for c in row["syscall"] if c is not None}) == 1
    assert row["voluntary"][0] is not None
    assert row["voluntary"][-1] is not None
    assert found["process"][str(pid)]["cpus_allowed"]
    assert found["clocks"][0]["monotonic"] <= found["at"][0] <= found["at"][-1] <= found["clocks"][1]["monotonic"]


@pytest.mark.process
def test_sigterm_ends_it_early_with_what_it_has() -> None:
    argv = [sys.executable, "-I", "-S", "-B", str(FOLDER / "job_samples.py"), "--pid", str(os.getpid()), "--seconds", "300",
            "--deadline", "300"]  # fmt: skip
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        try:
            catches(child.pid, signal.SIGTERM)
            time.sleep(0.3)
            child.send_signal(signal.SIGTERM)
            out, _ = child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == 0
    found = json.loads(out)
    aligned(found)
    assert len(found["at"]) >= 2


@pytest.mark.process
def test_it_ends_at_a_moment_and_before_its_deadline() -> None:
    until = time.monotonic_ns() + 700_000_000
    found = looked(os.getpid(), more=("--until-mono", str(until)))
    assert found["at"][-1] >= until - 100_000_000
    found = document(collect("job_samples", None, "--pid", str(os.getpid()), "--seconds", "60", deadline=1.0))
    assert found["at"]


@pytest.mark.process
def test_others_processes_are_denied_with_the_reason() -> None:
    need_nobody()
    with python(loads.BURN) as pid:
        found = looked(pid, uid=65534)
    row = found["rows"][str(pid)][str(pid)]
    assert row["syscall"]["status"] == "denied"
    assert row["gil"]["status"] == "denied"
    assert row["cpu"][-1] > row["cpu"][0]  # the kernel tells that to anybody
    assert found["process"][str(pid)]["io"]["status"] == "denied"


@pytest.mark.process
def test_no_process_and_no_such_process() -> None:
    assert looked()["rows"] == {}
    found = looked(4_000_000)
    assert found["rows"]["4000000"] == {}
    assert found["process"]["4000000"]["detail"].startswith("ENOENT")


@pytest.mark.process
def test_a_thread_is_named_as_it_is_at_the_end() -> None:
    code = "import time; print('ready', flush=True); time.sleep(0.5); open('/proc/self/comm', 'w').write('late'); time.sleep(60)"
    with python(code) as pid:
        found = looked(pid, seconds=1.2)
    assert found["rows"][str(pid)][str(pid)]["comm"] == "late"


@pytest.mark.process
@pytest.mark.parametrize("minor", [9, 10, 12, 13])  # 3.14 may be in a root of its own
def test_on_every_interpreter(minor: int) -> None:
    argv = [
        interpreter(3, minor),
        "-I",
        "-S",
        "-B",
        str(FOLDER / "job_samples.py"),
        "--pid",
        str(os.getpid()),
        "--seconds",
        "0.3",
    ]
    done = subprocess.run(argv, capture_output=True, timeout=30, check=True)
    assert done.stderr == b""
    aligned(json.loads(done.stdout))


@pytest.mark.process
def test_wrong_words_are_refused() -> None:
    argv = [sys.executable, "-I", "-S", str(FOLDER / "job_samples.py"), "--runtime", "7:xyz"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "hexadecimal" in done.stderr


# --- recorded machines --------------------------------------------------------------------


def version_2(tree: Tree, pid: int) -> None:
    """A process in a group with a quota, below one that was throttled."""
    tree.process(pid, "python3", cgroup="0::/kube/pod 7/main")
    mounts = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    tree.file("proc/1/mountinfo", mounts)
    for path, quota, throttled in (("kube/pod 7/main", "max", 0), ("kube/pod 7", "150000", 9), ("kube", "max", 0)):
        tree.file(f"sys/fs/cgroup/{path}/cpu.max", f"{quota} 100000\n")
        stat = f"usage_usec 1000\nuser_usec 1\nnr_periods 10\nnr_throttled {throttled}\nthrottled_usec {throttled}000\n"
        tree.file(f"sys/fs/cgroup/{path}/cpu.stat", stat)
        tree.file(f"sys/fs/cgroup/{path}/memory.events", "low 0\nhigh 3\nmax 1\noom 0\noom_kill 0\n")
        tree.file(f"sys/fs/cgroup/{path}/memory.max", "max\n")


@pytest.mark.process
def test_control_groups_of_version_2(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    version_2(tree, 4242)
    groups = looked(4242, root=tmp_path)["cgroup"]
    own = str(tmp_path) + "/sys/fs/cgroup/kube/pod 7/main"
    assert groups["of"]["4242"]["cpu"] == [
        own,
        own.removesuffix("/main"),
        own.removesuffix("/pod 7/main"),
        f"{tmp_path}/sys/fs/cgroup",
    ]
    pod = groups["cpu"][own.removesuffix("/main")]
    assert pod["quota_us"][-1] == 150_000
    assert pod["throttled_ns"][-1] == 9_000_000
    assert pod["usage_ns"][-1] == 1_000_000
    assert groups["cpu"][own]["quota_us"][-1] is None
    assert groups["memory"][own]["last"]["memory.events"]["high"] == 3


@pytest.mark.process
def test_rdma_counters(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.process(4242, "python3")
    tree.file("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "1000\n")
    tree.file("sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "3\n")
    rdma = looked(4242, root=tmp_path)["rdma"]
    assert rdma["mlx5_0/ports/1"]["port_rcv_data"][-1] == 1000
    assert rdma["mlx5_0/ports/1"]["out_of_sequence"][-1] == 3
    assert looked(os.getpid())["rdma"] is not None


@pytest.mark.process
def test_an_old_or_strange_kernel(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.process(4242, "odd ) name", state="D")
    (tmp_path / "proc/4242/task/4242/schedstat").unlink()
    found = looked(4242, root=tmp_path)
    row = found["rows"]["4242"]["4242"]
    assert set(row["state"]) == {"D"}
    assert row["comm"] == "odd ) name"
    assert row["wait"]["status"] == "unsupported"
    assert row["syscall"]["status"] == "unsupported"
    assert row["cpu"][-1] == 10 * 10_000_000  # utime of the recorded stat, in ticks
    assert found["vmstat"]["status"] == "unsupported"
    assert found["cgroup"]["of"]["4242"]["status"] == "unsupported"


@pytest.mark.process
def test_a_file_that_never_answers_costs_nothing_else(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.process(4242, "python3")
    tree.hang("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data")
    found = looked(4242, root=tmp_path)
    assert [h["what"] for h in found["hung"]] == ["devices"]
    assert "infiniband" in found["hung"][0]["where"]
    assert len(found["rows"]["4242"]["4242"]["state"]) == len(found["at"]) > 5


# --- laws ---------------------------------------------------------------------------------


class Numbers:
    """A job whose only thread has the sample's number as its CPU time; some samples are left out, as of a thread that idles."""

    def __init__(self, tmp: Path, gaps: Callable[[int], bool]) -> None:
        self.job = collector.Job(str(tmp), 1, None)
        self.thread = collector.Thread(str(tmp), 1, 0)
        self.thread.ended = True
        self.job.past.append((1, self.thread))
        self.fast = collector.Fast([self.job], str(tmp), 50.0, most=400)
        self.fast.dead = 1
        for i in range(5000):
            self.fast.at.append(i)
            self.fast.took.append(0)
            self.fast.running.append(1)
            for column in self.thread.columns:
                column.append(None if gaps(i) else i)
            self.fast._bound()


@pytest.mark.parametrize(("stride", "first"), [(1, 0), (2, 0), (2, 1), (3, 0), (7, 0)])
def test_dropping_samples_keeps_the_counters(tmp_path: Path, stride: int, first: int) -> None:
    numbers = Numbers(tmp_path, lambda i: i % stride != first)
    row = numbers.fast.told()["rows"]["1"]["1"]
    at = numbers.fast.at
    assert len(at) <= 401
    known = [(t, v) for t, v in zip(at, row["cpu"], strict=True) if v is not None]
    assert known[0] == (0, first)
    assert all(t <= v < t + (1 << numbers.fast.halved) for t, v in known)  # off by less than a sample
    assert len(known) > 20


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3), max_size=30))
def test_columns_are_as_long_as_the_times(looks: list[dict[str, Any]]) -> None:
    series = collector.Series()
    for one in looks:
        series.add(one)
    told = series.told()
    for name in "abc":
        if any(name in one for one in looks):
            assert told[name] == [one.get(name) for one in looks]


@given(st.binary(max_size=400))
@example(b"7f00 default anon=3 N0=2 N1=1 kernelpagesize_kB=")
@example(b"7f00 default anon=3 N0=2 N1=1 kernelpagesize_kB=4k")
def test_nothing_that_a_kernel_writes_raises(data: bytes) -> None:
    collector.pairs(data)
    collector.mounts(data)
    collector.memberships(data)
    collector.after_name(data)
    collector._count(data, {})


PAGES = "7f00 default anon=3 N0=2 N1=1 kernelpagesize_kB={}"


@each(
    ("size", "expected"), [("4", {"0": 8192, "1": 4096}), ("2048", {"0": 4 << 20, "1": 2 << 20}), ("", {}), ("x", {})]
)
def test_pages_of_a_size_that_is_not_told_are_not_counted(size: str, expected: dict[str, int]) -> None:
    counted: dict[str, int] = {}
    collector._count(PAGES.format(size).encode(), counted)
    assert counted == expected


FILES = {
    "stat": "5 (x) S " + " ".join(["7"] * 50), "schedstat": "1 2 3\n", "syscall": "202 0x1010 0x80\n", "statm": "9 5 1\n",
    "status": "Name:\tx\nVmSwap:\t 12 kB\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t2\n",
    "numa_maps": PAGES.format("4") + "\n", "io": "rchar: 1\nread_bytes: 2\n",
}  # fmt: skip


@given(st.sampled_from(sorted(FILES)), st.integers(0, 60), st.sampled_from(["", "x", "-", "²", "9" * 5000]))
@example("status", 0, "x")
@example("status", 1, "")
@example("schedstat", 0, "x")
@example("stat", 41, "")
@example("syscall", 2, "x")
@example("numa_maps", 5, "")
def test_a_number_that_is_none_costs_no_other(name: str, nth: int, odd: str) -> None:
    """`odd` stands in the place of a number of one of the files that are read of a process and of its thread."""
    with TemporaryDirectory() as folder:
        for task in (Path(folder, "5"), Path(folder, "5/task/5")):
            task.mkdir(parents=True)
            for file, text in FILES.items():
                numbers = list(re.finditer(r"\d+", text))
                one = numbers[nth % len(numbers)]
                (task / file).write_text(text[: one.start()] + odd + text[one.end() :] if file == name else text)
        job = collector.Job(folder, 5, (0x1000, 0x2000))
        whole = collector.Process(job)
        whole.look()
        thread = collector.Thread(f"{folder}/5/task", 5, 0)
        thread.look((0x1000, 0x2000), collector.FUTEX["x86_64"], True, 0)
        thread.close()
        pages = collector.numa(f"{folder}/5", 2)
    if name != "stat":
        assert [len(column) for column in thread.columns] == [1] * len(collector.COLUMNS)
        assert thread.columns[0] == ["S"]
        assert whole.told()["rss"] == [7 * collector.PAGE]
    if name not in ("statm", "numa_maps"):
        assert pages["bytes"] == {"0": 8192, "1": 4096}


@pytest.mark.parametrize(
    ("path", "top", "expected"),
    [("/a/b", "/", "/a/b"), ("/", "/", ""), ("/docker/x/y", "/docker/x", "/y"), ("/docker/x", "/docker/x", ""),
     ("/docker/xy", "/docker/x", None), ("/../x", "/", None)],
)  # fmt: skip
def test_a_group_below_what_is_mounted(path: str, top: str, expected: str | None) -> None:
    assert collector.below(path, top) == expected


def test_a_thread_waiting_for_the_lock_is_told_from_one_that_waits_for_another(tmp_path: Path) -> None:
    task = tmp_path / "5"
    task.mkdir()
    (task / "stat").write_text("5 (x) S " + " ".join(["0"] * 50))
    (task / "schedstat").write_text("1 2 3\n")
    (task / "status").write_text("Name:\tx\n")
    for call, expected in (
        ("202 0x1010 0x80", 1),
        ("202 0x2010 0x80", 0),
        ("98 0x1010 0x80", 0),
        ("-1 0x1010 0x0", 0),
        ("running", 0),
    ):
        (task / "syscall").write_text(call)
        thread = collector.Thread(str(tmp_path), 5, 0)
        thread.look((0x1000, 0x2000), collector.FUTEX["x86_64"], False, 0)
        assert thread.columns[4] == [expected], call
        thread.look((0x1000, 0x2000), collector.FUTEX["x86_64"], False, 3)
        assert thread.columns[4] == [expected, None, None, expected]  # it was not looked at twice
        thread.close()
    (task / "syscall").write_text("98 0x1010 0x80")
    thread = collector.Thread(str(tmp_path), 5, 0)
    thread.look((0x1000, 0x2000), collector.FUTEX["aarch64"], True, 0)
    assert thread.columns[4] == [1]
    thread.close()
