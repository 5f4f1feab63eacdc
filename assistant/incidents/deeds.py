"""What was run for an incident: begun, ended, or begun and never heard of again.

The journal has the intent, the incident the event that it begins, both before the command; what came of it stands in a second event
of the same journal number. So after any end of gpudiag it is known what may have run, and nobody runs it again unawares.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assistant.incidents.events import Event, Kind
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident
    from assistant.journal.chain import Record

BEGUN = "begun"  # the `end` of an event that says no more than that
NOT_KNOWN = Text("begun; how it ended is not known", "已开始；结果未知")


def deeds(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events, without those that only say what begins where what came of it is there."""
    events = tuple(events)
    ended = {_number(e) for e in events if e.kind == Kind.ACTION and not open_ended(e)}
    return tuple(e for e in events if not (open_ended(e) and _number(e) in ended))


def open_ended(event: Event) -> bool:
    """Whether it says that something was begun, and no more."""
    return event.kind == Kind.ACTION and event.text("end") == BEGUN


def journal_only(incident: Incident, records: Sequence[Record]) -> tuple[Event, ...]:
    """What the journal has of commands of this incident that the incident itself does not: gpudiag was ended in between."""
    known = {_number(e) for e in incident.events if e.kind == Kind.ACTION}
    ends = {r.data.get("intent"): r for r in records if r.kind == "result"}
    return tuple(
        _of(record, ends.get(record.seq), number)
        for number, record in enumerate(records)
        if record.kind == "intent" and record.text("what").startswith("step:") and record.seq not in known
    )


def of_journal(store_url: str, incident: Incident) -> tuple[Event, ...]:
    """`journal_only`, of the journal that lies at this address; empty where it cannot be read."""
    from assistant.journal import Journal
    from assistant.store.location import StoreError

    try:
        return journal_only(incident, Journal(store_url).of(incident.uid or str(incident.number)))
    except StoreError:
        return ()


def _of(intent: Record, result: Record | None, number: int) -> Event:
    runbook, _, step = intent.text("what").removeprefix("step:").partition("/")
    argv = intent.data.get("argv")
    data = {
        "name": shlex.join(map(str, argv)) if isinstance(argv, list) else "", "runbook": runbook, "step": step,
        "node": intent.text("node"), "journal": intent.seq, "end": result.text("end") if result is not None else BEGUN,
        **({} if result is None else {"exit_code": result.data.get("exit_code"), "excerpt": result.text("excerpt")}),
    }  # fmt: skip
    return Event(number, intent.at, str(Kind.ACTION), intent.who, intent.surface, data)


def _number(event: Event) -> object:
    return event.data.get("journal")
