"""The command of a step within a walk: what may be run here, what is asked before, and what is kept of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.actions.acting import Acted, act, excerpt
from assistant.actions.order import Manner, Order, by_name, checking, manner, missing, order
from assistant.actions.running import End
from assistant.incidents.claims import runs
from assistant.incidents.deeds import BEGUN, open_ended
from assistant.incidents.events import Entry, Kind
from assistant.incidents.walk_parts import Permit
from assistant.incidents.words import moment
from knowledge.language import Text
from knowledge.runbook import PLACEHOLDERS, ready
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.incidents.events import Event, Hand
    from assistant.incidents.fold import Incident
    from assistant.incidents.walk_parts import Talk, Way
    from assistant.journal import Journal
    from knowledge.runbook import Runbook, Step

LINES = 40  # of an output that are shown: its end
KEPT = 400  # characters of it that stand in the incident


class Ran(NamedTuple):
    """A command that was run: what the incident keeps of it, and whether a person ended it."""

    entry: Entry
    stopped: bool


class Commands:
    """Runs what may be run, and says why it does not run the rest."""

    def __init__(
        self, journal: Journal, hand: Hand, talk: Talk, way: Way, stop: Callable[[], bool] = lambda: False,
        permit: Permit | None = None, note: Callable[[Entry], None] = lambda _entry: None,
    ) -> None:  # fmt: skip
        """`note` writes an event of the incident: that a command begins, before it does."""
        self._note = note
        self._journal, self._hand, self._talk, self._way, self._stop = journal, hand, talk, way, stop
        self._permit = permit or Permit()
        self._agreed: tuple[str, str] | None = None  # runbook and step whose loop was agreed to

    def run(self, book: Runbook, step: Step, values: dict[str, str], incident: Incident, rounds: int) -> Ran | None:
        """Run the command of a step, and what is to be noted of that; None where a person does it. StoreError: nothing ran."""
        if not step.command:
            if rounds == 1:
                self._by_hand(Text("This is done by hand.", "该步骤由人工完成。"), "")
            return None
        self._complete(step, values)
        if (reason := self._shown_only(step, values)) is not None:
            self._by_hand(reason, ready(step.command, values))
            return None
        wanted = order(book, step, values, self._way.node, incident.number, rounds)
        if unsure := [e for e in runs(incident, book.id, step.id) if open_ended(e)]:
            wanted = replace(wanted, before=may_have_run(unsure[-1]))
        if (reason := self._permit.ask(wanted)) is not None:
            self._by_hand(reason, ready(step.command, values))
            return None
        if self._agreed != (book.id, step.id) and not self._agreed_to(wanted):
            self._by_hand(Text("Not run.", "未运行。"), "")
            return None
        self._agreed = (book.id, step.id)
        if (reason := self._permit.claim(wanted)) is not None:
            self._by_hand(reason, ready(step.command, values))
            return None
        acted = self._act(wanted, incident)
        return Ran(Entry(Kind.ACTION, self._data(wanted, acted)), acted.result.end is End.STOPPED)

    def would_run(self, step: Step, values: Mapping[str, str]) -> bool:
        """Whether a yes to the step runs its command at once."""
        known = dict.fromkeys(missing(step.command, values), "x") | dict(values)
        return bool(step.command) and manner(step.risk) is Manner.YES and self._shown_only(step, known) is None

    def check(self, book: Runbook, step: Step, values: Mapping[str, str], incident: Incident) -> Entry | None:
        """Show how a person sees that it worked: its command is run after a yes, where it can be. StoreError: nothing ran."""
        if not step.verify_command:
            return None
        command = ready(step.verify_command, values)
        self._talk.say(Text(f"Check with:\n$ {command}", f"核对命令：\n$ {command}"))
        if self._way.show_only or missing(step.verify_command, values) or not self._near(step.verify_command):
            return None
        wanted = checking(book, step, values, self._way.node, incident.number)
        if (reason := self._permit.ask(wanted)) is not None:
            self._talk.say(reason)
            return None
        if not self._way.yes_safe:
            said = self._talk.ask(Text("Run this check? It only reads. [y/N]", "运行该核对命令？它只读取。[y/N]"))
            if said not in ("y", "yes", "是"):
                return None
        if (reason := self._permit.claim(wanted)) is not None:
            self._talk.say(reason)
            return None
        acted = self._act(wanted, incident)
        return Entry(Kind.ACTION, self._data(wanted, acted))

    def _act(self, wanted: Order, incident: Incident) -> Acted:
        """Intent, event, command, result. StoreError when either of the first two cannot be written: nothing ran."""

        def begun(intent: int) -> None:
            self._note(Entry(Kind.ACTION, self._about(wanted, intent) | {"end": BEGUN}))

        acted = act(wanted, self._hand, self._journal, incident.uid or str(incident.number), self._stop, begun)
        self._tell(acted)
        return acted

    def _near(self, command: str) -> bool:
        """Whether a command acts on the right machine when it is run here."""
        return self._way.here or by_name(command)

    def _complete(self, step: Step, values: dict[str, str]) -> None:
        """Ask for what the findings do not tell; an empty answer leaves it open."""
        if self._way.show_only or manner(step.risk) is Manner.SHOWN:
            return
        for name in missing(step.command, values):
            meaning = PLACEHOLDERS[name].meaning if name in PLACEHOLDERS else Text(name)
            said = self._talk.ask(
                Text(f"{name} ({meaning.en}), or nothing:", f"{name}（{meaning.in_('zh')}），可留空：")
            )
            if said:
                values[name] = said

    def _shown_only(self, step: Step, values: Mapping[str, str]) -> Text | None:
        """Why the command is not run here; None when it may be."""
        if self._way.show_only:
            return Text("Shown only.", "仅显示。")
        if manner(step.risk) is Manner.SHOWN:
            return Text(
                "This destroys something: gpudiag never runs it.", "该命令会造成不可恢复的丢失：gpudiag 从不运行它。"
            )
        if lacking := missing(step.command, values):
            names = ", ".join(lacking)
            return Text(f"Not run: {names} is not known.", f"未运行：{names} 未知。")
        if not self._near(step.command):
            node = self._way.node
            if not node:
                return Text("Not run: it is not known which machine this is about.", "未运行：不清楚涉及哪台机器。")
            return Text(
                f"Not run: it belongs on {node}, and this is another machine.",
                f"未运行：应在 {node} 上执行，而本机不是它。",
            )
        return None

    def _agreed_to(self, wanted: Order) -> bool:
        """A safe command was agreed to with its step; one that disrupts takes the node's name."""
        if manner(wanted.risk) is Manner.YES:
            return True
        node = wanted.node
        if not node:
            return False
        said = self._talk.ask(Text(
            f"This stops or blocks work. Type the node's name ({node}) to run it:",
            f"该命令会中断或推迟工作。输入节点名（{node}）以运行："))  # fmt: skip
        return said == node.lower()

    def _by_hand(self, reason: Text, command: str) -> None:
        """A person does it: wait until they have."""
        tail = f"\n$ {command}" if command else ""
        self._talk.say(Text(reason.en + tail, reason.in_("zh") + tail))
        self._talk.ask(Text("Enter when it is done:", "完成后按回车："))

    def _tell(self, acted: Acted) -> None:
        result = acted.result
        shown = "\n".join(self._permit.output(clean(result.output)).rstrip().split("\n")[-LINES:])
        ends = {
            End.EXITED: Text(f"exit code {result.exit_code}, {result.seconds:.1f} s", f"退出码 {result.exit_code}，{result.seconds:.1f} 秒"),
            End.TIMEOUT: Text(f"ended after {result.seconds:.0f} s: it took too long", f"{result.seconds:.0f} 秒后终止：超时"),
            End.STOPPED: Text("stopped, with all that it started", "已停止，包括它启动的一切"),
            End.NOT_STARTED: Text(f"not started: {result.detail}", f"未能启动：{result.detail}"),
        }  # fmt: skip
        said = ends[result.end]
        lead = f"{shown}\n" if shown else ""
        self._talk.say(Text(f"{lead}[{said.en}]", f"{lead}[{said.in_('zh')}]"))
        if acted.unrecorded is not None:
            why = acted.unrecorded
            self._talk.say(
                Text(f"Its result is not in the journal: {why.en}", f"其结果未写入日志账本：{why.in_('zh')}")
            )

    def _data(self, wanted: Order, acted: Acted) -> dict[str, Any]:
        result = acted.result
        ended = f"exit code {result.exit_code}" if result.end is End.EXITED else str(result.end).replace("_", " ")
        tail = self._permit.output(excerpt(result, KEPT))
        return self._about(wanted, acted.intent) | {
            "text": f"{ended}, {result.seconds:.1f} s" + (f": {tail}" if tail else ""), "end": str(result.end),
            "exit_code": result.exit_code,
        }  # fmt: skip

    def _about(self, wanted: Order, intent: int) -> dict[str, Any]:
        return {
            "name": shlex.join(wanted.argv), "runbook": wanted.runbook, "step": wanted.step, "round": wanted.rounds,
            "node": wanted.node, "journal": intent, "verifies": wanted.verifies,
        }  # fmt: skip


def may_have_run(event: Event) -> Text:
    """What is to be said of a run that nobody knows the end of, before the same is run again."""
    when = moment(event.at)
    return Text(f"It may have run already: begun at {when} by {event.who}, and how it ended is not known.",
                f"它可能已运行过：{event.who} 于 {when} 开始，结果未知。")  # fmt: skip
