"""Kernel and off-CPU stacks of running processes over a window: by perf or bpftrace where the machine permits one, else by looking at /proc.

Nothing runs in the targets. With perf and bpftrace they pay at each switch of a thread (bench/offcpu.py): so it is only done when it is asked for,
and /proc is looked at instead where threads are switched very often. Calls of a library (`launches`: cudaLaunchKernel) are counted by uprobe; each
call pays about 2 us then.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from probes.capture.model import Refusal
from probes.capture.offcpu import _offcpu_bpf, _offcpu_perf, _offcpu_samples, _offcpu_standing, _offcpu_why
from probes.capture.offcpu._offcpu_spans import Spans, Standing
from probes.capture.offcpu.offcpu_document import Launches, OffCpuDoc, OffThread, restored

__all__ = ["Launches", "OffCpuDoc", "OffThread", "Recording", "empty", "failure", "restored"]

TOOLS: Final = ("perf", "bpftrace", "samples")
# Switches a second, of all threads, above which a tool is left alone: each costs the job up to 10 us of perf and 20 us of bpftrace (bench/offcpu.py),
# so at most 2 % of one core.
BUSIEST: Final[Mapping[str, int]] = {"perf": 2000, "bpftrace": 500}
MOST_BPF: Final = 8  # processes whose launches are counted: each takes a bpftrace
_MARGIN = 5  # s that the tools would go on if nobody ended them
_LOOK = 0.1  # s over which the rate of switches is taken


def empty(code: str, detail: str = "", tool: str = "") -> OffCpuDoc:
    """The document of a recording that could not be made."""
    return {"tool": tool, "method": "", "began": 0, "ended": 0, "error": _offcpu_why.why(code, detail).why.en, "code": code,
            "detail": detail, "functions": [], "stacks": [], "threads": {}, "lost": 0, "cut": False, "launches": {}}  # fmt: skip


def failure(doc: OffCpuDoc) -> Refusal | None:
    """What a document lacks, in both languages with the remedy; None when it lacks nothing. With threads in it, it lacks only a part."""
    return _offcpu_why.why(doc["code"] or "failed", doc["detail"]) if doc["error"] else None


class Recording:
    """Records processes from `start` to `stop`, at most `seconds` and a little more if nobody stops it.

    ``with Recording([4242, 4243], 2.0) as r: time.sleep(2)``, then ``r.document``. `launches`: count the launches of CUDA's libraries too;
    `libraries` names others, with their functions. Never raises for what a tool or a target does.
    """

    def __init__(self, pids: Sequence[int], seconds: float = 2.0, *, launches: bool = False, libraries: Mapping[str, Sequence[str]] | None = None,
                 tools: Sequence[str] = TOOLS, busiest: Mapping[str, int] = BUSIEST) -> None:  # fmt: skip
        """`tools`: which are tried, in their order; `busiest`: switches a second above which one of them is not."""
        self.document: OffCpuDoc = empty("nothing")
        self._pids, self._seconds, self._tools, self._busiest = tuple(dict.fromkeys(pids)), seconds, tools, busiest
        self._libraries = dict(libraries or (_offcpu_bpf.LIBRARIES if launches else {}))
        self._folder = Path()
        self._perf: _offcpu_perf.Perf | None = None
        self._bpf: _offcpu_bpf.Bpf | None = None
        self._samples: _offcpu_samples.Samples | None = None
        self._counting: dict[int, _offcpu_bpf.Bpf] = {}
        self._launches: dict[str, Launches] = {}
        self._before: dict[int, Standing] = {}
        self._rate = 0.0  # switches a second
        self._why = ("", "")  # code and words: why a better tool was not used

    def __enter__(self) -> Recording:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when it records, or cannot: half a second, some seconds with bpftrace."""
        alive = _alive(self._pids)
        if not alive:
            self.document = empty("ended")
            return
        self._folder = Path(tempfile.mkdtemp(prefix="gpudiag-offcpu-"))
        ways = {"perf": self._start_perf, "bpftrace": self._start_bpf, "samples": self._start_samples}
        try:
            self._count(alive)
            if not any(ways[tool](alive) for tool in self._tools):
                self.document = empty(*self._why) if self._why[0] else empty("missing")
        except BaseException:
            self._end()
            raise

    def _start_perf(self, pids: Sequence[int]) -> bool:
        path = _offcpu_perf.program()
        if path is None:
            self._why = ("missing", "")
            return False
        if self._busy(pids, "perf"):
            return False
        for _ in range(2):
            perf = _offcpu_perf.Perf(path, pids, self._seconds + _MARGIN, self._folder)
            if perf.start():
                self._perf, self._before = perf, _offcpu_standing.look(pids)
                return True
            self._why = (perf.code, perf.detail)
            pids = _alive(pids)
            if perf.code != "ended" or not pids:  # one of them ended meanwhile: perf refuses all then
                break
        return False

    def _busy(self, pids: Sequence[int], tool: str) -> bool:
        """Whether threads are switched so often that a tool would slow them."""
        if not self._rate:
            count, at = _offcpu_standing.switches(pids), time.monotonic()
            time.sleep(_LOOK)
            self._rate = (_offcpu_standing.switches(pids) - count) / (time.monotonic() - at)
        if self._rate <= self._busiest[tool]:
            return False
        self._why = ("busy", f"{self._rate:.0f}")
        return True

    def _start_bpf(self, pids: Sequence[int]) -> bool:
        code = _offcpu_bpf.refused()
        if code:
            if not self._why[0] or (self._why[0] == "missing" and code != "bpftrace-missing"):
                self._why = (code, "")
            return False
        if self._busy(pids, "bpftrace"):
            return False
        standing = _offcpu_standing.look(pids)
        text = _offcpu_bpf.switches(pids, math.ceil(self._seconds) + _MARGIN, standing)
        bpf = _offcpu_bpf.Bpf(text, self._folder, "switches")
        if bpf.start():
            self._bpf, self._before = bpf, _offcpu_standing.look(pids)
            return True
        bpf.kill()
        self._why = self._why if self._why[0] else (bpf.code, bpf.detail)
        return False

    def _start_samples(self, pids: Sequence[int]) -> bool:
        self._samples = _offcpu_samples.Samples(pids, self._seconds + _MARGIN)
        self._samples.start()
        return True

    def _count(self, pids: Sequence[int]) -> None:
        """Begins to count launches."""
        code = _offcpu_bpf.refused()
        for pid in pids[:MOST_BPF] if self._libraries else ():
            path, name = _offcpu_bpf.library_of(pid, self._libraries)
            if code or not path:
                self._launches[str(pid)] = _offcpu_bpf.none(code or "no-library")
                continue
            for symbols in (
                [*self._libraries[name]],
                [*self._libraries[name]][:1],
            ):  # older libraries lack the later functions
                text = _offcpu_bpf.launches(pid, path, symbols, math.ceil(self._seconds) + _MARGIN)
                bpf = _offcpu_bpf.Bpf(text, self._folder, f"launches-{pid}", pid, as_json=True)
                if bpf.start():
                    self._counting[pid] = bpf
                    self._launches[str(pid)] = {**_offcpu_bpf.none("nothing"), "library": path, "symbols": symbols}
                    break
                bpf.kill()
                self._launches[str(pid)] = _offcpu_bpf.none(bpf.code, bpf.detail, path)

    def stop(self) -> OffCpuDoc:
        """Ends the recording and reads it: some tenths of a second, and more where there was much."""
        try:
            if self._perf is not None:
                self._read_perf(self._perf)
            elif self._bpf is not None:
                self._read_bpf(self._bpf)
            elif self._samples is not None:
                self._samples.stop()
                code, detail = self._why
                spans = self._samples.spans
                if spans.blind and not spans.stacks:
                    code, detail = "no-stacks", ""
                self._made(
                    spans,
                    self._samples.tool,
                    "samples",
                    (self._samples.began, self._samples.ended),
                    self._samples.last,
                    code,
                    detail,
                )
            for pid, bpf in self._counting.items():
                counts, stacks = _offcpu_bpf.read_launches(bpf.stop())
                self._launches[str(pid)] |= {
                    "counts": counts,
                    "stacks": stacks,
                    "began": bpf.began,
                    "ended": bpf.ended,
                    "error": "",
                    "code": "",
                }
            self.document["launches"] = self._launches
        finally:
            self._end()
        return self.document

    def _read_perf(self, perf: _offcpu_perf.Perf) -> None:
        after = _offcpu_standing.look(self._pids)
        if not perf.stop():
            self.document = empty(perf.code or "failed", perf.detail, perf.tool)
            return
        spans = perf.spans()
        code = "no-symbols" if spans.stacks and set(spans.functions) <= {"?"} else ""
        self._made(spans, perf.tool, perf.method, (perf.began, perf.ended), after, code)

    def _read_bpf(self, bpf: _offcpu_bpf.Bpf) -> None:
        after = _offcpu_standing.look(self._pids)
        text, spans = bpf.stop(), Spans(self._pids)
        _offcpu_bpf.read(spans, text, self._before, after, bpf.ended)
        spans.cut |= len(text) >= _offcpu_bpf.LARGEST
        self._made(spans, bpf.tool, "bpftrace", (bpf.began, bpf.ended), after, bpf.code)

    def _made(
        self,
        spans: Spans,
        tool: str,
        method: str,
        window: tuple[int, int],
        after: Mapping[int, Standing],
        code: str,
        detail: str = "",
    ) -> None:
        threads = spans.threads(*window, self._before, after)
        code = code or ("" if threads else "nothing")
        self.document = {
            **empty(code or "nothing", detail, tool), "error": _offcpu_why.why(code, detail).why.en if code else "", "code": code,
            "method": method, "began": window[0], "ended": window[1], "functions": spans.functions, "stacks": spans.stacks,
            "threads": threads, "lost": spans.lost, "cut": spans.cut,
        }  # fmt: skip

    def _end(self) -> None:
        if self._samples is not None:
            self._samples.stop()
        for one in (self._perf, self._bpf, *self._counting.values()):
            if one is not None:
                one.kill()
        self._perf, self._bpf, self._samples, self._counting = None, None, None, {}
        if self._folder.name:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = Path()


def _alive(pids: Sequence[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}/task").exists()]
