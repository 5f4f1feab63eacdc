"""Sentences from lines: of a terminal, of a pipe, of something pasted."""

from __future__ import annotations

from collections.abc import Callable

BEGIN, END = "\x1b[200~", "\x1b[201~"  # what a terminal puts around pasted text (bracketed paste)
FENCE = "```"
LIMIT = 1 << 20  # characters of one sentence: a screenful of log, and any traceback
PROMPT, _MORE = "> ", "... "


class Sentences:
    """Reads one sentence after the other.

    A line is a sentence. Lines between fences, or pasted at once, are one; so is what stands before an opening fence.
    """

    def __init__(self, next_line: Callable[[str], str]) -> None:
        """`next_line` gives the next line for a prompt; it raises EOFError when there is none."""
        self._next_line = next_line
        self._rest = ""  # of a line behind pasted text

    def next(self) -> str | None:
        """The next sentence, never empty; None at the end."""
        while True:
            try:
                line = self._rest or self._next_line(PROMPT)
            except EOFError:
                return None
            self._rest = ""
            text = self._whole(line)[:LIMIT].strip()
            if text:
                return text

    def _whole(self, line: str) -> str:
        before, pasted, rest = line.partition(BEGIN)
        if pasted:
            return before + self._until(END, rest)
        if line.count(FENCE) % 2:
            head, _, tag = line.partition(FENCE)
            # ```log: what stands right behind an opening fence names a language
            body = "" if tag.strip().isalnum() or not tag.strip() else tag + "\n"
            return f"{head}\n{body}{self._until(FENCE, self._more())}"
        return line.removesuffix("\r")

    def _until(self, mark: str, line: str | None) -> str:
        """The text up to `mark`, over any number of lines; to the end where it is missing."""
        lines, size = [], 0
        while line is not None:
            text, found, rest = line.partition(mark)
            if size < LIMIT:
                lines.append(text)
                size += len(text) + 1
            if found:
                self._rest = rest.strip()
                break
            line = self._more()
        return "\n".join(lines)

    def _more(self) -> str | None:
        try:
            return self._next_line(_MORE)
        except EOFError:
            return None
