"""Runs a session: probes, history and files on one side, one conversation on the other.

A surface makes a `Conversation`, calls `say`, and shows what comes back. It has no logic of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.intent.query import Intent
from assistant.session.core import Session
from assistant.session.state import Frame, Origin, Pending, Seen, State, folder
from assistant.session.steps import (
    Ask,
    Cancelled,
    Collect,
    Collected,
    Conclude,
    Confirm,
    Event,
    Recall,
    Recalled,
    Said,
    Step,
    Write,
)
from knowledge.language import Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.exits import Exit
    from assistant.intent.query import Query
    from assistant.inventory.model import Hosts
    from assistant.machine import Look, Recorded, Wish
    from assistant.reply import Reply
    from assistant.session.far import Far
    from knowledge.observation import Observation
    from probes.runner import Progress
    from rules.loader import RuleSet

_EXITS = {
    "yes": "OK",
    "impaired": "FINDING",
    "not_yet": "FINDING",
    "no": "FINDING",
    "unknown": "UNDECIDED",
}  # of "can it be used?"
# A yes or a no to a question of ours is answered by the diagnosis that it leads to.
_DIAGNOSED = (Intent.DIAGNOSE, Intent.VERDICT, Intent.RERUN, Intent.CONFIRM, Intent.DENY)
Told = Callable[[str, int, int | None], None]  # of a file: its name, bytes read, bytes in all


@dataclass(frozen=True, slots=True)
class Answer:
    """What one turn came to."""

    reply: Reply
    query: Query | None  # as what the sentence was understood
    pending: Pending | None  # what the person is asked now
    frame: Frame  # where the talk stands

    @property
    def question(self) -> str:
        """The question at the end; empty when there is none."""
        return self.pending.text.in_(self.reply.lang) if self.pending else ""

    @property
    def exit(self) -> Exit:
        """DESIGN section 3: of a question about a machine the diagnosis', else whether the question was answered."""
        from assistant.exits import Exit

        d, usable = self.reply.diagnosis, self.reply.data.get("usable")
        judged = self.query is not None and self.query.intent is Intent.VERDICT
        if (judged or self.reply.data.get("answer") == "told") and usable in _EXITS:
            return Exit[_EXITS[usable]]
        asked = self.query is not None and self.query.intent in _DIAGNOSED
        if d is not None and asked and not self.reply.hypothetical:
            return d.exit
        return Exit.OK if self.reply.settled else Exit.UNDECIDED


class Conversation:
    """One conversation with one person. Not for several threads at once."""

    def __init__(
        self, session: Session, eyes: Eyes, state: State | None = None, on_step: Callable[[Step], None] | None = None
    ) -> None:
        self.session, self.eyes = session, eyes
        self.state = state or State()
        self._on_step = on_step or (lambda _: None)

    def say(self, text: str, origin: Origin = Origin(), query: Query | None = None) -> Answer:  # noqa: B008 - a constant
        """One turn. What the state was before is kept when it does not end: Ctrl-C, a file that has gone.

        `query`: as what `text` is to be understood, where somebody pointed at it rather than said it.
        """
        before = self.state
        self.eyes.given = origin
        try:
            return self.tell(Said(text, origin, self.eyes.now(), query))
        except BaseException:  # Ctrl-C too: raised again, and the conversation stands where it stood
            self.state = before
            raise

    def tell(self, event: Event) -> Answer:
        """One event, and everything that follows from it, up to an answer."""
        try:
            return self._told(event)
        finally:
            self.eyes.hang_up()

    def _told(self, event: Event) -> Answer:
        while True:
            self.state, steps = self.session.step(self.state, event)
            answer, again = None, None
            for step in steps:
                self._on_step(step)
                if isinstance(step, Conclude):
                    answer = step.reply
                elif not isinstance(step, Ask | Confirm):
                    again = self.eyes.do(step)
            if again is not None:
                event = again
                continue
            assert answer is not None  # a session that wants nothing done has said something
            pending = next((s.pending for s in steps if isinstance(s, Ask | Confirm)), None)
            frame = self.state.frame
            if pending is not None and pending.probes and frame.origin.live:
                pending = replace(pending, before=self.eyes.unended(pending.probes, frame.origin.host))
            return Answer(answer, self.state.said, pending, frame)

    def turn_to(self, origin: Origin) -> None:
        """The options name another machine than the talk is about: "it" and "yes" mean nothing that was said of that one."""
        now = self.state.frame.origin
        if now.host != origin.host or not now.live:
            self.state = self.state.pushed(Frame(origin=origin))

    def adopt(self, seen: Seen, origin: Origin) -> None:
        """Go on from what a surface looked at by itself, as if the node's health had been asked for."""
        self.state = self.session.adopted(self.state, seen, origin)

    def cancel(self) -> Answer:
        """Drop what is waited for."""
        return self.tell(Cancelled())


