"""The document of the collector `processes` as records: what was read of each process, and what was not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from knowledge.record import dataclass
from knowledge.text import clean
from probes.parse._host_snapshot import mapping, mappings, whole, words
from probes.parse._process_place import Place, place_of

KTHREAD = 0x00200000  # PF_KTHREAD
# What CUDA and ROCm open to compute; a tool that only watches (nvidia-smi, exporters) does not.
COMPUTE = ("/dev/nvidia-uvm", "/dev/kfd")
STATES = {"R": "running", "S": "sleeping", "D": "blocked", "I": "idle", "T": "stopped", "t": "traced", "Z": "zombie",
          "X": "dead", "x": "dead", "P": "parked", "K": "sleeping", "W": "running"}  # fmt: skip
_NUMBERS = ("pid", "ppid", "uid", "flags", "start_ticks", "cpu_ticks", "threads", "rss_pages")


@dataclass(frozen=True, slots=True)
class Proc:
    """One process: its row of the table, and its details where there are any."""

    pid: int
    ppid: int
    uid: int
    name: str
    state: str
    flags: int
    start: int  # ticks since the boot
    cpu: int  # ticks
    later: int | None  # ticks at the second reading
    threads: int
    rss: int  # pages
    detail: Mapping[str, Any] = field(default_factory=dict)
    full: bool = False  # False: only the row, and the devices
    why: tuple[str, ...] = ()

    @property
    def kernel(self) -> bool:
        """A thread of the kernel: nobody's program."""
        return bool(self.flags & KTHREAD)

    @property
    def devices(self) -> Mapping[str, Any]:
        """GPU device files that it holds open."""
        return mapping(self.detail.get("devices"))

    @property
    def computes(self) -> bool:
        """Whether it holds what a program opens to run work on a GPU."""
        return any(path in self.devices for path in COMPUTE)

    @property
    def env(self) -> Mapping[str, str]:
        """The collected variables; none when the environment was not read."""
        found = mapping(self.detail.get("environ"))
        return {} if _said(found) else {k: clean(v) for k, v in found.items() if isinstance(v, str)}

    @property
    def place(self) -> Place:
        """Where its cgroup says that it runs."""
        return place_of(clean(line) for line in words(self.detail.get("cgroup")))

    def number(self, name: str) -> int | None:
        """A variable that is a whole number."""
        text = self.env.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else None


def _said(found: Mapping[str, Any]) -> bool:
    return set(found) == {"error"} or "hung" in found


def refusal(detail: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Why a part of a process's details could not be read, as `_host_snapshot.gap` takes it; empty when it was."""
    part = detail.get(name)
    if isinstance(part, dict) and _said(part):
        return part
    hung = detail.get("hung")
    if part is None and isinstance(hung, str):
        order = ("cmdline", "environ", "libraries")
        stuck = hung.rpartition("/")[2].replace("maps", "libraries")
        if name in order and stuck in order and order.index(stuck) <= order.index(name):
            return {"hung": hung, "seconds": 0.3}
    return {}


def processes(document: Mapping[str, Any]) -> dict[int, Proc]:
    """All processes of the document by pid. Rows that are none are left out."""
    columns = words(document.get("columns"))
    details: dict[int, tuple[Mapping[str, Any], bool]] = {}
    for key in ("light", "details"):
        for detail in mappings(document.get(key)):
            pid = whole(detail.get("pid"))
            if pid is not None:
                details[pid] = (detail, key == "details")
    rows = document.get("processes")
    out = {}
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, list) and len(row) == len(columns):
            proc = _proc(dict(zip(columns, row, strict=True)), details)
            if proc is not None:
                out[proc.pid] = proc
    return dict(sorted(out.items()))


def _proc(row: Mapping[str, Any], details: Mapping[int, tuple[Mapping[str, Any], bool]]) -> Proc | None:
    numbers = {name: whole(row.get(name)) for name in _NUMBERS}
    if any(value is None for value in numbers.values()):
        return None
    known = {name: value or 0 for name, value in numbers.items()}
    detail, full = details.get(known["pid"], ({}, False))
    return Proc(
        known["pid"], known["ppid"], known["uid"], clean(str(row.get("name"))), str(row.get("state")), known["flags"],
        known["start_ticks"], known["cpu_ticks"], whole(row.get("cpu_ticks_later")), known["threads"], known["rss_pages"],
        detail, full, tuple(words(detail.get("why"))),
    )  # fmt: skip


def ancestors(pid: int, procs: Mapping[int, Proc]) -> Iterator[Proc]:
    """Parents of a process, the nearest first. Never the process itself, and none twice."""
    seen = {pid}
    here = procs.get(pid)
    while here is not None and here.ppid not in seen:
        seen.add(here.ppid)
        here = procs.get(here.ppid)
        if here is not None:
            yield here
