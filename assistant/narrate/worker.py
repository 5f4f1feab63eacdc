"""The parent's side of the process that speaks to the model: started in the background, asked, ended at the deadline.

One thread owns the child. A request waits in a short queue; its deadline runs from the moment it is submitted, over the
child's start (litellm takes five seconds to import) and over the requests before it. What is late is killed with its whole
group and begun again when the next request comes, after a pause that doubles. Nobody who submits is ever kept waiting.
"""

from __future__ import annotations

import atexit
import queue
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from assistant.narrate.completion import Completion, Messages, Model, completion, failure
from assistant.narrate.process import Child
from assistant.narrate.reasons import NarrationError, Reason
from knowledge.record import dataclass
from knowledge.text import excerpt

WAITING = 4  # requests in the queue: more than any surface asks for at once
START = 90.0  # seconds that a child has for loading litellm, on a slow disk too
PAUSES = (0.0, 5.0, 15.0, 60.0, 300.0)  # seconds before the next start, by the number of children lost in a row
ROUND = 0.5  # seconds that the child gives up earlier than it would be killed: a killed one costs a new start
LEAVE = 2.0  # seconds that `close` waits for the thread


@dataclass(frozen=True, slots=True)
class _Ask:
    messages: tuple[dict[str, str], ...]
    max_tokens: int
    until: float  # time.monotonic
    began: float
    future: Future[Completion]


class _Loading(NarrationError):
    """Not lost: only not there yet."""


