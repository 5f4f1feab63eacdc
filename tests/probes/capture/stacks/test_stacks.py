"""py-spy over real processes: each Python that can be had, several at once, many threads, and everything that can go wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.capture.stacks import pyspy, stacks, thread_ids
from probes.capture.stacks.stacks import Recording, StackDoc
from tests.components import cannot
from tests.live_jobs import JOBS, MINORS, Job, python
from tests.probes.capture.real_processes import started, until
from tests.probes.live.machine import NOBODY, need_nobody

pytestmark = pytest.mark.process

LOOP = JOBS / "two_functions.py"


@pytest.fixture(autouse=True)
def _pyspy() -> None:
    if pyspy.program() is None:
        cannot("py-spy", "py-spy is not installed")


def recorded(*pids: int, rate: int = 100, seconds: float = 1.0) -> dict[int, StackDoc]:
    with Recording(pids, rate, seconds) as recording:
        time.sleep(seconds)
    return recording.documents


def tasks(pid: int) -> set[str]:
    return {p.name for p in Path(f"/proc/{pid}/task").iterdir()}


def leaves(doc: StackDoc, tid: str) -> set[str]:
    return {doc["frames"][doc["stacks"][s[2]][-1]][0] for s in doc["threads"][tid]["samples"] if doc["stacks"][s[2]]}


def nothing_left(pid: int) -> None:
    """The target runs, untraced, and no py-spy looks at it."""
    status = Path(f"/proc/{pid}/status").read_text()
    assert "TracerPid:\t0" in status
    assert "State:\tT" not in status
    assert not looking(pid)


def looking(pid: int) -> list[str]:
    """Every py-spy that looks at a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_text("utf-8", "replace").split("\0")
            if "record" in words and str(pid) in words and "py-spy" in words[0]:
                found.append(" ".join(words))
    return found


@pytest.mark.machine
@pytest.mark.parametrize("minor", MINORS)
def test_a_recording_and_a_dump_have_every_thread_with_its_number_and_its_functions(minor: int) -> None:
    with Job(LOOP.name, interpreter=python(3, minor)) as job:
        doc = recorded(job.pid, seconds=0.6)[job.pid]
        dump = stacks.dump(job.pid)
        tids = tasks(job.pid)
        nothing_left(job.pid)
    assert doc["error"] == ""
    assert set(doc["threads"]) == tids
    assert doc["threads"][str(job.pid)]["name"] == "MainThread"
    other = next(t for t in tids if t != str(job.pid))
    assert doc["threads"][other]["name"] == "helper: thread (x)"
    assert leaves(doc, str(job.pid)) >= {"spin", "rest"}
    assert "stand_by" in leaves(doc, other)
    json.dumps(doc)
    assert dump["error"] == ""
    assert {t["tid"] for t in dump["threads"]} == set(map(int, tids))
    main = next(t for t in dump["threads"] if t["tid"] == job.pid)
    assert main["frames"][0][0] == "<module>"
    assert main["frames"][-1][0] in ("spin", "rest", "<module>", "wait_until")
    assert all({"tid", "name", "active", "owns_gil", "frames"} <= set(t) for t in dump["threads"])


def changes(doc: StackDoc, tid: str) -> list[int]:
    """When the thread was first seen in its other function, ns."""
    rows = doc["threads"][tid]["samples"]
    names = [(row[0], doc["frames"][doc["stacks"][row[2]][1]][0]) for row in rows if len(doc["stacks"][row[2]]) > 1]
    return [t for (_, x), (t, y) in pairwise(names) if {x, y} == {"spin", "rest"}]


