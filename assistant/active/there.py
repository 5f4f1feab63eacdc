"""Active tests of another machine, over the line that `check --host` uses: asked for here, run, guarded and ended there.

The collector is the same, and looks there whether the GPUs are idle, before and while a test runs. When it is broken off here, the
collector is told to end its test and to say what came of it; when the line ends, whatever runs there ends with it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING

from assistant.active.watched import TICK, Told, Watched

if TYPE_CHECKING:
    from assistant.active.choosing import Plan
    from assistant.config import Settings
    from assistant.inventory.model import Node
    from assistant.machine import Look
    from probes.host import Host, Reply
    from probes.remote.remote_host import RemoteHost

LOOKING = 90.0  # seconds for the look before anybody is asked
BETWEEN = 60.0  # ... for what is done between and behind tests, beside what they may take


class WatchedThere(Watched):
    """Another machine whose active tests are watched from here. Lines of a test are not told over the line, only its end."""

    def __init__(self, inner: RemoteHost, told: Told, cancel: Event) -> None:
        super().__init__(inner, told, cancel)
        self._far = inner

    def now(self) -> None:
        """What is read from here on belongs to this moment, by the clock there."""
        self.as_of = time.time_ns() + self._far.clock_offset.ns

    def snapshot(self, name: str, *args: str, deadline: float) -> Reply:
        """A collector's document."""
        if name != "active":
            return self._far.snapshot(name, *args, deadline=deadline)
        with ThreadPoolExecutor(1) as pool:
            asked, answer = False, pool.submit(self._far.snapshot, name, *args, deadline=deadline)
            while not wait((answer,), TICK).done:
                self.told({})
                if self.cancel.is_set() and not asked:
                    asked = True
                    self._far.finish(name)
            return answer.result()


def node_of(args: argparse.Namespace) -> Node | None:
    """The machine that the options name; None for this one. UsageError for one on which no test can run from here."""
    from assistant.inventory.target import settle, target
    from knowledge.errors import UsageError

    settle(args)
    other = target(args)
    if other is not None and other.reach.root:
        raise UsageError(
            f"{other.name} is seen from within a pod (root = {other.reach.root}), and tests run on the machine itself",
            hint=f"reach it by ssh: gpudiag test --host {other.name} --via ssh",
        )
    return other


@contextmanager
def line(settings: Settings, other: Node, plan: Plan | None = None, after: float = 0.0) -> Iterator[RemoteHost]:
    """A connection for a look, or for the tests of `plan` and `after` seconds of looking. ConnectError when there is none."""
    from assistant import machine
    from probes.active import MARGIN

    steps = [step.limit + MARGIN for choice in plan.runs for step in choice.steps] if plan is not None else []
    with machine.line(settings, other.reach, sum(steps) + after + BETWEEN if plan is not None else LOOKING) as far:
        yield far


def tools(host: Host | None, binaries: Sequence[str]) -> frozenset[str]:
    """Those of `binaries` that are on the machine: another one, or this."""
    from probes.remote.remote_host import RemoteHost

    if isinstance(host, RemoteHost):
        return frozenset(host.which(binaries))
    import os
    from shutil import which

    from probes.live_host import environment

    path = environment(os.environ)["PATH"]
    return frozenset(b for b in binaries if which(b, path=path))


def told(look: Look, far: RemoteHost, lang: str) -> Look:
    """`look`, with what there is to say about the way to the machine: that the connection broke, its clock, who we were."""
    from assistant.inventory.remarks import remarks

    look = replace(look, broken=far.broken, ended=far.broken_text)
    return replace(look, remarks=tuple(r.in_(lang) for r in remarks(far, look)))
