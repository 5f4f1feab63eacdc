"""A TOML file that says what is started or who may start it: read with care, and every fault of it with its place."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from assistant.inventory.places import place, places
from assistant.inventory.words import shown
from knowledge.errors import Fault, FaultsError, InputError
from knowledge.text import clean, excerpt

LIMIT = 4 << 20  # bytes
_LINE = re.compile(r" *\(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)")


def text_of(path: Path, what: str) -> str:
    """The text of the file at `path`; `what` it ought to be: "an inventory".

    InputError when it cannot be read, or must not be followed; FaultsError when it is no text.
    """
    try:
        with open(path, "rb", opener=_unblocked) as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise ValueError("it is no file")
            data = stream.read(LIMIT + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > LIMIT:
        raise InputError(f"{path} is longer than {LIMIT >> 20} MiB: that is no {what}")
    if mode & stat.S_IWOTH:  # whoever writes it says which programs are started
        raise InputError(f"{path} can be written by anybody, so it is not followed", hint=f"chmod o-w {path}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FaultsError([Fault(str(path), 1, 1, "it is no UTF-8 text")]) from None


def _unblocked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a FIFO would wait for whoever writes to it


class Document:
    """One file: what stands in it, and what is wrong with it."""

    def __init__(self, text: str, file: str) -> None:
        """FaultsError when `text` is no TOML; `file` is where it says that this stands."""
        self.file = file
        self.data = _values(text, file)
        self.faults: dict[Fault, None] = {}  # each once: a set of machines has many of the same
        self._text = text

    @cached_property
    def places(self) -> Mapping[tuple[str, ...], tuple[int, int]]:
        """Line and column of each table and key."""
        return places(self._text)

    def fault(self, key: Sequence[str], message: str, hint: str = "") -> None:
        """Something is wrong at `key`."""
        self.faults.setdefault(Fault(self.file, *place(self.places, key), clean(message), clean(hint)))

    def table(self, value: Any, key: Sequence[str]) -> Mapping[str, Any]:
        """`value`, which is to be a table; an empty one, and a fault, when it is none."""
        if isinstance(value, dict):
            return value
        self.fault(key, f"{excerpt('.'.join(key), 80)} is a table, not {shown(value)}")
        return {}

    def settle(self) -> None:
        """FaultsError with all that was found wrong."""
        if self.faults:
            raise FaultsError(list(self.faults))


def _values(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        line, column = (int(found[1]), int(found[2])) if found and found[1] else (text.count("\n") + 1, 1)
        raise FaultsError([Fault(file, line, column, f"it is no TOML: {_LINE.sub('', str(error))}")]) from None
    except (RecursionError, ValueError) as error:
        raise FaultsError([Fault(file, 1, 1, f"it is no TOML: {excerpt(str(error), 80)}")]) from None
