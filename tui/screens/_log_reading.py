"""Reads the logs of a source beside the screen, then listens to the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from tui.screens._log_rows import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assistant.live.loglines import LogLine
    from assistant.live.logsource import Log
    from tui.desk import Desk
    from tui.widgets.columns import Row
    from tui.work import Job

BREATH = 0.002  # seconds between two batches in which the screen has the interpreter to itself
SILENCE = 0.5  # seconds that a log is listened to at once


class Came(Message, namespace="log"):
    """From the thread: one more log, one more batch of its rows, or the end."""

    def __init__(
        self,
        job: Job,
        log: Log | None = None,
        rows: Sequence[Row] = (),
        *,
        source: str = "",
        done: bool = False,
        fresh: bool = False,
    ) -> None:
        super().__init__()
        self.job, self.log, self.rows = job, log, rows
        self.source = source  # what is listened to
        self.done, self.fresh = done, fresh  # all has been read; it was written just now


def read(job: Job, desk: Desk, post: Callable[[Message], object]) -> None:
    """In a thread: every log, then what is written to the first of them from now on."""
    from assistant.live.logmarks import judge_of
    from assistant.live.logsource import Tail, logs

    def breathe() -> None:
        job.check()
        job.wait(BREATH)

    def tell(message: Came) -> None:
        job.check()
        post(message)

    origin, settings, lang = desk.origin, desk.settings, desk.lang
    judge = judge_of(desk.ruleset())
    tail = Tail(judge, settings.machine.root) if origin.here else None
    if tail is not None:
        tail.start()
    try:
        last: Sequence[LogLine] = ()
        for n, log in enumerate(logs(origin, settings, job.check, desk.others)):
            tell(Came(job, log))
            for batch in log.lines(judge, breathe):
                tell(Came(job, rows=[row_of(line, lang) for line in batch]))
                last = last if n else batch
        if tail is None:
            tell(Came(job, done=True))
            return
        tail.after(last, last[-1].number if last else 0)
        tell(Came(job, done=True, source=tail.source))
        source = tail.source
        while not job.stopped:
            new = tail.take(SILENCE)
            if new or tail.source != source:
                source = tail.source
                tell(Came(job, rows=[row_of(line, lang) for line in new], source=source, fresh=True))
    finally:
        if tail is not None:
            tail.close()
