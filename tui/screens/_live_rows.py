"""The tables of the live screen: GPUs, and the processes on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tui.tones import MARKS, Tone, of_severity
from tui.widgets.banner import age
from tui.widgets.columns import Cell, Column, Row

if TYPE_CHECKING:
    from assistant.live.frames import Frame, Gpu, Instance, Proc
    from assistant.live.timeline import Mark
    from assistant.live.track import Track

Say = Callable[[str, str], str]
_ORDER = ("info", "warning", "error", "critical")
SECOND = 10**9
OLD = 5 * SECOND  # a value that is older is shown with its age
# Readings that have a column where any GPU tells them; those with 0 always, for their absence is worth seeing. What works in a GPU
# stands beside how busy it is for as long as there is room: busy alone says nothing.
_METRICS = (
    ("utilization", "util", "利用率", 6, 0), ("sm_activity", "SM", "SM", 5, 1),
    ("tensor_activity", "tensor", "tensor", 6, 3), ("memory_bandwidth", "DRAM", "DRAM", 5, 4), ("memory_used", "memory", "显存", 11, 0),
    ("power", "power", "功耗", 9, 0), ("temperature", "temp", "温度", 8, 0), ("sm_clock", "clock", "时钟", 8, 5),
    ("pcie_rx", "PCIe in", "PCIe 入", 9, 9), ("nvlink_rx", "NVLink in", "NVLink 入", 9, 10), ("ecc_uncorrected", "ECC", "ECC", 3, 6),
)  # fmt: skip
_HELD = {  # what holds the clocks down, as short as it can be read
    "applications_clocks_setting": ("app clocks", "应用时钟"), "sw_power_cap": ("power cap", "功耗上限"),
    "hw_slowdown": ("HW slowdown", "硬件降频"), "sync_boost": ("sync boost", "同步加速"), "sw_thermal_slowdown": ("SW thermal", "软件过热降频"),
    "hw_thermal_slowdown": ("HW thermal", "硬件过热降频"), "hw_power_brake_slowdown": ("power brake", "功率刹车"),
    "display_clock_setting": ("display clocks", "显示时钟"),
}  # fmt: skip
_LIMITS = {
    "memory_used": "memory_total",
    "power": "power_limit",
    "temperature": "temperature_limit",
}  # shown beside them


def told(frame: Frame, track: Track | None) -> tuple[str, ...]:
    """The readings that have a column."""
    return tuple(
        key for key, _, _, _, keep in _METRICS
        if not keep or any(key in g.values or (track is not None and track.told(g.pci, key)) for g in frame.gpus)
    )  # fmt: skip


def gpu_columns(metrics: Sequence[str], remarked: bool, t: Say) -> tuple[Column, ...]:
    """The columns of the table of GPUs. `remarked`: something is said of one of them, and has room."""
    own = tuple(
        Column(key, t(en, zh), least=least, right=True, keep=keep)
        for key, en, zh, least, keep in _METRICS
        if key in metrics
    )
    return (
        Column("state", "", least=1), Column("gpu", "GPU", least=3), *own, Column("name", t("model", "型号"), least=5, most=24, keep=8),
        Column("events", t("remarks", "备注"), least=18 if remarked else 10, stretch=True),
    )  # fmt: skip


def gpu_rows(
    frame: Frame, metrics: Sequence[str], worst: Mapping[str, str], found: Mapping[str, Sequence[Mark]], until: int, t: Say
) -> list[Row]:  # fmt: skip
    """A row for each GPU, and below it one for each of its MIG instances. `worst`: the severity of the worst finding of each; `found`: what happened to it up to `until`."""
    out = []
    for g in frame.gpus:
        out.append(_gpu(g, metrics, worst.get(g.pci, ""), found.get(g.pci, ()), until, t))
        out += [_instance(g, n, i, metrics, frame, t) for n, i in enumerate(g.instances, 1)]
    return out


def _gpu(g: Gpu, metrics: Sequence[str], worst: str, found: Sequence[Mark], until: int, t: Say) -> Row:
    from assistant.live.words import gone

    stale = g.state == "silent"
    tone = Tone.CRITICAL if gone(g) else Tone.STALE if stale else of_severity(worst)
    cells = [
        Cell(MARKS.get(tone, " "), tone, _ORDER.index(worst) if worst in _ORDER else -1),
        Cell(number_of(g), Tone.STRONG, g.index if g.index is not None else g.pci),
        *(_reading(g, key) for key in metrics), Cell(g.name, Tone.DIM), _up(g, found, until, t),
    ]  # fmt: skip
    return Row(g.pci, tuple(cells), g, Tone.STALE if stale else Tone.PLAIN)


def gpu_of(row: Row) -> Gpu:
    """The GPU of a row; of a MIG instance the one that it is a part of."""
    found: Gpu = row.data[0] if isinstance(row.data, tuple) else row.data
    return found


def instance_of(row: Row) -> Instance | None:
    """The MIG instance of a row; None of a GPU."""
    found: Instance | None = row.data[1] if isinstance(row.data, tuple) else None
    return found


def number_of(g: Gpu) -> str:
    """``3``, else its address."""
    return str(g.index) if g.index is not None else g.pci[5:]


def _instance(g: Gpu, number: int, i: Instance, metrics: Sequence[str], frame: Frame, t: Say) -> Row:
    """A MIG instance. It has memory of its own, and no readings of power, heat or clocks: those are the GPU's."""
    from assistant.live.words import NONE, value, with_limit

    sort = g.index + number / 1000 if g.index is not None else f"{g.pci}/{number:03d}"
    used = Cell(NONE, Tone.DIM)
    if i.memory_used is not None and i.memory_total is not None:
        used = Cell(with_limit("memory_used", i.memory_used, i.memory_total), Tone.PLAIN, i.memory_used)
    elif i.memory_total is not None:
        used = Cell(value("memory_total", i.memory_total), Tone.DIM)
    count = sum(p.instances.get(g.pci) == i.id for p in frame.processes)
    busy = t(f"{count} process{'' if count == 1 else 'es'}", f"{count} 个进程") if count else t("no process", "无进程")
    said = " · ".join(filter(None, (f"MIG {i.profile}".rstrip(), busy)))
    cells = [
        Cell(""), Cell(f"{number_of(g)}/{i.id}", Tone.PLAIN, sort),
        *(used if key == "memory_used" else Cell("") for key in metrics), Cell(""),
        Cell(said, Tone.PLAIN if count else Tone.DIM),
    ]  # fmt: skip
    return Row(f"{g.pci}/{i.id}", tuple(cells), (g, i), Tone.STALE if g.state == "silent" else Tone.PLAIN)


