"""A job that was forked from a process with torch is found as one that started an interpreter: otherwise it would prove nothing."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probes.capture.stacks import pyspy, stacks
from probes.capture.whom import identity
from probes.capture.whom._kin import Kin
from probes.live_host import LiveHost
from tests import served_jobs
from tests.components import cannot
from tests.live_jobs import JOBS, Job, torch_python
from tests.served_jobs import ServedJob

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module", params=["served", "plain"])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A training loop in a folder and an environment of its own, started both ways."""
    folder, plain = tmp_path_factory.mktemp("at"), request.param == "plain"
    words = ("--depth", "2")
    with Job("train.py", *words, interpreter=torch_python(), env={"RANK": "7"}, cwd=str(folder), plain=plain) as one:
        if not plain and not isinstance(one._child, ServedJob):
            cannot("checkpoint-restore", "no process may say here what it is called (PR_SET_MM_MAP)")
        yield one


def test_what_proc_tells(job: Job) -> None:
    proc = Path(f"/proc/{job.pid}")
    script = str(JOBS / "train.py")
    assert (proc / "cmdline").read_bytes().split(b"\0")[:-1] == [
        os.fsencode(w) for w in (torch_python(), script, "--depth", "2")
    ]
    environment = dict(row.split(b"=", 1) for row in (proc / "environ").read_bytes().split(b"\0")[:-1])
    assert environment[b"RANK"] == b"7"
    assert environment[b"TMPDIR"] == os.fsencode(job.folder)
    assert not [name for name in environment if b"JOB_SERVER" in name or name == b"OPENBLAS_NUM_THREADS"]
    assert (proc / "exe").resolve() == Path(torch_python()).resolve()
    assert (proc / "comm").read_text() == f"{Path(torch_python()).name}\n"
    assert re.fullmatch(r"at\d+", (proc / "cwd").readlink().name)
    assert (os.getpgid(job.pid), os.getsid(job.pid)) == (job.pid, job.pid)
    opened = [str(f.readlink()) for f in (proc / "fd").iterdir()]
    assert sorted(opened) == sorted(["/dev/null", str(job.folder / "counters"), *[str(job.folder / "output")] * 2])
    found = identity.read(job.pid)
    assert (found.command[1], found.python is not None and found.python.torch) == (script, "loaded"), found


TELL = """import json, os, sys, tempfile, threading; print("told", json.dumps([
sys.argv, sys.orig_argv, sys.path[0], __name__, __file__, os.environ["RANK"], os.getcwd(), tempfile.gettempdir(),
threading.current_thread() is threading.main_thread(), [p for p in sys.path if "served" in p]]), flush=True)"""


def test_what_it_tells_of_itself(job: Job) -> None:
    told = json.loads(job.said(TELL, "told").removeprefix("told "))
    script = str(JOBS / "train.py")
    words = [script, "--depth", "2"]
    folder = str(Path(f"/proc/{job.pid}/cwd").readlink())
    assert told[:5] == [words, [torch_python(), *words], str(JOBS), "__main__", script]
    assert told[5:] == ["7", folder, str(job.folder), True, []]


def test_its_stack_begins_at_its_script(job: Job) -> None:
    if pyspy.program() is None:
        cannot("py-spy", "py-spy is not installed")
    wanted = [(n, "train.py") for n in ("<module>", "main", "train")]
    seen: list[object] = []
    for _ in range(40):  # a stack that changes while it is read may come out in part, or not at all
        found = stacks.dump(job.pid)
        frames: list[Any] = next((t["frames"] for t in found["threads"] if t["tid"] == job.pid), [])
        seen.append([(f[0], Path(f[1]).name) for f in frames[:3]] or found["error"])
        if seen[-1] == wanted:
            return
    pytest.fail(f"{seen}")


def test_it_is_a_program_of_its_own_and_nobodys_worker(job: Job) -> None:
    with LiveHost() as host:
        parent = int(re.findall(r"PPid:\s(\d+)", Path(f"/proc/{job.pid}/status").read_text())[0])
        assert identity.kin_of(job.pid, parent, host) is Kin.OTHER
        assert identity.helpers(job.pid) == ()


@pytest.mark.parametrize(("end", "status"), [("os._exit(3)", 3), ("os.kill(os.getpid(), 9)", -signal.SIGKILL)])
def test_how_it_ended_is_known(end: str, status: int) -> None:
    with Job("train.py", "--depth", "2", interpreter=torch_python()) as job:
        job.execute(f"import os; {end}")
        assert job._child is not None
        assert job._child.wait() == status
        assert (job.status, job.alive) == (status, False)
        assert not Path(f"/proc/{job.pid}").exists()


def test_what_is_read_when_torch_is_imported_starts_an_interpreter() -> None:
    argv = [torch_python(), str(JOBS / "train.py")]
    assert served_jobs.served(argv, dict(os.environ) | {"KINETO_USE_DAEMON": "1"}, None, 1) is None


def test_a_script_that_fails_says_so(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("import torch\nraise SystemExit('no such data')\n")
    with pytest.raises(AssertionError, match="no such data"), Job(str(script), interpreter=torch_python()):
        pass
