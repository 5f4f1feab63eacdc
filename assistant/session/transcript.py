"""A conversation as a text file: what was said and what was answered, so that it can be read, and said again.

::

    # gpudiag conversation 1
    # lang: en
    # bundle: gpu-12.tar.gz

    > what is wrong?
    UNHEALTHY ...

    > why?
    ...

`# ` begins a line about the conversation, `> ` a sentence, `>> ` its further lines; everything else is an answer, to
the letter. A line of an answer that begins like one of those, or with a backslash, has a backslash put ahead. One
blank line stands between an answer and what follows it.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import NamedTuple

from knowledge.errors import Fault, FaultsError, InputError, UsageError, nearest_hint
from knowledge.record import dataclass

TITLE = "# gpudiag conversation 1"
KEYS = ("lang", "here", "columns", "bundle", "log", "input", "host", "site", "rules", "absent", "nodes")
LOOK = "look"  # stands above the sentence that led to it
LIMIT = 64 << 20  # bytes: a thousand long answers
_RULES = re.compile("(?<=rules )[0-9a-f]{12}|(?<=规则集 )[0-9a-f]{12}")  # at the foot of a diagnosis
_UNENDED = "\\"  # a line of its own: the answer does not end with a line break


class Said(NamedTuple):
    """One turn."""

    text: str  # what was said
    answer: str  # as it was printed
    looks: tuple[str, ...] = ()  # bundles of what the machine told, in order
    line: int = 0  # 1-based, of the sentence


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole conversation."""

    about: tuple[tuple[str, str], ...] = ()  # the lines of the head, in order: lang, bundle, log, ...
    turns: tuple[Said, ...] = ()
    file: str = field(default="", compare=False)

    def all(self, key: str) -> tuple[str, ...]:
        """Every value of a key of the head."""
        return tuple(value for name, value in self.about if name == key)

    def one(self, key: str) -> str:
        """The last value of a key; empty when there is none."""
        return next(reversed(self.all(key)), "")


# --- writing ------------------------------------------------------------------------------


def head(about: Sequence[tuple[str, str]]) -> str:
    """The first lines of a transcript."""
    return "".join([f"{TITLE}\n", *(f"# {key}: {_quoted(value)}\n" for key, value in about)])


def turn(said: Said) -> str:
    """One turn, with the blank line that sets it off from what is before."""
    first, *more = said.text.split("\n")
    lines = [*(f"# {LOOK}: {_quoted(name)}" for name in said.looks), f"> {first}", *(f">> {m}" for m in more)]
    answer = said.answer.split("\n")
    ended = answer[-1] == ""
    lines += [_escaped(line) for line in (answer[:-1] if ended else answer)]
    return "\n".join(["", *lines, *([] if ended else [_UNENDED]), ""])


def text_of(transcript: Transcript) -> str:
    """The whole file."""
    return head(transcript.about) + "".join(map(turn, transcript.turns))


def _escaped(line: str) -> str:
    return f"\\{line}" if line[:1] in ("#", ">", "\\") else line


def _quoted(value: str) -> str:
    """As it is; as JSON where a line would not keep it."""
    plain = value.isprintable() and value == value.strip() and not value.startswith('"') and value != ""
    return value if plain else json.dumps(value)


class Recorder:
    """Writes a transcript while it is held; each turn is on file when its answer has been shown."""

    def __init__(self, path: str, about: Sequence[tuple[str, str]]) -> None:
        """UsageError when the file is there already or cannot be written."""
        self.path = Path(path)
        self.looks = 0  # bundles that were written beside it
        try:
            self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise UsageError(f"{path} exists already", hint="a conversation is recorded into a new file") from None
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be written: {getattr(error, 'strerror', '') or error}") from error
        self._write(head(about))

    def add(self, said: Said) -> None:
        """Append a turn. UsageError when the disk is full."""
        self._write(turn(said))

    def close(self) -> None:
        """End the file."""
        os.close(self._handle)

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror}") from error


# --- reading ------------------------------------------------------------------------------


