"""Nsight Systems exports: the same trace as Kineto's would be, across versions, processes and hostile files."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from probes.trace.columns import ABSENT, Cat, Group, wanted
from probes.trace.links import Links
from probes.trace.reading.nsys import looks_like, read_sqlite
from probes.trace.reading.nsys_csv import looks_like_sum, looks_like_trace, read_sum_csv, read_trace_csv
from probes.trace.reading.nsys_names import call_name, copy_name, is_driver
from probes.trace.reading.reader import Trace

ALL = wanted(gpu="correlation device stream bytes grid block registers shared_memory", runtime="correlation", mark="",
             sync="correlation stream", op="dims", python="", memory="bytes", other="")  # fmt: skip
STRINGS = [
    "void gemm<float>(float*)",
    "gemm",
    "cudaLaunchKernel_v7000",
    "cuLaunchKernel",
    "step 1",
    "cudaMemcpyAsync_v3020",
]


def pid(number: int) -> int:
    return ((1 << 24) | number) << 24


class Export:
    """An export under construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db = sqlite3.connect(path)
        self.create("StringIds", "id INTEGER PRIMARY KEY, value TEXT NOT NULL")
        self.rows("StringIds", [(i + 1, text) for i, text in enumerate(STRINGS)])

    def create(self, name: str, columns: str) -> None:
        self.db.execute(f"CREATE TABLE {name} ({columns})")

    def rows(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            self.db.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)

    def save(self) -> str:
        self.db.commit()
        self.db.close()
        return str(self.path)

    def whole(self) -> Export:
        common = "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT"
        self.create("CUPTI_ACTIVITY_KIND_KERNEL", common + ", demangledName INT, shortName INT, registersPerThread INT, gridX INT, gridY INT,"
                    " gridZ INT, blockX INT, blockY INT, blockZ INT, staticSharedMemory INT, dynamicSharedMemory INT")  # fmt: skip
        self.rows(
            "CUPTI_ACTIVITY_KIND_KERNEL", [(1000, 1750, 0, 1, 7, 11, pid(42), 1, 2, 64, 8, 4, 1, 128, 1, 1, 1024, 4096)]
        )
        self.create("CUPTI_ACTIVITY_KIND_MEMCPY", common + ", bytes INT, copyKind INT, srcKind INT, dstKind INT")
        self.rows("CUPTI_ACTIVITY_KIND_MEMCPY", [(200, 300, 0, 1, 13, 12, pid(42), 4096, 1, 1, 2)])
        self.create("CUPTI_ACTIVITY_KIND_MEMSET", common + ", bytes INT, value INT")
        self.rows("CUPTI_ACTIVITY_KIND_MEMSET", [(400, 410, 0, 1, 7, 13, pid(42), 64, 0)])
        self.create("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", common + ", syncType INT")
        self.rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", [(1000, 1760, 0, 1, 7, 14, pid(42), 3)])
        self.create(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            "start INT, end INT, eventClass INT, globalTid INT, correlationId INT, nameId INT, returnValue INT",
        )
        self.rows("CUPTI_ACTIVITY_KIND_RUNTIME", [(900, 950, 0, pid(42) | 77, 11, 3, 0), (100, 150, 0, pid(42) | 77, 12, 6, 0),
                                                  (960, 970, 1, pid(42) | 77, 99, 4, 0)])  # fmt: skip
        self.create(
            "NVTX_EVENTS", "start INT, end INT, eventType INT, rangeId INT, text TEXT, globalTid INT, textId INT"
        )
        self.rows("NVTX_EVENTS", [(50, 2000, 59, None, None, pid(42) | 77, 5), (60, 1900, 60, 1, "forward", pid(42) | 77, None),
                                  (70, None, 34, None, "a mark", pid(42) | 77, None), (10, 20, 75, None, "NCCL", pid(42) | 77, None),
                                  (80, None, 59, None, "never closed", pid(42) | 77, None)])  # fmt: skip
        self.create("TARGET_INFO_GPU", "id INT, name TEXT, busLocation TEXT, totalMemory INT, smCount INT")
        self.rows("TARGET_INFO_GPU", [(0, "NVIDIA H100 80GB HBM3", "0000:01:00.0", 85017493504, 132)])
        self.create("TARGET_INFO_SESSION_START_TIME", "utcEpochNs INT, utcTime TEXT")
        self.rows("TARGET_INFO_SESSION_START_TIME", [(1_700_000_000_000_000_123, "")])
        return self


