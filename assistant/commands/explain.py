"""``gpudiag explain``: what a code, a name or a rule means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.output import write

if TYPE_CHECKING:
    import argparse

    from assistant.render.sheet import Sheet

NAME = "explain"
HELP = "explain an error code, a fact, a rule, a GPU model or a term"
WORDS = "words"  # takes nothing but words: see `assistant.cli`


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
    """Words without a kind: the code in a pasted line, an exact name of any kind, else the message in a pasted line."""
    import re

    from assistant.topics import kinds, topic
    from assistant.topics._common import signature_page
    from knowledge.catalog.lookup import find_signature
    from knowledge.errors import UnknownNameError

    text = " ".join(words)
    # NVRM: Xid (PCI:0000:3b:00): 79, pid=...     nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal     xid79
    if line := re.search(r"\b(s?xid)(?: \([^)]{0,40}\):)?[ :]{0,3}([0-9]{1,5})\b", text, re.IGNORECASE):
        return topic(line[1].lower()).sheet([line[2]], lang)
    known: list[str] = []
    # A bare number is an XID before it is anything else; "MFU" is a word before it is a measure with a good value.
    for kind in sorted(kinds(), key=lambda k: (k != "xid", k in ("howto", "range", "symptom"))):
        found = topic(kind)
        names = list(found.names())
        exact = next((n for n in names if n.casefold() == text.casefold()), None)
        if exact is not None:
            return found.sheet([exact], lang)
        known += names
    if matches := [m.signature for m in find_signature(text)]:
        return signature_page(matches[0], str(matches[0].family), lang, matches[1:4])
    error = UnknownNameError("topic", text, known)
    error.hint = error.hint or f"say what kind of thing it is: {', '.join(kinds())}"
    raise error
