"""``gpudiag explain``: what a code, a name or a rule means."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from assistant.output import write

if TYPE_CHECKING:
    from assistant.render.sheet import Sheet

NAME = "explain"
HELP = "explain an error code, a fact, a rule, a GPU model or a term"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``explain KIND NAME`` or ``explain TERM``."""
    from assistant.topics import kinds

    parser.add_argument("words", nargs="+", metavar="KIND NAME", help=f"{', '.join(kinds())} and a name; or any term")


def run(args: argparse.Namespace) -> int:
    """Print the page."""
    from assistant.render import sheet

    write(sheet.show(page(args.words, args.settings.output.lang), args.settings.output))
    return 0


def page(words: list[str], lang: str) -> Sheet:
    """The page about a kind and a name, or about a term of any kind."""
    from assistant.topics import kinds, topic
    from knowledge.errors import UsageError

    kind, rest = words[0].lower(), words[1:]
    if kind in kinds():
        if not rest:
            raise UsageError(f"explain {kind} needs a name", hint=f"{topic(kind).HELP}")
        return topic(kind).sheet(rest, lang)
    return _term(words, lang)


def _term(words: list[str], lang: str) -> Sheet:
    """A term without its kind: the first topic that knows exactly this name."""
    from assistant.topics import kinds, topic
    from knowledge.errors import UnknownNameError

    term = " ".join(words)
    known: list[str] = []
    for kind in ("xid", *(k for k in kinds() if k != "xid")):  # a bare number is an XID before it is anything else
        found = topic(kind)
        names = list(found.names())
        exact = next((n for n in names if n.casefold() == term.casefold()), None)
        if exact is not None:
            return found.sheet([exact], lang)
        known += names
    raise UnknownNameError("topic", term, known)
