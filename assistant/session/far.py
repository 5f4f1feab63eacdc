"""The connections of one turn: a machine that is looked at in several rounds is reached once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from probes.host import RecordingHost, in_order

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.inventory.model import Node
    from assistant.machine import Look, Wish
    from probes.host import Host
    from probes.remote.remote_host import RemoteHost
    from probes.runner import Progress

LONGEST = 120.0  # seconds that the rounds of one turn may take together; the far side ends by itself then


class Far:
    """The machines that one turn looks at from here. For one thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lines: dict[str, tuple[RemoteHost, RecordingHost]] = {}
        self._open = ExitStack()
        self._seconds = 0.0  # that the newest of them may take

    def look(
        self, node: Node, wish: Wish, on_progress: Callable[[Progress], None] | None,
        options: Mapping[str, Mapping[str, str]],
    ) -> tuple[Look, tuple[str, ...]]:  # fmt: skip
        """One look, and the probes that cannot run there. ConnectError when the machine cannot be reached."""
        from assistant import machine

        seconds = max(LONGEST, wish.budget)
        if node.name in self._lines and (self._lines[node.name][0].broken or self._seconds < seconds):
            self.close()
        if node.name not in self._lines:
            line = self._open.enter_context(machine.line(self._settings, node.reach, seconds, wish.again))
            self._lines[node.name], self._seconds = (line, RecordingHost(line)), seconds
        line, tools = self._lines[node.name]
        gone = absent(tools)  # asked once, and kept with each look: a replay asks for the same consent
        look = machine.over(line, wish, on_progress, options, self._settings.output.lang)
        held = {r.key for r in look.replies}
        return replace(
            look, replies=tuple(in_order((*look.replies, *(r for r in tools.replies if r.key not in held))))
        ), gone

    def close(self) -> None:
        """End them all."""
        self._lines.clear()
        self._open.close()


def absent(host: Host) -> tuple[str, ...]:
    """Probes that need consent and that cannot run on another machine: their tool or device is not there, or they act inside
    a process, or look into one where no gpudiag is installed."""
    from concurrent.futures import ThreadPoolExecutor

    from probes.live import Cost, probes
    from probes.live_host import FOLDERS
    from probes.remote import profiler

    dear = [s for s in probes() if not s.default or s.cost >= Cost.SECONDS]
    binaries = sorted({b for s in dear if not s.wants for b in s.needs.binaries})
    devices = sorted({f for s in dear if s.needs.binaries for f in s.needs.files})
    places = [(b, f"{folder}/{b}") for b in binaries for folder in FOLDERS] + [(f, f) for f in devices]
    with ThreadPoolExecutor(8) as pool:
        looks = pool.submit(profiler.able, host)
        found = list(pool.map(lambda at: bool(host.files(at[1])), places))
        into = looks.result()
    there = {b for (b, _), is_there in zip(places, found, strict=True) if is_there}
    return tuple(
        s.name for s in dear
        if (s.wants and (s.cost >= Cost.HEAVY or not into)) or (s.needs.binaries and there.isdisjoint(s.needs.binaries))
        or (s.needs.binaries and s.needs.files and there.isdisjoint(s.needs.files))
    )  # fmt: skip
