"""Documents of stacks and of thread states, made by hand: a program, its data loader, a worker, a server."""

from __future__ import annotations

from typing import Any

from probes.capture.stacks.stack_document import StackDoc

MS = 1_000_000
SITE = "/opt/env/lib/python3.11/site-packages/"
TRAIN, DATA, UTIL = "/home/ana/train.py", "/home/ana/data.py", "/home/ana/util.py"
FRAMES = [
    ["<module>", TRAIN, 90],  # 0
    ["train", TRAIN, 42],
    ["_BaseDataLoaderIter.__next__", SITE + "torch/utils/data/dataloader.py", 733],
    ["_MapDatasetFetcher.fetch", SITE + "torch/utils/data/_utils/fetch.py", 54],
    ["decode_slowly", DATA, 7],
    ["decode_slowly", DATA, 8],  # 5
    ["burn", UTIL, 3],
    ["Linear.forward", SITE + "torch/nn/modules/linear.py", 130],
    ["Event.wait", "/usr/lib/python3.11/threading.py", 600],
    ["all_reduce", SITE + "torch/distributed/distributed_c10d.py", 2800],
    ["train", TRAIN, 43],  # 10
    ["_worker_loop", SITE + "torch/utils/data/_utils/worker.py", 300],
    ["get", "/usr/lib/python3.11/queue.py", 100],
    ["poll", "/home/ana/serve.py", 5],
]  # fmt: skip
STACKS = [
    [],
    [0, 1],
    [0, 1, 2],
    [0, 1, 2, 3, 4],
    [0, 1, 2, 3, 5],
    [0, 1, 2, 3, 5, 6],
    [0, 1, 7],
    [8],
    [0, 10, 9],
    [0, 11, 3, 4],
    [0, 11, 12],
    [0, 13, 8],
    [0, 10, 6],  # the helper that the data set calls too
]


def document(samples: list[tuple[int, int]], tid: str = "7", **more: Any) -> StackDoc:
    """Spans of ms and stack, one behind the other."""
    rows, at = [], 0
    for ms, stack in samples:
        rows.append([at, ms * MS, stack])
        at += ms * MS
    threads = {tid: {"name": "MainThread", "samples": rows}} | more.get("threads", {})
    return {
        "tool": "py-spy",
        "rate": 50,
        "began": 0,
        "ended": at,
        "error": "",
        "frames": FRAMES,
        "stacks": STACKS,
        "threads": threads,
    }


def readings(states: list[str | None]) -> dict[str, Any]:
    row = {"state": states, "syscall": [202] * len(states), "gil": [i % 2 for i in range(len(states))]}
    return {"hz": 50, "at": [i * 20 * MS for i in range(len(states))], "rows": {"7": {"7": row}}}
