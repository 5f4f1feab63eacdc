"""Plain data out of a pickle, without unpickling: an own reader of the opcodes for numbers, strings, lists and dicts.

A pickle is a program, and the interpreter's own one can import and call anything. Here the opcodes that name,
make or call objects do not exist: a pickle with one is refused at it, and nothing of it was run. What is left can
only cost memory, so everything that is made is charged against a budget before it is made (opcodes: CPython,
``Lib/pickletools.py``; sizes: what `sys.getsizeof` gives on 64 bits).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, Final

from knowledge.errors import InputError

_TEXT_LINE: Final = 1 << 20  # bytes of a line of protocol 0: numbers and short strings
_STOP, _BINGET, _LONG_BINGET = 0x2E, 0x68, 0x6A
_RUN: Final = re.compile(rb"(?:j.{4})+", re.DOTALL)
_RUN_MOST: Final = 4096
_LONGEST: Final = 64  # bytes of an integer: addresses and sizes have eight


class Refused(InputError):
    """The pickle is more than plain data, or damaged."""


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with `head` may be a pickle of protocol 2 or newer, or a dict or list of an older one."""
    return (head[:1] == b"\x80" and 2 <= (head[1:2] or b"\0")[0] <= 5) or head[:2] in (b"(d", b"(l", b"}q", b"]q")


def load(data: bytes, memory: int = 2 << 30) -> Any:
    """The value of the pickle in `data`: dicts with text keys, lists, tuples, text, bytes, numbers, truth values, None.

    At most about `memory` bytes are made. Refused for anything else: a class or function, a persistent id, an
    extension, a set, a key that is no text, a damaged or endless program; with the byte at which it stands.
    """
    machine = _Machine(data, memory)
    try:
        return machine.run()
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, struct.error) as error:
        raise Refused(f"damaged pickle at byte {machine.at}: {type(error).__name__}") from error


