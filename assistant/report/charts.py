"""The charts that plotly draws, as plain specifications; the page's script gives them their colours.

A colour is written as the name of a CSS variable (``--compute``), so that light, dark and print each have their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, inf, isfinite, log10
from typing import Any

from assistant.render import trace_units as units
from assistant.report.words import word
from knowledge.text import excerpt
from probes.trace.breakdown.utilisation import HeatRow
from probes.trace.model import Diff, Iteration, MemoryUse, Roofline, Side, Work

BARS = 1_500  # more iterations than that are drawn as means of neighbours


def iterations(items: Sequence[Iteration], lang: str) -> tuple[dict[str, Any], int]:
    """Stacked bars with a range slider; and how many neighbours one bar is the mean of."""
    k = max(1, -(-len(items) // BARS))
    groups = [items[i : i + k] for i in range(0, len(items), k)]
    numbers = [g[0].number for g in groups]
    if any(b <= a for a, b in pairwise(numbers)):
        numbers = [i * k + 1 for i in range(len(groups))]
    parts: dict[str, list[float]] = {"compute": [], "exposed_comm": [], "exposed_mem": [], "idle": []}
    for group in groups:
        for key, value in _parts(group).items():
            parts[key].append(value)
    scale, unit = _unit(max((sum(v) for v in zip(*parts.values(), strict=True)), default=0))
    names = {"exposed_mem": "other_time"}
    traces: list[dict[str, Any]] = [
        {"type": "bar", "name": word(names.get(key, key), lang), "x": numbers, "y": [round(v / scale, 6) for v in values],
         "marker": {"color": f"--{key.removeprefix('exposed_')}"}, "hovertemplate": f"%{{x}}: %{{y:.4~g}} {unit}"}
        for key, values in parts.items()
    ]  # fmt: skip
    odd = [
        (n, sum(v))
        for g, n, v in zip(groups, numbers, zip(*parts.values(), strict=True), strict=True)
        if any(i.outlier for i in g)
    ]
    if odd:
        traces.append({
            "type": "scatter", "mode": "markers", "name": word("outlier", lang), "x": [n for n, _ in odd],
            "y": [round(1.04 * v / scale, 6) for _, v in odd], "hoverinfo": "skip",
            "marker": {"symbol": "triangle-down", "size": 11, "color": "--worse"},
        })  # fmt: skip
    layout = {
        "barmode": "stack", "bargap": 0.08 if len(groups) < 200 else 0, "height": 380, "hovermode": "x unified",
        "xaxis": {"title": {"text": word("number", lang)}, "showgrid": False, "rangeslider": {"visible": True, "thickness": 0.12}, "type": "linear",
                  "tickformat": "d"},
        "yaxis": {"title": {"text": unit}, "rangemode": "tozero", "fixedrange": True},
        "legend": {"orientation": "h", "y": 1.12, "traceorder": "normal"},
    }  # fmt: skip
    return {"data": traces, "layout": layout}, k


def _parts(group: Sequence[Iteration]) -> dict[str, float]:
    n = len(group)
    compute, comm = sum(i.compute_ns for i in group) / n, sum(i.exposed_comm_ns for i in group) / n
    idle, span = sum(i.idle_ns for i in group) / n, sum(i.span_ns for i in group) / n
    return {
        "compute": compute,
        "exposed_comm": comm,
        "exposed_mem": max(span - compute - comm - idle, 0.0),
        "idle": idle,
    }


def _unit(longest: float) -> tuple[float, str]:
    return next(((s, u) for s, u in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")) if longest >= s), (1.0, "ns"))


def scalars(items: Sequence[Iteration], lang: str) -> dict[str, Any] | None:
    """Loss and gradient norm by iteration; None where the capture recorded neither (or one value, which is no line)."""
    data = []
    for key, axis, colour in (("loss", "y", "--compute"), ("gradnorm", "y2", "--worse")):
        known = [
            (i.number, getattr(i, key)) for i in items if getattr(i, key) is not None and isfinite(getattr(i, key))
        ]
        if len(known) > 1:
            data.append({"type": "scatter", "mode": "lines", "name": word(key, lang), "x": [n for n, _ in known], "y": [v for _, v in known],
                         "yaxis": axis, "line": {"color": colour, "width": 2}})  # fmt: skip
    layout = {
        "height": 260, "legend": {"orientation": "h", "y": 1.15}, "hovermode": "x unified",
        "xaxis": {"title": {"text": word("number", lang)}, "tickformat": "d", "showgrid": False},
        "yaxis": {"title": {"text": word("loss", lang)}},
        "yaxis2": {"title": {"text": word("gradnorm", lang)}, "overlaying": "y", "side": "right", "showgrid": False},
    }  # fmt: skip
    return {"data": data, "layout": layout} if data else None


def heat(rows: Sequence[HeatRow], lang: str) -> dict[str, Any]:
    """Busy share, a row each, over the time since each row's own start."""
    span = max(r.end_ns - r.start_ns for r in rows)
    scale, unit = _unit(span)
    bins = len(rows[0].busy_ns)
    x = [round((i + 0.5) * span / bins / scale, 6) for i in range(bins)]
    z = [[round(v, 3) for v in r.share] for r in rows]
    return _heat(x, [r.label for r in rows], z, f"{word('time', lang)} ({unit})", lang)


