"""How fast traces are read and summed up, next to HolisticTraceAnalysis on the same file.

    python bench/trace.py --size 1G --runs 3 --peer /path/to/python-with-hta
    python bench/trace.py --size 1G --source some_trace.json.gz
    python bench/trace.py --size 1G --stacks

builds a trace of that size (the events of `--source`, or of a generated training step, over and over with times and ids
moved on), then in child processes: our reader alone, reader and summary (what HolisticTraceAnalysis does for its
temporal breakdown), the whole command ``gpudiag trace summary`` (breakdown, causes of idle time, iterations, roofline,
memory, ranks, rules, output), reader and summary with msgspec instead of the compiled scanner, and with `--peer`
HolisticTraceAnalysis (parse and temporal breakdown). It prints medians of CPU seconds, MB of text per CPU second, wall
seconds and peak memory, and each one's CPU as a multiple of that of reader and summary and of the whole command.

Measured on two shared cores of a cloud machine. A trace of DLRM repeated to 1.2 GB (4.1 million events): reader and
summary 2.4 CPU s and 172 MB, the whole command 3.6 CPU s and 260 MB; HolisticTraceAnalysis, one run minutes before,
103 CPU s and 4.6 GB. The same to 9.8 GB, the whole command: 35 CPU s and 1.2 GB. A generated step with Python frames,
1.07 GB, the whole command: 2.9 CPU s and 270 MB.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
READ = "import sys; from probes.trace import summary; from probes.trace.reading.reader import read; t = read(sys.argv[1], summary.NEEDS); "
OURS = {
    "reader": (READ, ""),
    "reader and summary": (READ + "summary.summarise(t)", ""),
    "gpudiag trace summary": (
        "import sys; from assistant.cli import main; "
        "sys.exit(main(['trace', 'summary', '--format', 'json', '--quiet', sys.argv[1]]) not in (0, 1))",
        "",
    ),
    "reader and summary, msgspec": (READ + "summary.summarise(t)", "python"),
}
PEER = (
    "import sys; from hta.trace_analysis import TraceAnalysis; "
    "TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='').get_temporal_breakdown(visualize=False)"
)
STEP_NS = 50_000_000
_MOVED = re.compile(
    rb'("ts": ?"?)(-?[0-9]+)|("(?:correlation|External id|external id|Ev Idx|Python id|Python parent id|id)": ?)([0-9]+)'
)


@dataclass(frozen=True)
class Cost:
    """What one child process cost."""

    cpu_s: float
    wall_s: float
    rss_mb: float


def generated(stacks: bool) -> Iterator[str]:
    """One training step as Kineto writes it: operators, launches, kernels, the arrows between them, Python frames."""

    def event(cat: str, name: str, tid: int, ts: float, dur: float, args: str, ph: str = "X") -> str:
        return (
            f'{{\n    "ph": "{ph}", "cat": "{cat}", "name": "{name}", "pid": {0 if tid < 100 else 4242}, "tid": {tid},\n'
            f'    "ts": {1_690_000_000_000_000 + ts:.3f}, "dur": {dur:.3f},\n    "args": {{\n      {args}\n    }}\n  }}'
        )

    yield event("user_annotation", "ProfilerStep#1", 4242, 0, 49_000, '"External id": 1')
    for i in range(2000):
        at, name = i * 24.125, f"aten::op_{i % 40}"
        dims = (
            f'"External id": {i}, "Record function id": 0, "Input Dims": [[64, {i % 97}], [32, 16], []], "Ev Idx": {i}'
        )
        launch = f'"External id": {i}, "cbid": 211, "correlation": {i}'
        kernel = (
            f'"External id": {i}, "queued": 0, "device": 0, "context": 1, "stream": {7 + i % 2 * 13}, "correlation": {i},\n'
            '      "registers per thread": 32, "shared memory": 0, "blocks per SM": 1.5, "warps per SM": 12.25,\n'
            '      "grid": [162, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 44'
        )
        if stacks:
            for depth in range(4):
                args = f'"Python parent id": {depth}, "Python id": {i * 4 + depth}, "Ev Idx": {i}'
                yield event(
                    "python_function",
                    f"model/layer_{i % 50}.py({depth * 31}): forward_{depth}",
                    4242,
                    at + depth / 8,
                    20 - depth,
                    args,
                )
        yield event("cpu_op", name, 4242, at + 1, 18, dims)
        yield event("cpu_op", f"{name}_inner", 4242, at + 2, 15.5, dims)
        yield event("cuda_runtime", "cudaLaunchKernel", 4242, at + 5, 6.25, launch)
        yield event("kernel", f"void at::native::kernel_{i % 60}<float, 4>(int, float*)", 7, at + 30, 17.875, kernel)
        for ph in "sf":
            yield f'{{\n    "ph": "{ph}", "id": {i}, "pid": 4242, "tid": 4242, "ts": {1_690_000_000_000_000 + at:.3f},\n    "cat": "ac2g", "name": "ac2g"\n  }}'


def parts(source: str, stacks: bool) -> tuple[bytes, bytes, bytes]:
    """Head up to the opening bracket, the events, and the tail from the closing one."""
    if not source:
        head = '{\n  "schemaVersion": 1,\n  "distributedInfo": {"rank": 0, "world_size": 1},\n  "traceEvents": ['
        return head.encode(), ",\n  ".join(generated(stacks)).encode(), b'\n  ],\n  "traceName": "bench"\n}\n'
    sys.path.insert(0, str(ROOT))
    from probes.trace.columns import Strings
    from probes.trace.reading.decode import Decoder

    raw = Path(source).read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    begin = text.index(b"[", text.index(b'"traceEvents"')) + 1
    decoder = Decoder({}, Strings())
    decoder.feed(text[begin:], last=True)
    end = len(text) - len(decoder.rest)
    return text[:begin], text[begin:end].strip(b" ,\r\n\t"), text[end:]


def build(path: Path, size: int, source: str, stacks: bool) -> None:
    """Writes a trace of at least `size` bytes."""
    head, events, tail = parts(source, stacks)
    times = [int(m[2]) for m in _MOVED.finditer(events) if m[2]]
    span = max(times) - min(times) + 1000
    with path.open("wb") as out:
        out.write(head)
        copy = 0
        while not copy or out.tell() < size:
            by, on = copy * span, copy * 10_000_000

            def moved(m: re.Match[bytes], by: int = by, on: int = on) -> bytes:
                return m[1] + b"%d" % (int(m[2]) + by) if m[2] else m[3] + b"%d" % (int(m[4]) + on)

            out.write((b",\n  " if copy else b"") + (_MOVED.sub(moved, events) if copy else events))
            copy += 1
        out.write(tail)


def cost(python: str, code: str, path: Path, variable: str) -> Cost | None:
    """Runs `code` with the trace in a child process; None when it failed."""
    env = os.environ | {"GPUDIAG_TRACE_SCANNER": variable}
    begun = perf_counter()
    child = subprocess.Popen(
        [python, "-c", code, str(path)], cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        return None
    return Cost(used.ru_utime + used.ru_stime, perf_counter() - begun, used.ru_maxrss / 1024)


def measured(path: Path, runs: int, peer: str, peer_runs: int) -> dict[str, Cost]:
    """Medians of each way, whose runs are interleaved."""
    ways = {name: (sys.executable, *way, runs) for name, way in OURS.items()}
    if peer:
        ways["HolisticTraceAnalysis"] = (peer, PEER, "", peer_runs)
    found: dict[str, list[Cost]] = {name: [] for name in ways}
    for run in range(max(runs, peer_runs)):
        for name, (python, code, variable, times) in ways.items():
            if run < times and (one := cost(python, code, path, variable)) is not None:
                found[name].append(one)
    return {
        name: Cost(*(statistics.median(getattr(c, f) for c in costs) for f in ("cpu_s", "wall_s", "rss_mb")))
        for name, costs in found.items()
        if costs
    }


def size_of(text: str) -> int:
    """``1G``, ``50M`` or bytes."""
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    return int(float(text[:-1] if unit else text) * (1 << unit))


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=size_of, default=1 << 30, help="of the trace (1G)")
    parser.add_argument("--source", default="", help="a Kineto trace to repeat; default: a generated step")
    parser.add_argument("--stacks", action="store_true", help="the generated step has Python frames")
    parser.add_argument("--file", help="measure this trace as it is")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peer", default="", help="a Python that has HolisticTraceAnalysis")
    parser.add_argument("--peer-runs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="gpudiag-bench-") as folder:
        path = Path(args.file) if args.file else Path(folder) / "trace.json"
        if not args.file:
            build(path, args.size, args.source, args.stacks)
        mb = path.stat().st_size / 1e6
        found = measured(path, args.runs, args.peer, args.peer_runs)
    if args.json:
        print(json.dumps({"mb": mb, **{name: vars(one) for name, one in found.items()}}))
        return 0
    print(
        f"{mb:,.0f} MB\n{'':30}{'CPU s':>9}{'MB/CPU s':>10}{'wall s':>9}{'peak MB':>9}{'/ summary':>11}{'/ command':>11}"
    )
    ours = [found[name].cpu_s for name in ("reader and summary", "gpudiag trace summary")]
    for name, one in found.items():
        ratios = "".join(f"{one.cpu_s / cpu_s:11.1f}" for cpu_s in ours)
        print(f"{name:30}{one.cpu_s:9.2f}{mb / one.cpu_s:10.0f}{one.wall_s:9.2f}{one.rss_mb:9.0f}{ratios}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
