"""What a capture must not do to a job that nobody may harm, and what a hostile job must not get out of a capture by root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from probes.capture import _inroot, _kept, manifest
from probes.capture.guest import _guest_folder
from probes.capture.guest._guest_folder import Folder
from probes.capture.guest.guest import Guest
from probes.capture.inject import inject, remote_exec
from probes.capture.model import Item, Outcome, Process, Rung, Target, Window
from probes.capture.serve import endpoints
from probes.capture.whom import identity
from tests.live_jobs import JOBS, MINORS, Job, python, torch_python
from tests.probes.capture.guest.test_guest_folder import RESULT, TRACE, done
from tests.probes.capture.guests import folders, guest, threads, wait
from tests.waiting import passing

pytestmark = pytest.mark.process

TOLD: dict[str, Any] = dict(RESULT)
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do that")


@pytest.fixture
def sleeper() -> Iterator[Process]:
    """A process of our own, with nothing in it."""
    with subprocess.Popen([sys.executable, "-c", "print(1, flush=True); import time; time.sleep(600)"], stdout=subprocess.PIPE) as child:  # fmt: skip
        try:
            assert child.stdout is not None
            child.stdout.readline()
            yield identity.read(child.pid)
        finally:
            child.kill()


@pytest.fixture
def made(sleeper: Process) -> Iterator[Guest]:
    one = Guest(Target(sleeper), [Item.TORCH], Window())
    one.prepare()
    yield one
    one.clean()


# --- processes that are forked in the middle ---------------------------------------------------------


@pytest.mark.machine
def test_a_process_that_is_forked_in_the_middle_records_nothing_and_keeps_nothing() -> None:
    with Job("forking.py", interpreter=torch_python()) as job:
        one = guest(job, [Item.TORCH], Window(duration_ns=60_000_000_000), events=10**9, stall_ms=10**6)
        try:
            wait(one, lambda s: s.phase == "capturing")
            time.sleep(0.2)
            (job.folder / "fork").touch()
            until = time.monotonic() + 60
            while "ended after" not in job.output:
                one.poll()
                assert time.monotonic() < until, job.output
                time.sleep(0.05)
            said = next(line for line in job.output.splitlines() if line.startswith("grew "))
            assert int(said.split()[1]) < 8000, said  # recorded, each of the 40,000 operators takes about 1 KB
            assert said.endswith("left []"), said
            one.stop()
            assert wait(one)[0].phase == "done"  # and the capture itself went on
        finally:
            one.clean()


FORKS = """
import os, sys, threading, time
from counters import Counters, ready
counters, number = Counters(), 0
def step():
    pass
