"""Files as they are met: compressed, cut off, damaged, empty, no trace at all; and columns beyond the memory limit."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from knowledge.errors import InputError
from probes.trace.columns import ABSENT, Group, is_constant, wanted
from probes.trace.reading.document import Document
from probes.trace.reading.reader import files, read

ASKED = wanted(gpu="stream correlation device", op="dims")
TRACES = Path(__file__).parents[3] / "traces"


def event(i: int, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": f"k{i % 3}", "pid": 0, "tid": "stream 7", "ts": 1000 + i, "dur": 1,
            "args": {"stream": 7, "correlation": i}} | more  # fmt: skip


def document(count: int = 100, **keys: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, "deviceProperties": [{"name": "GPU {A}, [B]"}], "traceEvents": [event(i) for i in range(count)],
            "traceName": "t", "distributedInfo": {"rank": 3, "world_size": 8}} | keys  # fmt: skip


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., str]:
    def write(data: bytes | dict[str, Any] | list[Any], name: str = "t.json") -> str:
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data, indent=1).encode())
        return str(path)

    return write


Save = Callable[..., str]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress,
                                  lambda b: gzip.compress(b[:999]) + gzip.compress(b[999:]),
                                  lambda b: zstandard.compress(b[:999]) + zstandard.compress(b[999:]),
                                  lambda b: b"\xef\xbb\xbf" + b])  # fmt: skip
def test_compressed_or_not(save: Save, pack: Callable[[bytes], bytes]) -> None:
    trace = read(save(pack(json.dumps(document()).encode())), ASKED)
    assert (len(trace.gpu), trace.rank, trace.world_size, trace.device_name) == (100, 3, 8, "GPU {A}, [B]")
    assert trace.whole
    assert not trace.notes


def test_bare_list_and_missing_bracket(save: Save) -> None:
    assert len(read(save([event(i) for i in range(5)]), ASKED).gpu) == 5
    cut = read(save(b"[" + b",".join(json.dumps(event(i)).encode() for i in range(5))), ASKED)
    assert (len(cut.gpu), cut.whole) == (5, False)


@pytest.mark.slow
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_cut_off_files_keep_what_is_whole(save: Save, pack: Callable[[bytes], bytes]) -> None:
    """Three megabytes of which the end is missing: most events are there, the head's keys too, and it is said."""
    import random

    rnd = random.Random(5)
    data = pack(
        json.dumps(document(20_000) | {"traceEvents": [event(i, id=rnd.random()) for i in range(20_000)]}).encode()
    )
    trace = read(save(data[: len(data) * 3 // 4]), ASKED)
    assert len(trace.gpu) > 11_000
    assert not trace.whole
    assert trace.keys["schemaVersion"] == 1
    assert "ends before its end" in trace.notes[0].en


def test_a_damaged_tail_costs_only_what_stands_in_it(save: Save) -> None:
    text = json.dumps(document()).encode()
    broken = text.replace(b'"traceName": "t"', b'"traceName": "t", "a": nonsense, "b": [1, 2}')
    trace = read(save(broken[:-3]), ASKED)
    assert (len(trace.gpu), trace.keys["traceName"], trace.keys["deviceProperties"]) == (
        100,
        "t",
        [{"name": "GPU {A}, [B]"}],
    )


@pytest.mark.parametrize(("data", "said"), [
    (b"", "is empty"),
    (b"  \n", "is empty"),
    (b"\x7fELF\x02\x01", "does not begin as JSON"),
    (b"Nov 21 kernel: [1.0] {x}", "does not begin as JSON"),
    (b"\xff\xfe{\x00", "UTF-16"),
    (b'[project]\nname = "x"\n', "something else than events"),
    (b"[1, 2, 3]", "something else than events"),
    (b'{"segments": [{"a": 1}], "external_annotations": []}', "its keys are segments, external_annotations"),
    (gzip.compress(b'{"x": "traceEvents", "y": {"traceEvents": [1]}}', mtime=0), "holds no trace events"),
    (gzip.compress(b"{}" * 4000, mtime=0)[:20], "holds no trace events"),
])  # fmt: skip
def test_no_trace(save: Save, data: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        read(save(data), ASKED)
    assert error.value.hint


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputError):
            read(str(path), ASKED)


@pytest.mark.slow
def test_events_behind_big_keys_and_in_several_lists(save: Save) -> None:
    text = json.dumps({"blob": ["x{" * 10, {"traceEvents": 1}] * 40_000} | document())
    assert len(read(save(text.encode()), ASKED).gpu) == 100
    twice = text[:-1] + ', "traceEvents": [' + json.dumps(event(500)) + '], "last": 1}'
    trace = read(save(twice.encode()), ASKED)
    assert (len(trace.gpu), trace.keys["last"], trace.rank) == (101, 1, 3)


def test_hostile_content(save: Save) -> None:
    odd = [event(0, name="a\x1b[31m\x00b"), event(1, name="\ud800"), event(2, dur=-5), event(3, dur=1e300), event(4, ts="x"),
           event(5, args={"stream": None, "correlation": "9", "device": "nonsense"}), event(6, dur=10**18)]  # fmt: skip
    text = (
        json.dumps(document() | {"traceEvents": odd}).encode().replace(b"\\u0000", b"\x00").replace(b"k2", b"\xff\xfe")
    )
    trace = read(save(text), ASKED)
    assert len(trace.gpu) == 3
    assert trace.gpu.ints("correlation").tolist() == [0, 1, 9]
    assert trace.gpu.ints("device").tolist() == [ABSENT] * 3
    assert trace.gpu.ids("stream")[2] == -1
    assert "".join(trace.strings.texts).encode()
    assert [n.en.split()[0] for n in trace.notes] == ["1", "3"]


def test_order(save: Save) -> None:
    """By start, longer first among equals, the file's order among equals of both."""
    times = [(5, 1), (3, 1), (5, 9), (3, 1), (1, 1), (5, 4)]
    trace = read(save([event(i, ts=t, dur=d) for i, (t, d) in enumerate(times)]), ASKED)
    assert trace.gpu.ints("correlation").tolist() == [4, 1, 3, 2, 5, 0]


def test_columns_of_one_value_take_no_memory(save: Save) -> None:
    asked = wanted(gpu="stream correlation registers occupancy dtype")
    gpu = read(save(document()), asked).gpu
    light = {name for name in gpu if is_constant(gpu[name])}
    assert light >= {"pid", "tid", "cat", "stream", "registers", "dtype"}
    assert not light & {"start", "name", "correlation"}
    assert set(gpu.ints("registers").tolist()) == {ABSENT}
    assert set(gpu.ids("dtype").tolist()) == {-1}
    assert np.isnan(gpu["occupancy"]).all()
    several = gpu.take(np.arange(300) % 100)  # more rows than there are
    assert {len(several[name]) for name in several} == {300}
    assert len(gpu.take(np.zeros(100, np.bool_))["pid"]) == 0


def test_an_argument_that_begins_late_is_absent_before(save: Save) -> None:
    events = [event(i) for i in range(3000)]
    events[2500]["args"]["device"] = 5
    device = read(save(document(traceEvents=events)), wanted(gpu="device")).gpu.ints("device")
    assert device[2500] == 5
    assert (np.delete(device, 2500) == ABSENT).all()


@pytest.mark.process
@pytest.mark.parametrize("variable", ["", "python"])
def test_spilled_columns_are_the_same(tmp_path: Path, variable: str) -> None:
    """A limit of a few kilobytes: several spills, a sort in parts, no file left behind."""
    code = (
        "import sys, os; import numpy as np; from probes.trace.reading.reader import read; from probes.trace.columns import *\n"
        "asked = wanted(gpu='stream correlation', op='dims external', python='python_id', runtime='correlation', mark='')\n"
        "a, b = read(sys.argv[1], asked), read(sys.argv[1], asked, memory=20_000)\n"
        "assert any(isinstance(c, np.memmap) for t in b.tables.values() for c in t.columns.values())\n"
        "b.let_go()\n"
        "text = lambda t, c: [t.strings[i] for i in c]\n"
        "for g in asked:\n"
        "    for n in a[g]:\n"
        "        x, y = a[g][n], b[g][n]\n"
        "        assert x.dtype == y.dtype\n"
        "        assert text(a, x) == text(b, y) if x.dtype == np.int32 else np.array_equal(x, y), (g, n)\n"
        "print(sum(map(len, a.tables.values())), os.listdir(os.environ['TMPDIR']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(TRACES / "cpu_train.json.gz")], capture_output=True, text=True, check=False,
        env=os.environ | {"TMPDIR": str(tmp_path), "GPUDIAG_TRACE_SCANNER": variable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 1000
    assert done.stdout.split()[1] == "[]"


@pytest.mark.process
def test_a_full_disk_is_said(save: Save, tmp_path: Path) -> None:
    """No place to spill to is an InputError with what to do, no traceback."""
    code = (
        "import sys, resource; from probes.trace.reading.reader import read; from probes.trace.columns import wanted\n"
        "from knowledge.errors import InputError\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: read(sys.argv[1], wanted(gpu='stream'), memory=5000)\n"
        "except InputError as error: print(error)"
    )
    path = save(document(2000))
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert "TMPDIR" in done.stdout


@pytest.mark.process
def test_standard_input_and_pipes(save: Save) -> None:
    code = (
        "import sys; from probes.trace.reading.reader import read; from probes.trace.columns import wanted\n"
        "t = read(sys.argv[1], wanted(gpu='')); print(len(t.gpu), t.whole)"
    )
    for data in (json.dumps(document()).encode(), gzip.compress(json.dumps(document()).encode())):
        for path in ("-", "/dev/stdin"):
            done = subprocess.run([sys.executable, "-c", code, path], input=data, capture_output=True, check=False)
            assert done.stdout.split() == [b"100", b"True"], done.stderr


def test_progress_reaches_the_end(save: Save) -> None:
    said: list[tuple[str, int, int | None]] = []
    path = save(document(10_000))  # more than a block
    read(path, ASKED, progress=lambda *what: said.append(what))
    assert [s[1] for s in said] == sorted(s[1] for s in said)
    assert said[-1] == (path, Path(path).stat().st_size, Path(path).stat().st_size)


def test_files(tmp_path: Path) -> None:
    for name in ("rank10.json", "rank2.json.gz", "sub/rank1.pt.trace.json", "x.txt", "a.json.zst"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert [str(Path(f).relative_to(tmp_path)) for f in files([str(tmp_path)])] == [
        "a.json.zst",
        "rank2.json.gz",
        "rank10.json",
        "sub/rank1.pt.trace.json",
    ]
    assert files(["b", "a", "b", "-"]) == ["b", "a", "-"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no trace files"):
        files([str(tmp_path / "empty")])


def test_rank_from_the_name(save: Save) -> None:
    for name, rank in (("rank12.json", 12), ("x_worker-3.json", 3), ("trace.7.json", None), ("franking3.json", None)):
        trace = read(save([event(1)], name), ASKED)
        assert (trace.rank, trace.rank_from) == (rank, "file name" if rank is not None else "")


def test_recorded_traces() -> None:
    trace = read(
        str(TRACES / "cpu_train.json.gz"), wanted(op="external dims", python="python_id", mark="", memory="bytes")
    )
    assert all(len(trace[g]) for g in (Group.OP, Group.PYTHON, Group.MARK, Group.MEMORY))
    for table in trace.tables.values():
        start, dur = table.start, table.dur
        assert (np.lexsort((np.arange(len(start)), -dur, start)) == np.arange(len(start))).all()


def test_blocks_are_read_in_place(save: Save) -> None:
    document_ = Document(save(document()))
    first = document_.open_events()
    assert first is not None
    assert first.lstrip().startswith(b"{")
    assert document_.read() == b""
    document_.close()
