"""Facts from samples of GPUs over a window: how busy their parts were, what slowed them, and who else used them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from knowledge.derive.working import in_waves
from knowledge.observation import Observation, Status, Subject, gpu
from knowledge.text import clean, digits
from probes.capture.model import Target
from probes.capture.readings import timebase
from probes.capture.readings._telling import Gap, Teller, Told, Window, begun, gap, inside, known, mapping

PROBE = "gpu-samples"
# fact, series, factor to the fact's unit, NVML's function
MEANS = (
    ("gpu.window.utilization", "utilization", 1.0, "nvmlDeviceGetUtilizationRates"),
    ("gpu.window.sm_activity", "sm_activity", 1.0, "nvmlGpmMetricsGet(SM_UTIL)"),
    ("gpu.window.tensor_activity", "tensor_activity", 1.0, "nvmlGpmMetricsGet(ANY_TENSOR_UTIL)"),
    ("gpu.window.memory_bandwidth", "memory_bandwidth", 1.0, "nvmlGpmMetricsGet(DRAM_BW_UTIL)"),
    ("gpu.window.pcie.rx", "pcie_rx_kbs", 1000.0, "PCIe throughput"),
    ("gpu.window.pcie.tx", "pcie_tx_kbs", 1000.0, "PCIe throughput"),
    ("gpu.window.nvlink.rx", "nvlink_rx", 1.0, "NVLink throughput"),
    ("gpu.window.nvlink.tx", "nvlink_tx", 1.0, "NVLink throughput"),
)
# fact, bits of the clock event reasons (nvml.h: nvmlClocksEventReason*), the driver's counters of the same
REASONS = (
    ("gpu.window.power_cap.share", 0x4, ("sw_power_cap",)),
    ("gpu.window.hw_slowdown.share", 0x8, ()),
    ("gpu.window.thermal.share", 0x20 | 0x40, ("sw_thermal", "hw_thermal")),
    ("gpu.window.power_brake.share", 0x80, ("hw_power_brake",)),
)
FACTS = (
    *(m[0] for m in MEANS), "gpu.window.waves", *(r[0] for r in REASONS), "gpu.window.power.share", "gpu.window.clock.share",
    "gpu.window.temperature.max", "gpu.window.others.share", "gpu.window.others.memory",
)  # fmt: skip
FOREIGN = "NVML counts processes by numbers of another pid namespace: run gpudiag on the node itself"


def observations(
    document: Mapping[str, Any], targets: Sequence[Target], host: str, *, window: Window | None = None
) -> list[Observation]:
    """What the samples say of each GPU that the targets use; of every GPU where none of them names one.

    `window` is the part that counts (monotonic ns), by default all that was sampled. Processes that are no target, and no
    helper of one, are others. Never raises; GPUs that could not be asked give each fact with the reason.
    """
    tell = Teller(PROBE, begun(document, window))
    wanted = {address for t in targets for address in t.gpus}
    devices = {str(k): mapping(v) for k, v in mapping(document.get("devices")).items()}
    why = gap(document) if "status" in document else None
    for address in sorted(wanted - set(devices)):
        told = why or Gap(Status.FAILED, "NVML does not list this GPU")
        for fact in FACTS:
            tell.add(fact, gpu(address, host), told)
    ours = {p.pid for t in targets for p in (t.process, *t.helpers)}
    at = timebase.times(document.get("at"))
    for address, device in sorted(devices.items()):
        if not wanted or address in wanted:
            users = {t.process.pid for t in targets if address in t.gpus}
            _device(tell, gpu(clean(address), host), device, at, (ours, users), window)
    return tell.out


def in_windows(document: Mapping[str, Any], address: str, name: str, spans: Any) -> timebase.Values:
    """Mean of a series of a GPU within each window (as the SM clock in each iteration); NaN where it was not sampled."""
    at = timebase.times(document.get("at"))
    series = mapping(mapping(mapping(document.get("devices")).get(address)).get("series"))
    return timebase.means(at, timebase.column(series.get(name), len(at)), spans)


def _device(
    tell: Teller, subject: Subject, device: Mapping[str, Any], at: timebase.Times, pids: tuple[Collection[int], Collection[int]],
    window: Window | None,
) -> None:  # fmt: skip
    series, keep = mapping(device.get("series")), inside(at, window)
    for fact, name, factor, call in MEANS:
        values = known(series.get(name), keep) * factor
        told: Told = float(values.mean()) if len(values) else _why(series, name, device)
        tell.add(fact, subject, told, call, _shown(name, values))
    busy = known(series.get("utilization"), keep)
    up_and_down: Told = in_waves(busy.tolist()) if len(busy) else _why(series, "utilization", device)
    tell.add("gpu.window.waves", subject, up_and_down, MEANS[0][3], _shown("utilization", busy))
    _share(tell, subject, series, keep, device)
    for fact, bits, counters in REASONS:
        masks = known(series.get("reasons"), keep).astype(np.int64)
        hits = int(np.count_nonzero(masks & bits))
        told = 100.0 * hits / len(masks) if len(masks) else _why(series, "reasons", device)
        shown = (
            f"{hits} of {len(masks)} samples have a reason of {bits:#x}{_counted(device, counters)}"
            if len(masks)
            else ""
        )
        tell.add(fact, subject, told, "nvmlDeviceGetCurrentClocksEventReasons", shown)
    heat = known(series.get("temperature"), keep)
    told = float(heat.max()) if len(heat) else _why(series, "temperature", device)
    tell.add("gpu.window.temperature.max", subject, told, "nvmlDeviceGetTemperature", _shown("temperature", heat))
    _others(tell, subject, device, pids, window)


def _share(tell: Teller, subject: Subject, series: Mapping[str, Any], keep: Any, device: Mapping[str, Any]) -> None:
    """Power and clock as a share of what is allowed and what is possible; limits are read less often than the window is long."""
    instant = known(series.get("power_instant_mw"), keep)
    drawn = (
        instant if len(instant) else known(series.get("power_mw"), keep)
    )  # the latter is a mean of the last second on some
    name = "power_instant_mw" if len(instant) else "power_mw"
    pairs = (
        ("gpu.window.power.share", drawn, name, "power_limit_mw", "nvmlDeviceGetPowerUsage"),
        (
            "gpu.window.clock.share",
            known(series.get("sm_clock"), keep),
            "sm_clock",
            "sm_clock_max",
            "nvmlDeviceGetClockInfo(SM)",
        ),
    )
    for fact, values, what, limit, call in pairs:
        most = known(series.get(limit), np.ones(len(keep), bool))
        told: Told = _why(series, what if not len(values) else limit, device)
        shown = ""
        if len(values) and len(most) and most[-1] > 0:
            told = float(100.0 * values.mean() / most[-1])
            shown = f"{_shown(what, values)}; {limit} {most[-1]:.0f}"
        tell.add(fact, subject, told, call, shown)


def _others(
    tell: Teller,
    subject: Subject,
    device: Mapping[str, Any],
    pids: tuple[Collection[int], Collection[int]],
    window: Window | None,
) -> None:
    ours, users = pids
    read, held = device.get("processes"), mapping(device.get("memory"))
    rows = [r for r in read if _row(r)] if isinstance(read, list) else []
    holding = {pid: number for pid in held if (number := digits(pid)) is not None}
    seen = {r[1] for r in rows} | {*holding.values()}
    foreign = bool(users) and bool(seen) and not seen & set(ours)
    _others_share(tell, subject, read, rows, ours, foreign, window)
    call = "nvmlDeviceGetComputeRunningProcesses"
    why = gap(held) if "status" in held else None
    theirs = {pid: mapping(held[pid]).get("last") for pid, number in holding.items() if number not in ours}
    told: Told = sum(v for v in theirs.values() if isinstance(v, int))
    if why or foreign:
        told = why or Gap(Status.UNSUPPORTED, FOREIGN)
    elif any(v is None for v in theirs.values()):
        told = Gap(
            Status.UNSUPPORTED, f"the memory of process {next(p for p, v in theirs.items() if v is None)} is not told"
        )
    tell.add(
        "gpu.window.others.memory",
        subject,
        told,
        call,
        ", ".join(f"{p}: {v} bytes" for p, v in list(theirs.items())[:6]),
    )


def _others_share(
    tell: Teller,
    subject: Subject,
    read: object,
    rows: Sequence[Any],
    ours: Collection[int],
    foreign: bool,
    window: Window | None,
) -> None:
    """Sum over the others of the mean of the driver's samples of each."""
    low, high = window or (0, 1 << 62)
    use: dict[int, list[float]] = {}
    for at, pid, sm, *_ in rows:
        if low <= at <= high:
            use.setdefault(pid, []).append(float(sm))
    # the driver has one sample a process and period: a process without one in a period has not used the GPU in it
    periods = max((len(v) for v in use.values()), default=0)
    shares = {pid: sum(v) / periods for pid, v in use.items() if pid not in ours}
    told: Told = float(min(sum(shares.values()), 100.0))
    if why := gap(read):
        told = why
    elif foreign:
        told = Gap(Status.UNSUPPORTED, FOREIGN)
    shown = ", ".join(f"{pid}: {share:.1f} % of {periods} samples" for pid, share in sorted(shares.items())[:6])
    tell.add("gpu.window.others.share", subject, told, "nvmlDeviceGetProcessUtilization", shown)


