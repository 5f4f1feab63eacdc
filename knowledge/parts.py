"""Data of which a start needs little: a file of named values, each read when it is asked for.

JSON takes 4 ms a megabyte to read, and of the rules, the index of topics and the forms of patterns, nine megabytes, most
answers need a hundredth. So each value is JSON in a line of its own, and the first line tells where which one begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any


class Parts(Mapping[str, Any]):
    """The values, by their names. ValueError when `data` was cut."""

    def __init__(self, data: bytes | mmap) -> None:
        self._data = data
        end = data.find(b"\n") + 1
        self._begins: dict[str, int] = json.loads(data[:end])
        self._end = end
        if len(data) != end + self._begins.pop(""):
            raise ValueError("cut")
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            begin = self._end + self._begins[name]
            self._read[name] = json.loads(self._data[begin : self._data.find(b"\n", begin)])
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._begins

    def __iter__(self) -> Iterator[str]:
        return iter(self._begins)

    def __len__(self) -> int:
        return len(self._begins)


def opened(path: Path) -> Parts:
    """The parts in a file, which is replaced and never changed while somebody has it open. OSError, ValueError."""
    with path.open("rb") as file:
        return Parts(mmap(file.fileno(), 0, access=ACCESS_READ))


def written(values: Mapping[str, Any]) -> bytes:
    """The file of these values."""
    begins, lines = {}, bytearray()
    for name, value in values.items():
        begins[name] = len(lines)
        lines += json.dumps(value, ensure_ascii=False).encode() + b"\n"
    return json.dumps(begins | {"": len(lines)}, ensure_ascii=False).encode() + b"\n" + lines
