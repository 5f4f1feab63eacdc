"""The journal for what a person starts at a terminal: the consent there is authority enough, so without a journal it runs all the same,
and says so once. What acts for somebody else (`assistant.actions`) does not run then."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assistant.journal.chain import Entry
from assistant.journal.journal import Journal
from assistant.output import say
from assistant.store.location import StoreError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.config import Settings


class Noting:
    """Intents and results of one command line. Each intent has a subject of its own."""

    def __init__(self, settings: Settings, node: str, quiet: bool = False, surface: str = "cli") -> None:
        from assistant.incidents.events import Hand
        from assistant.incidents.who import person

        self._journal, self._lang, self._quiet = Journal(settings.history.url), settings.output.lang, quiet
        self._hand, self._node, self._told = Hand(person(), surface), node, False
        self._open: tuple[str, int, float] | None = None  # subject, number of the intent, when it was

    def intent(self, what: str, data: Mapping[str, Any]) -> None:
        """Before it runs."""
        subject = secrets.token_urlsafe(12)
        written = self._write(subject, Entry("intent", {"what": what, "node": self._node, **data}))
        self._open = None if written is None else (subject, written, time.monotonic())

    def result(self, data: Mapping[str, Any]) -> None:
        """After it: nothing where its intent is not there."""
        if self._open is not None:
            subject, number, begun = self._open
            self._open = None
            seconds = round(time.monotonic() - begun, 3)
            self._write(subject, Entry("result", {"intent": number, "node": self._node, "seconds": seconds, **data}))

    def _write(self, subject: str, entry: Entry) -> int | None:
        try:
            (record,) = self._journal.append(subject, self._hand, entry)
        except StoreError as error:
            if not self._told:
                why = error.said
                said = Text(f"this is not in the journal: {why.en}", f"本次操作未记入日志账本：{why.in_('zh')}")
                say(f"gpudiag: {said.in_(self._lang)}", self._quiet)
            self._told = True
            return None
        return record.seq