def names(trace: Trace, group: Group) -> list[str]:
    return [trace.strings[i] for i in trace[group].name.tolist()]


def test_an_export_is_a_trace(tmp_path: Path) -> None:
    trace = read_sqlite(Export(tmp_path / "report_rank3.sqlite").whole().save(), ALL)
    assert names(trace, Group.GPU) == ["Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "void gemm<float>(float*)"]
    assert trace.gpu.cat.tolist() == [Cat.MEMCPY, Cat.MEMSET, Cat.KERNEL]
    assert trace.gpu.start.tolist() == [200, 400, 1000]
    assert trace.gpu.dur.tolist() == [100, 10, 750]
    assert trace.gpu.ints("bytes").tolist() == [4096, 64, ABSENT]
    assert trace.gpu.ints("shared_memory").tolist() == [ABSENT, ABSENT, 5120]
    assert [trace.strings[i] for i in trace.gpu.ids("grid").tolist()] == ["", "", "[8, 4, 1]"]
    assert [trace.strings[i] for i in trace.gpu.ids("stream").tolist()] == ["13", "7", "7"]
    assert names(trace, Group.RUNTIME) == ["cudaMemcpyAsync", "cudaLaunchKernel", "cuLaunchKernel"]
    assert trace[Group.RUNTIME].cat.tolist() == [Cat.RUNTIME, Cat.RUNTIME, Cat.DRIVER]
    assert names(trace, Group.MARK) == ["step 1", "forward"]
    assert names(trace, Group.SYNC) == ["CUDA synchronization"]
    assert (len(trace[Group.OP]), len(trace[Group.PYTHON]), len(trace[Group.MEMORY])) == (0, 0, 0)
    assert (trace.kind, trace.rank, trace.rank_from, trace.base_ns) == (
        "nsys",
        3,
        "file name",
        1_700_000_000_000_000_123,
    )
    assert (trace.device_name, trace.devices[0]["numSms"]) == ("NVIDIA H100 80GB HBM3", 132)
    assert Links(trace).launch.tolist() == [0, -1, 1]
    assert {trace.strings[i] for i in trace[Group.MARK].ids("pid").tolist()} == {"42"}
    assert {trace.strings[i] for i in trace[Group.MARK].ids("tid").tolist()} == {"77"}


def test_two_processes_with_the_same_ids_stay_apart(tmp_path: Path) -> None:
    export = Export(tmp_path / "t.sqlite").whole()
    export.db.execute(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 3000, 3100, 0, 1, 7, 11, ?, 2, 2, 64, 1, 1, 1, 32, 1, 1, 0, 0",
        (pid(43),),
    )
    export.rows("CUPTI_ACTIVITY_KIND_RUNTIME", [(2900, 2950, 0, pid(43) | 5, 11, 4, 0)])
    trace = read_sqlite(export.save(), ALL)
    launch = Links(trace).launch
    assert [int(trace[Group.RUNTIME].start[r]) for r in launch[[2, 3]].tolist()] == [900, 2900]
    assert any("2 processes" in n.en for n in trace.notes)


def test_lean_and_old_tables_are_read(tmp_path: Path) -> None:
    export = Export(tmp_path / "t.sqlite")
    export.create("CUPTI_ACTIVITY_KIND_KERNEL", "start INT, end INT, shortName INT")
    export.rows(
        "CUPTI_ACTIVITY_KIND_KERNEL", [(5, 10, 2), (20, 15, 2), (30, 30 + (1 << 60), 2), ("x", None, 2), (7.0, 9, 999)]
    )
    trace = read_sqlite(export.save(), ALL)
    assert sorted(trace.gpu.start.tolist()) == [5, 7]
    assert {trace.strings[i] for i in trace.gpu.name.tolist()} == {"gemm", "?"}
    assert trace.gpu.ints("correlation").tolist() == [ABSENT, ABSENT]
    assert any("3 rows" in n.en for n in trace.notes)


def test_graphs_recorded_whole_are_said_to_be(tmp_path: Path) -> None:
    export = Export(tmp_path / "t.sqlite")
    export.create(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        "start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, graphId INT",
    )
    export.rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", [(100, 900, 0, 7, 1, pid(1), 4)])
    trace = read_sqlite(export.save(), ALL)
    assert trace.gpu.cat.tolist() == [Cat.KERNEL]
    assert any("--cuda-graph-trace=node" in n.en for n in trace.notes)


@pytest.mark.parametrize(
    "trap",
    [
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)"
        " SELECT n AS start, n AS end FROM t",
        "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING fts4(start, end)",
        "CREATE TABLE other (start INT)",
    ],
)
def test_what_is_no_plain_table_is_not_read(trap: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as db:
        db.execute(trap)
        db.commit()
    with pytest.raises(InputError, match="without tables"):
        read_sqlite(str(tmp_path / "t.sqlite"), ALL)


def test_what_is_no_database_is_an_input_error(tmp_path: Path) -> None:
    whole = Path(Export(tmp_path / "good.sqlite").whole().save()).read_bytes()
    for i, data in enumerate((b"", b"SQLite format 3\x00" + b"\x01" * 4000, b'{"traceEvents": []}', whole[:5000])):
        (tmp_path / f"{i}.sqlite").write_bytes(data)
        with pytest.raises(InputError):
            read_sqlite(str(tmp_path / f"{i}.sqlite"), ALL)
    with pytest.raises(InputError, match="No such file"):
        read_sqlite(str(tmp_path / "missing?mode=rwc"), ALL)
    assert looks_like(whole[:100])
    assert not looks_like(b'{"a"')


@given(st.data())
def test_damage_gives_a_trace_or_an_input_error(draw: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(Export(Path(folder) / "t.sqlite").whole().save())
        data = bytearray(path.read_bytes())
        for _ in range(draw.draw(st.integers(1, 20))):
            data[draw.draw(st.integers(16, len(data) - 1))] = draw.draw(st.integers(0, 255))
        path.write_bytes(data)
        with suppress(InputError):
            trace = read_sqlite(str(path), ALL)
            assert (trace.gpu.dur >= 0).all()


kernels = st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**9), st.integers(1, 3)), min_size=1, max_size=60)


