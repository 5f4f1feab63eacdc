"""A site's runbook, an incident that follows it, and the one who walks it in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.incidents import events
from assistant.incidents.book import Book
from assistant.incidents.events import Hand, Kind
from assistant.incidents.fold import Incident
from assistant.incidents.opening import by_hand
from knowledge.runbook import lay_over
from tests.slack_bot import NODE, POLICY, Lab, buttons, words
from tests.slack_lab import Slack
from tests.slack_shapes import Message

TITLE = "{en: Look, zh: 看}"
PAGE = """\
---
id: walked
title: {en: A walk, zh: 流程}
applies: [thermal]
summary: {en: Walk., zh: 执行。}
steps:
  - {id: look, title: TITLE, do: TITLE, command: "/bin/echo looked at {node}", risk: safe, consent: none,
     verify_if: {fact: node.boot_id, op: is_not, value: none}, verify_with: [system]}
  - {id: change, title: TITLE, do: TITLE, command: "/bin/sh -c 'echo changed >> MARK; echo changed'", risk: disruptive,
     consent: operator, verify: TITLE, verify_command: "/bin/sh -c 'echo it is changed; echo c2VjcmV0X3Rva2VuPWh1bnRlcjJodW50ZXIyCg== | base64 -d'"}
  - {id: secret, title: TITLE, do: TITLE, command: /bin/echo never, risk: safe, consent: none, verify: TITLE}
  - {id: lose, title: TITLE, do: TITLE, command: "/usr/bin/touch {file}", risk: destructive, consent: owner}
  - {id: slow, title: TITLE, do: TITLE, command: "/bin/sh -c 'echo begun >> MARK; sleep 60'", risk: safe, consent: none, verify: TITLE}
references: [https://example.org]
---

## English

Quiet.

## 中文

静。
"""
WALKING = f"""{POLICY}
[roles.hands]
users = ["U5"]

[grants.repair]
roles = ["oncall", "hands"]
run = ["step:walked/look", "step:walked/change", "step:walked/slow"]
nodes = ["{NODE}"]
cost = "heavy"
risk = "disruptive"
approvers = ["lead"]
"""


@contextmanager
def runbooks(folder: Path) -> Iterator[Path]:
    """The site's runbook counts; the file that its commands write to."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / "mark"
    (folder / "walked.md").write_text(PAGE.replace("TITLE", TITLE).replace("MARK", str(mark)), encoding="utf-8")
    lay_over([folder])
    try:
        yield mark
    finally:
        lay_over([])


def opened(url: str, host: str = NODE) -> Book:
    """Incident 1, which follows the runbook."""
    book = Book(url)
    follows = events.Entry(Kind.RUNBOOK, {"runbook": "walked"})
    book.open(Hand("alice", "cli"), [*by_hand("it is hot", host=host), follows])
    return book


def states(incident: Incident) -> dict[str, str]:
    return {step: str(mark.state) for (_, step), mark in incident.steps.items()}


def people(slack: Slack) -> None:
    for user in ("U1", "U2", "U9"):
        slack.add_user(user, name=user.lower())
    slack.add_user("U5", name="u5")
    slack.add_user("U3", locale="zh-CN", name="U3 (U1)")
    slack.add_user("U4", guest=True)
    slack.add_group("S1", ["U3"])
    slack.add_channel("C1")


class Walker:
    """Somebody in the thread of a walk."""

    def __init__(self, here: Lab, thread: str, user: str = "U1", channel: str = "C1") -> None:
        self.here, self.thread, self.user, self.channel = here, thread, user, channel
        self._answered: set[str] = set()  # messages whose buttons may be seen a moment longer

    def _open(self, such: Callable[[Message], bool]) -> Message | None:
        said = self.here.said(self.channel, self.thread).values()
        return next((m for m in reversed(list(said)) if such(m)), None)

    def newest(self, text: str) -> Message:
        """The newest message with `text`."""
        found = self._open(lambda m: text in words(m))
        assert found is not None
        return found

    async def asked(self, text: str, seconds: float = 30.0) -> Message:
        """The question that stands open and says `text`."""

        def found() -> Message | None:
            return self._open(
                lambda m: text in words(m) and m.ts not in self._answered and bool(buttons(m, "walk_answer"))
            )

        await self.here.slack.until(found, seconds)
        message = found()
        assert message is not None
        return message

    async def says(self, text: str, seconds: float = 30.0, having: str = "") -> Message:
        """A message of the bot with `text`, and with a button of the kind `having`."""

        def found() -> Message | None:
            return self._open(lambda m: text in words(m) and (not having or bool(buttons(m, having))))

        await self.here.slack.until(found, seconds)
        message = found()
        assert message is not None
        return message

    async def press(self, message: Message, word: str, user: str = "") -> None:
        """Answer by a button, of which `word` is shown."""
        if not user:
            self._answered.add(message.ts)
        labels = [b["text"]["text"] for b in buttons(message, "walk_answer")]
        await self.here.press(message, "walk_answer", user=user or self.user, which=labels.index(word))

    async def writes(self, text: str, user: str = "") -> None:
        """Answer by a message."""
        await self.here.write(text, user=user or self.user, channel=self.channel, thread=self.thread)
