"""Work beside the screen: threads that only post.

Textual's own thread workers are waited for when the app ends, and a driver that hangs would keep it from ending. These
are daemons: they are told to stop, given a moment, and left behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import copy_context
from threading import Event, Thread
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from tui.app import GpudiagApp

    Breaks = Callable[["Job", str], object]

LEAVE = 1.0  # seconds that threads have to end when the app does


class Stopped(BaseException):
    """The work was given up. Not an Exception: what reads files and drivers swallows those."""


class Broken(Message):
    """A piece of work broke, and nobody but the app is there to say so."""

    def __init__(self, said: str) -> None:
        super().__init__()
        self.said = said


class Job:
    """One piece of work in a thread."""

    def __init__(self, app: GpudiagApp, name: str, work: Callable[[Job], None], broken: Breaks | None) -> None:
        self._app, self._work, self._stop = app, work, Event()
        self._broken = broken
        self.begun = time.monotonic()
        self.waits = False  # for the first frame
        # in a context that knows the app, so that a widget can be posted to even while it is being taken away
        self.thread = Thread(target=copy_context().run, args=(self._run,), name=name, daemon=True)

    def _run(self) -> None:
        try:
            self._work(self)
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - the edge of the thread: a bug is told in one sentence, and the app goes on
            said = self._sentence(error)
            if self._broken is None:
                self.post(Broken(said))
            elif not self.stopped:
                self._broken(self, said)

    def _sentence(self, error: Exception) -> str:
        from assistant.store.location import StoreError
        from knowledge.errors import GpudiagError

        if isinstance(error, StoreError):
            return error.said.in_(self._app.desk.lang)
        if isinstance(error, GpudiagError):
            return error.in_(self._app.desk.lang)
        what = f"{type(error).__name__}: {error}"
        return self._app.t(f"this is a bug in gpudiag ({what})", f"gpudiag 内部错误（{what}）")

    @property
    def running(self) -> bool:
        """Whether it is under way, or about to be."""
        return self.waits or self.thread.is_alive()

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Ask it to end; it does at its next `check`."""
        self._stop.set()

    def check(self, *_: object) -> None:
        """To be called often by the work; Stopped when it is to end. Fits as a callback of progress."""
        if self._stop.is_set():
            raise Stopped

    def wait(self, seconds: float) -> bool:
        """Sleep; True when it is to end."""
        return self._stop.wait(seconds)

    def post(self, message: Message) -> None:
        """Tell the app; nothing once it is to end."""
        if not self._stop.is_set():
            self._app.post_message(message)


class Jobs:
    """All threads of the app. None runs before the first frame stands: what it loads would hold that up."""

    def __init__(self, app: GpudiagApp) -> None:
        self._app = app
        self._jobs: list[Job] = []
        self._held: list[Job] | None = []  # until `begin`

    def start(self, name: str, work: Callable[[Job], None], broken: Breaks | None = None) -> Job:
        """Begin `work` in a thread of its own.

        What it raises ends it: `broken` is then called in the thread, with the sentence that says what it was, to post
        what the screen waits for; without it the app says it.
        """
        self._jobs = [j for j in self._jobs if j.running]
        job = Job(self._app, name, work, broken)
        self._jobs.append(job)
        if self._held is None:
            job.thread.start()
        else:
            job.waits = True
            self._held.append(job)
        return job

    def begin(self) -> None:
        """The first frame stands."""
        held, self._held = self._held or [], None
        for job in held:
            job.waits = False
            if not job.stopped:
                job.thread.start()

    def close(self) -> None:
        """Stop all, and wait a moment for those that listen."""
        until = time.monotonic() + LEAVE
        for job in self._jobs:
            job.stop()
        for job in self._jobs:
            if job.thread.ident is not None:
                job.thread.join(max(0.0, until - time.monotonic()))
