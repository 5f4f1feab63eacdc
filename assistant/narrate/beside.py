"""A narrator beside a command that somebody waits for: made in the background, and only where the model's server listens.

Whether it does is known in a millisecond, by a connection that is closed again, while the diagnosis is made. So a model that is
down, not installed or not allowed is known of before the answer stands, and costs the end of the command nothing.
"""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from assistant.config import state_folder
from assistant.narrate import log
from assistant.narrate.narrator import Narrated, Narrator, Pending, Withheld
from assistant.narrate.reasons import NarrationError, Reason
from assistant.narrate.setup import setup
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.narrate.asks import Make
    from assistant.narrate.hosts import Place

PATIENCE = 1.0  # seconds that a server has to take a connection; one that is there takes it in milliseconds
FRESH = 5.0  # seconds for which what was found out about the server still holds
LATE = 5.0  # seconds beyond its deadline after which a narrator of ours must have told how it went


class Beside:
    """One for a command. Nothing in it waits but what runs in its own threads; nothing raises."""

    def __init__(self, settings: Settings) -> None:
        """Begins to look for the server, and then to load litellm, in the background."""
        self._settings = settings
        self._opening, self._lock = threading.Lock(), threading.Lock()
        self._narrator: Narrator | None = None
        self._closed = False
        self._trouble: tuple[float, NarrationError] | None = None  # when it was found, time.monotonic
        _thread(self._warm)

    def ask(self, make: Make) -> Pending:
        """Have it asked; the reason why not comes the same way."""
        future: Future[Narrated | Withheld] = Future()
        _thread(self._run, make, future)
        return Pending(future)

    def close(self) -> None:
        """End the process of the model."""
        with self._lock:
            self._closed, narrator = True, self._narrator
        if narrator is not None:
            narrator.close()

    # --- in threads ---------------------------------------------------------------------------

    def _warm(self) -> None:
        try:
            self._opened()
        except NarrationError:
            return  # told to whoever asks

    def _run(self, make: Make, future: Future[Narrated | Withheld]) -> None:
        found: Narrated | Withheld = Withheld(Reason.BROKEN, Reason.BROKEN.text)
        try:
            pending = self._opened().ask(make)
            if pending is not None:
                found = pending.result(self._settings.llm.deadline + LATE)
        except NarrationError as error:
            found = Withheld(error.reason, error.said, error.detail)
            if error.reason is not Reason.OFF:
                log.note(state_folder(self._settings), {"result": error.reason.value, "detail": excerpt(error.detail)})
        finally:
            future.set_result(found)

    def _opened(self) -> Narrator:
        """The narrator. NarrationError when there can be none, or nobody listens where the model should be."""
        with self._opening:
            if self._trouble is not None and time.monotonic() - self._trouble[0] < FRESH:
                raise self._trouble[1]
            try:
                model = setup(self._settings.llm).model
                installed(model.python)
                listening(model.place)
            except NarrationError as error:
                self._trouble = time.monotonic(), error
                raise
            with self._lock:
                if self._closed:
                    raise NarrationError(Reason.CLOSED)
                self._narrator = self._narrator or Narrator(self._settings)
                return self._narrator


def listening(place: Place, seconds: float = PATIENCE) -> None:
    """NarrationError(DOWN) when nobody takes a connection there within `seconds`. Nothing is sent."""
    answer: SimpleQueue[str] = SimpleQueue()
    _thread(_connect, place, seconds, answer)
    try:
        error = answer.get(timeout=seconds)  # looking up a name has no deadline of its own
    except Empty:
        error = "no answer in time"
    if error:
        raise NarrationError(Reason.DOWN, f"{place.host}:{place.port}: {error}")


def _connect(place: Place, seconds: float, answer: SimpleQueue[str]) -> None:
    try:
        socket.create_connection((place.host, place.port), seconds).close()
    except (OSError, UnicodeError) as error:  # UnicodeError: no name of a host
        answer.put(getattr(error, "strerror", "") or str(error) or type(error).__name__)
    else:
        answer.put("")


def installed(python: str) -> None:
    """NarrationError(NOT_INSTALLED) when a look at its folders shows that `python` has no litellm: to start it and be told so
    takes long. Other interpreters than those of a virtual environment may have it elsewhere, and are asked.
    """
    root = Path(python).parent.parent
    try:
        closed = "include-system-site-packages = false" in (root / "pyvenv.cfg").read_text(encoding="utf-8").lower()
    except (OSError, ValueError):
        return
    if closed and next(root.glob("lib*/python3*/site-packages/litellm-*.dist-info"), None) is None:
        raise NarrationError(Reason.NOT_INSTALLED, str(root))


def _thread(work: object, *given: object) -> None:
    threading.Thread(target=work, args=given, name="narrate", daemon=True).start()  # type: ignore[arg-type]
