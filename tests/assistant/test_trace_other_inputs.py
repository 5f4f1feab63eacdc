"""What is no torch trace and is read all the same: exports of Nsight Systems, reports of Nsight Compute, stacks, snapshots; many at once."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests import demo_traces
from tests.assistant.trace_lab import FORMATS, said, trace
from tests.cases import each
from tests.conftest import ROOT
from tests.trace_files import comm_bound, compute_bound, data_bound

HAN = re.compile("[\u4e00-\u9fff]")
NCU = """==PROF== Connected to process 7 (/usr/bin/python3)
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed","gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",\
"launch__registers_per_thread","sm__warps_active.avg.pct_of_peak_sustained_active","launch__sm_count"
"","","","","","","","","","","","nsecond","%","%","register/thread","%",""
"0","7","python3","127.0.0.1","void gemm<float, 4>(float *, int)","1","7","(200, 1, 1)","(100, 1, 1)","0","9.0","1,234,500","12.50","40.00","168","10.50","132"
"1","7","python3","127.0.0.1","softmax","1","7","(256, 1, 1)","(4096, 1, 1)","0","9.0","9,500","30.00","91.00","32","80.00","132"
"""
SUM = """"Time (%)","Total Time (ns)","Instances","Avg (ns)","Med (ns)","Min (ns)","Max (ns)","StdDev (ns)","Name"
"75.0","3,000","3","1000.0","1000.0","900","1,100","100.0","k_a"
"25.0","1000","1","1000.0","1000.0","1000","1000","0.0","void k_b<int, 4>(int*)"
"""


@pytest.fixture
def export(tmp_path: Path) -> str:
    """An SQLite export with two kernels and their calls."""
    path = tmp_path / "export.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        db.executemany(
            "INSERT INTO StringIds VALUES (?, ?)",
            [(1, "void gemm<float>(float*)"), (2, "gemm"), (3, "cudaLaunchKernel_v7000")],
        )
        common = "start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT"
        db.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({common}, demangledName INT, shortName INT)")
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?)",
            [(1000, 5000, 0, 7, 1, 7, 1, 2), (9000, 9500, 0, 7, 2, 7, 1, 2)],
        )
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT)"
        )
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?)", [(500, 900, 7, 1, 3), (8000, 8800, 7, 2, 3)]
        )
    return str(path)


@pytest.mark.slow
@each("name", ["summary", "kernels", "timeline", "flame", "report"])
def test_an_export_of_nsight_systems_is_a_trace(export: str, name: str) -> None:
    for shape in FORMATS:
        answer = trace(name, export, "--format", shape)
        assert answer.code in (0, 1), said(answer)
    data = json.loads(trace("summary", export, "--format", "json").out)["ranks"][0]
    assert (data["span_ns"], data["busy_ns"], data["compute_ns"], data["kernels"]) == (8500, 4500, 4500, 2)


def test_a_summary_of_nsys_is_a_table_of_kernels(tmp_path: Path) -> None:
    path = tmp_path / "sum.csv"
    path.write_text(SUM)
    data = json.loads(trace("kernels", path, "--format", "json").out)["ranks"][0]
    assert [(k["name"], k["total_ns"], k["count"]) for k in data["kernels"]] == [
        ("k_a", 3000, 3),
        ("void k_b<int, 4>(int*)", 1000, 1),
    ]
    assert "75.0 %" in trace("kernels", path).out
    assert "gpudiag trace kernels" in said(trace("summary", path))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_report_of_nsight_compute_says_what_limits_a_launch(tmp_path: Path, lang: str) -> None:
    path = tmp_path / "report.csv"
    path.write_text(NCU)
    answer = trace("kernels", path, lang=lang)
    assert answer.code == 1, answer.err
    text = said(answer)
    first = text.partition("from report.csv" if lang == "en" else "来自 report.csv")[0]
    assert ("fewer blocks than the GPU has multiprocessors" if lang == "en" else "线程块少于") in first
    assert "gemm" in text
    assert "softmax" in text
    assert bool(HAN.search(text)) is (lang == "zh")
    data = json.loads(trace("kernels", path, "--format", "json").out)
    assert [launch["bound"] for launch in data["reports"][0]["launches"]] == ["latency", "memory"]
    assert "gpudiag trace kernels" in said(trace("summary", path))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_memory_snapshot(tmp_path: Path, lang: str) -> None:
    blocks = [{"size": 1 << 20, "state": "active_allocated", "requested_size": 1 << 20, "address": 0, "frames": []},
              {"size": 3 << 20, "state": "inactive", "address": 1 << 20}]  # fmt: skip
    segments = [{"device": 0, "address": 0, "total_size": 4 << 20, "stream": 0, "segment_type": "large", "allocated_size": 1 << 20,
                 "active_size": 1 << 20, "blocks": blocks}]  # fmt: skip
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": segments, "device_traces": [[]]}))
    for shape in FORMATS:
        answer = trace("summary", path, "--format", shape, lang=lang)
        assert answer.code == 0, said(answer)
    assert "4.00 MiB" in trace("summary", path).out
    data = json.loads(trace("summary", path, "--format", "json").out)
    assert data["snapshots"][0]["memory"][0]["end_reserved"] == 4 << 20


def test_stacks_go_out_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")  # room for the names
    path = data_bound(steps=3).save(tmp_path / "t.json")
    for export, suffix in (("svg", ".svg"), ("folded", ".folded"), ("speedscope", ".json")):
        target = tmp_path / f"flame{suffix}"
        answer = trace("flame", path, "--export", export, "-o", target)
        assert answer.code == 0
        assert answer.out == ""
        assert target.read_text() == trace("flame", path, "-o", tmp_path / f"other{suffix}").out or target.read_text()
        assert trace("flame", path, "--export", export).out == target.read_text()
    assert "<svg" in (tmp_path / "flame.svg").read_text()
    lines = (tmp_path / "flame.folded").read_text().splitlines()
    whole = json.loads(trace("flame", path, "--format", "json").out)["ranks"][0]["total"]
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == whole
    for name in ("flame.folded", "flame.json"):
        assert "GEMM".lower() in trace("flame", tmp_path / name, "--min-share", "0").out.lower()


def test_a_report_is_written_whole_and_readable(tmp_path: Path) -> None:
    path = data_bound(steps=3).save(tmp_path / "t.json")
    target = tmp_path / "report.html"
    answer = trace("report", path, "-o", target)
    assert answer.out == ""
    assert target.stat().st_mode & 0o400
    text = target.read_text()
    assert text.lower().startswith("<!doctype html>")
    assert "http://" not in re.sub(r"http://www\.w3\.org/", "", text)[:20_000]
    for suffix, mark in ((".md", "# "), (".json", '"gpudiag/trace-report/1"'), (".txt", "Timeline")):
        trace("report", path, "-o", tmp_path / f"report{suffix}")
        assert mark in (tmp_path / f"report{suffix}").read_text()


def test_side_by_side_gives_the_same(tmp_path: Path) -> None:
    for rank in range(3):
        compute_bound(steps=3, rank=rank, world=3).save(tmp_path / f"rank{rank}.json.gz")
    (tmp_path / "rank7.json").write_text("{}")
    one, two = (json.loads(trace("summary", tmp_path, "--jobs", n, "--format", "json").out) for n in ("1", "2"))
    assert one["ranks"] == two["ranks"]
    assert one["verdicts"] == two["verdicts"]
    assert [f["file"] for f in one["failed"]] == [f["file"] for f in two["failed"]] == [str(tmp_path / "rank7.json")]


@pytest.mark.process
def test_ranks_are_read_by_dask_and_one_that_no_worker_sees_is_told(
    tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    for rank in range(2):
        comm_bound(steps=3, rank=rank, world=3).save(tmp_path / f"rank{rank}.json")
    words = (
        "trace",
        "ranks",
        "--dask",
        "local:1",
        "--deadline",
        "60",
        str(tmp_path),
        str(tmp_path / "rank2.json"),
        "--format",
        "json",
    )
    done = subprocess.run(
        [sys.executable, "-m", "assistant", *words],
        capture_output=True,
        text=True,
        env=clean_environment,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 3, done.stderr  # nothing wrong was found, and not all was looked at
    data = json.loads(done.stdout)
    assert [t["rank"] for t in data["timings"]] == [0, 1]
    assert data["missing"] == [2]
    assert [Path(f["file"]).name for f in data["failed"]] == ["rank2.json"]
    assert "no worker sees the file" in data["failed"][0]["why"]


def test_the_trace_of_the_demo_is_the_generated_one(tmp_path: Path) -> None:
    shipped = demo_traces.FOLDER / "data-starved" / "rank0.json.gz"
    again = Path(demo_traces.data_starved(tmp_path / "rank0.json.gz"))
    assert gzip.decompress(shipped.read_bytes()) == gzip.decompress(again.read_bytes()), "python -m tests.demo_traces"
    assert b"nobody ran this job" in gzip.decompress(shipped.read_bytes())


def test_the_page_shows_what_the_program_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "84")
    demo_traces.data_starved(tmp_path / "starved.json.gz")
    (tmp_path / "job").mkdir()
    demo_traces.late_rank(tmp_path / "job")
    page = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
    shown = [
        part
        for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL)
        for part in block.split("$ gpudiag trace ")[1:]
    ]
    assert len(shown) >= 5
    for part in shown:
        command, _, printed = part.partition("\n")
        real = trace(*command.split()).out
        for piece in filter(None, (p.strip("\n") for p in re.split(r"(?m)^\.\.\.$", printed))):
            assert piece in real, (command, piece)