class _Machine:
    """Stack and memo of one run."""

    __slots__ = ("at", "data", "marks", "memo", "room", "stack")

    def __init__(self, data: bytes, memory: int) -> None:
        self.data = data
        self.at = 0
        self.room = memory
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        table = [_OPCODES.get(code, _refuse) for code in range(256)]
        data, end = self.data, len(self.data)
        while self.at < end:
            code = data[self.at]
            if code == _BINGET:  # most opcodes are these two; what they cost is four times the file at most
                self.stack.append(self.memo[data[self.at + 1]])
                self.at += 2
                continue
            if code == _LONG_BINGET:
                self.recall_run()
                continue
            self.at += 1
            if code == _STOP:
                return self.stack.pop()
            table[code](self)
        raise Refused(f"the pickle ends before its end, at byte {self.at}")

    def recall_run(self) -> None:
        """A run of LONG_BINGET at once: the stacks of a snapshot are lists of frames that were seen before."""
        found = _RUN.match(self.data, self.at, self.at + 5 * _RUN_MOST)
        if found is None:
            raise IndexError
        self.at = found.end()
        numbers = struct.unpack("<" + "xI" * (len(found[0]) // 5), found[0])
        self.charge(8 * len(numbers))
        self.stack += map(self.memo.__getitem__, numbers)

    def charge(self, size: int) -> None:
        self.room -= size
        if self.room < 0:
            raise Refused(f"the pickle needs more memory than allowed (byte {self.at})")

    def take(self, size: int) -> bytes:
        begin = self.at
        if size < 0 or begin + size > len(self.data):
            raise Refused(f"the pickle ends within a value, at byte {begin}")
        self.at = begin + size
        return self.data[begin : self.at]

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at, self.at + _TEXT_LINE)
        if end < 0:
            raise Refused(f"the pickle ends within a line, at byte {self.at}")
        found = self.data[self.at : end]
        self.at = end + 1
        return found

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def push(self, value: Any, size: int) -> None:
        self.charge(size)
        self.stack.append(value)

    def text(self, size: int) -> None:
        self.charge(size + 60)
        self.stack.append(self.take(size).decode("utf-8", "replace"))

    def bytes_(self, size: int) -> None:
        self.charge(size + 40)
        self.stack.append(self.take(size))

    def mark(self) -> None:
        self.charge(8)
        self.marks.append(len(self.stack))

    def marked(self) -> list[Any]:
        mark = self.marks.pop()
        found = self.stack[mark:]
        del self.stack[mark:]
        return found

    def remember(self, index: int) -> None:
        self.charge(100)
        self.memo[index] = self.stack[-1]

    def recall(self, index: int) -> None:
        self.charge(8)
        self.stack.append(self.memo[index])

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise TypeError
        self.charge(9 * len(items))
        target.extend(items)

    def fill(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict:
            raise TypeError
        self.charge(60 * len(items))
        for i in range(0, len(items), 2):
            if type(items[i]) is not str:  # numbers as keys can be chosen to collide
                raise Refused(f"a key that is no text, at byte {self.at}")
            target[items[i]] = items[i + 1]

    def made(self, items: list[Any]) -> None:
        """A dict of keys and values."""
        self.push({}, 64)
        self.fill(items)

    def joined(self, count: int) -> None:
        items = tuple(self.stack[-count:])
        if len(items) != count:
            raise IndexError
        del self.stack[-count:]
        self.push(items, 48 + 8 * count)

    def popped(self) -> list[Any]:
        return [self.stack.pop()]

    def pair(self) -> list[Any]:
        value = self.stack.pop()
        return [self.stack.pop(), value]

    def whole(self, digits: bytes) -> None:
        """INT and LONG of protocol 0; ``00`` and ``01`` are truth values."""
        if digits in (b"00", b"01"):
            self.push(digits == b"01", 0)
            return
        if len(digits) > 4 * _LONGEST:
            raise ValueError
        self.push(int(digits.rstrip(b"L")), 36)

    def long(self, size: int) -> None:
        if size > _LONGEST:
            raise Refused(f"an integer of {size} bytes, at byte {self.at}")
        self.push(self.number(size, signed=True), 36)

    def quoted(self) -> None:
        """STRING of protocol 0: a quoted Python 2 string; escapes stay as they are written."""
        found = self.line()
        if len(found) < 2 or found[0] != found[-1] or found[:1] not in (b"'", b'"'):
            raise ValueError
        self.push(found[1:-1].decode("latin-1"), len(found) + 60)

    def raw_unicode(self) -> None:
        found = self.line()
        self.push(found.decode("raw-unicode-escape", "replace"), 4 * len(found) + 60)


def _refuse(machine: _Machine) -> None:
    code = machine.data[machine.at - 1]
    raise Refused(f"the pickle is not plain data (opcode {code:#04x} at byte {machine.at - 1}): nothing of it was run")


_OPCODES: Final[dict[int, Callable[[_Machine], Any]]] = {
    ord("("): lambda m: m.mark(),
    ord("0"): lambda m: m.stack.pop(),
    ord("1"): lambda m: m.marked(),
    ord("2"): lambda m: m.push(m.stack[-1], 8),
    ord("F"): lambda m: m.push(float(m.line()), 32),
    ord("I"): lambda m: m.whole(m.line()),
    ord("L"): lambda m: m.whole(m.line()),
    ord("J"): lambda m: m.push(m.number(4, signed=True), 40),
    ord("K"): lambda m: m.push(m.number(1), 8),
    ord("M"): lambda m: m.push(m.number(2), 40),
    ord("N"): lambda m: m.push(None, 8),
    ord("S"): lambda m: m.quoted(),
    ord("T"): lambda m: m.text(m.number(4, signed=True)),
    ord("U"): lambda m: m.text(m.number(1)),
    ord("V"): lambda m: m.raw_unicode(),
    ord("X"): lambda m: m.text(m.number(4)),
    ord("B"): lambda m: m.bytes_(m.number(4)),
    ord("C"): lambda m: m.bytes_(m.number(1)),
    ord("G"): lambda m: m.push(struct.unpack(">d", m.take(8))[0], 32),
    ord("]"): lambda m: m.push([], 64),
    ord("}"): lambda m: m.push({}, 72),
    ord(")"): lambda m: m.push((), 8),
    ord("a"): lambda m: m.extend(m.popped()),
    ord("e"): lambda m: m.extend(m.marked()),
    ord("s"): lambda m: m.fill(m.pair()),
    ord("u"): lambda m: m.fill(m.marked()),
    ord("l"): lambda m: m.push(found := m.marked(), 64 + 8 * len(found)),
    ord("d"): lambda m: m.made(m.marked()),
    ord("t"): lambda m: m.push(tuple(found := m.marked()), 48 + 8 * len(found)),
    ord("p"): lambda m: m.remember(int(m.line()[:20])),
    ord("q"): lambda m: m.remember(m.number(1)),
    ord("r"): lambda m: m.remember(m.number(4)),
    ord("g"): lambda m: m.recall(int(m.line()[:20])),
    0x80: lambda m: m.number(1),
    0x85: lambda m: m.joined(1),
    0x86: lambda m: m.joined(2),
    0x87: lambda m: m.joined(3),
    0x88: lambda m: m.push(True, 8),
    0x89: lambda m: m.push(False, 8),
    0x8A: lambda m: m.long(m.number(1)),
    0x8B: lambda m: m.long(m.number(4, signed=True)),
    0x8C: lambda m: m.text(m.number(1)),
    0x8D: lambda m: m.text(m.number(8)),
    0x8E: lambda m: m.bytes_(m.number(8)),
    0x94: lambda m: m.remember(len(m.memo)),
    0x95: lambda m: m.take(8),
    0x96: lambda m: m.bytes_(m.number(8)),
}
