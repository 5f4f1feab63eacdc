"""Traces of profilers, and captures of running jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge.language import Text
from tui.screens._pane import ScreenSpec

if TYPE_CHECKING:
    from tui.traces.pane import TracesPane


def _make() -> TracesPane:
    """The pane, with its views and plots: what many never look at is not waited for at the start."""
    from tui.traces.pane import TracesPane

    return TracesPane()


SCREEN = ScreenSpec(
    "traces", 4, Text("Traces", "轨迹"), _make,
    Text("what bounds a job: breakdown, iterations, kernels, flame graph, difference", "作业受什么限制：时间分解、迭代、kernel、火焰图、对比"),
)  # fmt: skip
