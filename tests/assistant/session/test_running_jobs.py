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

from tests.assistant.session.terminal_lab import Terminal
from tests.command_server import CommandServer
from tests.conftest import Answer, Gpudiag
from tests.live_jobs import JOBS, Job, Ranks, torch_python

pytestmark = pytest.mark.machine
QUIET = ("services", "filesystems", "rdma", "dcgm-health", "service-log", "fabric-manager-log", "kernel-log", "pci")
FEW = [word for name in QUIET for word in ("--without", name)]
NOBODY = 65534


class Asker:
    """`gpudiag ask` with a conversation of its own."""

    def __init__(self, gpudiag: Gpudiag, folder: Path) -> None:
        self._run = gpudiag
        self.env = {"GPUDIAG_STATE_DIR": str(folder / "state"), "GPUDIAG_HISTORY_URL": "off", "COLUMNS": "100"}

    def ask(self, sentence: str, *words: str) -> Answer:
        """One turn as people read it."""
        return self._run("ask", sentence, *FEW, *words, env=self.env)

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


@pytest.fixture
def slow() -> Iterator[Job]:
    """A loop that spends its time in Python: begun for each test, for it takes a processor while it runs."""
    with Job("train.py", "--fault", "python", "--slow", "0.08", interpreter=torch_python()) as job:
        yield job


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


def test_nothing_is_looked_into_before_somebody_agrees_and_then_the_function_is_named(talk: Asker, slow: Job) -> None:
    first = talk.ask(f"why is pid {slow.pid} slow?")
    assert first.code == 3, first.err
    assert f"Run job-stacks on process {slow.pid} (train.py)" in " ".join(first.out.split())
    assert "the job is not stopped" in " ".join(first.out.split())
    assert "gpudiag ask yes" in first.err
    assert "tokenize_slowly" not in first.out
    before = slow.iterations
    second = talk.ask("yes")
    said = " ".join(second.out.split())
    assert second.code == 1, second.err
    assert "Python code in the loop takes the time: in burn" in said
    assert "tokenize_slowly (train.py" in said
    assert "explains" in said
    assert "FIX_CODE" in said
    assert "Run job-trace" not in said, "a cause was found: nobody is asked to let something run inside"
    slow.advance()
    assert slow.iterations > before

    assert talk.ask("is it the gil?").out.startswith("No: ")
    assert talk.ask("why not the data loader?").out.startswith("Because ")
    assert talk.ask("what if the loader had more workers?").out.startswith("It would hardly help")
    assert "python-bound-loop" in talk.ask("why?").out or "others-take-the-cpus" in talk.ask("why?").out
    assert "py-spy record" in " ".join(talk.ask("which function?").out.split())
    again = talk.ask("is it better now?")
    assert "Question" not in again.out, "what was agreed to and disturbs nothing is not asked for twice"
    assert "before" in again.out
    assert "still: " in again.out
    kept = Path(talk.env["GPUDIAG_STATE_DIR"]).parent / "answer.md"
    assert talk.ask(f"save this to {kept}").code == 0
    assert "tokenize" in kept.read_text()


def test_yes_agrees_beforehand_and_the_table_is_of_the_application(talk: Asker, slow: Job) -> None:
    code, found = talk.data(f"pid {slow.pid} 为什么慢？", "--yes")
    assert code == 1
    assert "python-bound-loop" in rules(found)
    rows = {r["id"]: r for r in found["reply"]["data"]["differential"]}
    assert rows["python-in-loop"]["state"] == "for"
    text = talk.ask(f"pid {slow.pid} 为什么慢？", "--yes").out
    assert "Python 代码耗时" in text
    assert "已排除" in text
    assert "循环在等数据" in text
    assert rows["threads-share-interpreter"]["state"] == "against"


def test_a_script_by_its_name_and_two_of_them(talk: Asker, tmp_path: Path) -> None:
    for name in (*("counters.py", "train.py"), "w3_unique_loop.py"):
        shutil.copy(JOBS / ("train.py" if name.startswith("w3") else name), tmp_path / name)
    script = str(tmp_path / "w3_unique_loop.py")
    with Job(script, "--fault", "data", "--slow", "0.05", interpreter=torch_python()) as one:
        code, found = talk.data("why is w3_unique_loop.py slow?", "--yes")
        assert code == 1
        assert "batches-made-in-training-process" in rules(found)
        with Job(script, interpreter=torch_python()) as two:
            asked = talk.ask("why is w3_unique_loop.py slow?", "--yes", "--new").out
            assert asked.startswith("Which one: ")
            assert all(f"{job.pid} (w3_unique_loop.py)" in " ".join(asked.split()) for job in (one, two))
            assert talk.ask("why is w3_unique_loop slow?", "--yes").code in (1, 3)


