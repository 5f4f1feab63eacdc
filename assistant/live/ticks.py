"""From what the collector `gpu_samples --stream` prints to frames. Pure but for what it remembers of the lines before.

A GPU that hangs in a call, and all of them while the collector says nothing, keep their last good values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from assistant.live.frames import LOST, METRICS, SILENT, Frame, Gpu, Instance, Proc, unresponsive
from knowledge.identity import normalise_pci
from knowledge.language import NO_TEXT, Text

HANGS_AFTER = 3.0  # seconds in one call: no call of a driver that works takes as long
# What the collector calls a series -> metric, and what one of its units is in the metric's.
_SERIES: Mapping[str, tuple[str, float]] = {
    "utilization": ("utilization", 1.0), "sm_activity": ("sm_activity", 1.0), "tensor_activity": ("tensor_activity", 1.0),
    "memory_bandwidth": ("memory_bandwidth", 1.0), "memory_used": ("memory_used", 1.0), "memory_total": ("memory_total", 1.0),
    "power_mw": ("power", 1e-3), "power_limit_mw": ("power_limit", 1e-3), "temperature": ("temperature", 1.0),
    "temperature_slowdown": ("temperature_limit", 1.0), "memory_temperature": ("memory_temperature", 1.0), "sm_clock": ("sm_clock", 1.0),
    "sm_clock_max": ("sm_clock_max", 1.0), "memory_clock": ("memory_clock", 1.0), "pcie_tx_kbs": ("pcie_tx", 1e3),
    "pcie_rx_kbs": ("pcie_rx", 1e3), "nvlink_tx": ("nvlink_tx", 1.0), "nvlink_rx": ("nvlink_rx", 1.0), "pcie_width": ("pcie_width", 1.0),
    "pcie_width_max": ("pcie_width_max", 1.0), "pcie_generation": ("pcie_generation", 1.0), "ecc_uncorrected": ("ecc_uncorrected", 1.0),
    "ecc_corrected": ("ecc_corrected", 1.0), "fan": ("fan", 1.0),
}  # fmt: skip
_OF = {metric: series for series, (metric, _) in _SERIES.items()}
_GPM = frozenset(
    {"sm_activity", "tensor_activity", "memory_bandwidth"}
)  # the reason for all of them stands under "gpm"
_SHARED = {"memory_total": "memory_used"}  # told by the same call
_NO_DRIVER = ("NVML_ERROR_DRIVER_NOT_LOADED", "NVML_ERROR_LIBRARY_NOT_FOUND")


class Ticks:
    """The frames of one machine."""

    def __init__(self, host: str = "") -> None:
        self.host = host
        self._gpus: dict[str, Gpu] = {}  # as they were when they last answered, in the order of the collector
        self._first: dict[str, int] = {}
        self._pids: dict[int, dict[str, tuple[int | None, float | None]]] = {}
        self._places: dict[int, dict[str, str]] = {}  # MIG instances of processes, by GPU
        self._known: dict[int, Proc] = {}

    @property
    def pids(self) -> frozenset[int]:
        """The processes on GPUs at the last look."""
        return frozenset(self._pids)

    def know(self, known: Mapping[int, Proc]) -> None:
        """Who the processes are, by process id."""
        self._known = dict(known)

    def frame(self, line: Mapping[str, Any]) -> Frame | None:
        """The frame of one line; None of a header, and of a line that has nothing to show yet."""
        self.host = self.host or str(line.get("host", ""))
        if "status" in line:
            why = str(line.get("detail", ""))
            return Frame(int(line["at"]), self.host, (), (), no_driver(why))
        if "gpus" not in line:
            call, seconds = line.get("now", ("", 0.0))
            return self.silent(int(line["at"]), unresponsive(call, "", seconds)) if seconds >= HANGS_AFTER else None
        at = int(line["at"])
        rows = line["gpus"]
        gpus = tuple(self._gpu(row, self._first.setdefault(_address(row), at)) for row in rows)
        self._gpus = {g.pci: self._gpus[g.pci] for g in gpus}  # after a reset there may be fewer, or others
        self._pids, self._places = {}, {}
        for row in rows:
            for pid, memory, share, *place in row.get("p", ()):
                self._pids.setdefault(pid, {})[_address(row)] = (memory, share)
                if place:
                    self._places.setdefault(pid, {})[_address(row)] = instance_id(*place)
        return Frame(at, self.host, gpus, self._processes(), _trouble(rows, gpus))

    def silent(self, at: int, trouble: Text) -> Frame:
        """A frame while nothing is told: the last good values."""
        return Frame(
            at, self.host, tuple(replace(g, state=SILENT) for g in self._gpus.values()), self._processes(), trouble
        )

    def _gpu(self, row: Mapping[str, Any], first: int) -> Gpu:
        """`first`: when it was first asked, for one that never answered."""
        pci = _address(row)
        old = self._gpus.get(pci)
        call, seconds = row.get("now") or ("", 0.0)
        if seconds >= HANGS_AFTER:
            return self._gone(row, old or _unheard(row, first), f"timeout: {call} has not returned", SILENT)
        if row.get("state") == LOST:
            why = _reason(row.get("m", {}).get("device") or next(iter(row.get("m", {}).values()), None))
            return self._gone(row, old or _unheard(row, first), why or "failed: the GPU is lost", LOST)
        values = {_SERIES[s][0]: v * _SERIES[s][1] for s, v in row.get("v", {}).items() if s in _SERIES}
        _slowdown(row.get("v", {}), values)
        why = "not_asked: it has not answered yet" if "v" not in row else "not_asked: it was not told yet"
        absent = {key: _missing(key, row.get("m", {}), why) for key in METRICS if key not in values}
        missing = old.missing if old is not None and old.missing == absent else absent  # kept once for all frames
        found = Gpu(
            pci, row.get("index"), str(row.get("uuid", "")), str(row.get("name", "")), values, missing,
            reasons(row.get("r") or 0), "", int(row["at"]) if "v" in row else first, _instances(row.get("i", ()), old),
        )  # fmt: skip
        if "v" in row or old is None:
            self._gpus[pci] = found
        return found

    def _gone(self, row: Mapping[str, Any], old: Gpu, why: str, state: str) -> Gpu:
        """One that does not answer keeps its last good values, which `at` tells the age of; one that is lost has none."""
        pci = _address(row)
        self._gpus.setdefault(pci, old)
        values = {} if state == LOST else old.values
        missing = {key: why for key in METRICS if key not in values}
        lost = state == LOST
        return replace(
            old, state=state, values=values, missing=missing, reasons=() if lost else old.reasons,
            instances=() if lost else old.instances,
        )  # fmt: skip

    def _processes(self) -> tuple[Proc, ...]:
        found = []
        for pid, gpus in sorted(self._pids.items()):
            known = self._known.get(pid)
            places = self._places.get(pid, {})
            found.append(replace(known or Proc(pid), gpus=gpus, instances=places))
        return tuple(found)


def instance_id(instance: int, compute: int) -> str:
    """As the parsers call it: the GPU instance, and the compute instance unless it is 0."""
    return f"{instance}/{compute}" if compute else str(instance)


def _instances(rows: Iterable[list[Any]], old: Gpu | None) -> tuple[Instance, ...]:
    """The MIG instances; the same tuple as before where nothing differs."""
    found = tuple(
        Instance(
            instance_id(gi, ci), index, name.rpartition("MIG ")[2] if "MIG " in name else "", uuid,
            None if used is None else float(used), None if total is None else float(total),
        )
        for index, gi, ci, uuid, name, used, total in rows
    )  # fmt: skip
    return old.instances if old is not None and old.instances == found else found


def _unheard(row: Mapping[str, Any], first: int) -> Gpu:
    return Gpu(_address(row), row.get("index"), str(row.get("uuid", "")), str(row.get("name", "")), at=first)


def _address(row: Mapping[str, Any]) -> str:
    return normalise_pci(row["pci"]) if row.get("pci") else f"index:{row.get('index')}"


def _slowdown(told: Mapping[str, float], values: dict[str, float]) -> None:
    """Where a GPU tells only the distance from its limit: the core's temperature, and how far below slowing down it is."""
    if "temperature_limit" not in values and {"temperature_margin", "slowdown_margin", "margin_at"} <= told.keys():
        values["temperature_limit"] = told["margin_at"] + told["temperature_margin"] - told["slowdown_margin"]


