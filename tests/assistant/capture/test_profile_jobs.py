"""``gpudiag profile`` on jobs with planted faults: the class, the function or rank, and the order come out right; healthy jobs stay quiet.

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

from tests.command_server import Command, CommandServer
from tests.conftest import ROOT, Answer, Gpudiag
from tests.live_jobs import Job, Ranks, precede, python, torch_python
from tests.probes.capture.loads import put, quota

pytestmark = [pytest.mark.machine, pytest.mark.usefixtures("alone")]
GENTLE = ("--with", "stacks,cpu")
Profile = Callable[..., Answer]
Found = dict[str, Any]


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


def favoured(*pids: int) -> None:
    """Jobs that come before other work, and before the capture."""
    for pid in pids:
        precede(pid, -12)


def data(answer: Answer) -> Found:
    """The JSON of an answer."""
    assert answer.out, answer.err
    found: Found = json.loads(answer.out)
    return found


def captured(
    profile: Profile, pids: list[int], check: Callable[[Found], None], *words: str, seconds: float = 0.7
) -> Found:
    """What a short capture says, once it passes `check`; made again as people make it, twice, when it does not (see above)."""

    def made(duration: float) -> Found:
        line = (
            "--pid",
            ",".join(map(str, pids)),
            *(words or GENTLE),
            "--duration",
            f"{duration:g}s",
            "--format",
            "json",
        )
        found = data(profile(*line))
        check(found)
        return found

    for duration in (seconds, 3 * seconds):
        with suppress(AssertionError):
            return made(duration)
    return made(3 * seconds)


def about(found: Found) -> list[Found]:
    """The findings on the processes, jobs and ranks of a capture, in the order of the answer."""
    pids, jobs = {str(t["pid"]) for t in found["targets"]}, {t["job"] for t in found["targets"]}
    scoped = {"process": pids, "job": jobs, "rank": {str(t["rank"]) for t in found["targets"]}}
    return [f for f in found["diagnosis"]["findings"]
            if f["subject"]["id"] in scoped.get(f["subject"]["scope"], ()) and f["grade"] != "ruled_out"]  # fmt: skip


def roots(found: Found) -> dict[str, float]:
    """Rules of warning and worse that are explained by none, with the share that they explain; the most first."""
    seen = {f["rule"]: (f["impact"] or {}).get("share", 0.0) for f in about(found) if f["role"] == "root" and f["severity"] != "info"}  # fmt: skip
    return dict(sorted(seen.items(), key=lambda pair: -pair[1]))


def rules(found: Found) -> set[str]:
    """All rules that matched on what was captured."""
    return {f["rule"] for f in about(found)}


def said(found: Found, rule: str) -> str:
    """The title of a finding and its evidence."""
    return " ".join(
        json.dumps([f["title"], f["because"], f["action"]["text"]]) for f in about(found) if f["rule"] == rule
    )


FAULTS = {
    "data": ("batches-made-in-training-process", "decode_slowly", 0.3),
    "data-workers": ("loader-workers-busy", "decode_slowly", 0.2),
    "python": ("python-bound-loop", "tokenize_slowly", 0.3),
    "gil": ("interpreter-lock-contended", "score_in_background", 0.2),
    "sync": ("values-read-one-by-one", "read_every_value", 0.05),
    "checkpoint": ("checkpoint-in-loop", "save_checkpoint", 0.3),
    "logging": ("logging-in-loop", "log_metrics", 0.1),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_the_planted_fault_is_the_root_and_its_function_is_named(profile: Profile, fault: str, captures: Path) -> None:
    rule, function, share = FAULTS[fault]

    def check(found: Found) -> None:
        assert next(iter(roots(found)), None) == rule, roots(found)
        assert roots(found)[rule] >= share
        assert function in said(found, rule)
        assert function in found["verdict"]["text"]
        assert found["verdict"]["state"] == "warning"

    plain = fault == "data"  # of one kind the job starts an interpreter itself: nothing depends on how the others begin
    words = ("--fault", fault, "--slow", "0.03", "--workers", "1", "--reads", "2000")
    with Job("train.py", *words, interpreter=torch_python(), plain=plain, captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], check)
        text = profile("show", "last").out
        assert function in text.split("\n\n")[0].replace("\n ", "")
        chinese = profile("show", "last", "--lang", "zh").out
        assert function in chinese.split("\n\n")[0].replace("\n ", "")


@pytest.mark.parametrize("fault", ["python", "data"])
def test_with_what_runs_inside_the_same_is_said(profile: Profile, fault: str, captures: Path) -> None:
    rule, function, _ = FAULTS[fault]

    def check(found: Found) -> None:
        assert next(iter(roots(found)), None) == rule, roots(found)
        assert function in found["verdict"]["text"]
        assert found["targets"][0]["parts"][2]["outcome"] in ("ok", "partial"), found["targets"][0]["parts"]

    with Job("train.py", "--fault", fault, "--slow", "0.03", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], check, "--yes")
        job.advance(3)


@pytest.mark.parametrize("words", [GENTLE, ("--yes",)], ids=["outside", "inside"])
def test_a_healthy_job_stays_quiet(profile: Profile, words: tuple[str, ...], captures: Path) -> None:
    def check(found: Found) -> None:
        assert roots(found) == {}, found["verdict"]
        assert found["verdict"]["state"] in ("ok", "info")

    with Job("train.py", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], check, *words)
        job.advance(3)


def test_several_batches_a_step_are_told_and_no_fault(profile: Profile, captures: Path) -> None:
    def check(found: Found) -> None:
        assert roots(found) == {}, found["verdict"]
        assert "gradients-accumulated" in rules(found)

    with Job("train.py", "--fault", "accumulate", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], check, "--yes")


def test_of_tiny_batches_the_optimizer_is_what_is_paid_for(profile: Profile, captures: Path) -> None:
    def check(found: Found) -> None:
        assert roots(found) == {}, found["verdict"]
        assert "larger batches" in said(found, "optimizer-share-high")

    with Job("train.py", "--fault", "tiny-batch", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], check)


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ("data,python", {"batches-made-in-training-process": "decode_slowly", "python-bound-loop": "tokenize_slowly"}),
        ("python,checkpoint", {"python-bound-loop": "tokenize_slowly", "checkpoint-in-loop": "save_checkpoint"}),
    ],
    ids=["data-python", "python-checkpoint"],
)  # fmt: skip
def test_of_two_faults_both_are_found_and_the_dearer_stands_first(
    profile: Profile, faults: str, expected: dict[str, str], captures: Path
) -> None:
    def check(found: Found) -> None:
        shares = roots(found)
        assert set(expected) <= set(shares), shares
        for rule, function in expected.items():
            assert function in said(found, rule)
            assert function in found["verdict"]["text"], found["verdict"]
        first, second = sorted(expected, key=lambda r: -shares[r])
        text = found["verdict"]["text"]
        assert text.index(expected[first]) < text.index(expected[second])

    with Job("train.py", "--fault", faults, "--slow", "0.015", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], check)


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


def test_reads_that_miss_the_page_cache_are_why_the_loader_is_late(profile: Profile, captures: Path) -> None:
    def check(found: Found) -> None:
        assert next(iter(roots(found)), None) == "reads-miss-page-cache", roots(found)
        assert "loader-workers-wait-for-storage" not in roots(found)
        assert "read_shard" in found["verdict"]["text"]

    with Job("reading.py", "--workers", "2", "--size", "64", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], check)


def test_reads_of_the_thread_that_trains_are_told_with_what_they_cost(profile: Profile, captures: Path) -> None:
    """On a fast disk half of a read is copying: then workers of the loader are the first thing to try, and the cache the second."""

    def check(found: Found) -> None:
        assert roots(found).get("reads-miss-page-cache", 0.0) >= 0.1, roots(found)
        assert next(iter(roots(found))) in ("reads-miss-page-cache", "batches-made-in-training-process")
        assert "read_shard" in found["verdict"]["text"]
        assert "page cache" in found["verdict"]["text"]

    with Job("reading.py", "--size", "64", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        captured(profile, [job.pid], check)


@pytest.mark.parametrize("options", [("--threads", "6"), ("--blas", "16")], ids=["threads", "blas"])
def test_threads_of_its_own_that_crowd_the_cpus_are_the_root(
    profile: Profile, options: tuple[str, ...], captures: Path
) -> None:
    def check(found: Found) -> None:
        assert next(iter(roots(found)), None) == "own-threads-crowd-cpus", roots(found)
        assert "OMP_NUM_THREADS" in said(found, "own-threads-crowd-cpus")
        assert {"driving-thread-waits-for-cpu", "others-take-the-cpus"}.isdisjoint(roots(found))

    one = min(os.sched_getaffinity(0))
    with Job("crowd.py", *options, interpreter=torch_python(), captures=captures) as job:
        for thread in Path(f"/proc/{job.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {one})
        captured(profile, [job.pid], check)


# --- ranks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "function"), [("ranks.py", "augment_slowly"), ("ddp.py", "tokenize_slowly")], ids=["gloo", "ddp"]
)
def test_the_rank_that_is_late_is_named(profile: Profile, script: str, function: str, captures: Path) -> None:
    def check(found: Found) -> None:
        assert found["verdict"]["text"].startswith("rank 1"), found["verdict"]
        assert function in found["verdict"]["text"]
        assert next(iter(roots(found)), None) == "python-bound-loop", roots(found)
        assert {"rank-late", "rank-waits-in-collective"}.isdisjoint(roots(found))
        assert "rank-late" in rules(found)

    with Ranks("--slow-rank", "1", "--slow", "0.06", script=script, captures=captures) as ranks:
        pids = [j.pid for j in ranks.jobs]
        favoured(*pids)
        captured(profile, pids, check)


def test_a_late_rank_whose_threads_fight_for_the_interpreter(profile: Profile, captures: Path) -> None:
    def check(found: Found) -> None:
        assert found["verdict"]["text"].startswith("rank 1"), found["verdict"]
        assert "score_in_background" in said(found, "interpreter-lock-contended")
        assert "score_in_background" in found["verdict"]["text"]
        assert "rank-late" not in roots(found)

    with Ranks("--slow-rank", "1", "--slow", "0.03", "--gil", "1", captures=captures) as ranks:
        pids = [j.pid for j in ranks.jobs]
        favoured(*pids)
        captured(profile, pids, check)


@pytest.mark.parametrize(
    ("script", "options", "function"),
    [("ranks.py", ("--hang-after", "8"), "stuck_in_data_loader"), ("ddp.py", (), "stuck_in_tokenizer")],
    ids=["gloo", "ddp"],
)
def test_the_rank_that_hangs_the_job_is_named(
    profile: Profile, script: str, options: tuple[str, ...], function: str
) -> None:
    def check(found: Found) -> None:
        assert found["verdict"]["state"] == "error"
        assert "rank 1" in found["verdict"]["text"]
        assert function in found["verdict"]["text"]
        assert "sleep-or-lock-in-loop" not in roots(found)
        assert len([f for f in about(found) if f["role"] == "root" and f["severity"] != "info"]) == 1, roots(found)

    with Ranks("--hang", "1", *options, script=script) as ranks:
        ranks.jobs[1].wait("hung")
        time.sleep(0.3)
        captured(profile, [j.pid for j in ranks.jobs], check)


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
    assert found["seconds"] < 9  # it does not go on listening
    assert "capture-disturbed-process" not in rules(found)
    assert "tokenize_slowly" in json.dumps(found["diagnosis"]["findings"])


def test_broken_off_in_the_middle_of_what_runs_inside(profiling: Profiling, captures: Path) -> None:
    with Job("train.py", "--fault", "python", "--slow", "0.03", interpreter=torch_python(), captures=captures) as job:
        favoured(job.pid)
        command = profiling(job, "--yes")
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=60)
        assert command.returncode == 130, err
        found = json.loads(out)
        assert "tokenize_slowly" in found["verdict"]["text"]
        job.advance(5)


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
