"""From the command line to the listener and back: what is said, what is checked, and how it ends."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.door import token_of
from assistant.ending import within
from assistant.incidents.alert_desk import Desk, Nodes, knowing
from assistant.incidents.book import OFF, Book
from assistant.incidents.listen import Intake, Listener, Manner
from assistant.output import say, write
from knowledge.errors import UsageError
from knowledge.language import Text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from assistant.incidents.alert_check import Checker
    from assistant.incidents.alert_desk import Outcome

UNIT = Path(__file__).parent.parent / "deploy" / "gpudiag-incidents.service"
LEAVE = 2.0  # seconds for a check that is under way


def listen(args: argparse.Namespace) -> int:
    """Take messages until SIGTERM or SIGINT. UsageError when the history is off or the address is no good."""
    from assistant.exits import Exit

    if args.print_:
        write(UNIT.read_text(encoding="utf-8"))
        return Exit.OK
    settings, lang = args.settings, args.settings.output.lang
    if settings.history.url == "off":
        raise UsageError(OFF.in_(lang), hint="history_url names the file or the database that keeps them")
    token = token_of(args.token_file)
    book, knows = Book(settings.history.url), knowing(settings)

    def told(text: Text) -> None:
        say(f"gpudiag: {text.in_(lang)}", args.quiet)

    ear = _ear()
    checker = _checker(args, book, told) if args.check else None
    assert isinstance(knows.node, Nodes)  # `knowing` made it
    news = _News(told, checker, knows.node)
    listener = Listener(args.address, Intake(Desk(book, knows), told, news), Manner(token))
    told(Text(f"listens for Alertmanager on {listener.url}", f"在 {listener.url} 接收 Alertmanager 的告警"))
    try:
        ear.recv(1)  # it stays open: a second signal is heard by nobody, and disturbs nobody
        within()
    finally:
        listener.close()
        if checker is not None:
            checker.close(LEAVE)
    return Exit.OK


class _News:
    """Says what a message changed, and has the nodes of a new incident looked at."""

    def __init__(self, told: Callable[[Text], None], checker: Checker | None, nodes: Nodes) -> None:
        self._told, self._checker, self._nodes = told, checker, nodes

    def __call__(self, outcome: Outcome) -> None:
        incident = outcome.incident
        if outcome.new:
            title = incident.title
            self._told(
                Text(
                    f"incident {incident.number} is open: {title.en}",
                    f"已开立事件 {incident.number}：{title.in_('zh')}",
                )
            )
        elif outcome.added:
            n = outcome.added
            self._told(
                Text(
                    f"incident {incident.number}: {n} more event{'s' if n != 1 else ''}",
                    f"事件 {incident.number}：新增 {n} 条记录",
                )
            )
        if outcome.new and self._checker is not None and incident.is_open:
            for host in incident.hosts:
                if self._nodes.checkable(host):
                    self._checker.ask(incident.number, host, host != self._nodes.here)


def _checker(args: argparse.Namespace, book: Book, told: Callable[[Text], None]) -> Checker:
    from assistant.incidents.alert_check import Checker

    return Checker(book, told, ["--lang", args.settings.output.lang])


def _ear() -> socket.socket:
    """What SIGTERM and SIGINT are heard with: a handler that took a lock could wait for one that its own thread holds."""
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)
    signal.set_wakeup_fd(mouth.detach(), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return ear
