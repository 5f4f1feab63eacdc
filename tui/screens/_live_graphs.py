"""The plots of the live screen: which there are for a GPU, and what each shows at a moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from knowledge.record import dataclass
from tui.screens._live_rows import held_by
from tui.tones import Tone, of_severity
from tui.widgets.braille import SILENT, Bins, Scale, known
from tui.widgets.panel import Graph, Panels
from tui.widgets.replay import clock

if TYPE_CHECKING:
    from assistant.live.frames import Gpu
    from assistant.live.timeline import Mark
    from tui.feed import Feed

SPANS = (60, 300, 900, 3600)  # seconds that the plots reach back
SECOND = 10**9
HOLD = 2  # columns that a value is kept for: samples do not come to the millisecond
COLD = 20.0  # °C at the lower edge of a plot of temperatures
_ORDER = ("info", "warning", "error", "critical")


class Shown(NamedTuple):
    """One kind of plot."""

    metric: str
    second: str = ""  # the metric of the other curve
    fold: str = "max"  # of the samples in a column: what is looked for in it
    always: bool = False  # shown with the reason where nobody tells it


SHOWN = (
    Shown("utilization", "sm_activity", "mean", True), Shown("power", "", "max", True), Shown("temperature", "", "max", True),
    Shown("sm_clock", "", "min", True), Shown("memory_used", "", "max", True), Shown("tensor_activity", "memory_bandwidth", "mean"),
    Shown("pcie_rx", "pcie_tx", "mean"), Shown("nvlink_rx", "nvlink_tx", "mean"), Shown("memory_temperature"), Shown("fan"),
)  # fmt: skip
_SHORT = {  # titles that leave room for a second one
    "tensor_activity": ("Tensor cores", "Tensor Core"), "pcie_rx": ("PCIe in", "PCIe 入"), "nvlink_rx": ("NVLink in", "NVLink 入"),
    "sm_activity": ("SM", "SM"), "memory_bandwidth": ("DRAM", "显存"), "pcie_tx": ("out", "出"), "nvlink_tx": ("out", "出"),
}  # fmt: skip


@dataclass
class Shelf:
    """Columns of the curves that are shown: each new sample is added to them, and only another view makes them anew."""

    width: int = 0  # ns of a column
    count: int = 0
    _bins: dict[tuple[str, str], tuple[Bins, int]] = field(default_factory=dict)

    def fit(self, width: int, count: int) -> None:
        """Columns of another size."""
        if (width, count) != (self.width, self.count):
            self.width, self.count = width, count
            self._bins.clear()

    def clear(self) -> None:
        """Another source."""
        self._bins.clear()

    def columns(self, feed: Feed, pci: str, metric: str, fold: str) -> list[float | None]:
        """The columns up to the moment of the feed; "held": 1 where reasons held the clocks down."""
        return self._filled(feed, pci, metric, fold).columns(feed.until // self.width, self.count, HOLD)

    def _filled(self, feed: Feed, pci: str, metric: str, fold: str) -> Bins:
        assert feed.track is not None
        bins, upto = self._bins.get((pci, metric), (None, 0))
        since = (feed.until // self.width - self.count + 1 - HOLD) * self.width
        if bins is None or feed.until < upto or since > upto:
            bins, upto = Bins(self.width, self.count + HOLD, fold), since - 1
        if metric == "held":
            for at, reasons in feed.track.held(pci, upto + 1, feed.until):
                bins.add(at, None if reasons is None else float(bool(reasons)))
        else:
            for at, value in feed.track.series(pci, metric, upto + 1, feed.until):
                bins.add(at, value)
        self._bins[pci, metric] = (bins, feed.until)
        return bins


class Painter:
    """Makes the graphs. `t` chooses between two languages."""

    def __init__(self, feed: Feed, t: Callable[[str, str], str], lang: str) -> None:
        self.feed, self.t, self.lang = feed, t, lang
        self.shelf = Shelf()
        self.span = 300

    def kinds(self, gpu: Gpu) -> list[Shown]:
        """The plots of a GPU: those that tell something first, then those whose silence is worth telling."""
        track = self.feed.track
        told = [
            s for s in SHOWN if gpu.value(s.metric) is not None or (track is not None and track.told(gpu.pci, s.metric))
        ]
        return [*told, *(s for s in SHOWN if s.always and s not in told)]

    def of_gpu(self, gpu: Gpu, cells: int, seen: range) -> Panels:
        """Every metric of one GPU; of those that are not `seen` only that they are there."""
        graphs = tuple(
            self._graph(gpu, kind, cells, kind.metric, "") if i in seen else Graph(kind.metric, kind.metric)
            for i, kind in enumerate(self.kinds(gpu))
        )
        return self._framed(graphs, cells)

    def of_metric(self, gpus: Sequence[Gpu], metric: str, cells: int, seen: range) -> Panels:
        """One metric of every GPU, to one scale."""
        kind = next((s for s in SHOWN if s.metric == metric), SHOWN[0])
        graphs = [
            self._graph(g, kind, cells, g.pci, g.label) if i in seen else Graph(g.pci, g.label)
            for i, g in enumerate(gpus)
        ]
        drawn = [g.scale for g in graphs if g.curves or g.gauge is not None]
        high = max((s.high for s in drawn), default=1.0)
        low = min((s.low for s in drawn), default=0.0)
        return self._framed(tuple(g._replace(scale=Scale(low, high)) for g in graphs), cells)

    # --- one graph ------------------------------------------------------------------------

    def _framed(self, graphs: tuple[Graph, ...], cells: int) -> Panels:
        feed = self.feed
        if feed.still or feed.track is None or not cells:
            return Panels(graphs)
        width, count = self._grid(cells)
        last = feed.until // width
        begin, end = (last - count + 1) * width, (last + 1) * width
        if feed.live:
            return Panels(graphs, begin, end, span(width * count // SECOND, self.t), self.t("now", "现在"))
        return Panels(graphs, begin, end, clock(begin), clock(feed.until))

    def _grid(self, cells: int) -> tuple[int, int]:
        """Width of a column in ns, a multiple of the time between two readings, and how many there are."""
        count, every, track = 2 * cells, max(1, self.feed.every), self.feed.track
        begin, end = (track.begin, track.end) if track is not None else (None, None)
        there = (end - begin) // SECOND if begin is not None and end is not None else 0
        reach = min(self.span, next((s for s in SPANS if s > there), self.span))  # no wider than there is to show
        return -(-reach * SECOND // (count * every)) * every, count

    def _graph(self, gpu: Gpu, shown: Shown, cells: int, key: str, title: str) -> Graph:
        from assistant.live.frames import METRICS
        from assistant.live.words import NONE, stands_out, value

        metric = METRICS[shown.metric]
        name = title or (self.t(*_SHORT[shown.metric]) if shown.metric in _SHORT else metric.title.in_(self.lang))
        now = gpu.value(shown.metric)
        limit = gpu.value(metric.limit) if metric.limit else None
        tone = of_severity(stands_out(gpu, shown.metric))
        if gpu.state == "silent":
            tone = Tone.STALE
        base = Graph(
            key, name[:1].upper() + name[1:], value(shown.metric, now) if now is not None else NONE, tone,
            limit=limit, say=_say(shown.metric),
        )  # fmt: skip
        curves = self._curves(gpu, shown, cells)
        numbers = [*(n for c in curves for n in known(c)), *([now] if now is not None else [])]
        if not numbers:
            return base._replace(note=self._why(gpu, shown.metric), limit=None)
        scale, line = self._scale(shown.metric, max(numbers), min(numbers), limit)
        base = base._replace(scale=scale, limit=line, over=Tone.ERROR if shown.metric == "temperature" else Tone.PLAIN,
                             edge=self._edge(gpu, shown, limit, scale))  # fmt: skip
        if self.feed.still or self.feed.track is None:
            share = ((now or 0.0) - scale.low) / max(1e-9, scale.high - scale.low)
            return base._replace(gauge=share, edge=self._edge(gpu, shown, limit, scale))
        return base._replace(
            curves=tuple(tuple(c) for c in curves), other=self.t(*_SHORT[shown.second]) if len(curves) > 1 else "", marks=self._marks(gpu.pci, shown, cells),
            silent=frozenset(i // 2 for i, v in enumerate(curves[0]) if v is SILENT),
            shaded=self._held(gpu.pci, cells) if shown.metric == "sm_clock" else frozenset(),
        )  # fmt: skip

    def _curves(self, gpu: Gpu, shown: Shown, cells: int) -> list[list[float | None]]:
        feed = self.feed
        if feed.still or feed.track is None or not cells:
            return []
        self.shelf.fit(*self._grid(cells))
        found = [self.shelf.columns(feed, gpu.pci, shown.metric, shown.fold)]
        if shown.second and feed.track.told(gpu.pci, shown.second):
            found.append(self.shelf.columns(feed, gpu.pci, shown.second, shown.fold))
        return found

    def _why(self, gpu: Gpu, metric: str) -> str:
        from assistant.render.labels import reason_name

        return reason_name(gpu.missing.get(metric, "not_asked"), self.lang)

    def _scale(self, metric: str, top: float, low: float, limit: float | None) -> tuple[Scale, float | None]:
        """The edges of a plot, and where its line is: of memory the edge is the limit."""
        from assistant.live.frames import METRICS
        from assistant.live.words import nice

        if metric in ("temperature", "memory_temperature"):
            return Scale(min(COLD, low), max(top, limit or 0.0, 60.0) + 4), limit
        if METRICS[metric].unit == "%":
            return Scale(0.0, max(100.0, top)), None
        if metric == "power":
            return Scale(0.0, max(top, limit or 0.0) * 1.08 or 1.0), limit
        if limit is not None:
            return Scale(0.0, max(limit, top) or 1.0), None
        return Scale(0.0, nice(top)), None

    def _edge(self, gpu: Gpu, shown: Shown, limit: float | None, scale: Scale) -> str:
        """What stands at the right of the title."""
        from assistant.live.words import value

        t, metric = self.t, shown.metric
        if shown.second:
            other = gpu.value(shown.second)
            name = t(*_SHORT[shown.second])
            return f"{name} {value(shown.second, other)}" if other is not None else ""
        if metric == "sm_clock" and gpu.reasons:
            return held_by(gpu, self.t)
        if limit is None:
            return ""
        said = value(metric, limit)
        words = {"temperature": (f"slows at {said}", f"{said} 降频"), "power": (f"limit {said}", f"上限 {said}")}
        return t(*words.get(metric, (f"of {said}", f"共 {said}")))

    # --- what happened --------------------------------------------------------------------

    def _held(self, pci: str, cells: int) -> frozenset[int]:
        self.shelf.fit(*self._grid(cells))
        return frozenset(i // 2 for i, v in enumerate(self.shelf.columns(self.feed, pci, "held", "max")) if v == 1.0)

    def _marks(self, pci: str, shown: Shown, cells: int) -> dict[int, Tone]:
        """Cells in which something happened to this GPU: every plot shows it, so that one sees what it did."""
        width, count = self._grid(cells)
        begin = (self.feed.until // width - count + 1) * width
        found: dict[int, str] = {}
        for mark in marks_between(self.feed.marks, begin, self.feed.until):
            if mark.gpu == pci and mark.severity != "info":
                cell = (mark.at - begin) // width // 2
                if _ORDER.index(mark.severity) > _ORDER.index(found.get(cell, "info")):
                    found[cell] = mark.severity
        if self.feed.live:  # of a recording the timeline has them among its marks
            before: float | None = None
            for i, v in enumerate(self.shelf.columns(self.feed, pci, "ecc_uncorrected", "max")):
                if v is None or isnan(v):
                    continue
                if before is not None and v > before:
                    found[i // 2] = "error"
                before = v
        return {cell: of_severity(severity) for cell, severity in found.items()}


@cache
def _say(metric: str) -> Callable[[float], str]:
    """How a value is written; the same function each time, for graphs are compared."""
    from assistant.live.words import value

    return lambda v: value(metric, v)


def marks_between(marks: Sequence[Mark], begin: int, end: int) -> Sequence[Mark]:
    """Those of `marks`, oldest first, from `begin` to `end`."""
    first = bisect_left(marks, begin, key=lambda m: m.at)
    return marks[first : bisect_right(marks, end, key=lambda m: m.at)]


def span(seconds: int, t: Callable[[str, str], str]) -> str:
    """``5 min ago``."""
    for size, en, zh in ((3600, "h", "小时"), (60, "min", "分钟")):
        if seconds >= size:
            return t(f"{seconds // size} {en} ago", f"{seconds // size} {zh}前")
    return t(f"{seconds} s ago", f"{seconds} 秒前")
