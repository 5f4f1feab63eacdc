"""``gpudiag profile`` end to end on real jobs: the planted function is named, the job goes on, nothing is left behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.assistant.capture.profiled import hung_rank, roots
from tests.command_server import Command, CommandServer
from tests.conftest import Answer, Gpudiag
from tests.live_jobs import Job, Ranks, precede, torch_python

pytestmark = [pytest.mark.machine, pytest.mark.usefixtures("alone")]
Profile = Callable[..., Answer]

LOAD = ("others-take-the-cpus", "driving-thread-waits-for-cpu")  # true of a busy machine, and no fault of the job


@pytest.fixture
def profile(gpudiag: Gpudiag, tmp_path: Path) -> Profile:
    """``gpudiag profile`` with a data folder of its own."""

    def run(*words: str, **more: Any) -> Answer:
        return gpudiag("profile", *words, env={"XDG_DATA_HOME": str(tmp_path)}, **more)

    return run


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """A training loop whose loader is slow; it rests between captures, and comes before other work."""
    captures = tmp_path / "gpudiag/captures"
    with Job("train.py", "--fault", "data", interpreter=torch_python(), captures=captures) as running:
        precede(running.pid, -12)
        yield running


def data(answer: Answer) -> dict[str, Any]:
    """The JSON of an answer."""
    assert answer.out, answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def outcomes(found: dict[str, Any], target: int = 0) -> dict[str, str]:
    """What became of each part."""
    return {p["item"]: p["outcome"] for p in found["targets"][target]["parts"]}


def test_without_a_terminal_and_without_yes_only_the_gentle_part_is_done(profile: Profile, job: Job) -> None:
    answer = profile("--pid", str(job.pid), "--duration", "500ms", "--format", "json")
    found = data(answer)
    assert outcomes(found) == {"stacks": "ok", "cpu": "ok", "torch": "declined"}
    assert "--yes" in answer.err
    assert any(line.endswith("--yes") for line in found["next"])
    assert "USDT" not in job.output


def test_with_consent_operators_come_from_inside_a_fresh_interpreter_and_the_job_goes_on(
    profile: Profile, tmp_path: Path
) -> None:
    with Job("train.py", "--fault", "data", interpreter=torch_python(), plain=True) as job:
        answer = profile(
            "--pid", str(job.pid), "--yes", "--duration", "700ms", "-o", str(tmp_path / "out"), "--format", "json"
        )
        found = data(answer)
        assert outcomes(found)["torch"] in ("ok", "partial"), found
        own = [rule for rule in roots(found) if rule not in LOAD]
        assert own[:1] == ["batches-made-in-training-process"], roots(found)
        assert "decode_slowly" in json.dumps(found["diagnosis"]["findings"])
        assert found["targets"][0]["iterations"]["count"] > 0
        (trace,) = found["traces"]
        assert Path(trace).is_file()
        assert Path(trace).parent == tmp_path / "out"
        job.advance(5)
    assert not [p for p in Path("/tmp").glob("gpudiag-*") if p.stat().st_uid == os.getuid() and str(job.pid) in p.name]
    raw = json.loads((tmp_path / "out" / "capture.json").read_text())
    assert [o for o in raw["observations"] if o["fact"] == "operator.hot"]
    after = raw["targets"][0]["aftermath"]["after"]
    assert after["alive"]
    assert after["tracer"] == 0


def test_from_outside_nothing_is_touched_and_what_is_shown_again_is_what_was_shown(
    profile: Profile, gpudiag: Gpudiag, job: Job
) -> None:
    before = job.iterations
    answer = profile("--pid", str(job.pid), "--duration", "1s", "--with", "stacks,cpu", "--format", "json")
    first = data(answer)
    assert answer.code == 1, answer.err
    assert outcomes(first) == {"stacks": "ok", "cpu": "ok"}
    assert first["targets"][0]["clean"] is True
    assert first["targets"][0]["left"] == []
    assert "decode_slowly" in json.dumps(first["diagnosis"]["findings"])
    assert first["targets"][0]["activities"]["stack.data_work"] > 20
    assert job.alive
    assert job.iterations > before
    assert "USDT" not in job.output  # no profiler ran
    again = data(profile("show", "last", "--format", "json"))
    assert again == first
    listed = data(profile("list", "--format", "json"))
    assert [c["id"] for c in listed["captures"]] == [first["id"]]
    page = profile("show", first["id"], "--format", "html").out
    assert "decode_slowly" in page
    assert page.startswith("<!doctype html>")
    # What the verdict names depends on what else the machine does; that it is the same everywhere does not.
    verdict = "".join(first["verdict"]["text"].split())
    for shape in ("text", "markdown"):
        shown = profile("show", first["id"], "--format", shape).out
        assert verdict in "".join(shown.replace("\\", "").split()), shape
    checked = gpudiag("check", "--input", f"{first['folder']}/capture.json", "--no-history")
    cause = verdict.partition("):")[2].partition(".Itexplains")[0]
    assert cause
    assert cause in "".join(checked.out.split())
    assert profile("delete", first["id"]).code == 2  # nobody to ask
    assert profile("delete", first["id"], "--yes").code == 0
    assert data(profile("list", "--format", "json"))["captures"] == []


def test_a_dry_run_says_what_would_be_and_touches_nothing(profile: Profile, job: Job, tmp_path: Path) -> None:
    answer = profile("--pid", str(job.pid), "--dry-run", "--format", "json")
    found = data(answer)
    assert answer.code == 0
    assert [s["item"] for s in found["targets"][0]["steps"]] == ["stacks", "cpu", "torch"]
    assert all(c["says"] for c in found["costs"])
    assert not (tmp_path / "gpudiag").exists()
    text = profile("--pid", str(job.pid), "--dry-run", "--with", "stacks,kernels")
    assert "kernels" in text.out


def test_a_job_that_hangs_in_fresh_interpreters_is_looked_at_and_the_guilty_rank_named(profile: Profile) -> None:
    with Ranks("--hang", "1", "--hang-after", "20", plain=True) as ranks:
        ranks.jobs[1].wait("hung")
        time.sleep(0.5)
        answer = profile("--pid", str(ranks.jobs[0].pid), "--all-ranks", "--yes", "--format", "json")
        found = data(answer)
        assert answer.code == 1
        hung_rank("stuck_in_data_loader")(found)
        assert {p["outcome"] for t in found["targets"] for p in t["parts"] if p["item"] == "torch"} == {"refused"}
        assert all(j.alive for j in ranks.jobs)
        assert not any("USDT" in j.output for j in ranks.jobs)


@contextmanager
def capturing(server: CommandServer, job: Job, tmp_path: Path, environment: dict[str, str]) -> Iterator[Command]:
    """A capture of ten seconds that has begun."""
    words = ("profile", "--pid", str(job.pid), "--with", "stacks,cpu", "--duration", "10s", "--format", "json")
    with server.start(words, env=environment | {"XDG_DATA_HOME": str(tmp_path)}) as command:
        try:
            until = time.monotonic() + 60
            while not _children(command.pid, "py-spy"):
                assert command.poll() is None
                assert time.monotonic() < until
                time.sleep(0.1)
            time.sleep(0.5)
            job.advance(10)
            yield command
        finally:
            command.kill()


def test_ctrl_c_ends_the_capture_and_keeps_what_was_got(
    command_server: CommandServer, job: Job, tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    with capturing(command_server, job, tmp_path, clean_environment) as command:
        spies = _children(command.pid, "py-spy")
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=60)
    assert command.returncode == 130, err
    found = json.loads(out)
    assert outcomes(found)["stacks"] == "ok"
    assert found["seconds"] < 10
    assert not [p for p in spies if Path(f"/proc/{p}").exists()]
    job.advance(3)


def _children(pid: int, name: str) -> list[int]:
    """Processes called `name` below `pid`."""
    out = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = path.read_text().rpartition(")")
            if name in head and int(rest.split()[1]) == pid:
                out.append(int(path.parent.name))
        except (OSError, ValueError):
            continue
    return out


@pytest.mark.parametrize(("said", "torch"), [("n", "declined"), ("y", "ok")], ids=["no", "yes"])
def test_on_a_terminal_the_cost_is_said_and_consent_is_asked(
    command_server: CommandServer, job: Job, tmp_path: Path, clean_environment: dict[str, str], said: str, torch: str
) -> None:
    ours, theirs = pty.openpty()
    words = ("profile", "--pid", str(job.pid), "--duration", "500ms", "--format", "json")
    shown = tmp_path / "shown"
    with shown.open("wb") as out:
        environment = clean_environment | {"XDG_DATA_HOME": str(tmp_path)}
        command = command_server.begin(words, [theirs, out.fileno(), theirs], env=environment)
    asked = ""
    try:
        os.close(theirs)
        while "[y/N]" not in asked:
            asked += os.read(ours, 4096).decode()
        assert "USDT" not in job.output  # nothing ran before the answer
        os.write(ours, f"{said}\n".encode())
        with ThreadPoolExecutor(1) as pool:
            rest = pool.submit(_drain, ours)
            command.wait(120)
            rest.result()
    finally:
        command.kill()
        os.close(ours)
    assert "150 ms" in asked
    assert "stderr" in asked
    got = outcomes(json.loads(shown.read_text()))
    assert got["stacks"] == "ok"
    assert got["torch"] in (torch, "partial" if torch == "ok" else torch)
    assert ("USDT" in job.output) == (said == "y")


def _drain(terminal: int) -> None:
    """Reads until the other end is closed: who writes to a terminal that nobody reads waits."""
    with suppress(OSError):
        while os.read(terminal, 4096):
            pass


def test_iterations_are_counted_with_their_loss(profile: Profile, job: Job) -> None:
    answer = profile(
        "--pid",
        str(job.pid),
        "--yes",
        "--with",
        "loss,gradnorm",
        "--iterations",
        "5",
        "--skip",
        "2",
        "--format",
        "json",
    )
    found = data(answer)
    assert {outcomes(found)[i] for i in ("loss", "gradnorm")} == {"ok"}, found["targets"]
    raw = json.loads((Path(found["folder"]) / "capture.json").read_text())
    iterations = raw["targets"][0]["iterations"]
    assert len(iterations["ends"]) >= 5
    assert any(isinstance(v, float) for v in iterations["loss"])
    assert any(isinstance(v, float) for v in iterations["gradnorm"])
    assert "USDT" not in job.output
    job.advance(3)
