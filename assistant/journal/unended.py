"""Tests and heavy looks that were begun on a machine and of whose end the journal knows nothing: gpudiag was ended, or they run still."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.journal.chain import Record

NEWEST = 500  # records of a machine that are looked through
_NONE = Text("", "")


def begun(record: Record) -> tuple[str, ...]:
    """The probes that an intent names: of the command line (``test:NAME``), of a talk (``probe:A, probe:B``), of a chat (a list)."""
    if record.kind != "intent":
        return ()
    listed = record.data.get("probes")
    if isinstance(listed, list):
        return tuple(map(str, listed))
    parts = (part.partition(":") for part in record.text("what").split(", "))
    return tuple(name for kind, _, name in parts if kind in ("test", "probe"))


def unended(store_url: str, node: str, probes: Collection[str]) -> Text:
    """What is to be said of `probes` before they are begun on `node`: that they may have run already, each in a sentence.

    Empty where the newest run of each has ended, and where no journal can be read.
    """
    from assistant.incidents.words import moment
    from assistant.journal.journal import Journal
    from assistant.store.location import StoreError

    try:
        records = Journal(store_url).newest(NEWEST, node=node)
    except StoreError:
        return _NONE
    ended = {record.data.get("intent") for record in records if record.kind == "result"}
    newest = {name: record for record in records for name in begun(record) if name in probes}
    said = [
        Text(
            f"{name} may have run already: begun at {moment(r.at)} by {r.who}, and how it ended is not known.",
            f"{name} 可能已运行过：{r.who} 于 {moment(r.at)} 开始，结果未知。",
        )
        for name, r in sorted(newest.items())
        if r.seq not in ended
    ]
    return Text(" ".join(s.en for s in said), "".join(s.in_("zh") for s in said))
