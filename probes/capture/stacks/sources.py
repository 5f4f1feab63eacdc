"""The source lines that stacks stand on, read while the target runs, as it sees its files."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from knowledge.text import clean
from probes import _children
from probes.capture.stacks.activity import Kind, known
from probes.capture.stacks.stacks import StackDoc

MOST: Final = 2000  # lines of one process
_CAP = 2 << 20
_LONGEST = 1000  # characters of a path
_READER: Final = Path(__file__).with_name("_source_reader.py")


def lines(pid: int, wanted: Iterable[tuple[str, int]], deadline: float = 3.0) -> dict[str, str]:
    """The text of source lines, stripped and cut at 200 characters, by "/app/train.py:42"; what cannot be read is left out.

    Only regular .py files that the target itself may read, below its own root. Never raises; a file system that hangs
    costs `deadline` seconds at most.
    """
    by_file: dict[str, list[int]] = {}
    for file, line in list(dict.fromkeys(wanted))[:MOST]:
        if line > 0 and file.endswith(".py") and 0 < len(file) <= _LONGEST and not {"\0", "\n"} & set(file):
            by_file.setdefault(file, []).append(line)
    if not by_file:
        return {}
    words = [f"{file}:{','.join(map(str, numbers))}" for file, numbers in by_file.items()]
    argv = [sys.executable, "-I", "-S", "-B", str(_READER), str(pid), *words]
    try:
        done = _children.run(
            sys.executable, argv, deadline=deadline, cap=_CAP, env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"}, on_start=lambda _: None
        )  # fmt: skip
        found = json.loads((done.head + done.tail).decode("utf-8", "replace") or "{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(k): clean(str(v)) for k, v in found.items()} if isinstance(found, dict) else {}


def of_documents(pid: int, documents: Collection[StackDoc], deadline: float = 3.0) -> dict[str, str]:
    """The lines that the stacks of a process (and of its helpers, which run the same files) stand on, the most seen first.

    Of libraries only the deepest frames' lines: the others say nothing about what happens.
    """
    seen: Counter[tuple[str, int]] = Counter()
    for doc in documents:
        weights = Counter(s[2] for t in doc["threads"].values() for s in t["samples"])
        for stack, weight in weights.items():
            frames = [doc["frames"][i] for i in doc["stacks"][stack]]
            for at, (name, file, line) in enumerate(frames):
                if at == len(frames) - 1 or known(name, file).kind is Kind.USER:
                    seen[file, line] += weight
    return lines(pid, [place for place, _ in sorted(seen.items(), key=lambda s: (-s[1], s[0]))], deadline)
