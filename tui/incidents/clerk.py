"""Who reads and writes incidents for the screen, in threads that only post.

A history that is off, locked or far away costs a line that says so, never the screen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.incidents.book import Book
    from assistant.incidents.events import Entry, Hand
    from assistant.incidents.fold import Incident
    from knowledge.runbook import Runbook
    from tui.desk import Desk
    from tui.incidents.orders import ReportOrder
    from tui.screens._pane import Pane
    from tui.work import Job

Work = Callable[["Book", "Hand"], "tuple[Incident, bool]"]  # the incident, and whether it is what was wished for


class IncidentsRead(Message):
    """What the history holds now, or why it cannot be read."""

    def __init__(self, incidents: Sequence[Incident], books: Sequence[Runbook], trouble: str = "") -> None:
        super().__init__()
        self.incidents, self.books, self.trouble = tuple(incidents), tuple(books), trouble


class IncidentWritten(Message):
    """An incident after something was added to it. `shown`: go there; `said`: what there is to say beside it."""

    def __init__(self, incident: Incident, shown: bool, said: str = "") -> None:
        super().__init__()
        self.incident, self.shown, self.said = incident, shown, said


class ReportWritten(Message):
    """A post-mortem stands in a file."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class IncidentRefused(Message):
    """Why something was not written."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Clerk:
    """One for the pane; called in the app's thread."""

    def __init__(self, pane: Pane) -> None:
        self._pane = pane
        self._reading: Job | None = None
        self._books: Sequence[Runbook] = ()
        self._waiting: deque[tuple[Work, bool]] = deque()
        self._busy = False  # something is being written
        self._reread = False  # once it is, all are to be read again

    def _book(self, desk: Desk) -> Book:
        from assistant.incidents.book import Book

        return Book("off" if desk.args.no_history else desk.settings.history.url)

    # --- reading --------------------------------------------------------------------------

    def read(self) -> None:
        """Read all again; once at a time."""
        if self._reading is None or not self._reading.running:
            desk = self._pane.desk  # the thread may outlive the pane
            self._reading = desk.jobs.start("incidents", lambda job: self._read(job, desk), self._unread)

    def _read(self, job: Job, desk: Desk) -> None:
        from knowledge.runbook import all_runbooks

        self._books = all_runbooks()
        found = self._book(desk).incidents()
        if not job.stopped:
            self._pane.post_message(IncidentsRead(found, self._books))

    def _unread(self, job: Job, said: str) -> None:
        self._pane.post_message(IncidentsRead((), self._books, said))

    # --- the report -----------------------------------------------------------------------

    def report(self, number: int, wanted: ReportOrder) -> None:
        """Write the post-mortem of one, beside the screen."""
        desk = self._pane.desk
        desk.jobs.start("report", lambda job: self._report(job, desk, number, wanted))

    def _report(self, job: Job, desk: Desk, number: int, wanted: ReportOrder) -> None:
        from assistant.commands._incident import rendered
        from assistant.incidents.deeds import of_journal
        from assistant.incidents.report import report
        from assistant.incidents.similar import PAST, similar
        from assistant.trace.flame import save

        book = self._book(desk)
        incident = book.incident(number)
        likes = similar(incident, book.incidents(limit=PAST))
        output = desk.settings.output._replace(format=wanted.shape, color="never", lang=desk.lang)
        save(
            str(wanted.path),
            rendered(report(incident, likes, wanted.price, of_journal(desk.settings.history.url, incident)), output),
        )
        if not job.stopped:
            self._pane.post_message(ReportWritten(str(wanted.path)))

    # --- writing --------------------------------------------------------------------------

    def link(self, number: int, other: int, merge: bool) -> None:
        """Both say that they belong together; with `merge` the first takes up the findings of the other."""
        from assistant.incidents.links import link

        self.write(lambda book, hand: (link(book, number, other, hand, merge), True), also_read=True)

    def add(self, incident: Incident, entries: Sequence[Entry]) -> None:
        """Events to one that is there."""
        self.write(lambda book, hand: (book.add(incident.number, hand, *entries), True))

    def open_by_hand(self, title: str, runbooks: Sequence[str] = ()) -> None:
        """A new one that somebody tells of. UsageError for a title without words."""
        from assistant.incidents.opening import by_hand

        # A runbook is opened for the node that is looked at; a title may be about anything.
        entries = by_hand(title, "", runbooks, self._pane.desk.picture.host if runbooks else "")
        self.write(lambda book, hand: book.open(hand, entries), shown=True)

    def open_found(self, chosen: Sequence[str] = ()) -> None:
        """About what the last look found, or these findings of it; the open one about the same where there is one."""
        picture = self._pane.desk.picture
        diagnosis, host, origin = picture.diagnosis, picture.host, picture.origin
        source = origin.bundle or ", ".join((*origin.logs, *origin.inputs))
        if diagnosis is None:
            t = self._pane.t
            said = t(
                "Nothing has been read yet. :incident TITLE opens one by hand.",
                "尚未读取到内容。:incident 标题 可人工开立。",
            )
            self._pane.app.notify(said)
            return

        def work(book: Book, hand: Hand) -> tuple[Incident, bool]:
            from assistant.incidents.opening import from_diagnosis, same_as

            entries = from_diagnosis(diagnosis, host, chosen, source)
            return book.open(hand, entries, same_as(entries))

        self.write(work, shown=True)

    def write(self, work: Work, shown: bool = False, also_read: bool = False) -> None:
        """Do it beside the screen, after what is being written; `shown`: go there then; `also_read`: others changed with it."""
        self._waiting.append((work, shown))
        self._reread = self._reread or also_read
        self._next()

    def done(self) -> None:
        """The pane has been told what came of it: on with the next."""
        self._busy = False
        if self._reread and not self._waiting:
            self._reread = False
            self.read()
        self._next()

    def _next(self) -> None:
        if self._busy or not self._waiting:
            return
        self._busy = True
        work, shown = self._waiting.popleft()
        desk = self._pane.desk
        desk.jobs.start(
            "incident",
            lambda job: self._write(job, desk, work, shown),
            lambda _, said: self._pane.post_message(IncidentRefused(said)),
        )

    def _write(self, job: Job, desk: Desk, work: Work, shown: bool) -> None:
        from assistant.incidents.events import Hand
        from assistant.incidents.who import person

        incident, new = work(self._book(desk), Hand(person(), "tui"))
        already = Text(f"Incident {incident.number} is open about it already.", f"已有未关闭的事件 {incident.number}。")
        if not job.stopped:
            self._pane.post_message(IncidentWritten(incident, shown, "" if new else already.in_(desk.lang)))
