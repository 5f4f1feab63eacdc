"""What a conversation in Slack can reach: machines as the policy allows, one look at a time each, and files that were shared there.

Nothing else of this machine is opened or written for somebody in a chat. Each look at a machine stands in the journal before it
is made: who asked, what is run, where. Without the journal none is made.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.incidents.events import Hand
from assistant.journal.chain import Entry
from assistant.rights.policy import Decision
from assistant.session.driver import Eyes
from assistant.session.state import Origin, Seen
from assistant.session.steps import Event, Recall, Recalled, Step, Write, Written
from assistant.slack import gate, second
from assistant.slack.nodes import What
from assistant.slack.veil import veiled
from knowledge.language import Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.reply import Reply
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.nodes import Nodes, Waiting
    from probes.runner import Progress

_FILES = Text("A file of the bot's own machine is not opened for a chat.", "不会为聊天打开机器人所在机器上的文件。")
_SHARE = Text("upload the file to this thread, or paste its lines", "请将文件上传到本话题，或直接粘贴内容")


@dataclass(frozen=True, slots=True)
class Consent:
    """What somebody agreed to, and what a second person agreed to with it."""

    waits: tuple[str, ...] = ()  # what was waited for then; when it is something else now, nobody agreed to that
    approvals: Mapping[str, str] = field(default_factory=dict)  # probe -> number of its approval


@dataclass(frozen=True)
class Ears:
    """Where a turn tells what it does, from whatever thread; `check` raises when the asker has given up."""

    progress: Callable[[Progress], None]
    waits: Callable[[Waiting], None]
    check: Callable[[], None]
    thinking: AbstractContextManager[Any] = field(default_factory=nullcontext)  # held while the turn computes

    @contextmanager
    def idle(self) -> Iterator[None]:
        """While a machine is waited for, another turn may compute."""
        if isinstance(self.thinking, nullcontext):
            yield
            return
        self.thinking.__exit__(None, None, None)
        try:
            yield
        finally:
            self.thinking.__enter__()


class SlackEyes(Eyes):
    """The eyes of one turn."""

    def __init__(
        self, bot: Bot, asker: Asker, settings: Settings, nodes: Nodes, ears: Ears, consent: Consent = Consent()
    ) -> None:  # fmt: skip
        super().__init__(settings, bot.ruleset)
        self._bot, self._asker, self._nodes, self._ears, self._consent = bot, asker, nodes, ears, consent
        self.exports: list[tuple[Reply, str]] = []  # answers that were asked for as files, with their format

    def do(self, step: Step) -> Event:
        """Carry out one step, as far as this person may."""
        self._ears.check()
        match step:
            case Write():
                return self._kept(step)
            case Recall(_, host):
                ruling = gate.may_look(self._bot.policy(), self._asker, host or self._here)
                return Recalled((), ruling.why) if ruling.decision is Decision.DENIED else super().do(step)
        return super().do(step)

    @property
    def _here(self) -> str:
        from assistant.session.inventory import known

        return known(self.settings, others=self.others).here

    def _named(self, host: str) -> str:
        return host or self._here

    def _kept(self, step: Write) -> Written:
        from assistant.session.export import format_of, usual_name

        form = format_of(step) or "markdown"
        self.exports.append((step.reply, form))
        return Written(str(usual_name(step.reply, form, self.settings)))

    def _look(
        self, origin: Origin, probes: Sequence[str], budget: float | None, options: Mapping[str, str]
    ) -> Seen:  # fmt: skip
        for name in filter(None, (origin.bundle, *origin.logs, *origin.inputs)):
            if name == "-" or not self._bot.uploads.owns(str(Path(origin.folder, name))):
                raise gate.DeniedError(_FILES, _SHARE)
        seen = super()._look(origin, probes, budget, options)
        if not origin.live:  # a path of this machine is nobody's business in a chat
            seen = self._bot.uploads.told(seen)
        return replace(seen, observations=veiled(seen.observations, self._asker.sights))

    def _live(
        self, probes: Sequence[str], budget: float | None, options: Mapping[str, str], host: str = ""
    ) -> Seen:  # fmt: skip
        node = host or self._here
        ruled = gate.ruled(self._bot.policy(), self._asker, node, probes, options)
        open_ = {name: r for name, r in ruled.second.items() if name not in self._consent.approvals}
        shut = {**ruled.denied, **open_}
        may = tuple(name for name in probes if name not in shut)
        if not may:
            raise gate.DeniedError.of(next(iter(shut.values())), node)
        approved = tuple(name for name in may if name in ruled.second)

        def run(tell: Callable[[Progress], None]) -> Seen:
            look = _Look(self, node, tell, approved)
            try:
                return look.live(may, budget, options, host)
            finally:
                look.hang_up()

        # What was approved is for this person and for once: nobody joins it.
        alone = (("", secrets.token_hex(8)),) if approved else ()
        what = What(frozenset(may), (*sorted(options.items()), *alone), budget is not None)
        ears = self._ears
        with ears.idle():
            seen, joined = self._nodes.look(
                node, what, self._asker.person.id, run, tell=ears.progress, check=ears.check, waits=ears.waits
            )
        if joined:
            self._joined(node, may)
        return replace(
            seen, observations=(*seen.observations, *gate.denials(shut, seen.host)), probes=tuple(probes)
        )  # fmt: skip

    def _joined(self, node: str, probes: Sequence[str]) -> None:
        said = {"what": "joined a look", "probes": list(probes), "node": node}
        self._bot.journal.append(secrets.token_urlsafe(12), self.hand, Entry("note", said))

    @property
    def hand(self) -> Hand:
        """Who does it."""
        return Hand(self._asker.person.id, "slack")

    # --- for the thread that looks ------------------------------------------------------------

    def claim(self, node: str, names: Sequence[str], options: Mapping[str, str]) -> None:
        """Use what a second person agreed to, right before it is run. RightsError."""
        if names:
            numbers = [self._consent.approvals[name] for name in names]
            second.claim(self._bot, self._asker, numbers, [gate.probe_act(name, node, options) for name in names])


class _Look(Eyes):
    """The eyes of one look: it may outlive the turn that began it, when others have joined."""

    def __init__(self, owner: SlackEyes, node: str, tell: Callable[[Progress], None], approved: Sequence[str]) -> None:
        super().__init__(owner.settings, owner.ruleset, report=tell, others=owner.others)
        self._owner, self._node, self._approved = owner, node, approved

    def live(self, probes: Sequence[str], budget: float | None, options: Mapping[str, str], host: str) -> Seen:
        """Look at the machine."""
        self._told = options
        return super()._live(probes, budget, options, host)

    @contextmanager
    def _noted(
        self, probes: Sequence[str], options: Mapping[str, Mapping[str, str]], host: str
    ) -> Iterator[None]:  # fmt: skip
        """In the journal before and after. StoreError when it cannot be: then nothing is run."""
        del host  # by the name that rights know it by
        self._owner.claim(self._node, self._approved, self._told)
        bot, hand = self._owner._bot, self._owner.hand
        subject, begun, outcome = secrets.token_urlsafe(12), time.monotonic(), "failed"
        said = {"what": "look", "probes": list(probes), "node": self._node, "options": {k: dict(v) for k, v in options.items()},
                "approved": list(self._approved)}  # fmt: skip
        (intent,) = bot.journal.append(subject, hand, Entry("intent", said))
        try:
            yield
            outcome = "ended"
        finally:
            seconds = round(time.monotonic() - begun, 3)
            done = {"intent": intent.seq, "node": self._node, "outcome": outcome, "seconds": seconds}
            bot.journal.append(subject, hand, Entry("result", done))