def test_times_are_those_of_the_monotonic_clock() -> None:
    with Job(LOOP.name) as job:  # it changes its function at each whole tenth of a second
        began = time.monotonic_ns()
        for seconds in (1.0, 4.0, 12.0):  # on a busy machine it is looked at less often
            doc = recorded(job.pid, rate=500, seconds=seconds)[job.pid]
            if len(changes(doc, str(job.pid))) >= 5:
                break
        ended = time.monotonic_ns()
    error = doc.get("clock_error", 0)
    assert 0 < error <= 100_000_000
    assert began <= doc["began"] + error
    assert doc["ended"] - error <= ended
    rows = doc["threads"][str(job.pid)]["samples"]
    for (a, ns, _), (b, _, _) in pairwise(rows):
        assert a + ns <= b
    off = sorted((t + 50_000_000) % 100_000_000 - 50_000_000 for t in changes(doc, str(job.pid)))
    assert len(off) >= 5
    # a change is seen at the next sample: on a busy machine late, never early
    assert off[len(off) // 2] >= -error - 1_000_000


def test_several_processes_are_recorded_at_once() -> None:
    with Job(LOOP.name) as a, Job(LOOP.name) as b, Job("threads.py", "20", pause=0.02) as c:
        found = recorded(a.pid, b.pid, c.pid, a.pid, seconds=0.6)
    assert list(found) == [a.pid, b.pid, c.pid]
    assert [d["error"] for d in found.values()] == ["", "", ""]
    assert len({d["rate"] for d in found.values()}) == 1
    docs = list(found.values())
    assert max(d["began"] for d in docs) < min(d["ended"] for d in docs)


def test_151_threads_are_all_seen() -> None:
    with Job("threads.py", "150", pause=0.02) as job:
        doc = recorded(job.pid, rate=50, seconds=0.6)[job.pid]
        assert set(doc["threads"]) == tasks(job.pid)
    assert len(doc["threads"]) == 151
    assert doc["rate"] == stacks.rate_for(151, 50)


def test_a_process_that_ends_gives_what_was_seen_until_then() -> None:
    with Job(LOOP.name) as job:
        recording = Recording([job.pid], 100, 2.0)
        recording.start()
        time.sleep(0.6)
        os.kill(job.pid, signal.SIGKILL)
        until(lambda: not looking(job.pid), "py-spy looks at what has ended")
        doc = recording.stop()[job.pid]
    assert doc["error"] == ""
    assert doc.get("left_early") is True
    assert doc["threads"]


def test_a_thread_that_ends_does_not_live_on() -> None:
    with Job(LOOP.name, "short") as job:  # its helper ends after half a second
        doc = recorded(job.pid, rate=100, seconds=1.5)[job.pid]
    helper = next(t for t in doc["threads"].values() if t["name"] == "short-lived")
    assert sum(s[1] for s in helper["samples"]) < 1_200_000_000


@pytest.mark.parametrize(
    ("code", "target"),
    [("ended", "gone"), ("not-python", "sleep"), ("not-python", "self")],
    ids=["ended", "not-python", "shell"],
)
def test_what_is_no_python_is_told_in_plain_words(code: str, target: str) -> None:
    argv = (
        ["sh", "-c", "echo ready; exec sleep 60"]
        if target == "sleep"
        else ["sh", "-c", "echo ready; while :; do sleep 0.05; done"]
    )
    with started(argv) as pid:
        if target == "gone":
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        doc = recorded(pid, seconds=0.2)[pid]
        dump = stacks.dump(pid)
    assert doc.get("code") == dump["code"] == code
    assert doc["threads"] == {}
    refusal = stacks.failure(doc)
    assert refusal is not None
    assert refusal.why.en == doc["error"]
    assert refusal.why.zh


@pytest.mark.machine
def test_no_permission_is_told_with_its_remedy(tmp_path: Path) -> None:
    need_nobody()
    path = pyspy.program()
    assert path is not None
    copy = Path(shutil.copy(path, "/tmp/gpudiag-test-py-spy-" + str(os.getpid())))
    try:
        copy.chmod(0o755)
        with Job(LOOP.name) as job:
            done = subprocess.run([*NOBODY, str(copy), "dump", "--nonblocking", "--pid", str(job.pid)], capture_output=True, timeout=20, check=False)  # fmt: skip
            code = pyspy.code_of(done.stderr.decode(), job.pid)
    finally:
        copy.unlink()
    assert code == "no-permission"
    refusal = pyspy.why(code)
    assert "CAP_SYS_PTRACE" in refusal.remedy.en
    assert pyspy.status(code) is Status.DENIED


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (
            "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'",
            "no-permission",
        ),
        (
            "Error: Failed to get process executable name. Check that the process is running.\n\nCaused by:\n    0: No such file",
            "ended",
        ),
        ("Error: Unsupported version of Python: 3.15.0", "unsupported-version"),
        ("Error: Failed to find python version from target process", "not-python"),
        ("Error: Failed to find a python interpreter in the .data section", "no-symbols"),
        ("Error: something new\n\nStack backtrace:\n 0: no such process", "failed"),
        ("", "failed"),
    ],
)
def test_what_pyspy_says_has_a_name(said: str, code: str) -> None:
    with started(["sh", "-c", "echo ready; exec sleep 60"]) as pid:
        assert pyspy.code_of(said, pid) == code
    refusal = pyspy.why(code, pyspy.message(said))
    assert refusal.code == code
    assert refusal.why.en
    assert refusal.why.zh
    assert not pyspy.status(code).answered