def iteration_heat(rows: Sequence[tuple[str, Sequence[Iteration]]], lang: str) -> dict[str, Any]:
    """Busy share of each rank in each iteration."""
    numbers = sorted({i.number for _, items in rows for i in items})[:BARS]
    z: list[list[float | None]] = []
    for _, items in rows:
        share = {i.number: round(1 - i.idle_ns / i.span_ns, 3) for i in items if i.span_ns > 0}
        z.append([share.get(n) for n in numbers])
    return _heat(numbers, [name for name, _ in rows], z, word("number", lang), lang)


def _heat(
    x: Sequence[float], y: Sequence[str], z: Sequence[Sequence[float | None]], title: str, lang: str
) -> dict[str, Any]:
    trace = {
        "type": "heatmap", "x": list(x), "y": list(y), "z": z, "zmin": 0, "zmax": 1, "colorscale": "heat",
        "colorbar": {"tickformat": ".0%", "thickness": 12, "title": {"text": word("busy_share", lang), "side": "right"}},
        "hovertemplate": "%{y}, %{x:.4~g}: %{z:.0%}<extra></extra>",
    }  # fmt: skip
    layout = {
        "height": 130 + 26 * len(y), "xaxis": {"title": {"text": title}, "showgrid": False},
        "yaxis": {"type": "category", "autorange": "reversed", "fixedrange": True},
    }  # fmt: skip
    return {"data": [trace], "layout": layout}


def on_plot(roof: Roofline) -> list[Work]:
    """What has a place on a log-log plot."""
    return [w for w in roof.work if 0 < w.intensity < inf and 0 < w.tflops < inf]


def roofline(roof: Roofline, lang: str) -> dict[str, Any]:
    """Log-log: the roof with its knee, and a point for each operator and shape, larger the more time it takes."""
    points = on_plot(roof)
    groups = (
        (Side.MEMORY, "memory_side", "--mem"),
        (Side.COMPUTE, "compute_side", "--compute"),
        (Side.UNKNOWN, "unknown", "--soft"),
    )
    traces = [_points([w for w in points if w.side is side], word(key, lang), colour) for side, key, colour in groups]
    data = [t for t in traces if t["x"]]
    shapes = []
    x, y = _decades([w.intensity for w in points], roof.knee), _decades([w.tflops for w in points], roof.peak_tflops)
    if roof.knee and roof.peak_tflops and roof.bandwidth_gbs:
        low = float(10 ** x[0])
        data.insert(0, {"type": "scatter", "mode": "lines", "name": word("roof", lang), "x": [low, roof.knee, float(10 ** x[1])],
                        "y": [low * roof.bandwidth_gbs / 1e3, roof.peak_tflops, roof.peak_tflops],
                        "line": {"color": "--fg", "width": 2}, "hoverinfo": "skip"})  # fmt: skip
        shapes = [{"type": "line", "x0": roof.knee, "x1": roof.knee, "y0": 0, "y1": 1, "yref": "paper",
                   "line": {"color": "--soft", "dash": "dot", "width": 1},
                   "label": {"text": f"{word('knee', lang)} {units.digits(roof.knee)}", "textposition": "end", "textangle": 0, "xanchor": "left"}}]  # fmt: skip
    layout = {
        "height": 460, "shapes": shapes, "legend": {"orientation": "h", "y": 1.1},
        "xaxis": {"type": "log", "title": {"text": word("intensity", lang)}, "dtick": 1, "tickformat": "~r", "range": x},
        "yaxis": {"type": "log", "title": {"text": "TFLOP/s"}, "dtick": 1, "tickformat": "~r", "range": y},
    }  # fmt: skip
    return {"data": data, "layout": layout}


