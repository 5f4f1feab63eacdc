"""Who somebody in Slack is to an incident, and whether it can be walked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.incidents import claims
from assistant.incidents.events import Hand
from assistant.slack.words import ToldError
from knowledge.language import Text
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident
    from assistant.slack.bot import Asker


def who(asker: Asker) -> str:
    """How an incident names somebody in Slack: ``ann (U024BE7LH)``. The id counts; nobody's name holds brackets, so none can be feigned."""
    name = excerpt("".join(c for c in asker.name if c not in "()（）"), 60)
    return f"{name} ({asker.person.id})" if name else asker.person.id


def hand_of(asker: Asker) -> Hand:
    """Who writes."""
    return Hand(who(asker), "slack")


def walkable(incident: Incident) -> None:
    """ToldError for an incident that there is nothing to walk of."""
    n = incident.number
    if not incident.is_open:
        raise ToldError(Text(f"Incident {n} is closed.", f"事件 {n} 已关闭。"),
                        Text(f"/gpudiag incident status {n} open begins it again", f"/gpudiag incident status {n} open 可重新打开"))  # fmt: skip
    if not incident.runbooks:
        raise ToldError(Text(f"Incident {n} follows no runbook yet.", f"事件 {n} 尚未关联处置手册。"),
                        Text(f"/gpudiag incident runbook {n} ID", f"/gpudiag incident runbook {n} ID"))  # fmt: skip


def holder(incident: Incident, name: str) -> str | None:
    """Who else has a step in hand, from whatever surface."""
    for runbook, step in incident.steps:
        event = claims.last(incident, runbook, step)
        if event is not None and claims.holder(event, name) is claims.Holder.OTHER:
            return event.who
    return None


def going_on(number: int) -> Text:
    """How a walk that was left is gone on with."""
    said = f"gpudiag incident run {number}"
    return Text(f"/{said} goes on with it here, {said} at a terminal", f"可在此用 /{said}、在终端用 {said} 继续")
