"""Whatever `gpudiag trace` is given: one clear sentence, the right exit code, and no traceback."""

from __future__ import annotations

import gzip
import json
import pickle
import sqlite3
from pathlib import Path

import pytest

from tests.assistant.trace_lab import ONE_TRACE, said, trace
from tests.cases import each
from tests.trace_files import TraceFile, compute_bound, data_bound

COMMANDS = (*ONE_TRACE, "ranks")


@pytest.mark.slow
@each("name", COMMANDS)
@each(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"hello world\n", "is no trace"),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 200, "binary data"),
        (b"{}", "traceEvents"),
        (b'{"traceEvents": "none"}', "traceEvents"),
        (b"[1, 2, 3]", ""),
        (gzip.compress(b"", mtime=0), ""),
        (gzip.compress(b'{"traceEvents": [' * 100, mtime=0)[:30], ""),
        (b"NVR\0" + bytes(100), "Nsight Compute"),
    ],
    ids=["empty", "text", "program", "no-events", "odd-events", "numbers", "empty-gzip", "cut-gzip", "ncu-rep"],
)  # fmt: skip
def test_what_is_no_trace_is_said(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    path = tmp_path / "given.json"
    path.write_bytes(content)
    for lang in ("en", "zh"):
        answer = trace(name, path, "--format", "text", lang=lang)
        text = said(answer)
        assert answer.code in (2, 3), text
        assert "given" in text
        assert sentence in text


@each("name", COMMANDS)
def test_a_missing_file_and_an_empty_folder(tmp_path: Path, name: str) -> None:
    answer = trace(name, tmp_path / "nowhere.json")
    assert answer.code == 2
    assert "No such file" in said(answer)
    (tmp_path / "folder").mkdir()
    answer = trace(name, tmp_path / "folder")
    assert answer.code == 2
    assert "holds no trace" in said(answer)


@each("name", [n for n in COMMANDS if n not in ("ops", "iterations", "flame")])
def test_a_trace_without_gpu_activity_stays_undecided(tmp_path: Path, name: str) -> None:
    path = TraceFile().op("aten::mm", 0, 20).save(tmp_path / "cpu.json")
    for lang in ("en", "zh"):
        answer = trace(name, path, "--format", "text", lang=lang)
        text = said(answer)
        assert answer.code == 3, text
        assert ("UNKNOWN" if lang == "en" else "未知") in text
        assert "ProfilerActivity.CUDA" in text or name == "ranks"


def test_what_nothing_told_is_null(tmp_path: Path) -> None:
    path = TraceFile(rank=3).op("aten::mm", 0, 20).save(tmp_path / "cpu.json")
    data = json.loads(trace("summary", path, "--format", "json").out)
    (rank,) = data["ranks"]
    assert (rank["rank"], rank["kernels"], rank["top_kernels"]) == (3, 0, [])
    assert rank["span_ns"] is rank["idle_ns"] is rank["window"] is None
    assert rank["notes"]


def test_host_events_alone_still_tell_of_the_host(tmp_path: Path) -> None:
    path = TraceFile().op("aten::mm", 0, 20).save(tmp_path / "cpu.json")
    assert "aten::mm" in trace("ops", path).out
    assert "GPU share" not in trace("ops", path).out
    (op,) = json.loads(trace("ops", path, "--format", "json").out)["ranks"][0]["ops"]
    assert (op["cpu_ns"], op["gpu_ns"], op["share"]) == (20_000, None, None)
    assert "--time cpu" in said(trace("flame", path))
    assert "aten::mm" in trace("flame", "--time", "cpu", path).out


@pytest.mark.slow
@each("name", COMMANDS)
def test_a_truncated_trace_gives_what_is_whole_of_it(tmp_path: Path, name: str) -> None:
    whole = Path(data_bound(steps=4, rank=0, world=1).save(tmp_path / "t.json"))
    data = whole.read_bytes()
    path = tmp_path / "cut.json"
    path.write_bytes(data[: len(data) * 2 // 3])
    answer = trace(name, path, "--format", "text")
    text = said(answer)
    assert answer.code in (0, 1, 3), text
    if name in ("summary", "kernels", "iterations", "timeline"):
        assert "ends before its end" in text or "cut off" in text or "incomplete" in text, text


@pytest.mark.slow
@each(
    ("words", "sentence"),
    [
        (("summary",), "FILE"),
        (("summary", "T", "--top", "0"), "'0' is no valid number"),
        (("summary", "T", "--memory", "lots"), "'lots' is no valid size"),
        (("summary", "T", "--memory", "1KB"), "'1KB' is no valid size"),
        (("summary", "T", "--parameters", "-3"), "parameters"),
        (("summary", "T", "--marker", "("), "("),
        (("summary", "T", "--window", "all"), "all"),
        (("summary", "T", "--widnow", "trace"), "--window"),
        (("summary", "T", "--rank", "7"), "none of the 1 traces is of rank 7"),
        (("kernels", "T", "--by", "colour"), "colour"),
        (("iterations", "T", "--marker", "["), "["),
        (("diff", "T"), "two traces are compared, and 1 was given"),
        (("diff", "T", "T", "T"), "3 were given"),
        (("diff", "T", "--iterations", "1:99"), "holds no iteration 99 (iterations: 1 to 3)"),
        (("diff", "T", "T", "--iterations", "1:2"), "one trace"),
        (("diff", "T", "--iterations", "1-2"), "'1-2' is no valid pair"),
        (("diff", "T", "--iterations", "1:2", "--ranks", "0:1"), "not allowed with"),
        (("diff", "T", "--ranks", "0:1"), "rank 1"),
        (("flame", "T", "--thread", "nobody"), "no thread is called 'nobody'"),
        (("flame", "T", "T2", "--export", "svg"), "2 were given"),
        (("flame", "T", "--min-share", "2"), "'2' is no valid share"),
        (("flame", "T", "-o", "/nowhere/at/all.svg"), "cannot be written"),
        (("flame", "T", "-o", "graph.txt"), "--export"),
        (("timeline", "T", "--from", "5s", "--to", "6s"), "holds nothing of"),
        (("timeline", "T", "--from", "2ms", "--to", "1ms"), "--from must lie before --to"),
        (("timeline", "T", "--from", "soon"), "'soon' is no valid time"),
        (("timeline", "T", "--iteration", "99"), "holds no iteration 99"),
        (("ranks", "T", "--deadline", "5"), "--dask"),
        (("ranks", "T", "--dask", "the moon"), "is no place to run"),
        (("report", "T", "-o", "/nowhere/at/all.html"), "cannot be written"),
        (("kernles", "T"), "kernles"),
        ((), "ACTION"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_what_is_asked_wrongly_is_said(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    files = {
        "T": compute_bound(steps=3, rank=0, world=1).save(tmp_path / "t.json"),
        "T2": compute_bound(steps=3, rank=1).save(tmp_path / "t2.json"),
    }
    answer = trace(*(files.get(w, w) for w in words))
    text = said(answer)
    assert answer.code == 2, text
    assert sentence in text
    assert answer.out == ""


def test_iterations_of_the_host_alone_have_no_device_times(tmp_path: Path) -> None:
    file = TraceFile()
    for step in range(1, 6):
        file.annotation(f"ProfilerStep#{step}", step * 100, 90).op("aten::mm", step * 100 + 5, 20)
    path = file.save(tmp_path / "cpu.json")
    (rank,) = json.loads(trace("iterations", path, "--format", "json").out)["ranks"]
    assert len(rank["items"]) == 5
    for item in rank["items"]:
        assert item["span_ns"] == 90_000
        assert item["compute_ns"] is item["idle_ns"] is item["kernels"] is None
    text = trace("iterations", path).out
    assert "computing" not in text
    assert "idle" not in text


def test_iterations_that_are_not_there(tmp_path: Path) -> None:
    path = TraceFile().kernel("k", 0, 10).save(tmp_path / "t.json")
    answer = trace("iterations", path)
    assert answer.code == 3
    assert "holds no iterations" in said(answer)
    answer = trace("summary", "--window", "iterations", path)
    assert answer.code == 2
    assert "--window trace" in said(answer)


def test_other_inputs_are_recognised(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks.folded"
    stacks.write_text("main;train;step 42\nmain;train;load 7\n")
    answer = trace("flame", stacks)
    assert answer.code == 0
    assert "step" in answer.out
    assert "gpudiag trace flame" in said(trace("summary", stacks))
    scope = tmp_path / "scope.json"
    scope.write_text(trace("flame", "--export", "speedscope", stacks).out)
    assert json.loads(scope.read_text())["$schema"].endswith("file-format-schema.json")
    assert "step" in trace("flame", scope).out
    snapshot = tmp_path / "snapshot.pickle"
    snapshot.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))
    assert trace("summary", snapshot).code in (0, 2)
    assert "memory snapshot" in said(trace("kernels", snapshot))


def test_an_export_of_nsight_systems_without_gpu_tables(tmp_path: Path) -> None:
    path = tmp_path / "export.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
    answer = trace("summary", path)
    assert answer.code in (2, 3)
    said(answer)
