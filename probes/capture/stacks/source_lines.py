"""What a line of Python calls, from its text alone: C functions have no frame of their own, but the line that calls them has.

Comments and strings are no code, except what stands in the braces of an f-string. Any text is answered in linear time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from keyword import iskeyword
from typing import Final

LONGEST: Final = 200  # characters of a line that are kept and looked at
_DEEPEST = 3  # f-strings within f-strings
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<comment>\#.*)|(?P<quote>(?P<prefix>[rRbBuUfFtT]{0,2})(?P<mark>\"\"\"|'''|\"|'))"
    r"|(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<op>.)",
    re.DOTALL,
)
_CASTS = ("float", "int", "bool")


@lru_cache(maxsize=8192)
def calls(line: str) -> frozenset[str]:
    """Names under which the calls of a line can be asked for.

    ``self.loss.item()`` is "self.loss.item" and ".item"; ``torch.nn.relu(x)`` also "torch.*" and "torch.nn.*"; ``x.to("cpu")`` also
    ".to(cpu)"; ``float(loss)`` also "float(loss)"; ``a @ b`` is "@".
    """
    found: set[str] = set()
    for chain in _chains(line[:LONGEST], 0):
        found.add(chain)
        name, bracket, _ = chain.partition("(")
        parts = name.split(".")
        if len(parts) > 1:
            found.add(f".{parts[-1]}" + chain[len(name) :] * bool(bracket))
        found.update(".".join(parts[:n]) + ".*" for n in range(1, len(parts)) if parts[0])
    return frozenset(found)


class _Reader:
    """Tokens of a line, put together to dotted names and what is called."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.chain = ""  # the dotted name that just ended
        self.dot = False  # a dot follows it
        self.operand = False  # the last token can stand left of an operator
        self.defines = False  # behind def or class
        self.open: list[str] = []  # the chain before each open bracket, empty: none

    def name(self, text: str) -> None:
        if iskeyword(text) and text not in ("None", "True", "False"):
            self.chain, self.dot, self.operand = "", False, False
            self.defines = text in ("def", "class")
            return
        self.chain = f"{self.chain}.{text}" if self.dot else text
        self.dot, self.operand = False, True

    def op(self, text: str) -> None:
        if text == ".":
            self.dot = True
            return
        if text == "(":
            called = self.chain if self.operand and not self.defines else ""
            if called:
                self.found.append(called)
            self.open.append(called)
        elif text in "[{":
            self.open.append("")
        elif text in ")]}":
            called = self.open.pop() if self.open else ""
            if text == ")" and called in _CASTS and self.chain and self.operand:
                self.found.append(f"{called}({self.chain.rsplit('.', 1)[-1]})")
        elif text == "@" and self.operand:
            self.found.append("@")
        self.chain, self.dot, self.defines = "", False, False
        self.operand = text in ")]}"

    def string(self, content: str) -> None:
        if content == "cpu" and self.open and self.open[-1].rsplit(".", 1)[-1] == "to" and "." in self.open[-1]:
            self.found.append(f"{self.open[-1]}(cpu)")
        self.chain, self.dot, self.operand = "", False, True


def _chains(line: str, depth: int) -> list[str]:
    reader = _Reader()
    at = 0
    while at < len(line) and (token := _TOKEN.match(line, at)):
        at = token.end()
        if token["quote"]:
            end, inner = _string(line, at, token["mark"], "f" in token["prefix"].lower())
            reader.string(line[at : max(at, end - len(token["mark"]))])
            if depth < _DEEPEST:
                for code in inner:
                    reader.found += _chains(code, depth + 1)
            at = end
        elif token["name"]:
            reader.name(token["name"])
        elif token["number"]:
            reader.chain, reader.dot, reader.operand = "", False, True
        elif token["op"]:
            reader.op(token["op"])
    return reader.found


def _string(line: str, at: int, mark: str, formatted: bool) -> tuple[int, list[str]]:
    """Where a string ends (the line's end, if it does not), and the code in the braces of an f-string."""
    inner: list[str] = []
    while at < len(line):
        if line.startswith(mark, at):
            return at + len(mark), inner
        if line[at] == "\\":
            at += 2
        elif formatted and line[at] == "{":
            if line.startswith("{{", at):
                at += 2
            else:
                end = _braces(line, at + 1)
                inner.append(line[at + 1 : end])
                at = end + 1
        else:
            at += 1
    return len(line), inner


def _braces(line: str, at: int) -> int:
    """Where the brace that opened before `at` closes."""
    depth, quote = 0, ""
    for place in range(at, len(line)):
        here = line[place]
        if quote:
            quote = "" if here == quote else quote
        elif here in "\"'":
            quote = here
        elif here in "([{":
            depth += 1
        elif here in ")]}":
            if not depth:
                return place
            depth -= 1
    return len(line)