class Eyes:
    """What a session can reach from here: this machine, files, the history."""

    def __init__(
        self, settings: Settings, ruleset: RuleSet, wish: Wish | None = None,
        report: Callable[[Progress], None] | None = None, reading: Told | None = None, history: bool = True,
        others: Hosts | None = None,
    ) -> None:  # fmt: skip
        """`others`: the machines that can be looked at beside this one; when left out those of the inventory file."""
        self._others = others
        self._far: Far | None = None  # made when another machine is looked at
        self.settings, self.ruleset, self.history = settings, ruleset, history
        self._wish, self._report, self._reading = wish, report, reading
        self._opened: dict[str, Recorded] = {}
        self.given = Origin()  # what the options of this process name: pipes and devices may be among them
        self.looks: list[Look] = []  # of machines: what a recording of the conversation keeps
        self.replay: list[str] = []  # bundles that stand for the looks at the machine, in order

    @property
    def budget(self) -> float:
        """Seconds of probing for one question."""
        return self._wish.budget if self._wish else 30.0

    @property
    def without(self) -> frozenset[str]:
        """Probes that are not to be run."""
        return frozenset(self._wish.without) if self._wish else frozenset()

    @cached_property
    def others(self) -> Hosts | None:
        """The machines that can be looked at beside this one; none when the file that names them is not there, or at fault."""
        if self._others is not None:
            return self._others
        from assistant.session.inventory import configured

        return configured(self.settings)

    def unended(self, probes: Sequence[str], host: str) -> Text:
        """What the journal knows to have been begun there, and not to have ended."""
        from assistant.journal.unended import unended

        if self.replay or not self.history:
            return Text("")
        return unended(self.settings.history.url, self._named(host), probes)

    def _named(self, host: str) -> str:
        """As the journal calls a machine."""
        return host or self.settings.machine.name or os.uname().nodename

    def hang_up(self) -> None:
        """End the connections to other machines: the turn is over."""
        if self._far is not None:
            self._far.close()

    def absent(self) -> frozenset[str]:
        """Probes of which no tool is installed on this machine, or whose device is not there."""
        if self.replay:
            return frozenset()
        from shutil import which

        from probes.live import probes
        from probes.live_host import FOLDERS

        folders = os.pathsep.join((os.environ.get("PATH", ""), *FOLDERS))
        return frozenset(
            s.name for s in probes()
            if s.needs.binaries
            and not (
                any(which(b, path=folders) for b in s.needs.binaries)
                and (not s.needs.files or any(any(Path("/").glob(f.lstrip("/"))) for f in s.needs.files))
            )
        )  # fmt: skip

    def now(self) -> int | None:
        """The time, ns UTC; None when a conversation is replayed: no reading grows old there."""
        return None if self.replay else time.time_ns()

    def do(self, step: Step) -> Event:
        """Carry out one step."""
        match step:
            case Collect(origin, probes, budget, options):
                return Collected(self._look(origin, probes, budget, options))
            case Recall(query, host):
                if not self.history:
                    return Recalled((), Text("The history is off.", "历史功能已关闭。"))
                from assistant.session.recall import recall

                return Recalled(*recall(self.settings, query, host))
            case Write():
                from assistant.session.export import write

                return write(step, self.settings)
            case _:
                raise TypeError(step)

    def _look(
        self, origin: Origin, probes: Sequence[str], budget: float | None, options: Mapping[str, str]
    ) -> Seen:  # fmt: skip
        begun = time.monotonic()
        if origin != self.given:
            _only_files(origin)
        origin = _from_here(origin)
        if origin.live:
            found = self._live(probes, budget, options, origin.host)
        elif origin.bundle:
            found = self._recorded(origin, probes)
        else:
            found = self._files(origin)
        how = "live" if origin.live else "recorded" if origin.bundle else ""
        return replace(found, how=how, seconds=0.0 if self.replay else round(time.monotonic() - begun, 3))

    def _live(
        self, probes: Sequence[str], budget: float | None, options: Mapping[str, str], host: str = ""
    ) -> Seen:  # fmt: skip
        from assistant import machine

        if self.replay:
            return self._replayed(self.replay.pop(0), probes, host)
        wish = self._wish or machine.Wish()
        wish = machine.Wish(tuple(probes), (), wish.without, _patience(wish.budget, probes, budget), wish.again)
        told = options_for(probes, options)
        absent: tuple[str, ...] = ()
        with self._noted(probes, told, host):
            if host:
                from probes.remote import ConnectError

                try:
                    look, absent = self._there(host, wish, told)
                except ConnectError as error:
                    return Seen(host, (), tuple(probes), lost=error.text)
            else:
                look = machine.here(self.settings, wish, self._report, told)
        trouble = ""
        if self.history:
            look, trouble = machine.remembering(self.settings, look, self.ruleset.rules)
        self.looks.append(look)
        notes = (*look.notes, *([trouble] if trouble else ()))
        seen = replace(_seen(look, tuple(probes), notes=notes), absent=absent, lost=look.ended)
        return replace(seen, observations=(*seen.observations, *self._expected(host)))

    @contextmanager
    def _noted(
        self, probes: Sequence[str], options: Mapping[str, Mapping[str, str]], host: str
    ) -> Iterator[None]:  # fmt: skip
        """The journal knows of what was agreed to and is felt by the machine or by a job, before and after."""
        from probes.live import Cost
        from probes.live import probes as known

        heavy = [s.name for s in known() if s.name in probes and s.cost >= Cost.HEAVY]
        if not heavy:
            yield
            return
        from assistant.journal.noting import Noting

        noting = Noting(self.settings, self._named(host), surface="talk")
        chosen = {name: dict(options[name]) for name in heavy if name in options}
        said = {"options": chosen, "risk": "disruptive", "consent": "agreed to in the talk"}
        noting.intent(", ".join(f"probe:{name}" for name in heavy), said)
        outcome = "failed"
        try:
            yield
            outcome = "ended"
        finally:
            noting.result({"outcome": outcome})

    def _there(
        self, host: str, wish: Wish, options: Mapping[str, Mapping[str, str]]
    ) -> tuple[Look, tuple[str, ...]]:  # fmt: skip
        """Another machine, and the probes that cannot run there. UnknownNameError when it can no longer be looked at from
        here, ConnectError when it cannot be reached."""
        from assistant.inventory.model import Hosts
        from assistant.session.far import Far

        self._far = self._far or Far(self.settings)
        node = (self.others or Hosts()).find(host)
        return self._far.look(node, wish, self._report, options)

    def _replayed(self, bundle: str, probes: Sequence[str], host: str) -> Seen:
        """A look that was recorded, at this machine or at the one called `host`."""
        seen = self._recorded(Origin(bundle=bundle), tuple(probes))
        if not host:
            return seen
        from assistant.session.far import absent

        known = (*seen.observations, *self._expected(host))
        return replace(seen, observations=known, absent=absent(self._opened[bundle].host))

    def _expected(self, host: str) -> list[Observation]:
        """What the inventory says of another machine."""
        node = self.others.nodes.get(host) if self.others is not None else None
        if node is None:
            return []
        from assistant.inventory.target import expected

        return expected(node)

    def _recorded(self, origin: Origin, probes: Sequence[str]) -> Seen:
        """A bundle: at first only what it offers, then the probes that are wanted."""
        from assistant import machine

        here = self._opened.get(origin.bundle) if probes else None  # the first look is at what is there now
        if here is None:
            here = self._opened[origin.bundle] = machine.opened(origin.bundle)
        by_hand = here.host.recording is None
        look = here.look(here.offers if by_hand and not probes else probes)
        if probes:
            return _seen(look, tuple(probes), notes=tuple(look.notes))
        look = here.remembered(look)
        remarks = machine.remarks(origin.bundle, here.host, look, self.settings.output.lang)
        found = _seen(
            look, tuple(here.offers if by_hand else ()), offers=() if by_hand else here.offers,
            notes=(*look.notes, *remarks), sources=() if look.recording else (origin.bundle,),
        )  # fmt: skip
        if not origin.logs and not origin.inputs:
            return found
        files = self._files(origin)
        return replace(
            found, observations=(*found.observations, *files.observations), notes=(*found.notes, *files.notes),
            sources=(*found.sources, *files.sources), cut=files.cut, earlier=files.earlier,
        )  # fmt: skip

    def _files(self, origin: Origin) -> Seen:
        from assistant.sources import read

        reading = read(origin.logs, origin.inputs, origin.host, self._reading)
        lang = self.settings.output.lang
        notes = tuple(f"{n.source}: {n.text.in_(lang)}" for n in reading.notes)
        return Seen(
            origin.host, reading.observations, notes=notes, sources=tuple(reading.sources), cut=tuple(reading.cut),
            earlier=reading.earlier,
        )  # fmt: skip