@given(kernels)
def test_every_kernel_is_there_once_and_in_order(rows: list[tuple[int, int, int]]) -> None:
    with TemporaryDirectory() as folder:
        export = Export(Path(folder) / "t.sqlite")
        export.create("CUPTI_ACTIVITY_KIND_KERNEL", "start INT, end INT, demangledName INT")
        export.rows("CUPTI_ACTIVITY_KIND_KERNEL", [(s, s + d, n) for s, d, n in rows])
        trace = read_sqlite(export.save(), ALL)
        text = ["Start (ns),Duration (ns),CorrId,Strm,Name", *(f'{s},{d},1,7,"{STRINGS[n - 1]}"' for s, d, n in rows)]
        path = Path(folder) / "t.csv"
        path.write_text("\n".join(text))
        same = read_trace_csv(str(path), ALL)
    want = sorted((s, -d) for s, d, _ in rows)
    for one in (trace, same):
        assert list(zip(one.gpu.start.tolist(), (-one.gpu.dur).tolist(), strict=True)) == want
        assert np.bincount(one.gpu.name).sum() == len(rows)


TRACE = """
Processing [report.sqlite] with [cuda_gpu_trace.py]...
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
1134711990,661398,123,,,,,,,,,,4.194,6337.593,Pinned,Device,NVIDIA H100 80GB HBM3 (1),1,,13,[CUDA memcpy Host-to-Device]
1136125733,7072,128,4096,1,1,256,1,1,16,0.000,0.000,,,,,NVIDIA H100 80GB HBM3 (1),1,,7,"void k<int, 4>(int*)"
1136135733,100,129,,,,,,,,,,0.000,1.0,,,NVIDIA H100 80GB HBM3 (1),1,,7,[CUDA memset]
x,y,z
"""