def test_all_ranks_of_the_job_are_looked_at_and_the_late_one_is_named(talk: Asker) -> None:
    with Ranks("--slow-rank", "1", "--slow", "0.06") as job:
        pids = [j.pid for j in job.jobs]
        asked = " ".join(talk.ask(f"why is pid {pids[0]} slow?").out.split())
        assert "ranks 0, 1 of job" in asked
        said = " ".join(talk.ask("yes").out.split())
        assert all(f"rank {rank}, {pid}" in said for rank, pid in enumerate(pids))
        assert "augment_slowly (ranks.py" in said
        held = " ".join(talk.ask("who holds it up?").out.split())
        assert held.startswith("The others wait for rank 1")


def test_a_job_that_hangs_tells_the_guilty_rank(talk: Asker) -> None:
    with Ranks("--hang", "1", "--hang-after", "5") as job:
        job.jobs[1].wait("hung")
        said = " ".join(talk.ask(f"pid {job.jobs[0].pid} hangs, why?", "--yes").out.split())
        assert f"Process {job.jobs[1].pid} (ranks.py)" in said
        assert "stuck_in_data_loader (ranks.py" in said
        assert "stands in all_reduce" in said
        assert "waits for a lock" in said
        assert all(j.alive for j in job.jobs)


def test_what_is_not_there_is_said_and_nobody_is_asked(talk: Asker) -> None:
    answer = talk.ask("why is pid 4194303 slow?", "--yes")
    assert answer.code == 3
    assert answer.out.startswith("No process 4194303 was seen.")
    assert "Question" not in answer.out


def test_one_of_two_pids_is_gone_the_other_is_looked_into(talk: Asker, slow: Job) -> None:
    said = " ".join(talk.ask(f"why are pids {slow.pid} and 4194303 slow?", "--yes").out.split())
    assert "No process 4194303 was seen." in said
    assert "tokenize_slowly" in said


def test_a_process_that_is_no_python(talk: Asker) -> None:
    with sleeper() as pid:
        answer = talk.ask(f"what is pid {pid} doing?", "--yes")
        said = " ".join(answer.out.split())
        assert f"Process {pid} (sleep) stands still" in said, said
        assert "Traceback" not in answer.err


def test_show_the_stack_and_profile_a_pid(talk: Asker, slow: Job) -> None:
    shown = talk.ask(f"show me the stack of pid {slow.pid}", "--yes").out
    assert "tokenize_slowly" in shown
    assert "Where the time went" in shown
    assert "hypothesis" not in shown
    offered = " ".join(talk.ask(f"profile pid {slow.pid}", "--yes").out.split())
    assert f"gpudiag profile --pid {slow.pid}" in offered
    assert "asks before anything runs inside" in offered


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_process_is_refused_with_the_reason(
    talk: Asker, slow: Job, clean_environment: dict[str, str], gpudiag: Gpudiag
) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not here")
    gpudiag("--version")  # all is compiled by now, for him too
    with tempfile.TemporaryDirectory(prefix="gpudiag-home-") as home:
        os.chown(home, NOBODY, NOBODY)
        shutil.copytree(clean_environment["GPUDIAG_CACHE_DIR"], f"{home}/cache")
        env = (
            clean_environment
            | talk.env
            | {"HOME": home, "GPUDIAG_STATE_DIR": home, "GPUDIAG_CACHE_DIR": f"{home}/cache"}
        )
        argv = ["setpriv", "--reuid", f"{NOBODY}", "--regid", f"{NOBODY}", "--clear-groups", sys.executable, "-m", "assistant",
                "ask", "--yes", f"why is pid {slow.pid} slow?", *FEW]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120, check=False)
    if "No module named" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("another user cannot run this interpreter")
    assert "Traceback" not in done.stderr, done.stderr
    assert "ould not be read" in done.stdout, done.stdout
    assert done.returncode == 3
    assert "tokenize_slowly" not in done.stdout


def test_on_a_terminal_the_question_is_answered_there(
    command_server: CommandServer, talk: Asker, slow: Job, clean_environment: dict[str, str]
) -> None:
    with Terminal(
        command_server, ["ask", f"why is pid {slow.pid} slow?", *FEW], clean_environment | talk.env
    ) as screen:
        screen.until("[y/N]")
        screen.type("y\r")
        assert screen.end() == 1
        assert "tokenize_slowly" in screen.seen


def test_a_recorded_talk_is_held_again_without_the_job(talk: Asker, gpudiag: Gpudiag, tmp_path: Path) -> None:
    with Job("train.py", "--fault", "python", "--slow", "0.08", interpreter=torch_python(),
             env={"WANDB_API_KEY": "secret-of-the-job"}) as job:  # fmt: skip
        said = f"why is pid {job.pid} slow?\nyes\nis it the gil?\nwhich function?\nagain\n为什么？\n"
        answer = gpudiag("chat", "--record", "talk.txt", stdin=said, cwd=tmp_path, env=talk.env)
        assert answer.code == 0, answer.err
    kept = (tmp_path / "talk.txt").read_text()
    assert "tokenize_slowly" in kept
    held = gpudiag("chat", "--replay", "talk.txt", cwd=tmp_path, env=talk.env)
    assert held.code == 0, held.out
    for file in tmp_path.glob("talk*"):
        if file.is_file():
            assert b"secret-of-the-job" not in file.read_bytes()