while True:
    number += 1
    step()
    time.sleep(0.002)
    counters.tick()
    if number == 5:
        ready()
    if os.path.exists(os.environ["TMPDIR"] + "/fork"):
        os.unlink(os.environ["TMPDIR"] + "/fork")
        code, child = step.__code__.co_name, os.fork()
        if child == 0:
            step()
            left = [k for k in vars(sys) if "gpudiag" in k]
            left += [str(i) for i in range(6) if hasattr(sys, "monitoring") and sys.monitoring.get_tool(i)]
            left += [step.__code__.co_filename] if step.__code__.co_varnames else []
            began = time.monotonic()
            import atexit
            atexit._run_exitfuncs()
            print("child", left, int(time.monotonic() - began > 2), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
"""


@pytest.mark.machine
@pytest.mark.parametrize("minor", MINORS)
def test_of_each_python_a_forked_process_is_clean(minor: int, tmp_path: Path) -> None:
    path = python(3, minor)
    script = tmp_path / "forks.py"
    shutil.copy(JOBS / "counters.py", tmp_path / "counters.py")  # an interpreter in a root of its own gets both
    script.write_text(FORKS)
    with Job(str(script), interpreter=path) as job:
        process = identity.read(job.pid)
        one = Guest(Target(process), [Item.LOSS], Window(duration_ns=60_000_000_000, anchor="__main__:step"))
        one.prepare()
        try:
            inject.run(process, one.code)
            wait(one, lambda s: s.phase == "capturing")
            (job.folder / "fork").touch()
            until = time.monotonic() + 30
            while "child" not in job.output:
                one.poll()
                assert time.monotonic() < until, job.output
                time.sleep(0.02)
        finally:
            one.clean()
        assert "child [] 0" in job.output


# --- people who look into their own job --------------------------------------------------------------

TRACED = """
import sys, threading, time
sys.path.insert(0, {jobs!r})
from counters import Counters, ready
seen = set()
def trace(frame, event, arg):
    seen.add(frame.f_code.co_filename)
    return trace
threading.settrace(trace)
threading.setprofile(lambda frame, event, arg: seen.add(frame.f_code.co_filename))
counters, number = Counters(), 0
def step():
    pass
while True:
    number += 1
    step()
    time.sleep(0.002)
    counters.tick()
    if number == 5:
        ready()
    if number % 100 == 0:
        print("seen", sorted(n for n in seen if "gpudiag-agent" in n), flush=True)
"""


def test_a_debugger_or_coverage_of_the_job_does_not_see_the_agent(tmp_path: Path) -> None:
    script = tmp_path / "traced.py"
    script.write_text(TRACED.format(jobs=str(Path(__file__).parents[2] / "jobs")))
    with Job(str(script)) as job:
        process = identity.read(job.pid)
        one = Guest(Target(process), [Item.LOSS], Window(duration_ns=300_000_000, anchor="__main__:step"))
        one.prepare()
        try:
            inject.run(process, one.code)
            assert wait(one)[0].phase == "done"
        finally:
            one.clean()
        job.advance(200)
        assert job.output.splitlines()[-1] == "seen []"


# --- calls that come too late ------------------------------------------------------------------------

BLOCKED = """
import ctypes, os, sys, time
sys.path.insert(0, {jobs!r})
from counters import Counters, ready
counters, number = Counters(), 0
while True:
    number += 1
    time.sleep(0.002)
    counters.tick()
    if number == 5:
        ready()
        ctypes.PyDLL(None).sleep(6)  # with the interpreter's lock
"""


def test_a_main_thread_that_is_blocked_in_c_is_not_waited_for_and_nothing_runs_afterwards(tmp_path: Path) -> None:
    script = tmp_path / "blocked.py"
    script.write_text(BLOCKED.format(jobs=str(Path(__file__).parents[2] / "jobs")))
    with Job(str(script)) as job:
        process = identity.read(job.pid)
        one = Guest(Target(process), [Item.LOSS], Window(duration_ns=300_000_000))
        one.prepare()
        with pytest.raises(inject.InjectError) as raised:
            inject.run(process, one.code, deadline=1.0)
        assert raised.value.refusal.code == "no-answer"
        one.clean()
        job.advance(300)
        assert "gpudiag" not in threads(job)
        assert not folders(job)


def test_a_number_that_is_used_again_is_not_asked(sleeper: Process) -> None:
    other = Process(sleeper.pid, sleeper.start - 1, sleeper.name)
    with pytest.raises(inject.InjectError) as raised:
        inject._child(other, "pass", Rung.PENDING_CALL, time.monotonic() + 2)
    assert raised.value.refusal.code == "gone"


# --- files of a hostile job --------------------------------------------------------------------------


def test_a_trace_that_grows_while_it_is_read_is_not_read_for_ever(made: Guest, tmp_path: Path) -> None:
    folder = done(made, RESULT)
    (folder / "trace.json").write_bytes(TRACE)
    own = made._folder
    assert own is not None
    with own.opened("trace.json", len(TRACE)) as file:
        with (folder / "trace.json").open("ab") as more:
            more.write(bytes(100))
        with pytest.raises(OSError, match="more than"):
            _kept.whole(file, len(TRACE))
        file.seek(0)
        with pytest.raises(OSError, match="grows"):
            _kept.copy(file, tmp_path / "out", len(TRACE))
    assert not (tmp_path / "out").exists()


def test_what_lies_in_the_captures_folder_is_not_written_through(made: Guest, tmp_path: Path) -> None:
    folder = done(made, RESULT)
    (folder / "trace.json").write_bytes(TRACE)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    trace = out / f"trace-{made._target.process.pid}.json.gz"
    trace.symlink_to(precious)
    parts, _, _ = made.collect(out)
    assert parts[0].outcome is Outcome.OK
    assert precious.read_text() == "mine"
    assert not trace.is_symlink()
    assert trace.stat().st_mode & 0o777 == 0o600


@root_only
def test_a_device_is_not_even_opened(tmp_path: Path) -> None:
    node = tmp_path / "trace.json"
    os.mknod(node, 0o666 | 0o020000, os.makedev(10, 0))  # opened, it answers ENODEV, or does what it does
    with pytest.raises(_inroot.KindError):
        _inroot.file_at("/", str(node))
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(_inroot.KindError):
            _inroot.file_in(folder, "trace.json")
    finally:
        os.close(folder)


def test_an_old_folder_in_the_place_of_the_new_one_is_not_handed_over(sleeper: Process, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "stop").write_text("a secret")

    def swapped(path: str, mode: int, *, dir_fd: int) -> None:
        """The target is quick: as soon as the folder is there, an old one takes its place."""
        os.mkdir(path, mode, dir_fd=dir_fd)
        os.rmdir(path, dir_fd=dir_fd)
        os.rename(secret, path, dst_dir_fd=dir_fd)

    with pytest.raises(OSError, match="taken by another"):
        Folder(sleeper, places=(str(tmp_path),), make=swapped)
    (moved,) = tmp_path.glob(f"{_guest_folder.PREFIX}*")
    assert (moved / "stop").read_text() == "a secret"


def test_a_folder_with_very_many_files_is_not_swept_for_long(sleeper: Process, tmp_path: Path) -> None:
    left = [tmp_path / f"{_guest_folder.PREFIX}9-{n}" for n in range(8)]
    then = time.time() - 2 * _guest_folder.STALE
    for path in left:
        path.mkdir()
        os.utime(path, (then, then))
    for remain in (5, 2, 0):
        Folder(sleeper, places=(str(tmp_path),), sweeps=3).remove()
        assert sum(path.exists() for path in left) == remain


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"x": value}
    return value


@pytest.mark.parametrize("told", [
    {"torch": _deep(400)}, {"torch": {"version": "x" * 10**6, "cuda": _deep(90)}}, {"memory": {"stats": _deep(300)}},
    {"trace": TOLD["trace"] | {"budget": _deep(200)}}, {"window": {"began": 10**300, "ended": 1, "wish": 1, "captured": 1}},
    {"iterations": TOLD["iterations"] | {"ends": [1e308, 2], "others": {"a": 10**400}}},
    {"iterations": TOLD["iterations"] | {"loss": [10**400, float("nan"), float("inf")]}},
], ids=["torch", "version", "memory", "budget", "window", "ends", "loss"])  # fmt: skip
def test_what_a_target_tells_can_be_kept(told: dict[str, Any], made: Guest, tmp_path: Path) -> None:
    folder = done(made, RESULT | told)
    (folder / "trace.json").write_bytes(TRACE)
    parts, iterations, torch = made.collect(tmp_path)
    document = {"schema": "gpudiag/capture/1", "targets": [{"parts": [manifest.plain_part(p) for p in parts], "i": iterations, "t": torch}]}  # fmt: skip
    path = manifest.write(tmp_path, document)
    manifest.read(path)
    assert path.stat().st_size < 1 << 20
    assert path.stat().st_mode & 0o777 == 0o600


# --- command lines of a hostile job ------------------------------------------------------------------


@pytest.mark.parametrize("words", [
    ("--port", "²"), ("--port", "9" * 5000), ("--profiler-config", "[" * 50_000), ("--profiler-config", '{"torch_profiler_dir": "/a\\u0000b"}'),
    ("--profiler-config", "[1]"), ("--profiler-config.torch_profiler_dir", "\udcff"),
], ids=["digit", "long", "deep", "zero", "list", "bytes"])  # fmt: skip
def test_no_command_line_of_a_server_is_believed(words: tuple[str, str]) -> None:
    code = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print(1, flush=True); time.sleep(600)"
    argv = [os.fsencode(w) for w in ("vllm", "-c", code, *words)]
    with subprocess.Popen(argv, executable=sys.executable, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            found = endpoints.find(identity.read(child.pid))
            assert not isinstance(found, endpoints.Endpoint)
            endpoints._usable(endpoints.VLLM, child.pid, "127.0.0.1", 1)
            assert endpoints._files(child.pid, endpoints._folder(child.pid)) == {} or endpoints._folder(child.pid) == ""
        finally:
            child.kill()


# --- the target's own interpreter --------------------------------------------------------------------


@pytest.mark.machine
@root_only
def test_the_program_of_a_container_is_not_run_outside_of_what_holds_it() -> None:
    setpriv = ["setpriv", "--bounding-set", "-all,+mknod,+chown", "--inh-caps", "-all"]
    with subprocess.Popen([*setpriv, "sleep", "600"]) as child:
        try:
            for _ in passing(10):
                if Path(f"/proc/{child.pid}/comm").read_text() == "sleep\n":
                    break
                time.sleep(0.01)
            else:
                pytest.fail("setpriv has not become sleep")
            assert remote_exec._bound(child.pid)
            refused = remote_exec.able(child.pid)
            assert refused is not None
            assert "seccomp" in refused.why.en
            assert not remote_exec._bound(os.getpid())
        finally:
            child.kill()


# --- records of a stranger ---------------------------------------------------------------------------


def test_a_strangers_record_does_not_name_what_is_deleted_with_it(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "trace-7.json.gz").write_bytes(b"")
    parts = [{"file": "thesis.tex"}, {"file": "trace-7.json.gz"}, {"file": "capture.json/../thesis.tex"}]
    manifest.write(tmp_path, {"schema": "gpudiag/capture/1", "targets": [{"process": {"pid": 1}, "parts": parts}]})
    assert manifest.delete(tmp_path) == ["thesis.tex"]


# --- a disk that runs full in the middle -------------------------------------------------------------


# The job gets a mount namespace of its own, in which nothing goes back to ours, and a small /dev/shm there.
SMALL_DISK = """import ctypes; c = ctypes.CDLL(None, use_errno=True); NEWNS, PRIVATE = 0x20000, 0x44000
done = [c.unshare(NEWNS), c.mount(None, b'/', None, PRIVATE, None), c.mount(b'none', b'/dev/shm', b'tmpfs', 0, b'size=70m')]
print('small', done, ctypes.get_errno(), flush=True)"""


@root_only
@pytest.mark.machine
def test_a_disk_that_runs_full_in_the_middle_is_told_and_nothing_stays(tmp_path: Path) -> None:
    with Job("train.py", "--depth", "2", interpreter=torch_python(), pause=0.01) as job:
        assert job.said(SMALL_DISK, "small") == "small [0, 0, 0] 0"
        process = identity.read(job.pid)
        window = Window(duration_ns=60_000_000_000)
        one = Guest(Target(process), [Item.TORCH], window, events=10**9, stall_ms=10**6, places=("/dev/shm",))
        one.prepare()
        try:
            inject.run(process, one.code)
            wait(one, lambda s: s.phase == "capturing")
            assert job.alive, (job.status, job.output[-500:])
            with (Path(process.root) / "dev/shm/fill").open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(1 << 20))
            own = one._folder
            assert own is not None
            os.close(os.open("stop", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=own._at))  # empty, it takes no room
            state, _ = wait(one)
            assert (state.phase, state.code) == ("failed", "internal"), state
            assert "No space left" in state.words
        finally:
            one.clean()
        job.advance(3)
        assert not folders(job)


# --- compiled jobs -----------------------------------------------------------------------------------


@pytest.mark.machine
@pytest.mark.parametrize("what", ["step", "model"])
def test_a_compiled_job_is_not_compiled_again(what: str, tmp_path: Path) -> None:
    with Job("compiled.py", what, interpreter=torch_python(), pause=0.005) as job:
        for window in (Window(duration_ns=300_000_000), Window(iterations=3)):
            process = identity.read(job.pid)
            one = Guest(Target(process), [Item.TORCH, Item.LOSS], window)
            one.prepare()
            try:
                inject.run(process, one.code)
                state, _ = wait(one)
                _, iterations, _ = one.collect(tmp_path)
            finally:
                one.clean()
            if what == "model":
                assert iterations is not None
                assert len(iterations["ends"]) > 2
            elif window.by_iterations:
                assert state.code == "optimizer-compiled"
            else:
                assert state.phase == "done", state
            job.advance(50)
        assert "compiled again" not in job.output