class Worker:
    """A child that is begun when it is first needed, and again when it was lost. Thread-safe."""

    def __init__(self, model: Model, deadline: float = 20.0) -> None:
        """`deadline`: seconds for a request, when it names none of its own."""
        self._model, self._deadline = model, deadline
        self._asks: queue.Queue[_Ask | None] = queue.Queue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._child: Child | None = None
        self._closed = False
        self._final: NarrationError | None = None  # what no new start would change
        self._lost, self._not_before, self._number = 0, 0.0, 0
        self.price: tuple[float, float] | None = None  # US dollars a token in and out, once the child has said so
        self.version = ""  # of litellm, once it is loaded
        self.walls: Mapping[str, bool] | None = None  # of walls.WALLS, which stand; None until a child has told
        self.loaded = threading.Event()  # set once, when that is known, or never will be
        atexit.register(_closing, weakref.ref(self))

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        child = self._child
        return child.pid if child else None

    @property
    def ready(self) -> bool:
        """Whether a request would be sent at once."""
        child = self._child
        return child is not None and child.ready

    def start(self) -> None:
        """Begin to load in the background; returns at once."""
        with self._lock:
            if self._closed or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._serve, name="narration", daemon=True)
            self._thread.start()

    def submit(self, messages: Messages, max_tokens: int, deadline: float | None = None) -> Future[Completion]:
        """Ask in the background. The future holds a Completion or raises NarrationError; it never waits beyond the deadline for long."""
        future: Future[Completion] = Future()
        began = time.monotonic()
        until = began + (self._deadline if deadline is None else deadline)
        if self._closed or self._final or self._asks.qsize() >= WAITING:
            future.set_exception(self._final or NarrationError(Reason.CLOSED if self._closed else Reason.BUSY))
            return future
        self._asks.put(_Ask(tuple(dict(m) for m in messages), max_tokens, until, began, future))
        self.start()
        return future

    def complete(self, messages: Messages, max_tokens: int, deadline: float | None = None) -> Completion:
        """Ask and wait. NarrationError says why there is no answer."""
        return self.submit(messages, max_tokens, deadline).result()

    def close(self) -> None:
        """End the child and whatever waits for it. No new request is taken."""
        self.loaded.set()
        with self._lock:
            self._closed = True
            child, thread = self._child, self._thread
        if child is not None:
            child.kill()
        self._asks.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join(LEAVE)  # it closes the pipes, which nobody else may while it reads them
        self._drop()

    def _drop(self) -> None:
        with suppress(queue.Empty):
            while True:
                ask = self._asks.get_nowait()
                if ask is not None and ask.future.set_running_or_notify_cancel():
                    ask.future.set_exception(NarrationError(Reason.CLOSED))

    # --- the one thread that owns the child --------------------------------------------------

    def _serve(self) -> None:
        self._warm()
        while not self._closed:
            ask = self._asks.get()
            if ask is None or not ask.future.set_running_or_notify_cancel():
                continue
            self._settle(ask)
            if not self.ready and not self._closed:
                self._warm()
        self._lose()
        self._drop()

    def _settle(self, ask: _Ask) -> None:
        try:
            ask.future.set_result(self._answer(ask))
        except NarrationError as error:
            ask.future.set_exception(error)
        except Exception as error:  # the thread must live on: others wait for it  # noqa: BLE001
            self._lose()
            ask.future.set_exception(NarrationError(Reason.BROKEN, f"{type(error).__name__}: {error}"))

    def _warm(self) -> None:
        """Load while nobody asks. What goes wrong is told to the next who does."""
        try:
            child = self._begin()
            while self._asks.empty() and not self._closed and not child.ready:
                with suppress(_Loading):
                    self._wait_ready(child, time.monotonic() + 0.2)
        except (NarrationError, OSError):
            return

    def _answer(self, ask: _Ask) -> Completion:
        child = self._begin()
        self._wait_ready(child, min(ask.until, child.began + START))
        left = ask.until - time.monotonic()
        if left <= 0:
            raise NarrationError(Reason.SLOW, "no time was left to ask")
        self._number += 1
        request = {
            "id": self._number, "messages": list(ask.messages), "max_tokens": ask.max_tokens, "timeout": max(left - ROUND, left / 2)
        }  # fmt: skip
        try:
            child.send(request, ask.until)
            said = self._reply(child, self._number, ask.until)
        except NarrationError:
            self._lose()
            raise
        self._lost = 0
        return completion(said, ask.began)

    def _begin(self) -> Child:
        """The child, begun when there is none. NarrationError while a pause lasts, or when there will never be one."""
        if self._final:
            raise self._final
        child = self._child
        if child is not None and child.alive:
            return child
        if child is not None:
            self._lose()
        wait = self._not_before - time.monotonic()
        if wait > 0:
            raise NarrationError(Reason.DOWN, f"the process was lost {self._lost} times; begun again in {wait:.0f} s")
        child = self._started()
        with self._lock:
            if self._closed:
                child.kill()
                raise NarrationError(Reason.CLOSED)
            self._child = child
        return child

    def _started(self) -> Child:
        try:
            return Child(self._model.python, _hello(self._model))
        except NarrationError as error:
            self._final = error
            self.loaded.set()
            raise

    def _wait_ready(self, child: Child, until: float) -> None:
        """A child that has not loaded in time goes on loading, for the next request."""
        if child.ready:
            return
        said = child.receive(until)
        if said is not None and child.walls is None:  # its first line, before it loads anything
            child.walls = self.walls = {str(name): held is True for name, held in dict(said.get("walls") or {}).items()}
            said = child.receive(until)
        if said is None:
            if child.alive and time.monotonic() < child.began + START:
                raise _Loading(Reason.SLOW, "litellm is still being loaded")
            self._lose()
            raise NarrationError(Reason.DOWN, "the process ended before litellm was loaded")
        if "error" in said:
            self._final = failure(said)
            self.loaded.set()
            self._lose()
            raise self._final
        child.ready, self.version = True, excerpt(str(said.get("ready", "")), 40)
        known = said.get("price")
        self.price = (float(known[0]), float(known[1])) if isinstance(known, list) and len(known) == 2 else None
        self.loaded.set()

    def _reply(self, child: Child, number: int, until: float) -> dict[str, Any]:
        said = child.receive(until)
        if said is None:
            if child.alive:
                raise NarrationError(Reason.SLOW, "killed at the deadline")
            raise NarrationError(Reason.DOWN, "the process ended in the middle")
        if said.get("id") != number:
            raise NarrationError(Reason.MALFORMED, "an answer to another request")
        return said

    def _lose(self) -> None:
        """End the child; the next one is begun after a pause."""
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            return
        child.end()
        self._not_before = time.monotonic() + PAUSES[min(self._lost, len(PAUSES) - 1)]
        self._lost += 1


def _closing(reference: weakref.ref[Worker]) -> None:
    worker = reference()
    if worker is not None:
        worker.close()


def _hello(model: Model) -> dict[str, Any]:
    where = model.place
    return {"base": where.base, "host": where.host, "port": where.port, "model": model.name, "key": model.key}
