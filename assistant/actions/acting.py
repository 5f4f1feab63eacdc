"""Intent, run, result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.actions.order import Manner, Order, manner
from assistant.actions.running import End, Result, run
from assistant.journal import Entry, Journal
from assistant.store.location import StoreError
from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.incidents.events import Hand

EXCERPT = 2000  # characters of the output that the journal keeps: the end, where commands say what went wrong


class RefusedError(GpudiagError):
    """A command that is never run here."""


class Acted(NamedTuple):
    """A command that was run."""

    result: Result
    intent: int  # number of the journal's record
    unrecorded: Text | None = None  # why its result does not stand in the journal


def act(
    order: Order, hand: Hand, journal: Journal, subject: str, stop: Callable[[], bool] = lambda: False,
    begun: Callable[[int], None] = lambda _intent: None,
) -> Acted:  # fmt: skip
    """Run `order`, with its intent in the journal before and its result after. `begun` is called in between, right before the run.

    StoreError when the intent cannot be written, or as `begun` raises it: then nothing was run. RefusedError for what destroys something.
    Whoever calls has the consent already; `hand` is whose it is.
    """
    if manner(order.risk) is Manner.SHOWN:
        raise RefusedError(f"{order.what} destroys something and is never run by gpudiag", hint="run it by hand")
    (intent,) = journal.append(subject, hand, Entry("intent", _intent(order)))
    try:
        begun(intent.seq)
    except BaseException as error:
        _noted(journal, subject, hand, intent.seq, order, _broken(error, End.NOT_STARTED))
        raise
    try:
        result = run(order.argv, order.timeout / 1e9, stop)
    except BaseException as error:  # Ctrl-C too: the journal tells how it ended, then it is raised again
        _noted(journal, subject, hand, intent.seq, order, _broken(error))
        raise
    return Acted(result, intent.seq, _noted(journal, subject, hand, intent.seq, order, result))


def excerpt(result: Result, length: int = EXCERPT) -> str:
    """The end of what a command said, safe to show."""
    return clean(result.output.strip()[-length:]) or clean(result.detail)


def _broken(error: BaseException, end: End = End.STOPPED) -> Result:
    return Result(end, None, 0.0, "", "", 0, f"{type(error).__name__}: {error}")


def _intent(order: Order) -> dict[str, Any]:
    return {
        "what": order.what, "argv": list(order.argv), "node": order.node, "risk": str(order.risk), "consent": order.consent,
        "timeout_s": order.timeout / 1e9, "incident": order.incident, "round": order.rounds,
        "verifies": order.verifies,
    }  # fmt: skip


def _noted(journal: Journal, subject: str, hand: Hand, intent: int, order: Order, result: Result) -> Text | None:
    data = {
        "intent": intent, "what": order.what, "node": order.node, "end": str(result.end), "exit_code": result.exit_code,
        "seconds": round(result.seconds, 3), "excerpt": excerpt(result), "digest": result.digest, "size": result.size,
    }  # fmt: skip
    try:
        journal.append(subject, hand, Entry("result", data))
    except StoreError as error:
        return error.said
    return None