def _row(row: object) -> bool:
    return isinstance(row, list) and len(row) == 6 and all(isinstance(v, int) for v in row)


def _why(series: Mapping[str, Any], name: str, device: Mapping[str, Any]) -> Gap:
    """Why there is no value of a series."""
    stopped = device.get("stopped") or device.get("detail")
    if found := gap(series.get(name), clean(str(stopped)) if stopped else "it was not read"):
        return found
    return Gap(Status.FAILED, clean(str(stopped)) if stopped else "no sample lies within the window")


def _shown(name: str, values: Any) -> str:
    return (
        f"{name}: {len(values)} samples, {values.min():g} to {values.max():g}, mean {values.mean():.1f}"
        if len(values)
        else ""
    )


def _counted(device: Mapping[str, Any], names: Sequence[str]) -> str:
    """The driver's own counter of the time, where it has one."""
    parts = []
    for name in names:
        rows = [r for r in mapping(device.get("counters_ns")).get(name) or () if isinstance(r, list) and len(r) == 2]
        if len(rows) > 1:
            parts.append(
                f"{name} {(rows[-1][1] - rows[0][1]) / 1e6:.0f} ms of {(rows[-1][0] - rows[0][0]) / 1e9:.2f} s"
            )
    return "; the driver counted " + ", ".join(parts) if parts else ""