def _missing(metric: str, why: Mapping[str, Any], otherwise: str) -> str:
    series = _OF.get(metric, metric)
    for name in (series, _SHARED.get(series, ""), "gpm" if series in _GPM else "", "device"):
        if name in why:
            return _reason(why[name])
    return otherwise


def _reason(why: Mapping[str, Any] | None) -> str:
    return f"{why.get('status', 'failed')}: {why.get('detail', '')}" if why else ""


@cache
def reasons(mask: int) -> tuple[str, ...]:
    """What holds the clocks down, by the names of the catalogue; that nothing runs is no reason."""
    from knowledge.catalog.clock_events import decode

    return tuple(e.id for e in decode(mask)[0] if e.id != "gpu_idle")


def _trouble(rows: list[Mapping[str, Any]], gpus: tuple[Gpu, ...]) -> Text:
    """The calls that hang; the longest is named."""
    hung = [
        (row["now"][1], row["now"][0], g)
        for row, g in zip(rows, gpus, strict=True)
        if g.state == SILENT and row.get("now")
    ]
    if not hung:
        return NO_TEXT
    seconds, call, first = max(hung, key=lambda h: (h[0], h[2].pci))
    who = f"{first.label}" if len(hung) == 1 else ""
    said = unresponsive(call, who, seconds)
    if len(hung) == 1:
        return said
    return Text(f"{said.en} ({len(hung)} GPUs do not answer)", f"{said.zh}（{len(hung)} 块 GPU 无响应）")


def no_driver(why: str) -> Text:
    """What is said where no GPU can be asked."""
    if not why.startswith(_NO_DRIVER):
        return Text(f"the GPUs cannot be read: {why}", f"无法读取 GPU：{why}")
    return Text(f"no NVIDIA driver: {why}", f"没有 NVIDIA 驱动：{why}")


NO_GPU = Text("the NVIDIA driver knows of no GPU", "NVIDIA 驱动未发现 GPU")


def nothing_said(seconds: float) -> Text:
    """What is said while the collector runs and says nothing."""
    return Text(
        f"driver unresponsive: no reading of the GPUs for {seconds:.0f} s",
        f"驱动无响应：已 {seconds:.0f} 秒没有 GPU 读数",
    )


def broke_off(why: str, pause: float, hangs: bool = False) -> Text:
    """What is said between two collectors. `hangs`: none is started, because an earlier one cannot be killed."""
    if hangs:
        return Text(f"driver unresponsive: {why}", f"驱动无响应：{why}")
    return Text(
        f"the readings of the GPUs broke off, the collector {why}; it is started again in {pause:.0f} s",
        f"GPU 读数中断（采集进程：{why}）；{pause:.0f} 秒后重新启动",
    )
