"""The way in: an answer that stands is reworded in the background, or the reason why not is told. Nothing here raises or waits.

`begin` returns at once; making the payload, counting, loading litellm and asking happen in a thread of their own. Whoever shows
the answer shows it first, and looks at the `Pending` later, or never.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Protocol

from assistant.config import state_folder
from assistant.narrate import log
from assistant.narrate.completion import Completion, Messages
from assistant.narrate.limits import TOKENS_OUT, Booking, Limits, estimate
from assistant.narrate.reasons import NarrationError, Reason
from assistant.narrate.setup import Setup, setup
from assistant.narrate.worker import Worker
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.config import Llm, Settings
    from assistant.narrate.fence import Narration
    from assistant.narrate.reword import Prepared
    from assistant.reply import Reply

# After these the server has worked, or may have: what was booked stays booked.
_WORKED = (Reason.SLOW, Reason.CUT, Reason.HUGE, Reason.MALFORMED, Reason.BROKEN)

_OURS = (Reason.NOT_CONFIGURED, Reason.HOST, Reason.NOT_INSTALLED, Reason.UNSAFE, Reason.LIMIT)


class Asked(Protocol):
    """A payload, and how an answer to it is judged."""

    @property
    def messages(self) -> Messages:
        """What is sent: all of it, as it is sent."""

    def finish(self, text: str) -> Any:
        """What may be shown of `text`. NarrationError(FENCE) when nothing may."""


class Rewording(Protocol):
    """Makes the payload of a reply. NarrationError when there is nothing to reword."""

    def __call__(self, reply: Reply, llm: Llm) -> Asked:
        """The payload."""


@dataclass(frozen=True, slots=True)
class Narrated:
    """An answer in other words that passed the fence."""

    narration: Any  # what `Asked.finish` gave: assistant.narrate.reword.Narration
    completion: Completion


@dataclass(frozen=True, slots=True)
class Withheld:
    """Nothing is shown beside the deterministic answer, and why."""

    reason: Reason
    said: Text
    detail: str = ""  # for `llm test` and the log
    completion: Completion | None = None  # what came back, when something did


class Pending:
    """A narration under way."""

    def __init__(self, future: Future[Narrated | Withheld]) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        """Whether `result` would return at once."""
        return self._future.done()

    def result(self, timeout: float = 0.0) -> Narrated | Withheld:
        """What came of it within `timeout` seconds; later it may still be asked again. Never raises."""
        try:
            return self._future.result(timeout)
        except TimeoutError:
            return Withheld(Reason.SLOW, Reason.SLOW.text, "not ready yet")
        except CancelledError:
            return Withheld(Reason.CLOSED, Reason.CLOSED.text)


class Narrator:
    """One for a process: a chat, the terminal app, the Slack app, or one command."""

    def __init__(self, settings: Settings, rewording: Rewording | None = None) -> None:
        """Starts to load litellm in the background when a model is configured. Never raises."""
        self._folder, self._llm = state_folder(settings), settings.llm
        self._rewording = rewording or reworded
        self._worker: Worker | None = None
        self.trouble: NarrationError | None = None  # why nothing will ever come of it
        try:
            self.setup: Setup | None = setup(settings.llm)
        except NarrationError as error:
            self.setup, self.trouble = None, error
            return
        self._limits = Limits(self._folder, self.setup.bounds)
        self._worker = Worker(self.setup.model, self.setup.deadline)
        self._worker.start()

    @property
    def ready(self) -> bool:
        """Whether a request would be sent at once."""
        return self._worker is not None and self._worker.ready

    @property
    def walls(self) -> Mapping[str, bool] | None:
        """Which walls stand around the process of the model; None until it has told."""
        return self._worker.walls if self._worker else None

    @property
    def version(self) -> str:
        """Of litellm, once it is loaded."""
        return self._worker.version if self._worker else ""

    def wait(self, seconds: float) -> bool:
        """Whether litellm is loaded, or known not to be, within `seconds`. Only for who has nothing else to do."""
        return self._worker is None or self._worker.loaded.wait(seconds)

    def begin(self, reply: Reply) -> Pending | None:
        """Have `reply` reworded in the background. None when no model is set; then nothing need be said of narration."""
        return self.ask(lambda llm: self._rewording(reply, llm))

    def ask(self, make: Callable[[Llm], Asked]) -> Pending | None:
        """Have the payload made and asked in the background: of anything, where `begin` asks of a reply."""
        if self.trouble is not None and self.trouble.reason is Reason.OFF:
            return None
        future: Future[Narrated | Withheld] = Future()
        threading.Thread(target=self._run, args=(make, future), name="narrate", daemon=True).start()
        return Pending(future)

    def close(self) -> None:
        """End the process of the model."""
        if self._worker is not None:
            self._worker.close()

    def _run(self, make: Callable[[Llm], Asked], future: Future[Narrated | Withheld]) -> None:
        began = time.monotonic()
        try:
            found = self._narrate(make, began)
        except NarrationError as error:
            found = Withheld(error.reason, error.said, error.detail)
        except Exception as error:  # narration may break, the answer may not  # noqa: BLE001
            found = Withheld(Reason.BROKEN, Reason.BROKEN.text, excerpt(f"{type(error).__name__}: {error}"))
        try:
            log.note(self._folder, _line(found, time.monotonic() - began))
        finally:
            future.set_result(found)

    def _narrate(self, make: Callable[[Llm], Asked], began: float) -> Narrated | Withheld:
        if self.trouble is not None:
            raise self.trouble
        assert self.setup is not None
        asked = make(self._llm)
        completion = self._ask(asked.messages, began + self.setup.deadline)
        try:
            return Narrated(asked.finish(completion.text), completion)
        except NarrationError as error:
            return Withheld(error.reason, error.said, error.detail, completion)

    def _ask(self, messages: Messages, until: float) -> Completion:
        """Count, ask, count what it took."""
        assert self.setup is not None
        assert self._worker is not None
        if not self._worker.loaded.wait(max(0.0, until - time.monotonic())):  # its prices are known then
            raise NarrationError(Reason.SLOW, "litellm is still being loaded")
        price = self.setup.price or self._worker.price
        booked = self._limits.book(estimate(messages), TOKENS_OUT, price)
        if booked.note:
            log.note(self._folder, {"note": booked.note.en})
        try:
            completion = self._worker.complete(messages, TOKENS_OUT, until - time.monotonic())
        except NarrationError as error:
            if error.reason not in _WORKED:
                self._limits.settle(booked, 0, 0.0)
            raise
        self._settle(booked, completion, price)
        return completion

    def _settle(self, booked: Booking, completion: Completion, price: tuple[float, float] | None) -> None:
        """A server that counts no tokens leaves what was booked."""
        taken_in, taken_out = completion.prompt_tokens, completion.completion_tokens
        if taken_in + taken_out > 0:
            dollars = taken_in * price[0] + taken_out * price[1] if price else completion.cost_usd or 0.0
            self._limits.settle(booked, taken_in + taken_out, dollars)


class Reworded:
    """What `assistant.narrate.reword` made of a reply, as the narrator asks it."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared

    @property
    def messages(self) -> Messages:
        """What is sent."""
        return self.prepared.messages

    @property
    def redaction(self) -> Mapping[str, str]:
        """What stands behind each placeholder and pseudonym: it never leaves this machine."""
        return self.prepared.table

    def finish(self, text: str) -> Narration:
        """What passed the fence. NarrationError(FENCE) with the name of the guard, when nothing did."""
        from assistant.narrate import fence, reword

        found = reword.finish(self.prepared, text)
        if isinstance(found, fence.Withheld):
            raise NarrationError(Reason.FENCE, str(found))
        return found


def reworded(reply: Reply, llm: Llm) -> Reworded:
    """The payload of `reply`. NarrationError(NOTHING) when there is nothing to tell of."""
    from assistant.narrate import reword

    prepared = reword.prepare(reply, llm.audience, reply.lang, log=llm.log_lines)
    if prepared is None:
        raise NarrationError(Reason.NOTHING)
    return Reworded(prepared)


def _line(found: Narrated | Withheld, seconds: float) -> dict[str, object]:
    got = found.completion
    line: dict[str, object] = {"result": "narrated" if isinstance(found, Narrated) else found.reason.value}
    if isinstance(found, Withheld) and found.detail:
        ours = found.reason in _OURS  # else a server or a model had a hand in it: only the name of the error is kept
        line["detail"] = found.detail if ours else found.detail.partition(":")[0]
    line["seconds"] = round(seconds, 3)
    if got is not None:
        line |= {
            "model": got.model,
            "tokens_in": got.prompt_tokens,
            "tokens_out": got.completion_tokens,
            "cost_usd": got.cost_usd,
        }
    return line
