"""``gpudiag profile`` on running jobs of every kind: a fault, a late and a hung rank are named, healthy jobs stay quiet. What each
other planted fault looks like is in `test_planted_faults`.

Each capture has the machine to itself as far as that goes: a lock keeps captures one after the other, and the job's
scheduling group comes before other work, for "other processes take the CPUs" would be found, and be true. A live capture that does not show
what it should is made again, and longer: a neighbour that takes both CPUs for seconds is no defect of what is tested.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.assistant.capture.profiled import (
    GENTLE,
    Found,
    Profile,
    about,
    captured,
    data,
    favoured,
    late_rank,
    planted,
    roots,
    rules,
    said,
)
from tests.command_server import Command, CommandServer
from tests.conftest import ROOT, Answer, Gpudiag
from tests.live_jobs import Job, Ranks, python, torch_python
from tests.probes.capture.loads import put, quota

pytestmark = [pytest.mark.machine, pytest.mark.usefixtures("alone")]


@pytest.fixture
def profile(gpudiag: Gpudiag, tmp_path: Path) -> Profile:
    """``gpudiag profile`` with a data folder of its own."""

    def run(*words: str, **more: Any) -> Answer:
        return gpudiag("profile", *words, env={"XDG_DATA_HOME": str(tmp_path)}, **more)

    return run


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """Where the captures of `profile` will be."""
    return tmp_path / "gpudiag/captures"


def test_a_planted_fault_is_the_root_and_its_function_is_named(profile: Profile, captures: Path) -> None:
    words = ("--fault", "python", "--slow", "0.03")
    with Job("train.py", *words, interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], planted("python"))
        for lang in ("en", "zh"):
            text = profile("show", "last", "--lang", lang).out
            assert "tokenize_slowly" in text.split("\n\n")[0].replace("\n ", "")


def waited(pid: int) -> int:
    """How long its main thread has waited for a CPU so far, ns."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])


@pytest.mark.parametrize("words", [GENTLE, ("--yes",)], ids=["outside", "inside"])
def test_a_healthy_job_stays_quiet(profile: Profile, words: tuple[str, ...], captures: Path) -> None:
    def check(found: Found) -> None:
        seen = set(roots(found))
        if (waited(job.pid) - before) / (time.monotonic_ns() - began) > 0.05:  # then it is true, and nothing else is
            seen.discard("others-take-the-cpus")
        assert not seen, found["verdict"]
        assert roots(found) or found["verdict"]["state"] in ("ok", "info")

    with Job("train.py", interpreter=torch_python(), captures=captures) as job:
        before, began = waited(job.pid), time.monotonic_ns()
        favoured(job.pid)
        captured(profile, [job.pid], check, *words)
        job.advance(3)


# --- the system under the job --------------------------------------------------------------------


def test_a_quota_that_starves_the_loader_is_the_root_of_its_waits(profile: Profile, captures: Path) -> None:
    def check(found: Found) -> None:
        assert next(iter(roots(found)), None) == "cpu-quota-throttles-process", roots(found)
        assert not [rule for rule in roots(found) if "loader" in rule or "data" in rule], "what follows from it folds"
        assert "loop-waits-for-data" in rules(found)
        quota_ = next(f for f in about(found) if f["rule"] == "cpu-quota-throttles-process")
        assert quota_["explains"]
        assert "0.5" in found["verdict"]["text"], found["verdict"]

    with (
        quota(0.5) as group,
        Job("train.py", "--fault", "data-workers", interpreter=torch_python(), captures=captures) as job,
    ):
        for name, most in (
            ("cpu.shares", "262144"),
            ("cpu.weight", "10000"),
        ):  # what autogroup is to those without a group
            with suppress(OSError):
                put(group / name, most)
        for pid in [job.pid, *children(job.pid)]:
            put(group / "cgroup.procs", str(pid))
        captured(profile, [job.pid], check)


# --- ranks ---------------------------------------------------------------------------------------


def test_the_rank_that_is_late_is_named(profile: Profile, captures: Path) -> None:
    with Ranks("--slow-rank", "1", "--slow", "0.06", captures=captures) as ranks:
        pids = [j.pid for j in ranks.jobs]
        favoured(*pids)
        captured(profile, pids, late_rank("augment_slowly"))


# --- whoever it is -------------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    """Of the main thread of a process."""
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def one_child(pid: int, seconds: float = 20.0) -> int:
    """The process that a command in front has started."""
    until = time.monotonic() + seconds
    while not (found := children(pid)):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found[0]


def runs(found: Found) -> None:
    """Stacks were got, and it was left as it was."""
    (target,) = found["targets"]
    assert {p["item"]: p["outcome"] for p in target["parts"]} == {"stacks": "ok", "cpu": "ok"}, target
    assert target["clean"] is True
    assert target["activities"]


def root_only() -> None:
    """Skips where we may not become somebody else."""
    if os.geteuid() != 0:
        pytest.skip("needs root: becomes another user, or makes namespaces")