def test_a_device_trace_report_is_a_trace(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    trace = read_trace_csv(str(tmp_path / "t.csv"), ALL)
    assert [trace.strings[i] for i in trace.gpu.name.tolist()] == [
        "Memcpy HtoD",
        "void k<int, 4>(int*)",
        "Memset (Device)",
    ]
    assert trace.gpu.cat.tolist() == [Cat.MEMCPY, Cat.KERNEL, Cat.MEMSET]
    assert (trace.gpu.start.tolist()[0], trace.gpu.dur.tolist()[0]) == (1134711990, 661398)
    assert trace.gpu.ints("bytes").tolist() == [4_194_000, ABSENT, 0]
    assert [trace.strings[i] for i in trace.gpu.ids("block").tolist()] == ["", "[256, 1, 1]", ""]
    assert (trace.device_name, trace.gpu.ints("device").tolist()) == ("NVIDIA H100 80GB HBM3", [1, 1, 1])
    assert looks_like_trace(TRACE.encode())
    assert not looks_like_trace(SUM.encode())


SUM = """** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):
"Time (%)","Total Time (ns)","Instances","Avg (ns)","Med (ns)","Min (ns)","Max (ns)","StdDev (ns)","Name"
"75.0","3,000","3","1000.0","1000.0","900","1,100","100.0","k_a"
"25.0","1000","1","1000.0","1000.0","1000","1000","0.0","void k_b<int, 4>(int*)"

** CUDA API Summary (cuda_api_sum):
"Time (%)","Total Time (ns)","Num Calls","Avg (ns)","Name"
"100.0","9000","20","450.0","cudaLaunchKernel"
"""


def test_a_sum_by_kernel_is_statistics(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(SUM)
    one, two = read_sum_csv(str(tmp_path / "s.csv"))
    assert (one.name, one.total_ns, one.count, one.mean_ns, one.min_ns, one.max_ns, one.share) == (
        "k_a",
        3000,
        3,
        1000,
        900,
        1100,
        0.75,
    )
    assert one.stddev_ns == pytest.approx(100 * (2 / 3) ** 0.5)
    assert (two.name, two.share) == ("void k_b<int, 4>(int*)", 0.25)
    assert looks_like_sum(SUM.encode())
    (tmp_path / "old.csv").write_text(
        "Time(%),Total Time (us),Instances,Average (us),Minimum (us),Maximum (us),StdDev (us),Name\n100,1.5,1,1.5,1.5,1.5,0,k\n"
    )
    assert read_sum_csv(str(tmp_path / "old.csv"))[0].total_ns == 1500


def test_other_csv_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for reader in (read_sum_csv, lambda path: read_trace_csv(path, ALL)):
        with pytest.raises(InputError):
            reader(str(tmp_path / "t.csv"))
        with pytest.raises(InputError):
            reader(str(tmp_path / "missing.csv"))


def test_names_are_kinetos() -> None:
    assert call_name("cudaLaunchKernel_v7000") == call_name("cudaLaunchKernel_ptsz") == "cudaLaunchKernel"
    assert call_name("cudaLaunchKernelExC_v11060_ptsz") == "cudaLaunchKernelExC"
    assert is_driver("cuLaunchKernelEx")
    assert not is_driver("cudaLaunchKernel")
    assert (copy_name(8, 2, 2), copy_name(99, -1, 2)) == ("Memcpy DtoD (Device -> Device)", "Memcpy unknown")
