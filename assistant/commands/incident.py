"""``gpudiag incident``: what happened, who does what about it, and how it ended."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from assistant.arguments import rows
from assistant.commands import _incident
from assistant.commands._incident_run import add_run
from assistant.commands._listen import add_listen
from assistant.output import say, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assistant.incidents.book import Book
    from assistant.incidents.events import Entry, Hand
    from assistant.incidents.fold import Incident
    from assistant.store.incidents import Same

NAME = "incident"
HELP = "incidents: open one from what is found, note, walk the runbook, close, report"
ROWS = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``incident [list] | show | open | note | step | change | close | link | report``."""
    parser.set_defaults(action="list", closed=False, limit=ROWS)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions (default: list)")
    some = actions.add_parser("list", help="open incidents; --all: closed ones too")
    some.add_argument("--all", action="store_true", dest="closed", help="closed ones too")
    some.add_argument("--limit", type=rows, default=ROWS, metavar="N", help=f"at most so many (default: {ROWS})")
    show = actions.add_parser("show", help="one incident: findings, steps, the next one, what happened")
    opening = actions.add_parser("open", help="begin one from what is found on this machine or in files, or by hand")
    note = actions.add_parser("note", help="note something")
    step = actions.add_parser("step", help="say how far a step of the runbook is")
    change = actions.add_parser("change", help="status, owner, severity, one more runbook")
    close = actions.add_parser("close", help="end it")
    link = _incident.add_actions(actions)
    add_listen(actions)
    add_run(actions)
    for child in (show, note, step, change, close):
        child.add_argument("number", type=int, metavar="NUMBER", help="number of the incident")
    note.add_argument("words", nargs="+", metavar="TEXT", help="what there is to note")
    _incident.add_note_options(note)
    show.add_argument("--timeline", action="store_true", help="only what happened, with the times that were measured")
    step.add_argument("step", metavar="STEP", help="its name or number; RUNBOOK/STEP where several runbooks have it")
    step.add_argument("state", metavar="STATE", help="todo, doing, done, skipped or failed")
    step.add_argument("words", nargs="*", metavar="TEXT", help="what there is to say about it")
    close.add_argument("words", nargs="*", metavar="TEXT", help="how it ended")
    _add_change(change)
    _add_opening(opening)
    for child in (opening, note, step, change, close, link):
        child.add_argument("--by", default="", metavar="NAME", help="who says so (default: the user of this account)")


def _add_change(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--status", metavar="STATUS", help="open, working or mitigated; a closed incident is open again with it")
    add("--owner", metavar="NAME", help="who takes care of it; nobody with an empty name")
    add("--severity", metavar="SEVERITY", help="info, warning, error or critical")
    add("--runbook", metavar="ID", help="follow this runbook too")
    add("--note", default="", metavar="TEXT", help="why")


def _add_opening(parser: argparse.ArgumentParser) -> None:
    from assistant.commands.check import add_probing
    from assistant.inventory.target import add_target

    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="a log or captured output that tells what happened")
    add("--title", default="", metavar="TEXT", help="by hand: what happened; nothing is read then")
    add(
        "--severity",
        default="",
        metavar="SEVERITY",
        help="info, warning, error or critical (default: of what is found)",
    )
    add("--runbook", action="append", default=[], metavar="ID", help="follow this runbook too")
    add("--owner", default="", metavar="NAME", help="who takes care of it")
    add("--note", default="", metavar="TEXT", help="what there is to say about it")
    add(
        "--finding",
        action="append",
        default=[],
        metavar="ID",
        help="only this finding of the diagnosis; may be repeated",
    )
    add("--another", action="store_true", help="another one, even if one is open about the same")
    add("--log", nargs="+", action="extend", default=[], metavar="FILE", help="logs instead of this machine")
    add("--input", nargs="+", action="extend", default=[], metavar="FILE", help="any captured output")
    add("--bundle", default="", metavar="FILE", help="a recorded machine")
    add("--host", default="", metavar="NAME", help="the node that it is about; beside FILEs that they come from")
    add("--site", metavar="FILE", help="site file: changed thresholds and severities, suppressed rules")
    add("--rules", action="append", default=[], metavar="PACK", help="rule file or folder laid over the shipped rules")
    add_target(parser)
    add_probing(parser, " (without --title and FILEs)")
    parser.set_defaults(
        record="", since_last=False, since_good=False, no_history=False, expect_gpus=None
    )  # what `check` also looks at