def _up(g: Gpu, found: Sequence[Mark], until: int, t: Say) -> Cell:
    """What there is to say of a GPU: that it is gone; how old what stands there is; what holds its clocks down, and what
    happened to it last."""
    from assistant.live.words import gone, slowed

    if gone(g):
        return Cell(t("lost", "已丢失"), Tone.CRITICAL)
    if g.state:
        since = age(max(0, until - g.at) / SECOND)
        return Cell(
            t(f"no answer for {since}", f"无响应 {since}") if g.at else t("never answered", "从未应答"), Tone.STALE
        )
    held = held_by(g, t)
    event = _events(found, until, t)
    tone = of_severity(slowed(g)) if held else event.tone
    return Cell(" · ".join(filter(None, (held, event.text))), tone, event.sort if event.text else 0 if held else None)


def held_by(g: Gpu, t: Say) -> str:
    """What holds its clocks down; not the reason that only sums others up."""
    named = [r for r in g.reasons if r != "hw_slowdown"]
    telling = named if any(r.startswith("hw_") for r in named) else g.reasons
    return " + ".join(t(*_HELD[r]) if r in _HELD else r for r in telling)


def _reading(g: Gpu, key: str) -> Cell:
    from assistant.live.words import NONE, stands_out, value, with_limit

    number = g.value(key)
    if number is None:
        return Cell(NONE, Tone.DIM)
    limit = g.value(_LIMITS[key]) if key in _LIMITS else None
    text = with_limit(key, number, limit) if limit is not None else value(key, number)
    return Cell(text, of_severity(stands_out(g, key)), number)


