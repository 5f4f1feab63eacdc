"""The terminal's side of a conversation: lines with editing, history and completion where there is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from assistant.session.reading import LIMIT
from knowledge.whole import private_folder

REMEMBERED = 1000  # lines
FILE = "chat_history"


def any_bytes() -> None:
    """What is no text on standard input costs no answer: it is passed on, and cleaned as anything else that was said."""
    import io

    if isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors == "strict":
        sys.stdin.reconfigure(errors="surrogateescape")


def interactive() -> bool:
    """Whether a person sits in front of it."""
    return sys.stdin is not None and sys.stdin.isatty()


class Editor:
    """Lines of a terminal, with GNU readline where Python has it."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` keeps what was typed, for its owner only; None: nowhere."""
        self._file = folder / FILE if folder is not None else None
        self._offers: tuple[str, ...] = ()
        self._names: tuple[str, ...] = ()
        self._prompt = ""
        self._hook: object = None  # kept alive for as long as readline may call it
        try:
            import readline
        except ImportError:
            self._readline = None
            return
        self._readline = readline
        readline.set_completer_delims("")  # a suggestion is a whole line
        readline.set_completer(self._complete)
        readline.parse_and_bind("tab: complete")
        readline.parse_and_bind("set enable-bracketed-paste on")
        readline.set_history_length(REMEMBERED)
        if self._file is not None:
            with suppress(OSError):
                readline.read_history_file(self._file)

    def offer(self, sentences: Iterable[str], names: Iterable[str]) -> None:
        """What Tab completes: whole sentences, and words at the end of a line."""
        self._offers = tuple(dict.fromkeys(sentences))
        words = (w for s in self._offers for w in s.split())
        self._names = tuple(dict.fromkeys([*names, *words]))

    def line(self, prompt: str) -> str:
        """The next line. EOFError at the end, KeyboardInterrupt for Ctrl-C."""
        self._prompt = prompt
        if sys.stdout is not None and sys.stdout.isatty():
            any_bytes()
            return input(prompt)
        sys.stderr.write(prompt)  # answers go elsewhere, and the prompt is none of them
        sys.stderr.flush()
        return piped("")

    @property
    def prompts(self) -> bool:
        """Whether something can be shown above the prompt: the terminal is also where answers go, and readline is there."""
        return self._readline is not None and sys.stdout is not None and sys.stdout.isatty()

    def idle(self, prompt: str, above: Callable[[], str]) -> None:
        """While `prompt` stands and nothing is typed, ten times a second: what `above` gives is shown above it.

        readline calls it between two keys, in the thread that reads: so nothing is ever written into what somebody types.
        """
        import ctypes
        import readline

        def tick() -> int:
            with suppress(Exception, KeyboardInterrupt):  # ctypes would print it onto the screen
                if self._prompt == prompt and not readline.get_line_buffer() and (text := above()):
                    sys.stdout.write(f"\r\x1b[K{text}{prompt}")
                    sys.stdout.flush()
            return 0

        self._hook = ctypes.CFUNCTYPE(ctypes.c_int)(tick)
        slot = ctypes.c_void_p.in_dll(ctypes.pythonapi, "PyOS_InputHook")
        slot.value = ctypes.cast(self._hook, ctypes.c_void_p).value

    def _no_idle(self) -> None:
        if self._hook is None:
            return
        import ctypes

        ctypes.c_void_p.in_dll(ctypes.pythonapi, "PyOS_InputHook").value = None
        self._hook = None

    def close(self) -> None:
        """Keep what was typed."""
        self._no_idle()
        if self._readline is None or self._file is None:
            return
        with suppress(OSError):
            private_folder(self._file.parent)
            os.close(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            self._file.chmod(0o600)
            self._readline.write_history_file(self._file)

    def _complete(self, text: str, state: int) -> str | None:
        found = completions(text, self._offers, self._names)
        return found[state] if state < len(found) else None


def completions(text: str, sentences: Iterable[str], names: Iterable[str]) -> list[str]:
    """Lines that `text` may become: sentences that begin so, else the line with its last word finished."""
    begun = text.casefold()
    whole = [s for s in sentences if s.casefold().startswith(begun)]
    if whole:
        return whole
    head, _, word = text.rpartition(" ")
    lead = f"{head} " if head else ""
    return [lead + n for n in names if word and n.casefold().startswith(word.casefold()) and n != word]


def piped(_: str) -> str:
    """The next line of standard input, without its end. EOFError when there is none."""
    if sys.stdin is None:
        raise EOFError
    any_bytes()
    try:
        line = sys.stdin.readline(LIMIT)
    except OSError as error:  # a device, a terminal that has gone
        raise EOFError from error
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def next_line(editor: Editor | None) -> Callable[[str], str]:
    """Where lines come from."""
    return editor.line if editor is not None else piped
