"""What `watch` keeps over a restart: one small file, and a lock that keeps a second watcher away from it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from knowledge.errors import UsageError
from knowledge.whole import private_folder, private_lock, replace_file

SCHEMA = "gpudiag/watch/1"


class StateFile:
    """The file, and the lock beside it."""

    def __init__(self, path: Path | None, machine: str = "") -> None:
        """`machine` tells this machine from others that share the folder; empty when unknown. None: nothing is kept."""
        self._path = path
        self._machine = machine
        self._lock: int | None = None

    def lock(self) -> None:
        """Take the folder for this process. UsageError when another watcher has it; where nothing can be written, nobody does."""
        if self._path is None:
            return
        path = self._path.with_suffix(".lock")
        try:
            handle = private_lock(path)
        except OSError:
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with os.fdopen(handle) as stream:
                owner = stream.read(20).strip()
            who = f" (process {owner})" if owner.isdecimal() else ""
            raise UsageError(
                f"another gpudiag watch{who} keeps its alerts in {path.parent}",
                hint="stop it, or give this one a folder of its own with GPUDIAG_STATE_DIR",
            ) from None
        except OSError:  # a file system that knows no locks
            os.close(handle)
            return
        with suppress(OSError):
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        self._lock = handle
        with suppress(OSError):  # what a killed one left
            for left in path.parent.glob(f".{self._path.name}.*"):
                left.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def load(self) -> tuple[dict[str, Any], str]:
        """What was kept, and what there is to say about it. What is not understood is set aside, not written over."""
        if self._path is None:
            return {}, ""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return {}, ""
        except OSError as error:
            return {}, f"{self._path} cannot be read: {error.strerror}; alerts of before are not known"
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict) and data.get("schema") == SCHEMA:
            other = data.get("machine")
            if self._machine and other and other != self._machine:
                return {}, self._aside("is of another machine")
            return data, ""
        schema = data.get("schema") if isinstance(data, dict) else None
        newer = isinstance(schema, str) and schema.startswith("gpudiag/watch/")
        return {}, self._aside("was written by another version of gpudiag" if newer else "is damaged")

    def _aside(self, why: str) -> str:
        assert self._path is not None
        aside = self._path.with_name(self._path.name + ".set-aside")
        try:
            self._path.replace(aside)
        except OSError:
            return f"{self._path} {why}: alerts begin anew"
        return f"{self._path} {why}: alerts begin anew, and it is kept as {aside.name}"

    def save(self, state: Mapping[str, Any]) -> str:
        """Keep it, whole or not at all. Returns why it cannot be kept."""
        if self._path is None:
            return ""
        text = json.dumps({"schema": SCHEMA, "machine": self._machine, **state})
        try:
            private_folder(self._path.parent)
            replace_file(self._path, text.encode())
        except OSError as error:
            return f"{self._path} cannot be written: {error.strerror}; alerts are not kept over a restart"
        return ""


def machine_id(root: str = "") -> str:
    """What tells this machine from others, whatever its name; empty where nothing does."""
    try:
        return Path(f"{root}/etc/machine-id").read_text().strip()[:64]
    except (OSError, UnicodeDecodeError):
        return ""
