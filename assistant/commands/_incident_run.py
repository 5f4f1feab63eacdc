"""``gpudiag incident run``: walk an incident's runbook at a terminal."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from assistant.output import say, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assistant.config import Output
    from assistant.incidents.book import Book
    from assistant.incidents.events import Hand
    from assistant.incidents.fold import Incident
    from assistant.incidents.looking import Sight
    from assistant.incidents.walk_parts import Way
    from assistant.render.sheet import Part
    from knowledge.language import Text


def add_run(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The arguments."""
    parser = actions.add_parser(
        "run", help="walk the runbook: each step with its precondition, command and verification"
    )
    add = parser.add_argument
    add("number", type=int, metavar="NUMBER", help="number of the incident")
    add("--step", default="", metavar="STEP", help="only this step; RUNBOOK/STEP where several runbooks have it")
    add("--from", default="", metavar="STEP", dest="begin", help="from this step on")
    add(
        "--node",
        default="",
        metavar="NAME",
        help="the machine that it is about, where the incident names none or several",
    )
    add("--yes-safe", action="store_true", help="run commands that only read without asking; also away from a terminal")
    add("--show-only", action="store_true", help="run nothing: show each step and ask what came of it")
    add("--take-over", action="store_true", help="go on with a step that somebody else has in hand")
    add("--bundle", default="", metavar="FILE", help="judge conditions by this recorded machine instead of looking")
    add(
        "--log",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="judge conditions by logs instead of looking",
    )
    add("--input", nargs="+", action="extend", default=[], metavar="FILE", help="or by captured outputs")
    add("--by", default="", metavar="NAME", help="who walks it (default: the user of this account)")


class Terminal:
    """Says on standard output and asks on standard input."""

    def __init__(self, output: Output, asks: bool) -> None:
        self._output, self._asks = output, asks

    def say(self, text: Text) -> None:
        """A line."""
        from knowledge.text import clean

        write("".join(clean(line) + "\n" for line in text.in_(self._output.lang).split("\n")))

    def show(self, title: str, parts: list[Part]) -> None:
        """A step."""
        from assistant.render.sheet import Sheet, show

        write("\n" + show(Sheet(title, tuple(parts)), self._output._replace(format="text")))

    def ask(self, question: Text) -> str:
        """An answer; LeftError where nobody can be asked, or at the end of the input."""
        from assistant.incidents.walk_parts import LeftError
        from knowledge.language import Text as Said

        if not self._asks:
            self.say(Said(f"This needs a person: {question.en}", f"需要人员回答：{question.in_('zh')}"))
            raise LeftError
        write(f"{question.in_(self._output.lang)} ")
        line = sys.stdin.readline()
        if not line:
            write("\n")
            raise LeftError
        return line.strip().lower()


def walk(book: Book, hand: Hand, args: argparse.Namespace) -> int:
    """Walk it; 0 when no step is left or only one was asked for, 3 when it was left before."""
    from assistant.exits import Exit
    from assistant.incidents.looking import looker
    from assistant.incidents.walk import Walk
    from assistant.journal import Journal
    from knowledge.errors import UsageError

    incident = book.incident(args.number)
    if not incident.is_open:
        raise UsageError(f"incident {incident.number} is closed", hint="change NUMBER --status open begins it again")
    if not incident.runbooks:
        raise UsageError("the incident follows no runbook yet", hint="gpudiag incident change NUMBER --runbook ID")
    _complain(incident, args.quiet)
    node = args.node or (incident.hosts[0] if len(incident.hosts) == 1 else "")
    look, here = looker(args.settings, node)
    asks = sys.stdin is not None and sys.stdin.isatty()
    talk = Terminal(args.settings.output, asks)
    way = _way(incident, args, node, here)
    sight = _sight(args, look)
    lang = args.settings.output.lang
    journal = Journal(args.settings.history.url)
    one = Walk(book, args.number, hand, journal, sight, talk, way, lang)
    if not asks and not args.yes_safe:
        one.show_next()
        return Exit.OK
    return Exit.OK if one.run() else Exit.UNDECIDED


def _complain(incident: Incident, quiet: bool) -> None:
    from assistant.commands.runbook import complain
    from assistant.incidents.progress import books_of

    complain(quiet)
    for name, book in books_of(incident.runbooks).items():
        if book is None:
            say(f"gpudiag: there is no runbook {name} any more; its steps are left out", quiet)
        elif book.file:
            say(f"gpudiag: runbook {name} is the site's own, {book.file}", quiet)


def _way(incident: Incident, args: argparse.Namespace, node: str, here: bool) -> Way:
    from assistant.incidents.events import named_step
    from assistant.incidents.progress import books_of
    from assistant.incidents.walk_parts import Way as Way_

    books = books_of(incident.runbooks)
    only = "/".join(named_step(args.step, books)) if args.step else ""
    begin = "/".join(named_step(args.begin, books)) if args.begin else ""
    return Way_(node, here, args.yes_safe, args.show_only, only, begin, args.take_over)


def _sight(args: argparse.Namespace, look: object) -> Sight:
    """Facts of files where some were given, else the machine itself."""
    from assistant.incidents import looking

    if not (args.bundle or args.log or args.input):
        return looking.Sight(look if callable(look) else None)
    from assistant import machine
    from assistant.sources import read
    from knowledge.derive import derive
    from knowledge.facts import vocabulary
    from rules.factbase import FactBase

    seen: Sequence[object] = read(args.log, args.input, args.node).observations if args.log or args.input else ()
    recorded = machine.bundle(args.bundle)[1] if args.bundle else None
    both = [*seen, *(recorded.observations if recorded else ())]
    return looking.Sight(None, FactBase(derive(both), vocabulary(), recorded.as_of if recorded else None))
