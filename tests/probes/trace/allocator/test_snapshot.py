"""Snapshots of the allocator: what is fragmented, who holds, who leaks, and hostile files."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from probes.trace.allocator.snapshot import looks_like, read_snapshot
from probes.trace.model import MemoryUse

MIB = 1 << 20
OWN = [{"filename": "/opt/venv/lib/python3.11/site-packages/torch/nn/linear.py", "line": 9, "name": "forward"},
       {"filename": "/home/me/train.py", "line": 42, "name": "step"}]  # fmt: skip
LEAK = [
    {"filename": "CUDACachingAllocator.cpp", "line": 0, "name": "malloc"},
    {"filename": "/home/me/log.py", "line": 7, "name": "keep"},
]


def block(size: int, state: str, frames: Any = None, address: int = 0) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": frames or []}


def segment(*blocks: dict[str, Any], device: int = 0) -> dict[str, Any]:
    return {"device": device, "address": 7, "total_size": sum(b["size"] for b in blocks), "stream": 0,
            "segment_type": "large", "segment_pool_id": (0, 0), "blocks": list(blocks)}  # fmt: skip


def event(action: str, address: int, size: int, at: int, frames: Any = None) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": 1_700_000_000_000_000 + at, "frames": frames or []}  # fmt: skip


def write(path: Path, found: Any, style: str = "pickle") -> str:
    path.write_bytes(pickle.dumps(found) if style == "pickle" else json.dumps(found).encode())
    return str(path)


def one(path: Path, found: Any, style: str = "pickle") -> MemoryUse:
    (use,) = read_snapshot(write(path / "snapshot.pickle", found, style))
    return use


@pytest.mark.parametrize("style", ["pickle", "json"])
def test_fragmentation_is_what_nobody_can_give_back(style: str, tmp_path: Path) -> None:
    mixed = segment(
        block(30 * MIB, "active_allocated", OWN), block(10 * MIB, "inactive"), block(20 * MIB, "active_pending_free")
    )
    empty = segment(block(40 * MIB, "inactive"))
    use = one(tmp_path, {"segments": [mixed, empty], "device_traces": [[]]}, style)
    assert (use.end_reserved, use.end_allocated) == (100 * MIB, 30 * MIB)
    assert use.fragmentation == pytest.approx(0.1)
    assert use.largest_free == 40 * MIB
    assert use.top == (("train.py:42 step", 30 * MIB),)
    assert use.timeline == ()
    assert any("no history" in n.en for n in use.notes)


def test_a_request_that_failed_is_told_with_the_free_pieces(tmp_path: Path) -> None:
    pieces = [segment(block(8 * MIB, "active_allocated"), block(12 * MIB, "inactive")) for _ in range(5)]
    trace = [event("alloc", 1, 8 * MIB, 0), event("oom", 0, 20 * MIB, 5)]
    use = one(
        tmp_path, {"segments": pieces, "device_traces": [trace], "allocator_settings": {"expandable_segments": False}}
    )
    assert (use.out_of_memory, use.largest_request, use.largest_free) == ((20 * MIB,), 20 * MIB, 12 * MIB)
    assert any("20.0 MiB were asked for while 60.0 MiB lay free" in n.en for n in use.notes)
    assert any("expandable_segments" in n.en for n in use.notes)


def history(leaks: bool) -> list[dict[str, Any]]:
    found = [event("segment_alloc", 0, 500 * MIB, 0), event("alloc", 1, 100 * MIB, 1, OWN)]
    for step in range(40):
        at = 10 * step + 2
        found += [event("alloc", 2, 30 * MIB, at, OWN), event("free_requested", 2, 30 * MIB, at + 1, OWN),
                  event("free_completed", 2, 30 * MIB, at + 1, OWN), event("alloc", 100 + step, MIB, at + 2, LEAK)]  # fmt: skip
        if not leaks:
            found.append(event("free_requested", 100 + step, MIB, at + 3, LEAK))
    return found


def test_only_frames_whose_bytes_always_rise_are_suspects(tmp_path: Path) -> None:
    live = [
        segment(
            block(100 * MIB, "active_allocated", OWN),
            block(40 * MIB, "active_allocated", LEAK),
            block(360 * MIB, "inactive"),
        )
    ]
    use = one(tmp_path, {"segments": live, "device_traces": [history(True)]})
    assert [name for name, _ in use.suspects] == ["log.py:7 keep"]
    assert 25 * MIB <= use.suspects[0][1] <= 40 * MIB
    assert (use.peak_allocated, use.end_allocated) == (169 * MIB, 140 * MIB)
    assert use.timeline[-1].allocated == 140 * MIB
    assert use.timeline[-1].reserved == 500 * MIB
    assert (use.allocations, use.frees, use.churn_bytes) == (81, 40, (100 + 40 * 30 + 40) * MIB)
    healthy = [segment(block(100 * MIB, "active_allocated", OWN), block(400 * MIB, "inactive"))]
    assert one(tmp_path, {"segments": healthy, "device_traces": [history(False)]}).suspects == ()


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 50)), min_size=1, max_size=200), st.integers(0, 1000))
def test_a_history_that_began_late_still_ends_now(moves: list[tuple[bool, int]], held: int) -> None:
    trace = [event("alloc" if up else "free_requested", i, size, i) for i, (up, size) in enumerate(moves)]
    with TemporaryDirectory() as folder:
        use = one(Path(folder), {"segments": [segment(block(held, "active_allocated"))], "device_traces": [trace]})
    change = sum(s if up else -s for up, s in moves)
    first = moves[0][1] if moves[0][0] else -moves[0][1]
    assert use.timeline[-1].allocated == held
    assert use.timeline[0].allocated == held - change + first


def test_old_forms_are_read(tmp_path: Path) -> None:
    old = {
        "address": 1,
        "size": 5 * MIB,
        "state": "active_allocated",
        "history": [{"addr": 1, "frames": OWN, "real_size": 5}],
    }
    use = one(tmp_path, [{"device": 1, "total_size": 5 * MIB, "blocks": [old]}])
    assert (use.device, use.top) == ("CUDA 1", (("train.py:42 step", 5 * MIB),))
    freed = [event("alloc", 1, 10, 0), event("free", 1, 10, 1), event("alloc", 2, 4, 2)]
    assert one(tmp_path, {"segments": [segment(block(4, "active_allocated"))], "device_traces": [freed]}).frees == 1


def test_several_devices_are_several_values(tmp_path: Path) -> None:
    found = {"segments": [segment(block(1, "inactive"), device=3)], "device_traces": [[], [event("alloc", 1, 5, 0)]]}
    assert [u.device for u in read_snapshot(write(tmp_path / "s", found))] == ["CUDA 1", "CUDA 3"]


nonsense = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                        lambda i: st.lists(i, max_size=4) | st.dictionaries(
                            st.sampled_from(["segments", "device_traces", "blocks", "frames", "state", "size", "history",
                                             "total_size", "action", "addr", "time_us", "filename", "line", "name"]), i),
                        max_leaves=25)  # fmt: skip


@given(nonsense, nonsense)
def test_any_content_gives_values_or_an_input_error(segments: Any, traces: Any) -> None:
    with TemporaryDirectory() as folder, suppress(InputError):
        found = read_snapshot(write(Path(folder) / "s", {"segments": segments, "device_traces": traces}))
        assert all(u.end_reserved >= 0 for u in found)


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 100_000, b"\x80\x04}.", b"no", b"\xff\xfe", b'{"segments": []}'])
def test_what_is_no_snapshot_is_an_input_error(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(InputError):
        read_snapshot(str(tmp_path / "x"))
    with pytest.raises(InputError):
        read_snapshot(str(tmp_path / "missing"))


def test_names_are_cleaned(tmp_path: Path) -> None:
    frames = [{"filename": "/a/\x1b[31mx.py", "line": 1, "name": "f\x00\n" + "y" * 5000}]
    use = one(tmp_path, {"segments": [segment(block(5, "active_allocated", frames))]})
    assert "\x1b" not in use.top[0][0]
    assert len(use.top[0][0]) < 1000


def test_snapshots_are_recognised() -> None:
    found = {"segments": [segment(block(5, "inactive"))], "device_traces": []}
    assert all(looks_like(pickle.dumps(found, p)[:4096]) for p in range(6))
    assert looks_like(json.dumps(found).encode()[:4096])
    assert looks_like(pickle.dumps(found["segments"])[:4096])
    assert not looks_like(pickle.dumps({"model": 1})[:4096])
    assert not looks_like(b'{"traceEvents": [{"name": "segments"}]}')
