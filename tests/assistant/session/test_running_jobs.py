""" "Why is pid 4242 slow?", asked of real jobs: consent first, then the function; the whole job; what is not there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from probes.live import probes
from tests.assistant.session.terminal_lab import Terminal
from tests.command_server import CommandServer
from tests.conftest import Answer, Gpudiag
from tests.live_jobs import JOBS, Job, Ranks, torch_python

pytestmark = pytest.mark.machine
NEEDED = ("processes", "system", "driver-stack")
FEW = [word for spec in probes() if spec.default and spec.name not in NEEDED for word in ("--without", spec.name)]
NOBODY = 65534


class Asker:
    """`gpudiag ask` with a conversation of its own."""

    def __init__(self, gpudiag: Gpudiag, folder: Path) -> None:
        self._run = gpudiag
        self.env = {"GPUDIAG_STATE_DIR": str(folder / "state"), "GPUDIAG_HISTORY_URL": "off", "COLUMNS": "100"}

    def ask(self, sentence: str, *words: str) -> Answer:
        """One turn as people read it."""
        return self._run("ask", "--thread", "t", sentence, *FEW, *words, env=self.env)

    def data(self, sentence: str, *words: str) -> tuple[int, dict[str, Any]]:
        """One turn: its exit code, and its JSON."""
        answer = self.ask(sentence, "--format", "json", *words)
        assert answer.out, answer.err
        found: dict[str, Any] = json.loads(answer.out)
        return answer.code, found


@pytest.fixture
def talk(gpudiag: Gpudiag, tmp_path: Path) -> Asker:
    """A conversation."""
    return Asker(gpudiag, tmp_path)


@contextmanager
def slow(script: str = "train.py", fault: str = "python", **more: Any) -> Iterator[Job]:
    """A loop that spends most of its time in one function, and mostly rests until it is `busy`."""
    with Job(script, "--fault", fault, "--slow", "0.08", interpreter=torch_python(), pause=0.02, **more) as job:
        _pause(0.5, job)
        yield job


def copied(folder: Path, name: str) -> str:
    """The path of train.py under a name that no other process of this machine has."""
    shutil.copy(JOBS / "counters.py", folder)
    return str(shutil.copy(JOBS / "train.py", folder / name))


@contextmanager
def busy(*jobs: Job) -> Iterator[None]:
    """While somebody looks into them."""
    _pause(0.02, *jobs)
    yield
    _pause(0.5, *jobs)


def _pause(seconds: float, *jobs: Job) -> None:
    for job in jobs:
        job.execute(f"os.environ['GPUDIAG_JOB_PAUSE'] = '{seconds}'")


@contextmanager
def sleeper() -> Iterator[int]:
    """A process that is no Python."""
    child = subprocess.Popen(["sleep", "600"])
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


def rules(found: dict[str, Any]) -> set[str]:
    """The rules of the findings."""
    return {f["rule"]["id"] if isinstance(f["rule"], dict) else f["rule"] for f in found["findings"]}


def test_nothing_is_looked_into_before_somebody_agrees_and_then_the_function_is_named(
    talk: Asker, tmp_path: Path
) -> None:
    script = copied(tmp_path, "w3_unique_loop.py")
    with slow(script) as job:
        first = talk.ask(f"why is pid {job.pid} slow?")
        assert first.code == 3, first.err
        assert f"Run job-stacks on process {job.pid} (w3_unique_loop.py)" in " ".join(first.out.split())
        assert "the job is not stopped" in " ".join(first.out.split())
        assert "gpudiag ask --thread t yes" in first.err
        assert "tokenize_slowly" not in first.out
        before = job.iterations
        with busy(job):
            second = talk.ask("yes")
        job.advance()
        assert job.iterations > before
        said = " ".join(second.out.split())
        assert second.code == 1, second.err
        assert "Python code in the loop takes the time: in burn" in said
        assert "tokenize_slowly (w3_unique_loop.py" in said
        assert "explains" in said
        assert "FIX_CODE" in said
        assert "Run job-trace" not in said, "a cause was found: nobody is asked to let something run inside"

        assert talk.ask("is it the gil?").out.startswith("No: ")
        kept = tmp_path / "answer.md"
        assert talk.ask(f"save this to {kept}").code == 0
        assert "tokenize" in kept.read_text()

        # by its name, and when there are two of that name
        code, found = talk.data("why is w3_unique_loop.py slow?", "--yes")
        assert code == 1
        assert "python-bound-loop" in rules(found)
        rows = {r["id"]: r for r in found["reply"]["data"]["differential"]}
        assert rows["python-in-loop"]["state"] == "for"
        assert rows["threads-share-interpreter"]["state"] == "against"
        with slow(script) as two:
            asked = talk.ask("why is w3_unique_loop.py slow?", "--yes", "--new").out
            assert asked.startswith("Which one: ")
            assert all(f"{j.pid} (w3_unique_loop.py)" in " ".join(asked.split()) for j in (job, two))
            assert talk.ask("why is w3_unique_loop slow?", "--yes").code in (1, 3)


def test_yes_agrees_beforehand_to_a_look_at_the_stack(talk: Asker) -> None:
    with Job("two_functions.py") as job:
        shown = talk.ask(f"show me the stack of pid {job.pid}", "--yes").out
    assert "spin (two_functions.py" in shown or "rest (two_functions.py" in shown, shown
    assert "Where the time went" in shown
    assert "hypothesis" not in shown
    assert "Question" not in shown


def test_all_ranks_of_the_job_are_looked_at_and_the_late_one_is_named(talk: Asker) -> None:
    with Ranks("--slow-rank", "1", "--slow", "0.06", pause=0.02) as job:
        _pause(0.5, *job.jobs)
        pids = [j.pid for j in job.jobs]
        asked = " ".join(talk.ask(f"why is pid {pids[0]} slow?").out.split())
        assert "ranks 0, 1 of job" in asked
        with busy(*job.jobs):
            said = " ".join(talk.ask("yes").out.split())
        assert all(f"rank {rank}, {pid}" in said for rank, pid in enumerate(pids))
        assert "augment_slowly (ranks.py" in said
        held = " ".join(talk.ask("who holds it up?").out.split())
        assert held.startswith("The others wait for rank 1")


def test_a_job_that_hangs_tells_the_guilty_rank(talk: Asker) -> None:
    with Ranks("--hang", "1", "--hang-after", "5") as job:
        job.jobs[1].wait("hung")
        said = " ".join(talk.ask(f"pid {job.jobs[0].pid} hangs, why?", "--yes").out.split())
        assert f"Rank 1 (pid {job.jobs[1].pid}): The job hangs because of this rank" in said
        assert "stuck_in_data_loader (ranks.py" in said
        assert "is in all_reduce" in said
        assert "waits for a lock" in said
        assert all(j.alive for j in job.jobs)


def test_what_is_not_there_is_said_and_nobody_is_asked(talk: Asker) -> None:
    answer = talk.ask("why is pid 4194303 slow?", "--yes")
    assert answer.code == 3
    assert answer.out.startswith("No process 4194303 was seen.")
    assert "Question" not in answer.out


def test_a_process_that_is_no_python(talk: Asker) -> None:
    with sleeper() as pid:
        answer = talk.ask(f"what is pid {pid} doing?", "--yes")
        said = " ".join(answer.out.split())
        assert f"Process {pid} (sleep) stands still" in said, said
        assert "Traceback" not in answer.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_process_is_refused_with_the_reason(
    talk: Asker, clean_environment: dict[str, str], gpudiag: Gpudiag
) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not here")
    gpudiag("--version")  # all is compiled by now, for him too
    with tempfile.TemporaryDirectory(prefix="gpudiag-home-") as home, Job("two_functions.py") as job:
        os.chown(home, NOBODY, NOBODY)
        shutil.copytree(clean_environment["GPUDIAG_CACHE_DIR"], f"{home}/cache")
        env = (
            clean_environment
            | talk.env
            | {"HOME": home, "GPUDIAG_STATE_DIR": home, "GPUDIAG_CACHE_DIR": f"{home}/cache"}
        )
        argv = ["setpriv", "--reuid", f"{NOBODY}", "--regid", f"{NOBODY}", "--clear-groups", sys.executable, "-m", "assistant",
                "ask", "--yes", f"why is pid {job.pid} slow?", *FEW]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120, check=False)
    if "No module named" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("another user cannot run this interpreter")
    assert "Traceback" not in done.stderr, done.stderr
    assert "ould not be read" in done.stdout, done.stdout
    busy = "Other processes take the CPUs" in " ".join(done.stdout.split())  # told of a machine where that is so
    assert done.returncode == (1 if busy else 3), done.stdout
    assert "spin" not in done.stdout


def test_on_a_terminal_the_question_is_answered_there_and_a_pid_that_is_gone_is_told(
    command_server: CommandServer, talk: Asker, clean_environment: dict[str, str]
) -> None:
    with slow(fault="data") as job:
        words = ["ask", f"why are pids {job.pid} and 4194303 slow?", *FEW]
        with Terminal(command_server, words, clean_environment | talk.env) as screen:
            screen.until("[y/N]")
            with busy(job):
                screen.type("y\r")
                assert screen.end() == 1
            seen = " ".join(screen.seen.split())
    assert "No process 4194303 was seen." in seen
    assert "decode_slowly" in seen


def test_a_recorded_talk_is_held_again_without_the_job(talk: Asker, gpudiag: Gpudiag, tmp_path: Path) -> None:
    with slow(copied(tmp_path, "w5_unique_talk.py"), env={"WANDB_API_KEY": "secret-of-the-job"}) as job:
        lines = (
            "why is w5_unique_talk.py slow?", "yes", "is it the gil?", "why not the data loader?", "what if the loader had more workers?",
            "why?", "which function?", f"profile pid {job.pid}", "is it better now?", "为什么？", f"pid {job.pid} 为什么慢？",
        )  # fmt: skip
        with busy(job):
            answer = gpudiag("chat", "--record", "talk.txt", stdin="\n".join(lines) + "\n", cwd=tmp_path, env=talk.env)
        assert answer.code == 0, answer.err
    kept = (tmp_path / "talk.txt").read_text()
    said = {(part := turn.partition("\n"))[0]: part[2] for turn in kept.split("\n> ")[1:]}
    assert tuple(said) == lines
    assert said["is it the gil?"].startswith("No: ")
    assert said["why not the data loader?"].startswith("Because ")
    assert said["what if the loader had more workers?"].startswith("It would hardly help")
    assert "python-bound-loop" in said["why?"] or "others-take-the-cpus" in said["why?"]
    assert "py-spy record" in " ".join(said["which function?"].split())
    offered = " ".join(said[f"profile pid {job.pid}"].split())
    assert f"gpudiag profile --pid {job.pid}" in offered
    assert "asks before anything runs inside" in offered
    again = said["is it better now?"]
    assert "tokenize_slowly" in again
    assert "Question" not in again, "what was agreed to and disturbs nothing is not asked for twice"
    assert "before" in again
    assert "still: " in again
    chinese = said[f"pid {job.pid} 为什么慢？"]
    assert "Python 代码耗时" in chinese
    assert "已排除" in chinese
    assert "循环在等数据" in chinese
    held = gpudiag("chat", "--replay", "talk.txt", cwd=tmp_path, env=talk.env)
    assert held.code == 0, held.out
    for file in tmp_path.glob("talk*"):
        if file.is_file():
            assert b"secret-of-the-job" not in file.read_bytes()