def events(marks: Sequence[Mark]) -> dict[str, list[Mark]]:
    """For each GPU what happened to it, without what is only information."""
    found: dict[str, list[Mark]] = {}
    for mark in marks:
        if mark.gpu and mark.severity != "info":
            found.setdefault(mark.gpu, []).append(mark)
    return found


def _events(found: Sequence[Mark], until: int, t: Say) -> Cell:
    """The newest kind of event: its name, how often, how long ago."""
    if not found:
        return Cell("")
    last = found[-1]
    name = named(last)
    count = sum(named(m) == name for m in found)
    text = name + (f" ×{count}" if count > 1 else "") + f"  {age(max(0, until - last.at) / SECOND, t('ago', '前'))}"
    others = len({named(m) for m in found}) - 1
    return Cell(text + (f"  +{others}" if others else ""), of_severity(last.severity), last.at)


def named(mark: Mark) -> str:
    """``XID 79``; what the readings tell in their own words."""
    line = mark.line
    code = getattr(line.value, "code", None) if line is not None else None
    if line is None:
        return mark.text.partition(" ")[2].partition(" ")[2] or mark.text
    if code is not None and line.fact in ("xid", "sxid"):
        return f"{line.fact.upper()} {code}"
    return line.fact.replace("_", " ")


# --- processes ----------------------------------------------------------------------------

_OPTIONAL = (
    ("pod", "pod", "pod", 2),
    ("job", "job", "作业", 3),
    ("rank", "rank", "rank", 1),
    ("user", "user", "用户", 6),
)


def process_columns(frame: Frame, t: Say) -> tuple[Column, ...]:
    """The columns of the table of processes: of whose they are only what is known of any."""
    own = tuple(
        Column(key, t(en, zh), least=4, most=30, keep=keep) for key, en, zh, keep in _OPTIONAL
        if any(getattr(p, key) for p in frame.processes)
    )  # fmt: skip
    return (
        Column("pid", "PID", least=7, right=True), Column("gpu", "GPU", least=3, most=11), Column("memory", t("memory", "显存"), least=9, right=True),
        Column("share", "SM", least=5, right=True, keep=5), *own,
        Column("command", t("command", "命令"), least=14, stretch=True),
    )  # fmt: skip


def process_rows(frame: Frame, columns: Sequence[Column], only: str = "") -> list[Row]:
    """A row for each process; with `only` those on that GPU, or on that MIG instance of it (``PCI/ID``)."""
    keys = [c.key for c in columns if c.key in {o[0] for o in _OPTIONAL}]
    pci, _, part = only.partition("/")
    there = (p for p in frame.processes if not pci or pci in p.gpus)
    return [_process(p, frame, keys) for p in there if not part or p.instances.get(pci) == part]


def _process(p: Proc, frame: Frame, keys: Sequence[str]) -> Row:
    from assistant.live.words import NONE, program, value

    labels = []
    for pci in p.gpus:
        g = frame.gpu(pci)
        part = f"/{p.instances[pci]}" if pci in p.instances else ""
        label = (number_of(g) if g is not None else pci[5:]) + part
        labels.append((g.index if g is not None and g.index is not None else 999, label))
    labels.sort()
    memory = [m for m, _ in p.gpus.values() if m is not None]
    shares = [s for _, s in p.gpus.values() if s is not None]
    cells = (
        Cell(str(p.pid), Tone.STRONG, p.pid), Cell(",".join(text for _, text in labels), Tone.PLAIN, labels[0][0] if labels else None),
        Cell(value("memory_used", sum(memory)), Tone.PLAIN, sum(memory)) if memory else Cell(NONE, Tone.DIM),
        Cell(f"{max(shares):.0f} %", Tone.PLAIN, max(shares)) if shares else Cell(NONE, Tone.DIM),
        *(Cell(getattr(p, key)) for key in keys), Cell(program(p)),
    )  # fmt: skip
    return Row(str(p.pid), cells, p)
