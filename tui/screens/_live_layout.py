"""How the live screen shares its lines, and the words that stand above its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tui.widgets.panel import needed
from tui.widgets.replay import clock

if TYPE_CHECKING:
    from assistant.live.frames import Frame, Gpu, Instance

AIRY = 30  # lines from which on a blank one stands between two parts
LEAST = 3  # lines below which a part is left out
TWO = 7  # lines in which two panels stand above each other, with their axis


class Shares(NamedTuple):
    """Lines of each part; 0: it is left out."""

    table: int  # of the GPUs
    plots: int
    processes: int  # with the line above it
    airy: bool
    note: int


def shared(height: int, columns: int, gpus: int, plots: int, processes: int, note: int) -> Shares:
    """The tables as many lines as they need, within their share; the plots the rest."""
    airy = height >= AIRY
    if not gpus:
        return Shares(max(LEAST, height - note), 0, 0, airy, note)
    table = min(gpus + 1, max(4, height // 2))
    room = max(0, height - table - 1 - (2 if airy else 0) - note)
    least = min(needed(plots, columns), max(room * 2 // 3, min(room, TWO)))
    below = min(processes + 2, max(height // 4, room - 2 * least), max(0, room - least)) if processes else 0
    below = below if below >= LEAST else 0
    rest = room - below
    return Shares(table, rest if rest >= LEAST else 0, below, airy, note)


def about_gpu(gpu: Gpu, instance: Instance | None = None) -> str:
    """Which GPU the plots are of; with the cursor on one of its MIG instances what names that."""
    if instance is not None:
        return "  ".join(filter(None, (gpu.label, f"MIG {instance.id}", instance.profile, instance.uuid)))
    return "  ".join(filter(None, (gpu.label, gpu.name, gpu.pci if gpu.index is not None else "")))


def about_metric(metric: str, lang: str, t: Callable[[str, str], str]) -> str:
    """Which metric of all GPUs they are of."""
    from assistant.live.frames import METRICS

    name = METRICS[metric].title.in_(lang)
    return t(f"{name[:1].upper()}{name[1:]} of all GPUs", f"全部 GPU 的{name}")


def beside(frame: Frame, pointed: int | None, still: bool, hint: str, t: Callable[[str, str], str]) -> str:
    """What stands at the right: the time that is pointed at, the moment of a recording, else what can be done."""
    if pointed is not None:
        return clock(pointed)
    return t("one moment: ", "单一时刻：") + clock(frame.at, date=True) if still and frame.at else hint


def about_processes(count: int, gpu: Gpu | None, t: Callable[[str, str], str]) -> tuple[str, str]:
    """How many processes, and how to see others. `gpu`: only those on it are shown."""
    whose = t(f" on {gpu.label}", f"（{gpu.label}）") if gpu is not None else ""
    said = t(f"{count} {'process' if count == 1 else 'processes'}{whose}", f"{count} 个进程{whose}")
    return said, t("o: all GPUs", "o：全部 GPU") if gpu is not None else t("o: of this GPU", "o：仅此 GPU")
