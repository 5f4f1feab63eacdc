"""The ways of injection end to end, their refusals, and other users, namespaces and roots, with real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.inject import _refusals, gdb, inject, ptrace, remote_exec
from probes.capture.inject.inject import InjectError
from probes.capture.model import Process, Refusal, Rung
from tests import live_jobs
from tests.probes.live.machine import need_open_checkout

pytestmark = pytest.mark.process

HIT = "import os; f = os.open(os.environ['TMPDIR'] + '/hits', os.O_WRONLY | os.O_APPEND | os.O_CREAT); os.write(f, b'.'); os.close(f)"
PATIENCE = 60.0
traces = pytest.mark.skipif(
    not ptrace.supported() or not ptrace.allowed(), reason="ptrace of x86-64 is not possible here"
)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root")


def process(pid: int) -> Process:
    """As `identity` reads it, so far as is needed here."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Process(pid, int(stat[19]), "x", uid=Path(f"/proc/{pid}").stat().st_uid, user="somebody", state=stat[0])


def hits(job: live_jobs.Job) -> int:
    file = job.folder / "hits"
    return file.stat().st_size if file.exists() else 0


def wait_for_hits(job: live_jobs.Job, number: int) -> None:
    until = time.monotonic() + PATIENCE
    while hits(job) < number:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert hits(job) == number


def untouched(pid: int) -> None:
    """Traced by nobody, and not stopped."""
    assert inject._traced(pid) == []
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "tT"


