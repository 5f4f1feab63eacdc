"""What is asked of the live screen: the sentence for what stands under the cursor, and what it is asked of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tui.screens._live_graphs import marks_between
from tui.screens._live_rows import instance_of

if TYPE_CHECKING:
    from assistant.live.frames import Gpu
    from tui.desk import Picture
    from tui.screens.live import LivePane


def of_cell(pane: LivePane, gpu: Gpu) -> str:
    """About the cell of the table of GPUs."""
    from assistant.live import questions

    lang, row = pane.desk.lang, pane.gpus.row
    column = pane.gpus.column.key if pane.gpus.columns else ""
    if row is not None and instance_of(row) is not None:
        return questions.of_instance(gpu, column, lang)
    if column in pane.metrics:
        return questions.of_metric(gpu, column, lang)
    if column == "events" and gpu.reasons and not gpu.state:
        return questions.of_reasons(gpu, lang)
    found = pane.happened().get(gpu.pci)
    if column == "events" and found and found[-1].line is not None:
        return questions.of_event(found[-1].line, lang)
    return questions.of_gpu(gpu, lang)


def of_plot(pane: LivePane, gpu: Gpu) -> str:
    """About the plot; with a cursor in time about what happened there, else about the reading as it was."""
    from assistant.live import questions

    plots, lang, feed = pane.plots, pane.desk.lang, pane.desk.feed
    if plots.at is None or not plots.places:
        return questions.of_metric(gpu, pane.metric, lang)
    width = (plots.panels.end - plots.panels.begin) // max(1, plots.places[0].cells)
    near = marks_between(feed.marks, plots.at - width, plots.at + width)
    lines = [m.line for m in near if m.gpu == gpu.pci and m.line is not None]
    if lines:
        return questions.of_event(lines[-1], lang)
    frame = feed.track.frame(feed.frame, plots.at) if feed.track is not None and feed.frame is not None else None
    return questions.of_metric((frame.gpu(gpu.pci) if frame is not None else None) or gpu, pane.metric, lang)


def picture_then(pane: LivePane, at: int) -> Picture | None:
    """What was known at a moment of the plots (ns UTC); None when that cannot be told."""
    from assistant.live.then import seen_then

    desk, feed = pane.desk, pane.desk.feed
    picture = desk.player.whole if desk.player is not None else desk.picture
    if feed.track is None or feed.frame is None or picture.seen is None:
        return None
    player = desk.player
    found = player.timeline.at(at) if player is not None else seen_then(picture.seen, feed.track, feed.frame, at)
    return replace(picture, seen=found, moment=at, diagnosis=None) if found is not None else None