def test_a_process_of_another_user(profile: Profile) -> None:
    root_only()

    def check(found: Found) -> None:
        runs(found)
        assert "python-bound-loop" in rules(found)

    with ExitStack() as stack:
        program = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        program.chmod(0o755)
        for name in ("threads.py", "counters.py"):
            shutil.copy(ROOT / "tests/jobs" / name, program / name)
        system = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists()), "")
        if not system:
            pytest.skip("no interpreter that any user may run")
        prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        job = stack.enter_context(Job(str(program / "threads.py"), "2", interpreter=system, prefix=prefix))
        favoured(job.pid)
        captured(profile, [job.pid], check)


def test_a_process_in_namespaces_of_its_own(profile: Profile) -> None:
    root_only()
    with Job("threads.py", "2", prefix=["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]) as job:
        pid = one_child(job.pid)
        favoured(pid)
        captured(profile, [pid], runs)


# So many threads as in the second are looked at less often.
@pytest.mark.parametrize(
    ("version", "threads", "seconds"), [((3, 8), 5, 0.7), ((3, 13), 150, 3.0)], ids=["3.8", "3.13"]
)
def test_a_process_without_torch(
    profile: Profile, version: tuple[int, int], threads: int, seconds: float, captures: Path
) -> None:
    def check(found: Found) -> None:
        runs(found)
        assert "burn" in said(found, "python-bound-loop")

    with Job("threads.py", str(threads), interpreter=python(*version), captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], check, seconds=seconds)


# --- what ends in the middle ---------------------------------------------------------------------


def children_of_all(pid: int) -> list[int]:
    """Children of all threads of a process."""
    with suppress(OSError):
        return [c for t in Path(f"/proc/{pid}/task").iterdir() for c in _of_thread(t)]
    return []


def _of_thread(thread: Path) -> list[int]:
    with suppress(OSError):
        return [int(c) for c in (thread / "children").read_text().split()]
    return []


def looks(pid: int) -> bool:
    """Whether py-spy is a child of a process."""
    names = []
    for child in children_of_all(pid):
        with suppress(OSError):
            names.append(Path(f"/proc/{child}/comm").read_text())
    return "py-spy\n" in names


Profiling = Callable[..., Command]


@pytest.fixture
def profiling(command_server: CommandServer, tmp_path: Path, clean_environment: dict[str, str]) -> Profiling:
    """A capture of ten seconds, whose window has begun; it has seen so many iterations of the job."""

    def begin(job: Job, *words: str) -> Command:
        argv = ("profile", "--pid", str(job.pid), *words, "--duration", "10s", "--format", "json")
        command = command_server.start(argv, env=clean_environment | {"XDG_DATA_HOME": str(tmp_path)})
        until = time.monotonic() + 60
        while not looks(command.pid):
            assert command.poll() is None, command.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(1.0)
        job.advance(10)
        return command

    return begin


def test_a_process_that_ends_within_the_window(profiling: Profiling, captures: Path) -> None:
    with Job("train.py", "--fault", "python", "--slow", "0.03", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        command = profiling(job, *GENTLE)
        os.kill(job.pid, signal.SIGTERM)
        out, err = command.communicate(timeout=60)
    found = json.loads(out)
    assert command.returncode == 1, err
    assert "Traceback" not in err
    assert found["verdict"]["text"].endswith("ended during the capture.")
    assert found["targets"][0]["clean"] is False
    assert found["seconds"] < 9  # it does not go on listening
    assert "capture-disturbed-process" not in rules(found)
    assert "tokenize_slowly" in json.dumps(found["diagnosis"]["findings"])


def test_broken_off_in_the_middle_of_what_runs_inside(profiling: Profiling, captures: Path) -> None:
    with Job("train.py", "--fault", "python", "--slow", "0.03", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        for more in (0, 2, 5):  # seconds: of what began late by then too little was seen
            command = profiling(job, "--yes")
            time.sleep(more)
            command.send_signal(signal.SIGINT)
            out, err = command.communicate(timeout=60)
            assert command.returncode == 130, err
            said = json.loads(out)["verdict"]["text"]
            job.advance(5)
            if "Too little was seen" not in said:
                break
        assert "tokenize_slowly" in said


def test_a_process_that_still_imports(profile: Profile) -> None:
    job = Job("train.py", interpreter=torch_python(), plain=True)
    try:
        job.start()
        favoured(job.pid)
        answer = profile("--pid", str(job.pid), *GENTLE, "--duration", "500ms", "--format", "json")
        assert answer.code in (0, 1, 3), answer.err
        assert "Traceback" not in answer.err
        found = data(answer)
        assert found["targets"][0]["clean"] is True
        assert found["targets"][0]["left"] == []
        assert "compiling-in-loop" not in rules(found)
        job.wait("ready")
    finally:
        job.__exit__(None, None, None)
