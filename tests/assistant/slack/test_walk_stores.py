"""A walk from a thread against each kind of history: a file, and a PostgreSQL server that a team shares."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("slack_bolt")

from assistant.config import History
from assistant.incidents import claims
from assistant.incidents.deeds import deeds
from assistant.incidents.events import Hand, Kind, StepState
from tests.assistant.slack.walk_lab import WALKING, Walker, opened, people, runbooks, states
from tests.assistant.store.conftest import database_with_tables, postgres, url
from tests.slack_bot import lab, settings
from tests.slack_lab import Slack

__all__ = ["database_with_tables", "postgres", "url"]  # fixtures


@pytest.mark.process
async def test_a_walk_goes_on_from_a_terminal_and_ends_in_a_thread(url: str, tmp_path: Path) -> None:
    with Slack() as slack, runbooks(tmp_path / "site"):
        people(slack)
        book = opened(url)
        ours = settings(tmp_path, slack, WALKING)._replace(history=History(url))
        async with lab(tmp_path, slack, given=ours) as here:
            one = Walker(here, await here.command("incident run 1"))
            await one.press(await one.asked("Run this command?"), "Yes")
            await one.press(await one.asked("Do this step?"), "Leave")
            await one.says("Left.")
            # At a terminal somebody does the next ones, and leaves one in hand.
            ann, at = Hand("ann", "cli"), claims.last(book.incident(1), "walked", "change")
            assert at is None  # it was shown, and not begun
            for step in ("change", "secret", "lose"):
                book.add(1, ann, claims.step_entry("walked", step, StepState.SKIPPED, "by hand"))
            book.add(1, ann, claims.step_entry("walked", "slow", StepState.DOING))
            two = Walker(here, await here.command("incident run 1", user="U2"), "U2")
            offer = await two.says("ann has #1 in hand", having="take_over")
            await here.press(offer, "take_over", user="U2")
            await two.press(await two.asked("Run this command?"), "Skip")
            await two.says("No step is left.")
            incident = book.incident(1)
            assert states(incident) == {"look": "done"} | dict.fromkeys(("change", "secret", "lose", "slow"), "skipped")
            (ran,) = [e for e in deeds(incident.events) if e.kind == Kind.ACTION]
            records = here.bot.journal.of(incident.uid)
            assert [r.kind for r in records] == ["intent", "result"]
            assert (records[0].seq, records[0].who, records[0].surface) == (ran.data["journal"], "u1 (U1)", "slack")
