"""What hung before: so that a call that cannot be killed is not made again and again.

Kept in one small file by boot. Two things are remembered: a process that was given up and may
still sleep in the driver, and a call that was under way when the machine went down.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from knowledge.record import dataclass
from knowledge.whole import private_lock, replace_file
from probes._children import Stuck, start_time
from probes.host import Call, title

_CAP = 256  # entries: more than any node has calls


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not made: it hangs still, or it was under way when the machine went down."""

    why: str
    hangs: bool


class HangMemory:
    """The file, for one boot. What cannot be read is as if there were none, and what cannot be written is not kept."""

    def __init__(self, path: Path, boot: str, started: Callable[[int], str] = start_time) -> None:
        """`boot` is the boot id of the machine, as in /proc/sys/kernel/random/boot_id.

        `started` tells when a process of that machine began, as `probes._children.start_time` does for this one.
        """
        self._path = path
        self._boot = boot
        self._started = started

    def of(self, boot: str, started: Callable[[int], str]) -> HangMemory:
        """The same file, for a machine of which the boot was not known before it was reached."""
        return HangMemory(self._path, boot, started)

    def refusal(self, call: Call) -> Refusal | None:
        """Why `call` should not be made now."""
        entry = self._load().get(title(*call))
        if entry is None:
            return None
        since = entry.get("at", "")
        if entry.get("boot") != self._boot:
            if entry.get("state") != "begun":
                return None
            why = f"the machine went down while it ran ({since}); it is not run again unasked: add --again"
            return Refusal(why, hangs=False)
        pid = entry.get("pid")
        if entry.get("state") == "stuck" and isinstance(pid, int) and self._started(pid) == entry.get("started") != "":
            where = entry.get("where", "")
            why = f"process {pid} of an earlier run still hangs since {since} ({where}) and cannot be killed; not tried again"
            return Refusal(why, hangs=True)
        return None

    def begin(self, call: Call, at: str) -> None:
        """`call` is about to be made. On disk before it is: the machine may go down with it."""
        self._change(call, {"state": "begun", "boot": self._boot, "at": at})

    def end(self, call: Call, at: str, stuck: Stuck | None) -> None:
        """`call` came to an end, or was given up."""
        if stuck is None:
            self._change(call, None)
            return
        entry = {"pid": stuck.pid, "started": stuck.started, "where": stuck.where}
        self._change(call, {"state": "stuck", "boot": self._boot, "at": at, **entry})

    def broken_off(self, call: Call) -> None:
        """`call` was broken off by us: the machine has not gone down with it. One that is stuck stays so."""
        self._change(call, None, of="begun")

    def forget(self) -> None:
        """Start anew: the user wants every call made."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _change(self, call: Call, entry: Mapping[str, Any] | None, of: str = "") -> None:
        with suppress(OSError), self._alone():
            entries = self._load()
            key = title(*call)
            if entry is None:
                if key not in entries or (of and entries[key].get("state") != of):
                    return
                del entries[key]
            else:
                entries[key] = dict(entry)
            kept = dict(list(entries.items())[-_CAP:])
            replace_file(self._path, json.dumps(kept, indent=1).encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Between reading and writing nobody else does either: another thread, or a check that runs beside this one."""
        with os.fdopen(private_lock(self._path.with_suffix(".lock")), "w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)  # let go of when it is closed
            yield

    def _load(self) -> dict[str, dict[str, Any]]:
        try:
            data = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(data, dict):
            return {}
        return {k: v for k, v in data.items() if isinstance(v, dict)}
