"""What each planted fault looks like in a capture: the class, the function or rank, and the order come out right.

The captures were made of real jobs (tests/jobs) and are kept in tests/captures/profiles. ``make live`` (GPUDIAG_LIVE=check) makes
them again and asks the same of them; GPUDIAG_LIVE=record keeps what was made. In a recording, folders have other names.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from assistant.cli import main
from tests.assistant.capture.profiled import (
    FAULTS,
    Check,
    Found,
    captured,
    favoured,
    hung_rank,
    late_rank,
    planted,
    roots,
    rules,
    said,
)
from tests.conftest import ROOT
from tests.live_jobs import Job, Ranks, torch_python

LIVE = os.environ.get("GPUDIAG_LIVE", "")
RECORDED = ROOT / "tests/captures/profiles"
Begin = Callable[[Path], AbstractContextManager[list[int]]]
Capture = Callable[..., None]

if LIVE:
    pytestmark = [pytest.mark.machine, pytest.mark.usefixtures("alone")]


@pytest.fixture
def capture(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Capture:
    """``capture(CASE, BEGIN, CHECK, *WORDS)``: what is said of the recorded case; live, of a job that BEGIN starts."""

    def replayed(case: str, begin: Begin, check: Check, *words: str) -> None:
        del begin, words
        folder = tmp_path / case
        folder.mkdir()
        for file in (RECORDED / case).iterdir():
            name = file.name.removesuffix(".gz") if file.name.startswith("capture") else file.name
            data = file.read_bytes()
            (folder / name).write_bytes(gzip.decompress(data) if name != file.name else data)
        assert main(["profile", "show", str(folder), "--format", "json"]) in (0, 1)
        check(json.loads(capsys.readouterr().out))

    if not LIVE:
        return replayed
    gpudiag = request.getfixturevalue("gpudiag")

    def live(case: str, begin: Begin, check: Check, *words: str) -> None:
        home = tmp_path / "gpudiag/captures"

        def profile(*line: str) -> Any:
            return gpudiag("profile", *line, env={"XDG_DATA_HOME": str(tmp_path)})

        with begin(home) as pids:
            captured(profile, pids, check, *words)
        if LIVE == "record":
            keep(max(home.iterdir(), key=lambda f: f.stat().st_mtime), RECORDED / case)

    return live


def keep(made: Path, case: Path) -> None:
    """Keep a capture as a recording: without the machine, and without the names of its folders."""
    shutil.rmtree(case, ignore_errors=True)
    case.mkdir(parents=True)
    for file in made.iterdir():
        if file.name == "machine.tar.gz":
            continue
        data = file.read_bytes()
        text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
        named = f"{file.name.removesuffix('.gz')}.gz"
        (case / named).write_bytes(gzip.compress(_nameless(text).encode(), mtime=0))


def _nameless(text: str) -> str:
    text = text.replace(str(ROOT), "/srv/train")
    for prefix in {sys.base_prefix, str(Path(os.path.realpath(torch_python())).parents[1])}:
        text = text.replace(prefix, "/usr")
    text = re.sub(r'("boot_id": ?)"[^"]*"', r'\1"00000000-0000-4000-8000-000000000000"', text)
    text = re.sub(r"/tmp/live-job-\w+", "/tmp/job", text)
    text = re.sub(r"/tmp/pytest-of-[^/]*/.*?/gpudiag/captures", "/var/captures", text)
    return re.sub(r"/sys/fs/cgroup/[\w./-]*", "/sys/fs/cgroup/job", text).replace(os.uname().nodename, "train-1")


@contextmanager
def job(script: str, *words: str, captures: Path) -> Iterator[list[int]]:
    with Job(script, *words, interpreter=torch_python(), captures=captures) as running:
        favoured(running.pid)
        yield [running.pid]


def training(*words: str) -> Begin:
    return lambda captures: job("train.py", *words, captures=captures)


@contextmanager
def ranks(*words: str, script: str, captures: Path) -> Iterator[list[int]]:
    with Ranks(*words, script=script, captures=captures) as running:
        pids = [j.pid for j in running.jobs]
        favoured(*pids)
        yield pids


@pytest.mark.parametrize("fault", [f for f in FAULTS if f != "python"])  # that one is always live: test_profile_jobs
def test_the_planted_fault_is_the_root_and_its_function_is_named(capture: Capture, fault: str) -> None:
    begin = training("--fault", fault, "--slow", "0.03", "--workers", "1", "--reads", "2000")
    capture(f"fault-{fault}", begin, planted(fault))


def test_with_what_runs_inside_the_same_is_said(capture: Capture) -> None:
    def check(found: Found) -> None:
        assert next(iter(roots(found)), None) == "batches-made-in-training-process", roots(found)
        assert "decode_slowly" in found["verdict"]["text"]
        assert found["targets"][0]["parts"][2]["outcome"] in ("ok", "partial"), found["targets"][0]["parts"]

    capture("inside-data", training("--fault", "data", "--slow", "0.03"), check, "--yes")


def test_several_batches_a_step_are_told_and_no_fault(capture: Capture) -> None:
    def check(found: Found) -> None:
        assert roots(found) == {}, found["verdict"]
        assert "gradients-accumulated" in rules(found)

    capture("accumulate", training("--fault", "accumulate"), check, "--yes")


def test_of_tiny_batches_the_optimizer_is_what_is_paid_for(capture: Capture) -> None:
    def check(found: Found) -> None:
        assert roots(found) == {}, found["verdict"]
        assert "larger batches" in said(found, "optimizer-share-high")

    capture("tiny-batch", training("--fault", "tiny-batch"), check)


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ("data,python", {"batches-made-in-training-process": "decode_slowly", "python-bound-loop": "tokenize_slowly"}),
        ("python,checkpoint", {"python-bound-loop": "tokenize_slowly", "checkpoint-in-loop": "save_checkpoint"}),
    ],
    ids=["data-python", "python-checkpoint"],
)  # fmt: skip
def test_of_two_faults_both_are_found_and_the_dearer_stands_first(
    capture: Capture, faults: str, expected: dict[str, str]
) -> None:
    def check(found: Found) -> None:
        shares = roots(found)
        assert set(expected) <= set(shares), shares
        for rule, function in expected.items():
            assert function in said(found, rule)
        told = [f["rule"] for f in found["diagnosis"]["findings"] if f["rule"] in shares]
        first, second = sorted(expected, key=lambda r: -shares[r])
        assert told[0] == first, told
        assert told.index(second) > 0, told
        text = found["verdict"]["text"]
        assert f"{expected[first]} (" in text, text
        assert f" (+{len(shares) - 1} more). It explains {100 * shares[first]:.1f} %" in text, text

    capture(f"faults-{faults.replace(',', '-')}", training("--fault", faults, "--slow", "0.015"), check)


def test_reads_that_miss_the_page_cache_are_why_the_loader_is_late(capture: Capture) -> None:
    def check(found: Found) -> None:
        assert next(iter(roots(found)), None) == "reads-miss-page-cache", roots(found)
        assert "loader-workers-wait-for-storage" not in roots(found)
        assert "read_shard" in found["verdict"]["text"]

    capture(
        "reads-of-workers",
        lambda captures: job("reading.py", "--workers", "2", "--size", "64", captures=captures),
        check,
    )


def test_reads_of_the_thread_that_trains_are_told_with_what_they_cost(capture: Capture) -> None:
    """On a fast disk half of a read is copying: then workers of the loader are the first thing to try, and the cache the second."""

    def check(found: Found) -> None:
        assert roots(found).get("reads-miss-page-cache", 0.0) >= 0.1, roots(found)
        assert next(iter(roots(found))) in ("reads-miss-page-cache", "batches-made-in-training-process")
        assert "read_shard" in found["verdict"]["text"]
        assert "page cache" in found["verdict"]["text"]

    capture("reads-of-training", lambda captures: job("reading.py", "--size", "64", captures=captures), check)


@contextmanager
def crowded(*words: str, captures: Path) -> Iterator[list[int]]:
    """All threads of the job on one CPU."""
    one = min(os.sched_getaffinity(0))
    with Job("crowd.py", *words, interpreter=torch_python(), captures=captures) as running:
        for thread in Path(f"/proc/{running.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {one})
        yield [running.pid]


@pytest.mark.parametrize("options", [("--threads", "6"), ("--blas", "16")], ids=["threads", "blas"])
def test_threads_of_its_own_that_crowd_the_cpus_are_the_root(capture: Capture, options: tuple[str, ...]) -> None:
    def check(found: Found) -> None:
        assert next(iter(roots(found)), None) == "own-threads-crowd-cpus", roots(found)
        assert "OMP_NUM_THREADS" in said(found, "own-threads-crowd-cpus")
        assert {"driving-thread-waits-for-cpu", "others-take-the-cpus"}.isdisjoint(roots(found))

    capture(f"crowd-{options[0].strip('-')}", lambda captures: crowded(*options, captures=captures), check)


# --- ranks ---------------------------------------------------------------------------------------


def test_the_rank_that_is_late_is_named(capture: Capture) -> None:
    begin = lambda captures: ranks("--slow-rank", "1", "--slow", "0.06", script="ddp.py", captures=captures)  # noqa: E731
    capture("late-ddp", begin, late_rank("tokenize_slowly"))


def test_a_late_rank_whose_threads_fight_for_the_interpreter(capture: Capture) -> None:
    def check(found: Found) -> None:
        assert found["verdict"]["text"].startswith("Rank 1 (pid "), found["verdict"]
        assert "the other ranks wait for this one" in found["verdict"]["text"], found["verdict"]
        assert "score_in_background" in said(found, "interpreter-lock-contended")
        assert "score_in_background" in found["verdict"]["text"]
        assert "rank-late" not in roots(found)

    words = ("--slow-rank", "1", "--slow", "0.03", "--gil", "1")
    capture("late-gil", lambda captures: ranks(*words, script="ranks.py", captures=captures), check)


@contextmanager
def hung(captures: Path) -> Iterator[list[int]]:
    del captures
    with Ranks("--hang", "1", script="ddp.py") as running:
        running.jobs[1].wait("hung")
        time.sleep(0.3)
        yield [j.pid for j in running.jobs]


def test_the_rank_that_hangs_the_job_is_named(capture: Capture) -> None:
    capture("hung-ddp", hung, hung_rank("stuck_in_tokenizer"))
