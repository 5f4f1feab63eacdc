"""``gpudiag journal``: what was about to be done, what came of it, and whether that record is as it was written."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from assistant.arguments import rows
from assistant.output import say, write

if TYPE_CHECKING:
    from pathlib import Path

    from assistant.journal.chain import Head
    from assistant.journal.verify import Checked
    from assistant.store.location import StoreError

NAME = "journal"
HELP = "what was run and who agreed to it: show, verify, export"
ROWS = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``journal [show] | verify | export``."""
    parser.set_defaults(action="show", subject="", kind="", who="", node="", since="", limit=ROWS)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions (default: show)")
    show = actions.add_parser("show", help="the newest records; --subject: everything about one")
    show.add_argument("--subject", default="", metavar="ID", help="everything about this one: request, intent, result")
    show.add_argument("--kind", default="", metavar="K", help="intent, result, requested, approved, refused, note ...")
    show.add_argument("--who", default="", metavar="W", help="only what this person did")
    show.add_argument("--node", default="", metavar="N", help="only what was done on this node")
    show.add_argument("--since", default="", metavar="TIME", help="how far back, such as 2h or 7d (default: all)")
    show.add_argument("--limit", type=rows, default=ROWS, metavar="N", help=f"at most so many (default: {ROWS})")
    verify = actions.add_parser("verify", help="is it as it was written? names the first record that is not")
    verify.add_argument("--from-file", default="", metavar="FILE", help="an export, instead of the history")
    verify.add_argument("--head", default="", metavar="SEQ:HASH", help="a head that was kept elsewhere")
    export = actions.add_parser("export", help="all of it as JSON lines that verify checks offline")
    export.add_argument("-o", "--output", required=True, metavar="FILE", help="write it there")


def run(args: argparse.Namespace) -> int:
    """Show, verify or export."""
    from assistant.store.location import StoreError
    from knowledge.errors import UsageError

    args.action = args.action or "show"
    try:
        if args.action == "verify":
            return _verify(args)
        return _export(args) if args.action == "export" else _show(args)
    except StoreError as error:
        raise UsageError(error.said.in_(args.settings.output.lang)) from error


def _show(args: argparse.Namespace) -> int:
    from assistant.journal import Journal, pages
    from assistant.render.sheet import show

    journal, lang = Journal(args.settings.history.url), args.settings.output.lang
    found = journal.newest(
        args.limit, subject=args.subject, kind=args.kind, who=args.who, node=args.node, since=_since(args.since)
    )
    page = pages.one(args.subject, found, lang) if args.subject else pages.many(found, lang)
    write(show(page, args.settings.output))
    return 0


def _since(text: str) -> int:
    """ns UTC; 0 without a word. UsageError for what is no length of time."""
    from time import time_ns

    from knowledge.errors import UsageError
    from knowledge.units import parse_duration

    if not text:
        return 0
    try:
        return max(0, time_ns() - parse_duration(text))
    except ValueError as error:
        raise UsageError(f"--since: {text!r} is no length of time", hint="for example 90m, 2h, 7d") from error


def _verify(args: argparse.Namespace) -> int:
    """OK, FINDING for a journal that is not as it was written, UNDECIDED where the history cannot be read now."""
    from assistant.exits import Exit
    from assistant.journal import Journal
    from assistant.journal.reading import checked, head_of_text
    from assistant.journal.verify import check
    from assistant.store.location import StoreError

    kept = (head_of_text(args.head),) if args.head else ()
    if args.from_file:
        from pathlib import Path

        return _told(_checked_file(Path(args.from_file), args.from_file, kept), args.from_file, args)
    journal = Journal(args.settings.history.url)
    location = journal.location
    try:
        reader = journal.opened()
        if reader is None:
            return _told(check((), None, kept), location.shown, args)
        with reader:
            found = checked(reader.ask, kept)
    except StoreError as error:
        return _unread(error, args, Exit.UNDECIDED)
    return _told(found, location.shown, args)


def _unread(error: StoreError, args: argparse.Namespace, code: int) -> int:
    say(f"gpudiag: {error.said.in_(args.settings.output.lang)}")
    return code


def _checked_file(path: Path, name: str, kept: tuple[Head, ...]) -> Checked:
    from assistant.journal.reading import checked_file
    from knowledge.errors import InputError

    try:
        with path.open("rb") as stream:
            return checked_file(stream, name, kept)
    except (OSError, ValueError) as error:
        raise InputError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _told(found: Checked, source: str, args: argparse.Namespace) -> int:
    from assistant.exits import Exit
    from assistant.journal import pages
    from assistant.render.sheet import show

    write(show(pages.checked(found, args.settings.output.lang, source), args.settings.output))
    return Exit.FINDING if found.fault is not None else Exit.OK


def _export(args: argparse.Namespace) -> int:
    """Write it beside the name and rename it: a half one never stands there."""
    import os
    from pathlib import Path

    from assistant.journal import Journal
    from assistant.journal.chain import GENESIS, Head
    from assistant.journal.reading import exported, head_line
    from assistant.journal.verify import Checked
    from knowledge.errors import InputError

    path = Path(args.output)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    reader = Journal(args.settings.history.url).opened()
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as to:
            if reader is None:
                to.write(head_line(Head(0, GENESIS)).encode())
                found = Checked(Head(0, GENESIS))
            else:
                with reader:
                    found = exported(reader.ask, to)
            to.flush()
            os.fsync(to.fileno())
        part.replace(path)
    except (OSError, ValueError) as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{args.output} cannot be written: {getattr(error, 'strerror', None) or error}") from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return _told(found, args.output, args)