def _patience(usual: float, names: Sequence[str], budget: float | None) -> float:
    """Seconds for probes. What somebody agreed to (no `budget`) has the time that it needs: an active test takes minutes."""
    from assistant.machine import BUDGET
    from probes.live import Cost, probes

    if budget is not None:
        return min(usual, budget)
    return max([min(usual, BUDGET), *(s.deadline for s in probes() if s.name in names and s.cost >= Cost.HEAVY)])


def _only_files(origin: Origin) -> None:
    """InputError unless all that a sentence named, or another process was given, can be opened without waiting."""
    from knowledge.errors import InputError

    for name in filter(None, (origin.bundle, *origin.logs, *origin.inputs)):
        path = Path(origin.folder, name)
        if name == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
            raise InputError(f"{name} is no plain file", hint="it can be given with --log or --input")


def _from_here(origin: Origin) -> Origin:
    """`origin` with names that count from the folder of this process; as they were said where that is the same."""
    if not origin.folder or origin.folder == folder():
        return origin

    def placed(name: str) -> str:
        return str(Path(origin.folder, name)) if name not in ("", "-") else name

    return origin._replace(
        bundle=placed(origin.bundle), logs=tuple(map(placed, origin.logs)), inputs=tuple(map(placed, origin.inputs))
    )


def options_for(names: Sequence[str], options: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What each of the probes `names` is told of `options`: those that it takes."""
    if not options:
        return {}
    from probes.live import probes

    told = {s.name: {k: v for k, v in options.items() if k in s.takes} for s in probes() if s.name in names}
    return {name: taken for name, taken in told.items() if taken}


def _seen(
    look: Look, probes: tuple[str, ...], *, offers: tuple[str, ...] = (), notes: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
) -> Seen:  # fmt: skip
    return Seen(
        look.host, (*look.observations, *look.earlier), probes, offers, look.as_of, notes, sources, (), look.whole,
        look.boot_id,
    )  # fmt: skip