def run(args: argparse.Namespace) -> int:
    """Show, or write."""
    from assistant.incidents.book import Book
    from assistant.incidents.events import Hand
    from assistant.incidents.who import person
    from assistant.store.location import StoreError
    from knowledge.errors import UsageError

    args.action = args.action or "list"
    if args.action == "listen":
        from assistant.incidents.listening import listen

        return listen(args)
    lang = args.settings.output.lang
    book = Book(args.settings.history.url)
    try:
        if args.action == "list":
            return _list(book, args)
        if args.action == "show":
            return _incident.show(book, args)
        if args.action == "report":
            return _incident.report(book, args)
        hand = Hand(args.by.strip() or person(), "cli")
        if args.action == "open":
            return _open(book, hand, args)
        if args.action == "run":
            from assistant.commands._incident_run import walk

            return walk(book, hand, args)
        if args.action == "link":
            return _shown(_incident.link(book, hand, args), args, brief=True)
        return _shown(_written(book, hand, args), args, brief=True)
    except StoreError as error:
        raise UsageError(error.said.in_(lang)) from error


def _list(book: Book, args: argparse.Namespace) -> int:
    from assistant.incidents import pages
    from assistant.render.sheet import show

    found = book.incidents(args.closed, args.limit)
    write(show(pages.many(found, args.settings.output.lang, args.closed), args.settings.output))
    return 0


def _shown(incident: Incident, args: argparse.Namespace, brief: bool = False) -> int:
    """The incident; in `brief` text only how it stands now."""
    from assistant.incidents import pages
    from assistant.render.sheet import show

    output = args.settings.output
    page = pages.one(incident, output.lang)
    if brief and output.format == "text":
        page = pages.brief(incident, output.lang)
    write(show(page, output))
    return 0


# --- writing ------------------------------------------------------------------------------


def _written(book: Book, hand: Hand, args: argparse.Namespace) -> Incident:
    from assistant.incidents import events
    from knowledge.errors import UsageError

    words = " ".join(getattr(args, "words", ()))
    if args.action == "note":
        return book.add(args.number, hand, _incident.noted(args, words))
    if args.action == "step":
        return book.change(args.number, hand, lambda i: [_step(i, args.step, args.state, words)])
    if args.action == "close":

        def close(incident: Incident) -> Sequence[Entry]:
            if not incident.is_open:
                raise UsageError(f"incident {incident.number} is closed already", hint="note says more about it")
            return [events.closed(words)]

        return book.change(args.number, hand, close)
    return book.add(args.number, hand, *_changes(args))


def _step(incident: Incident, name: str, state: str, words: str) -> Entry:
    from assistant.incidents.events import named_step, step
    from assistant.incidents.progress import books_of

    runbook, own = named_step(name, books_of(incident.runbooks))
    return step(runbook, own, state, words)


def _changes(args: argparse.Namespace) -> list[Entry]:
    from assistant.incidents import events
    from knowledge.errors import UsageError

    out = []
    if args.status is not None:
        out.append(events.status(args.status, args.note))
    if args.severity is not None:
        out.append(events.severity(args.severity, args.note))
    if args.owner is not None:
        out.append(events.owner(args.owner))
    if args.runbook is not None:
        out.append(events.runbook(args.runbook))
    if not out:
        raise UsageError("nothing is to be changed", hint="--status, --owner, --severity or --runbook")
    if args.note and args.status is None and args.severity is None:
        out.append(events.note(args.note))
    return out


def _open(book: Book, hand: Hand, args: argparse.Namespace) -> int:
    from assistant.incidents import events, opening

    same: Same | None = None
    if args.title:
        entries = opening.by_hand(args.title, args.severity, (), args.host)
    else:
        entries = _from_what_is_found(args)
        same = None if args.another else opening.same_as(entries)
        if args.severity:
            entries.append(events.severity(args.severity))
    entries += [events.runbook(name) for name in args.runbook]
    if args.owner:
        entries.append(events.owner(args.owner))
    if args.note:
        entries.append(events.note(args.note))
    incident, new = book.open(hand, entries, same)
    if not new:
        say(f"gpudiag: incident {incident.number} is open about it already; --another opens one more", args.quiet)
    _incident.tell_others(book, incident, args)
    return _shown(incident, args)


def _from_what_is_found(args: argparse.Namespace) -> list[Entry]:
    """The diagnosis of this machine or of the files, as `check` makes it."""
    from assistant.commands.check import diagnosed
    from assistant.incidents.opening import from_diagnosis

    found = diagnosed(args)
    host = found.look.host if found.look is not None else args.host
    source = args.bundle or ", ".join((*args.files, *args.log, *args.input))
    return from_diagnosis(found.diagnosis, host, args.finding, source)
