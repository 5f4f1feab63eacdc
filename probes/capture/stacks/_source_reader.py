"""Reads single lines of Python files as a process sees them, in a child that can be given up: a dead file system keeps a reader for ever.

    python -I -S -B _source_reader.py PID /app/train.py:10,42 ...

Prints {"/app/train.py:42": "loss.item()"}. The target may be hostile, and we may be root: only regular files whose name ends in .py (also behind
symbolic links, which never lead out of the target's root), only what the target itself may read, and only the lines that its stacks stand on.
Standard library only.
"""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

LARGEST = 8 << 20  # bytes of a file: generated code is larger, and nobody reads it
LONGEST = 200  # characters of a line


def _beside(name: str) -> Any:
    """A module of the folder above: a script run with -I does not see it."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_IN_ROOT = _beside("_inroot")


def lines(pid: int, wanted: dict[str, list[int]]) -> dict[str, str]:
    """The stripped text of the wanted lines that can be had."""
    who = _who(pid)
    found: dict[str, str] = {}
    for path, numbers in wanted.items():
        try:
            data = _read(f"/proc/{pid}/root", _absolute(pid, path), who)
        except (OSError, ValueError):
            continue
        texts = data.decode("utf-8", "replace").split("\n")
        for number in numbers:
            if 0 < number <= len(texts):
                found[f"{path}:{number}"] = texts[number - 1].strip()[:LONGEST]
    return found


def _who(pid: int) -> tuple[int, set[int]]:
    """The user and the groups that the target reads files as."""
    uid, groups = -1, set()
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        for line in file:
            words = line.split()
            if line.startswith("Uid:"):
                uid = int(words[4])
            elif line.startswith("Gid:"):
                groups.add(int(words[4]))
            elif line.startswith("Groups:"):
                groups.update(map(int, words[1:]))
    return uid, groups


def _absolute(pid: int, path: str) -> str:
    return path if path.startswith("/") else os.path.join(os.readlink(f"/proc/{pid}/cwd"), path)  # noqa: PTH115, PTH118


def _read(root: str, path: str, who: tuple[int, set[int]]) -> bytes:
    """A file below `root`. OSError or ValueError when it is not for us."""
    handle: int = _IN_ROOT.file_at(root, path)
    try:
        kind = os.fstat(handle)
        named = os.readlink(f"/proc/self/fd/{handle}").endswith(".py")  # noqa: PTH115 - behind links too
        if not (named and kind.st_size <= LARGEST and _may_read(kind, who)):
            raise ValueError("not a file for us")
        parts: list[bytes] = []
        while part := os.read(handle, 1 << 20):
            parts.append(part)
            if sum(map(len, parts)) > LARGEST:
                raise ValueError("it grows")
        return b"".join(parts)
    finally:
        os.close(handle)


def _may_read(kind: os.stat_result, who: tuple[int, set[int]]) -> bool:
    uid, groups = who
    if uid == 0:
        return True
    if kind.st_uid == uid:
        return bool(kind.st_mode & stat.S_IRUSR)
    if kind.st_gid in groups:
        return bool(kind.st_mode & stat.S_IRGRP)
    return bool(kind.st_mode & stat.S_IROTH)


def main() -> None:
    """See the module."""
    wanted: dict[str, list[int]] = {}
    for word in sys.argv[2:]:
        path, _, numbers = word.rpartition(":")
        wanted[path] = [int(n) for n in numbers.split(",")]
    try:
        found = lines(int(sys.argv[1]), wanted)
    except (OSError, ValueError):
        found = {}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
