"""The workers of a cluster, and which files each of them sees. A worker that hangs while it looks is as good as none."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import field
from typing import Any, Final, TypeAlias

from knowledge.record import dataclass

Client: TypeAlias = Any  # distributed.Client: its package is typed in small parts only
Future: TypeAlias = Any  # distributed.Future

ANSWER: Final = 10.0  # s for the scheduler to answer a question, and to close things
_GRACE: Final = 10.0  # s for workers to come up, or back, before nobody is expected any more


@dataclass(slots=True)
class View:
    """What is known of the workers."""

    alive: Mapping[str, int] = field(default_factory=dict)  # address -> threads
    names: dict[str, frozenset[str]] = field(default_factory=dict)  # address -> names of its host
    sees: dict[str, frozenset[str]] = field(default_factory=dict)  # address -> files
    asked: dict[str, Future] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    last: float | None = None  # when a worker was last seen

    def settled(self, expected: int | None) -> bool:
        """Whether every worker has answered, and no other is expected."""
        answered = bool(self.alive) and self.alive.keys() <= self.sees.keys()
        return answered and (len(self.alive) >= (expected or 1 << 30) or time.monotonic() - self.began > _GRACE)

    @property
    def deserted(self) -> bool:
        """Whether there were workers, and have been none for longer than one takes to come back."""
        return self.last is not None and time.monotonic() - self.last > _GRACE


def look(c: Client, view: View, files: Sequence[str]) -> None:
    """Who is alive, and what new workers see. A worker that hangs while it looks is as good as none."""
    try:
        view.alive = dict(c.sync(c.scheduler.ncores, callback_timeout=ANSWER))
    except (TimeoutError, OSError):
        return  # the scheduler is busy or gone: its status tells next time
    if view.alive:
        view.last = time.monotonic()
    for address in view.alive.keys() - view.asked.keys():
        view.asked[address] = c.submit(_seen, tuple(files), workers=[address], pure=False, priority=10, retries=0)
    for address, future in list(view.asked.items()):
        if address not in view.alive:
            view.asked.pop(address).cancel()
            view.sees.pop(address, None)
        elif address not in view.sees and future.status == "finished":
            try:
                names, seen = future.result(timeout=ANSWER)
            except (TimeoutError, CancelledError, asyncio.CancelledError):
                continue  # it died as it answered
            view.names[address], view.sees[address] = names | {host_of(address)}, seen
        elif future.status == "error" and address not in view.sees:
            view.names[address], view.sees[address] = frozenset({host_of(address)}), frozenset()


def _seen(files: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """On a worker: the host's names, and which files can be read there."""
    names = {socket.gethostname(), socket.gethostname().split(".")[0], socket.getfqdn()}
    return frozenset(names), frozenset(f for f in files if os.access(f, os.R_OK))


def host_of(address: str) -> str:
    """The host in an address: ``tcp://10.0.0.1:4000``."""
    return address.rpartition("://")[2].rpartition(":")[0].strip("[]")


def on_host(host: str, names: frozenset[str]) -> bool:
    """Whether a worker of these names runs on `host`; every one does when none is asked for."""
    if not host or host in names:
        return True
    return host in ("localhost",) and "127.0.0.1" in names