def test_an_interpreter_that_pyspy_does_not_find_is_said_to_be_stripped() -> None:
    said = "Error: Failed to find python version from target process"
    with Job(LOOP.name) as job:
        assert pyspy.code_of(said, job.pid) == "no-symbols"


def test_no_file_and_no_process_is_left_behind() -> None:
    with Job(LOOP.name) as job:
        recording = Recording([job.pid, 1 << 22], 50, 1.0)
        recording.start()
        recording.stop()
        recording.stop()
        nothing_left(job.pid)
        Recording([job.pid]).stop()  # that never began
        assert not list(Path(tempfile.gettempdir()).glob(f"gpudiag-stacks-*/{job.pid}"))


@contextmanager
def in_a_pid_namespace() -> Iterator[int]:
    """The pid, as we see it, of a loop that thinks it is 1."""
    argv = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, str(LOOP)]
    if (
        os.geteuid() != 0
        or subprocess.run(["unshare", "--pid", "--fork", "true"], check=False, capture_output=True).returncode
    ):
        cannot("namespaces", "pid namespaces are not to be had here")
    with started(argv) as parent:
        yield int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])


@pytest.mark.machine
def test_threads_in_a_container_have_our_numbers() -> None:
    with in_a_pid_namespace() as pid:
        doc = recorded(pid, seconds=0.6)[pid]
        assert set(doc["threads"]) == tasks(pid)
        assert {t["tid"] for t in stacks.dump(pid)["threads"]} == set(map(int, tasks(pid)))
        assert thread_ids.numbers(pid)[1] == pid


def test_the_rate_goes_down_with_many_threads_and_up_with_the_machine() -> None:
    assert stacks.rate_for(1) == stacks.rate_for(0) == 50
    rates = [stacks.rate_for(n, cpus=8) for n in range(1, 3000)]
    assert rates == sorted(rates, reverse=True)
    assert min(rates) == stacks.SLOWEST_RATE
    assert stacks.rate_for(151, cpus=128) > stacks.rate_for(151, cpus=2) == stacks.SLOWEST_RATE
    assert stacks.rate_for(10_000, 2) == 2


KEPT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["1", "name", "samples", "frames", "stacks", "threads", "rate", "error"]), inner, max_size=6),
    max_leaves=20,
)  # fmt: skip


@given(KEPT)
def test_any_kept_document_is_taken_or_refused(value: object) -> None:
    found = stacks.restored(value)
    if found is not None:
        for thread in found["threads"].values():
            assert all(0 <= s[2] < len(found["stacks"]) and s[1] > 0 for s in thread["samples"])
        stacks.clipped(found, 0, 10)
        json.dumps(found)


def test_a_document_comes_back_as_it_was_kept() -> None:
    with Job(LOOP.name) as job:
        doc = recorded(job.pid, seconds=0.5)[job.pid]
    again = stacks.restored(json.loads(json.dumps(doc)))
    assert again is not None
    assert {k: again[k] for k in doc} == doc  # type: ignore[literal-required]
    middle = (doc["began"] + doc["ended"]) // 2
    half = stacks.clipped(again, doc["began"], middle)
    assert all(s[0] + s[1] <= middle for t in half["threads"].values() for s in t["samples"])