def read(path: str) -> Transcript:
    """The transcript in a file. InputError when it cannot be read, FaultsError with all that is wrong in it."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(LIMIT + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}") from error
    if len(data) > LIMIT:
        raise InputError(f"{path} is larger than any conversation ({LIMIT >> 20} MiB)")
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FaultsError([Fault(path, line, 1, "this is not UTF-8")]) from error
    return parse(text, path)


def parse(text: str, file: str = "-") -> Transcript:
    """The transcript that `text` is. FaultsError with file and line of everything that is wrong."""
    reader = _Reader(file)
    lines = text.split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    for number, line in enumerate(lines, 1):
        reader.line(number, line)
    reader.end()
    if reader.faults:
        raise FaultsError(reader.faults)
    return Transcript(tuple(reader.about), tuple(reader.turns), file)


class _Reader:
    """One pass over the lines."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.faults: list[Fault] = []
        self.about: list[tuple[str, str]] = []
        self.turns: list[Said] = []
        self._looks: list[str] = []
        self._said: list[str] | None = None  # of the turn that is being read
        self._answer: list[str] = []
        self._held: tuple[str, ...] = ()
        self._at = 0

    def line(self, number: int, line: str) -> None:
        """Take in the next one."""
        if number == 1:
            if line.rstrip() != TITLE:
                self._fault(1, f"a conversation begins with the line {TITLE!r}")
        elif line.startswith("#"):
            self._close(follows=True)
            self._directive(number, line)
        elif line.startswith(">"):
            self._sentence(number, line)
        elif self._said is not None:
            self._answer.append(line)
        elif line.strip():
            self._fault(number, "an answer stands here, and nothing was said before it ('> ' begins a sentence)")

    def end(self) -> None:
        """There are no more."""
        self._close(follows=False)
        if self._at == 0 and not self.faults:
            self._fault(1, "nothing is said in it ('> ' begins a sentence)")
        if self._looks:
            self._fault(self._at, f"a '# {LOOK}: FILE' stands above the sentence that led to it, and none follows")

    def _sentence(self, number: int, line: str) -> None:
        if line.startswith(">>"):
            if self._said is None or self._answer:
                self._fault(number, "'>> ' goes on with a sentence, and none stands right before it")
            elif line[2:3] not in ("", " "):
                self._fault(number, "a blank stands behind '>>'")
            else:
                self._said.append(line[3:])
            return
        if line[1:2] not in ("", " "):
            self._fault(number, "a blank stands behind '>'")
        self._close(follows=True)
        self._said, self._at = [line[2:]], number
        self._held, self._looks = tuple(self._looks), []

    def _directive(self, number: int, line: str) -> None:
        key, mark, value = line[1:].strip().partition(":")
        if not mark or key not in (*KEYS, LOOK):
            hint = nearest_hint(key, (*KEYS, LOOK))
            self._fault(number, f"'# {key[:40]}' is not known", hint)
            return
        found = self._unquoted(number, value.strip())
        if key == LOOK:
            self._looks.append(found)
        elif self._at:
            self._fault(number, f"'# {key}' belongs above the first sentence")
        else:
            self.about.append((key, found))

    def _unquoted(self, number: int, value: str) -> str:
        if not value.startswith('"'):
            return value
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if not isinstance(found, str):
            self._fault(number, "what begins with a quotation mark is a JSON string")
            return ""
        return found

    def _close(self, follows: bool) -> None:
        """The turn that was being read is whole."""
        if self._said is None:
            return
        answer = self._answer
        if follows and answer and answer[-1] == "":
            answer = answer[:-1]
        ended = not answer or answer[-1] != _UNENDED
        lines = [a.removeprefix("\\") if a.startswith("\\") else a for a in (answer if ended else answer[:-1])]
        text = "\n".join(lines) + ("\n" if ended and lines else "")
        self.turns.append(Said("\n".join(self._said), text, self._held, self._at))
        self._said, self._answer = None, []

    def _fault(self, number: int, message: str, hint: str = "") -> None:
        self.faults.append(Fault(self._file, number, 1, message, hint))


# --- comparing ----------------------------------------------------------------------------


def same(expected: Said, got: Said) -> bool:
    """Whether two turns were answered alike. Which rules answered may differ: every change of any rule changes their hash."""
    return _RULES.sub("", expected.answer) == _RULES.sub("", got.answer)


def diff(expected: Transcript, got: Transcript) -> list[str]:
    """Unified diff lines, turn by turn; none when all answers are the `same`."""
    return [line for pair in zip(expected.turns, got.turns, strict=False) for line in _turn_diff(expected.file, *pair)]


def _turn_diff(file: str, expected: Said, got: Said) -> Iterator[str]:
    if same(expected, got):
        return
    before, after = (s.answer.split("\n") for s in (expected, got))
    place = f"{file or '-'}:{expected.line}"
    yield from difflib.unified_diff(before, after, f"{place} recorded", f"{place} now", lineterm="", n=2)