@contextmanager
def helper(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def test_codes_have_both_languages() -> None:
    for code in _refusals.CODES:
        for detail in ("", "because"):
            said = _refusals.refusal(code, detail)
            assert said.code == code
            assert said.why.en.endswith(".")
            assert said.why.zh.endswith("。")
            assert bool(said.remedy.en) == bool(said.remedy.zh)
            assert "{" not in said.why.en + said.why.zh


@traces
def test_run_and_what_it_says() -> None:
    with live_jobs.Job("loop.py") as job:
        target = process(job.pid)
        ways = inject.able(target)
        assert isinstance(ways, tuple)
        assert Rung.PENDING_CALL in ways
        done = inject.run(target, HIT, deadline=PATIENCE)
        assert hits(job) == 1
        assert done.rung is ways[0]
        assert done.seconds > 0
        untouched(job.pid)
        job.advance(3)
        assert job.output.strip() == "ready"


@traces
@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_gdb() -> None:
    with live_jobs.Job("threads.py", "5") as job:
        try:
            done = inject.run(process(job.pid), HIT, rungs=[Rung.GDB], deadline=PATIENCE)
        except InjectError as error:
            if "too old for the registers" not in error.refusal.why.en:
                raise
            untouched(job.pid)
            job.advance(3)
            pytest.skip(error.refusal.why.en)
        assert done.rung is Rung.GDB
        wait_for_hits(job, 1)
        untouched(job.pid)
        job.advance(3)


def test_gdb_answers_are_judged() -> None:
    for said, code in (
        ("gpudiag-ready=0\n", "no-python"), ("gpudiag-ready=1\ngpudiag-added=-1\n", "queue-full"),
        ("ptrace: Operation not permitted.\n", "no-permission"), ("ptrace: No such process.\n", "gone"), ("", "failed"),
    ):  # fmt: skip
        results = dict(line.partition("=")[::2] for line in said.splitlines() if line.startswith("gpudiag-"))
        with pytest.raises(InjectError) as error:
            gdb._judge(results, said)
        assert error.value.refusal.code == code


@traces
def test_no_answer_leaves_the_target_alone() -> None:
    with helper(
        sys.executable, "-c", "import ctypes; print('ready', flush=True); ctypes.CDLL(None).sleep(300)"
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(InjectError) as error:
            inject.run(process(child.pid), "pass", rungs=[Rung.PENDING_CALL], deadline=0.8)
        assert error.value.refusal.code == "no-answer"
        untouched(child.pid)


def test_refused_before_anything_is_done() -> None:
    with helper("sleep", "100") as child:
        said = inject.able(process(child.pid))
        assert isinstance(said, Refusal)
        assert said.code == "no-python"
        wrong = Process(child.pid, 1, "x")  # a pid that was used again
        assert isinstance(gone := inject.able(wrong), Refusal)
        assert gone.code == "gone"
        with pytest.raises(InjectError) as error:
            inject.run(wrong, "pass")
        assert error.value.refusal.code == "gone"
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    said = inject.able(process(child.pid))
    child.wait()
    assert isinstance(said, Refusal)
    assert said.code == "zombie"


@traces
def test_a_stopped_and_a_traced_process_are_refused() -> None:
    with live_jobs.Job("loop.py") as job:
        os.kill(job.pid, signal.SIGSTOP)
        until = time.monotonic() + PATIENCE
        while process(job.pid).state != "T":
            assert time.monotonic() < until
        said = inject.able(process(job.pid))
        os.kill(job.pid, signal.SIGCONT)
        assert isinstance(said, Refusal)
        assert said.code == "stopped"
        tracer = (
            "import sys, time; sys.path.insert(0, sys.argv[1]); from probes.capture.inject.ptrace import Thread;"
            "Thread(int(sys.argv[2])).seize(); print('ready', flush=True); time.sleep(100)"
        )
        with helper(sys.executable, "-c", tracer, str(live_jobs.ROOT), str(job.pid)) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"ready\n"
            said = inject.able(process(job.pid))
            assert isinstance(said, Refusal)
            assert said.code == "tracer"
            assert str(other.pid) in said.why.en
        job.advance(2)


@pytest.mark.machine
@as_root
@traces
def test_another_user_is_refused_and_root_may() -> None:
    """As an ordinary user: its own process works, somebody else's is refused with the reason."""
    need_open_checkout()
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]
    interpreter = shutil.which("python3.11", path="/usr/bin:/bin") or ""
    if not interpreter:
        pytest.skip("no interpreter that every user may run")
    program = textwrap.dedent("""
        import sys; sys.path.insert(0, sys.argv[1])
        from probes.capture.inject import inject
        from probes.capture.model import Process, Refusal
        said = inject.able(Process(int(sys.argv[2]), 0, "x", uid=int(sys.argv[3]), user="u"))
        print(said.code if isinstance(said, Refusal) else ",".join(said))
        try: print(inject.run(Process(int(sys.argv[2]), 0, "x"), sys.argv[4], deadline=60).rung)
        except inject.InjectError as e: print(e.refusal.code)
    """)
    for user, expected in ((drop, "pending-call"), ([], "no-permission")):
        with live_jobs.Job("loop.py", interpreter=interpreter, prefix=user) as job:
            job.folder.chmod(0o777)
            words = [str(live_jobs.ROOT), str(job.pid), str(process(job.pid).uid), HIT]
            done = subprocess.run(
                [*drop, interpreter, "-c", program, *words], capture_output=True, text=True, check=False
            )
            assert all(expected in line for line in done.stdout.splitlines()), (done.stdout, done.stderr)
            assert len(done.stdout.splitlines()) == 2, done.stderr
            assert hits(job) == (1 if user else 0)
            if not user:
                continue
            done_by_root = inject.run(process(job.pid), HIT, deadline=PATIENCE)
            assert done_by_root.rung is Rung.PENDING_CALL
            assert hits(job) == 2


@pytest.mark.machine
@as_root
@traces
def test_a_container_of_namespaces() -> None:
    """Other pid, mount, user-visible names: the target is its namespace's process 1, and so is the number that it checks."""
    with live_jobs.Job(
        "loop.py", prefix=["unshare", "--pid", "--mount", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    ) as job:
        inner = int(Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()[0])
        done = inject.run(process(inner), HIT, deadline=PATIENCE)
        assert done.rung is Rung.PENDING_CALL
        assert hits(job) == 1
        untouched(inner)


@pytest.mark.machine
@as_root
def test_remote_exec_in_a_container_of_its_own_root() -> None:
    path = live_jobs.python(3, 14)
    root = live_jobs._chroot()
    if not root:
        pytest.skip("Python 3.14 is not in a root of its own")
    unshare = ["unshare", "--pid", "--mount", "--fork", "--kill-child", f"--root={root}", "--mount-proc=/proc"]
    program = (
        "import time, os\nprint('ready', flush=True)\nwhile True:\n time.sleep(0.01)\n if 'seen' in globals(): pass\n"
    )
    with helper(*unshare, path.removeprefix(root), "-c", program) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        inner = int(Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()[0])
        ways = inject.able(process(inner))
        assert isinstance(ways, tuple), ways
        assert ways[0] is Rung.REMOTE_EXEC
        for turn in range(3):
            done = inject.run(
                process(inner), f"import os; os.write(1, b'run {turn}\\n')", rungs=[Rung.REMOTE_EXEC], deadline=PATIENCE
            )
            assert done.rung is Rung.REMOTE_EXEC
            assert child.stdout.readline() == f"run {turn}\n".encode()
        untouched(inner)
        assert not list(Path(root, "tmp").glob("gpudiag-*.py"))


@pytest.mark.machine
@as_root
def test_remote_exec_that_is_switched_off() -> None:
    path = live_jobs.python(3, 14)
    root = live_jobs._chroot()
    with live_jobs.Job("loop.py", interpreter=path, env={remote_exec.SWITCH: "1"}) as job:
        ways = inject.able(process(job.pid))
        assert isinstance(ways, tuple)
        assert Rung.REMOTE_EXEC not in ways
        if not root:
            with pytest.raises(InjectError) as error:
                inject.run(process(job.pid), HIT, rungs=[Rung.REMOTE_EXEC], deadline=10)
            assert error.value.refusal.code == "remote-debug-off"
        assert inject.run(process(job.pid), HIT, deadline=PATIENCE).rung is not Rung.REMOTE_EXEC
        wait_for_hits(job, 1)


@pytest.mark.parametrize(
    ("environ", "command", "off"),
    [
        (["PYTHON_DISABLE_REMOTE_DEBUG=1"], ["python", "a.py"], True),
        (["PYTHON_DISABLE_REMOTE_DEBUG=1"], ["python", "-I", "a.py"], False),
        (["PYTHON_DISABLE_REMOTE_DEBUG="], ["python", "a.py"], False),
        ([], ["python", "-X", "disable-remote-debug", "a.py"], True),
        ([], ["python", "-Xdisable_remote_debug", "a.py"], True),
        ([], ["python", "a.py", "-X", "disable-remote-debug"], False),
        ([], ["python"], False), ([], [], False),
    ],
)  # fmt: skip
def test_switches_of_remote_debugging(environ: list[str], command: list[str], off: bool) -> None:
    assert remote_exec.switched_off(environ, command) == off


@given(st.binary(max_size=200))
def test_law_what_is_no_json_is_a_refusal(out: bytes) -> None:
    with suppress(ValueError):
        json.loads(out)
        return
    with pytest.raises(InjectError) as error:
        inject._answer(out, b"Traceback\nMemoryError", Rung.PENDING_CALL)
    assert error.value.refusal.code == "failed"
    assert "MemoryError" in error.value.refusal.why.en


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=80))
def test_law_the_script_of_remote_exec_is_valid(code: str) -> None:
    import ast

    assert len(ast.parse(remote_exec.text(code, "/tmp/x y'.py", 1)).body) == 1