def _decades(values: Sequence[float], also: float | None) -> tuple[float, float]:
    """From the power of ten below all of them to a little above the highest, as logarithms; a decade at least."""
    every = [*values, *([also] if also else [])]
    low = floor(log10(min(every) / 1.2))
    return float(low), max(log10(max(every) * 2.0), low + 1.1)


def _points(work: Sequence[Work], name: str, colour: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": [w.intensity for w in work], "y": [w.tflops for w in work],
        "text": [_safe(f"{w.op} {w.shapes} {w.dtype}") for w in work], "customdata": [round(w.share, 5) for w in work],
        "marker": {"size": [round(7 + 30 * min(w.share, 1.0) ** 0.5, 1) for w in work], "color": colour, "opacity": 0.75,
                   "line": {"width": 1, "color": "--bg"}},
        "hovertemplate": "%{text}<br>%{x:.3~s} FLOP/byte, %{y:.3~s} TFLOP/s, %{customdata:.1%}<extra></extra>",
    }  # fmt: skip


def _safe(text: str) -> str:
    """Plotly reads a small language of tags in its texts: take the marks away from strangers."""
    return excerpt(text, 120).replace("&", "＆").replace("<", "‹").replace(">", "›").replace("%{", "% {")


def memory(use: MemoryUse, lang: str) -> dict[str, Any]:
    """Allocated and reserved bytes over time, as steps."""
    start = use.timeline[0].at_ns
    scale, unit = _unit(use.timeline[-1].at_ns - start)
    x = [round((p.at_ns - start) / scale, 6) for p in use.timeline]
    top = max(max(p.reserved, p.allocated) for p in use.timeline)
    size, name = next(((s, u) for s, u in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")) if top >= s), (1, "B"))
    lines = (
        ("reserved", "--idle", [p.reserved for p in use.timeline]),
        ("allocated", "--mem", [p.allocated for p in use.timeline]),
    )
    data = [
        {"type": "scatter", "mode": "lines", "name": word(key, lang), "x": x, "y": [round(v / size, 4) for v in values],
         "line": {"shape": "hv", "color": colour, "width": 2}, "fill": "tozeroy", "fillcolor": f"{colour}-soft"}
        for key, colour, values in lines if any(values)
    ]  # fmt: skip
    layout = {
        "height": 320, "hovermode": "x unified", "legend": {"orientation": "h", "y": 1.15},
        "xaxis": {"title": {"text": f"{word('time', lang)} ({unit})"}},
        "yaxis": {"title": {"text": name}, "rangemode": "tozero"},
    }  # fmt: skip
    return {"data": data, "layout": layout}


def difference(diff: Diff, part: dict[str, str]) -> dict[str, Any]:
    """A waterfall from A to B over the parts of the window."""
    scale, unit = _unit(max(diff.a_ns, diff.b_ns))
    x = ["A", *(_safe(part.get(p.path, p.path)) for p in diff.parts), "B"]
    y = [diff.a_ns, *(p.b_ns - p.a_ns for p in diff.parts), diff.b_ns]
    trace = {
        "type": "waterfall", "x": x, "y": [round(v / scale, 6) for v in y],
        "measure": ["absolute", *("relative" for _ in diff.parts), "total"],
        "increasing": {"marker": {"color": "--worse"}}, "decreasing": {"marker": {"color": "--better"}},
        "totals": {"marker": {"color": "--soft"}}, "connector": {"line": {"color": "--line", "width": 1}},
        "text": [units.duration(diff.a_ns), *(units.signed(p.b_ns - p.a_ns) for p in diff.parts), units.duration(diff.b_ns)],
        "textposition": "outside", "textfont": {"size": 11}, "constraintext": "none", "hoverinfo": "skip", "cliponaxis": False,
    }  # fmt: skip
    return {"data": [trace], "layout": {"height": 340, "showlegend": False, "margin": {"t": 36},
                                        "yaxis": {"title": {"text": unit}, "rangemode": "tozero", "fixedrange": True},
                                        "xaxis": {"type": "category", "fixedrange": True}}}  # fmt: skip
