"""Other profiles as inputs of `check`: exports of Nsight Systems, reports of Nsight Compute, memory snapshots of PyTorch."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from probes.parse import ncu_report, torch_snapshot
from tests.conftest import Gpudiag
from tests.probes.trace.allocator.test_snapshot import MIB, block, segment
from tests.probes.trace.nsight.test_ncu import PROLOGUE, details, raw
from tests.probes.trace.reading.test_nsys import Export


def answer_of(gpudiag: Gpudiag, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gpudiag(*words, "--format", "json").out)
    return found


def test_an_export_of_nsight_systems_is_a_trace(gpudiag: Gpudiag, tmp_path: Path) -> None:
    found = answer_of(gpudiag, "check", "--verbose", "--input", Export(tmp_path / "report_rank3.sqlite").whole().save())
    assert {f["subject"]["id"] for f in found["findings"]} <= {"3", "report_rank3"}
    assert found["coverage"]["answered"] > 20
    assert found["verdict"]["state"] in ("ok", "degraded")


def test_another_database_is_none(gpudiag: Gpudiag, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as db:
        db.execute("CREATE TABLE t (a INT)")
        db.commit()
    answer = gpudiag("check", "--input", str(tmp_path / "other.sqlite"))
    assert answer.code == 3
    assert "other.sqlite" in answer.out
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("text", [details(), raw(), PROLOGUE + details()], ids=["details", "raw", "prologue"])
def test_a_report_of_nsight_compute_says_what_holds_its_kernels_back(
    gpudiag: Gpudiag, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "report.csv"
    path.write_text(text)
    found = {f["rule"]: f for f in answer_of(gpudiag, "check", "--input", str(path))["findings"]}
    assert found["ncu-latency-bound"]["subject"]["scope"] == "kernel"
    assert found["ncu-grid-too-small"]["role"] == "root"  # 100 blocks for 132 multiprocessors
    assert found["ncu-latency-bound"]["role"] == "symptom"
    assert found["ncu-grid-too-small"]["impact"] == {
        "share": 1.0,
        "seconds": None,
        "of": "the profiled kernels",
        "gpu_hours_a_day": None,
    }


def test_a_metric_that_the_report_lacks_names_how_to_record_it(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    kept = [line for line in details().splitlines(keepends=True) if "Throughput" not in line]
    path.write_text("".join(kept))
    found = answer_of(gpudiag, "check", "--input", str(path))
    assert "ncu-latency-bound" not in {f["rule"] for f in found["findings"]}


@pytest.mark.parametrize("style", ["pickle", "json"])
def test_a_memory_snapshot_tells_of_fragmentation(gpudiag: Gpudiag, tmp_path: Path, style: str) -> None:
    mixed = segment(
        block(30 * MIB, "active_allocated"), block(50 * MIB, "inactive"), block(20 * MIB, "active_allocated")
    )
    data = {"segments": [mixed], "device_traces": [[]]}
    path = tmp_path / f"snapshot.{style}"
    path.write_bytes(pickle.dumps(data) if style == "pickle" else json.dumps(data).encode())
    answer = gpudiag("check", "--input", str(path))
    assert "Memory is fragmented" in answer.out
    assert "50 % of the reserved memory is free in pieces" in answer.out


def test_a_pickle_that_runs_code_is_refused(gpudiag: Gpudiag, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [Evil()], "device_traces": []}))
    answer = gpudiag("check", "--input", str(path))
    assert answer.code == 3
    assert not (tmp_path / "ran").exists()
    assert "Traceback" not in answer.err


def test_only_reports_and_snapshots_are_taken_for_them() -> None:
    assert ncu_report.sniff(details()) > 0
    assert ncu_report.sniff("ID,Name,Value\n1,a,2\n") == 0
    assert ncu_report.sniff('the "Kernel Name", is in this log') == 0
    assert torch_snapshot.sniff('{"segments": [') > 0
    assert torch_snapshot.sniff('{"traceEvents": [], "segments": [') == 0
    assert not torch_snapshot.is_pickle(pickle.dumps({"model": 1}))
    assert not torch_snapshot.is_pickle(b"text")
