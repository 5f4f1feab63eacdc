"""`gpudiag trace`: every subcommand on generated traces, in every format and both languages."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.render.cells import width
from tests.assistant.trace_lab import FORMATS, ONE_TRACE, said, trace
from tests.cases import each
from tests.conftest import ROOT
from tests.trace_files import Job, comm_bound, compute_bound, data_bound, launch_bound, sync_bound
from tests.trace_jobs import Cluster

HAN = re.compile("[\u4e00-\u9fff]")
# The fields that the issue names: they may grow, and never change.
RANK_KEYS = {
    "rank", "file", "window", "span_ns", "busy_ns", "idle_ns", "compute_ns", "comm_ns", "mem_ns", "comm_compute_overlap_ns",
    "exposed_comm_ns", "kernels", "comm_kernels", "mem_ops", "top_kernels",
}  # fmt: skip
KERNEL_KEYS = {"name", "total_ns", "count", "mean_ns", "min_ns", "max_ns", "stddev_ns", "share"}
FINDING_KEYS = {
    "id",
    "rule",
    "title",
    "subject",
    "severity",
    "grade",
    "role",
    "impact",
    "action",
    "because",
    "missing",
    "proof",
}


@pytest.fixture
def starved(tmp_path: Path) -> str:
    """A job of four steps that waits for its data."""
    return data_bound(steps=4, rank=0, world=1).save(tmp_path / "starved.json.gz")


@pytest.fixture
def ranks(tmp_path: Path) -> list[str]:
    """Three of four ranks; the second computes longer, and the others wait for it."""
    paths = []
    for rank in range(3):
        job = Job(rank=rank, world=4)
        for step in range(1, 5):
            job.train_step(step, gemm=300 if rank == 1 else 200, comm=400)
        paths.append(job.save(tmp_path / "job" / f"rank{rank}.json"))
    return paths


@pytest.fixture(autouse=True)
def a_folder_for_ranks(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()


def busy(steps: int, **file: int) -> Job:
    """A job whose matrix products reach what an H100 can do, launched well ahead."""
    job = Job(**file)
    for step in range(1, steps + 1):
        job.train_step(step, gemm=400, pointwise=60, size=(8192, 4096, 4096))
    return job


@pytest.mark.slow
@each("shape", FORMATS)
@each("name", ONE_TRACE)
def test_every_subcommand_in_every_format_and_both_languages(starved: str, name: str, shape: str) -> None:
    for lang in ("en", "zh"):
        answer = trace(name, starved, "--format", shape, lang=lang)
        text = said(answer)
        assert answer.code in (0, 1), text
        assert answer.err == ""
        if shape == "json":
            data = json.loads(answer.out)
            assert re.fullmatch(r"gpudiag/[a-z-]+/1", data["schema"]) or "speedscope" in data.get("$schema", "")
        else:
            assert "\x1b" not in answer.out
            assert bool(HAN.search(answer.out)) is (lang == "zh"), text[:400]


def test_the_summary_has_the_schema(starved: str) -> None:
    data = json.loads(trace("summary", starved, "--format", "json").out)
    assert data["schema"] == "gpudiag/trace-summary/1"
    assert data["failed"] == []
    (rank,) = data["ranks"]
    assert set(rank) >= RANK_KEYS
    assert rank["rank"] == 0
    assert rank["window"]["kind"] == "trace"
    assert rank["window"]["end_ns"] - rank["window"]["start_ns"] == rank["span_ns"] == rank["busy_ns"] + rank["idle_ns"]
    assert rank["compute_ns"] + rank["exposed_comm_ns"] + rank["exposed_mem_ns"] + rank["idle_ns"] == rank["span_ns"]
    for kernel in rank["top_kernels"]:
        assert set(kernel) >= KERNEL_KEYS
        assert kernel["min_ns"] <= kernel["mean_ns"] <= kernel["max_ns"]
    assert [k["total_ns"] for k in rank["top_kernels"]] == sorted(
        (k["total_ns"] for k in rank["top_kernels"]), reverse=True
    )
    assert data["headline"]["usable"] == "unknown"  # a trace tells nothing of a node
    for finding in data["verdicts"]:
        assert set(finding) >= FINDING_KEYS
    assert "trace-data-bound" in {f["rule"] for f in data["verdicts"]}
    shares = [f["impact"]["share"] if f["impact"] else 0 for f in data["verdicts"] if f["role"] == "root"]
    assert shares == sorted(shares, reverse=True)


@each(
    ("make", "rule", "code"),
    [
        (data_bound, "trace-data-bound", 1), (comm_bound, "trace-communication-bound", 1), (launch_bound, "trace-host-bound|trace-launch-bound", 1),
        (sync_bound, "trace-sync", 1), (busy, "trace-gpu", 0),
    ],
    ids=["data", "communication", "launch", "sync", "compute"],
)  # fmt: skip
def test_the_verdict_comes_first(tmp_path: Path, make: Callable[..., Job], rule: str, code: int) -> None:
    path = make(steps=5, rank=0, world=1).save(tmp_path / "t.json")
    data = json.loads(trace("summary", path, "--format", "json").out)
    first = data["verdicts"][0]
    assert re.match(rule, first["rule"]), first["rule"]
    answer = trace("summary", path)
    assert answer.code == code, answer.out
    title = first["title"].rpartition(": ")[2]
    assert title[1:] in " ".join(answer.out.split("\n\n")[0].split())
    assert answer.out.index("Found") < answer.out.index("computing  ") < answer.out.index("Top kernels")


def test_windows_are_stated_and_differ(starved: str) -> None:
    whole = json.loads(trace("summary", starved, "--format", "json").out)["ranks"][0]
    steps = json.loads(trace("summary", starved, "--format", "json", "--window", "iterations").out)["ranks"][0]
    assert steps["window"]["kind"] == "iterations"
    assert steps["window"]["iterations"] == 4
    assert steps["window"]["marker"] == "ProfilerStep"
    assert (steps["window"]["start_ns"], steps["window"]["end_ns"]) != (
        whole["window"]["start_ns"],
        whole["window"]["end_ns"],
    )
    assert "whole trace" in said(trace("summary", starved))
    assert "4 whole iterations (ProfilerStep)" in said(trace("summary", starved, "--window", "iterations"))


def test_ranks_are_compared_and_a_missing_one_is_a_result(ranks: list[str], tmp_path: Path) -> None:
    answer = trace("ranks", *ranks)
    assert answer.code == 3
    assert answer.out.startswith("UNKNOWN  ")
    assert "Traces of some ranks are missing: rank 3." in said(answer)
    data = json.loads(trace("ranks", tmp_path / "job", "--format", "json").out)
    assert data["missing"] == [3]
    assert [t["rank"] for t in data["timings"]] == [0, 1, 2]
    for lang in ("en", "zh"):
        assert trace("ranks", tmp_path / "job", "--format", "markdown", lang=lang).code == 3
    assert trace("ranks", ranks[0]).code == 3  # three are missing


def test_one_rank_of_many(ranks: list[str], tmp_path: Path) -> None:
    data = json.loads(trace("summary", tmp_path / "job", "--rank", "2", "--format", "json").out)
    assert [r["rank"] for r in data["ranks"]] == [2]
    assert [Path(r["file"]).name for r in data["ranks"]] == ["rank2.json"]
    assert len(json.loads(trace("summary", tmp_path / "job", "--format", "json").out)["ranks"]) == 3
    assert "3 ranks" in said(trace("summary", tmp_path / "job"))


def test_a_file_that_cannot_be_read_does_not_cost_the_others(ranks: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "job" / "rank3.json"
    bad.write_text("{}")
    answer = trace("summary", *ranks, bad, "--format", "json")
    data = json.loads(answer.out)
    assert len(data["ranks"]) == 3
    assert [Path(f["file"]).name for f in data["failed"]] == ["rank3.json"]
    assert "traceEvents" in data["failed"][0]["why"] or "no trace events" in data["failed"][0]["why"]
    text = trace("kernels", *ranks, bad)
    assert text.code == 3  # nothing wrong was found, and not all could be looked at
    assert "rank3.json" in text.err
    assert "rank3" in trace("kernels", *ranks, bad, "--format", "markdown").out


@pytest.mark.process
def test_standard_input(starved: str, clean_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "assistant", "trace", "kernels", "-", "--format", "json"],
        input=Path(starved).read_bytes(), capture_output=True, cwd=ROOT, env=clean_environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ranks"][0]["file"] == "-"


def test_a_slow_iteration_is_named(tmp_path: Path) -> None:
    job = Job(rank=0)
    for step in range(1, 11):
        job.train_step(step, item=True, data=9000 if step == 7 else 50)
    path = job.save(tmp_path / "t.json")
    text = said(trace("iterations", path))
    assert "ProfilerStep#7 (" in text.partition("from t.json")[0]
    command = re.search(r"\$ gpudiag trace (diff .*)", trace("iterations", path).out)
    assert command is not None
    assert "SLOWER" in said(trace(*command[1].split()))  # what is proposed works


def test_differences(tmp_path: Path) -> None:
    one = compute_bound(steps=3).save(tmp_path / "before.json")
    two = data_bound(steps=3).save(tmp_path / "after.json")
    for words in ((one, two), (two, "--iterations", "1:2"), (one, one)):
        for shape in FORMATS:
            answer = trace("diff", *words, "--format", shape)
            assert answer.code == 0, said(answer)
            if shape == "json":
                data = json.loads(answer.out)
                assert sum(p["b_ns"] - p["a_ns"] for p in data["parts"]) == data["b_ns"] - data["a_ns"]
                assert sum(p["a_ns"] for p in data["parts"]) == data["a_ns"]
    assert "SAME" in said(trace("diff", one, one))
    assert HAN.search(trace("diff", one, two, lang="zh").out)


def test_two_ranks_of_many(ranks: list[str], tmp_path: Path) -> None:
    text = said(trace("diff", "--ranks", "0:1", tmp_path / "job"))
    assert "Rank 1 takes" in text
    assert "none of the 3 traces is of rank 9" in said(trace("diff", "--ranks", "0:9", tmp_path / "job"))


def test_a_timeline_zooms(starved: str) -> None:
    data = json.loads(trace("timeline", starved, "--format", "json").out)["ranks"][0]
    assert data["streams"][0]["device"] is None
    assert all(0 <= b <= 1 for s in data["streams"] for b in s["busy"])
    assert data["gaps"][0]["cause"] == "data_loader"
    part = json.loads(trace("timeline", starved, "--from", "1ms", "--to", "2ms", "--format", "json").out)["ranks"][0]
    assert part["end_ns"] - part["start_ns"] == 1_000_000
    assert part["start_ns"] - part["origin_ns"] == 1_000_000
    step = json.loads(trace("timeline", starved, "--iteration", "2", "--format", "json").out)["ranks"][0]
    assert step["start_ns"] > data["start_ns"]
    assert step["end_ns"] < data["end_ns"]


@pytest.mark.slow
@each("columns", [40, 80, 140])
@each("lang", ["en", "zh"])
@each("name", [*ONE_TRACE, "ranks"])
def test_no_line_is_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, starved: str, name: str, lang: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for line in trace(name, starved, "--format", "text", lang=lang).out.splitlines():
        longest = max((width(word) for word in line.split()), default=0)
        assert width(line) <= columns + 2 or "gpudiag " in line or longest > columns // 2, line


@pytest.mark.slow
def test_names_of_strangers_are_harmless(tmp_path: Path) -> None:
    job = Job()
    with job.step(1):
        job.op("aten::\x1b[31mred\x07", [("kernel\x1b]0;title\x07\u202e" + "x" * 100_000, 10)])
        job.launch("\n\n# heading | cell <script>alert(1)</script>", 20)
    path = job.save(tmp_path / "t.json")
    for name in ONE_TRACE:
        for shape in FORMATS:
            out = trace(name, path, "--format", shape).out
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out), (name, shape)
            if shape == "html":
                assert "<script>alert(1)" not in out
            elif shape == "text":
                assert max(map(len, out.splitlines()), default=0) < 1000


@pytest.mark.process
def test_the_fast_path_loads_nothing_heavy(starved: str, clean_environment: dict[str, str]) -> None:
    program = "import sys\nfrom assistant.cli import main\nmain(sys.argv[1:])\nprint(*sys.modules, file=sys.stderr)"
    words = ("trace", "summary", starved, "--format", "json")
    for _ in range(2):  # once, so that the compiled data is there
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            capture_output=True,
            text=True,
            env=clean_environment,
            cwd=ROOT,
            check=True,
        )
    loaded = {m.split(".")[0] for m in done.stderr.split()}
    assert not loaded & {
        "plotly",
        "dask",
        "distributed",
        "pydantic",
        "sqlmodel",
        "sqlalchemy",
        "yaml",
        "pandas",
        "rich",
    }


def test_a_command_that_is_shown_can_be_run_as_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "a job"
    folder.mkdir()
    files = Cluster(compute=[4000, 4000, 6000, 4000], steps=3).save(folder)
    shown = [line.strip().removeprefix("$ gpudiag trace ") for line in trace("summary", *files).out.splitlines()
             if "$ gpudiag trace ranks" in line]  # fmt: skip
    (command,) = shown
    words = shlex.split(command)
    assert words[1:] == [str(f) for f in files]
    again = trace(*words)
    for answer in (again, trace("summary", *files), trace("report", *files, "--format", "text")):
        assert answer.code == 1
        first = " ".join(answer.out.partition("\n\n")[0].split())
        assert "Imbalance: one rank's kernels take longer than those of the others: rank 2" in first


def test_the_name_of_a_thread_is_not_cut_to_another(tmp_path: Path) -> None:
    path = data_bound(steps=3).save(tmp_path / "t.json")
    text = Path(path).read_text(encoding="utf-8")
    renamed = tmp_path / "long.json"
    renamed.write_text(re.sub(r'"tid": ?1\b', '"tid": 1890023232', text), encoding="utf-8")
    lanes = [line.split()[0] for line in trace("timeline", str(renamed)).out.splitlines() if "ddd" in line]
    assert lanes == ["1890023232"]
