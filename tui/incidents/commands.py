"""The ``:`` commands of the incidents screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from knowledge.errors import UsageError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.incidents.events import Entry
    from assistant.incidents.fold import Incident
    from tui.commands import Command
    from tui.screens.incidents import IncidentsPane


def commands(pane: IncidentsPane) -> Sequence[Command]:
    """What can be said about an incident."""
    from assistant.incidents.events import SEVERITIES, Status, StepState
    from tui.commands import Command, files
    from tui.incidents.orders import RUN

    def one_of(words: Iterable[str]) -> Callable[[str], Iterable[str]]:
        return lambda _: list(words)

    s = Said(pane)
    return (
        Command("note", "TEXT", Text("note something in the incident", "在事件中记一条备注"), s.note),
        Command("step", "STATE [TEXT]", Text("how far the step is: doing, done, skipped, failed, todo",
                                             "步骤进展：doing、done、skipped、failed、todo"), s.step, one_of(StepState)),
        Command("status", "STATUS [TEXT]", Text("open, working, mitigated or closed",
                                                "状态：open、working、mitigated 或 closed"), s.status, one_of(Status)),
        Command("severity", "WORD", Text("info, warning, error or critical", "级别：info、warning、error 或 critical"),
                s.severity, one_of(SEVERITIES)),
        Command("owner", "[NAME]", Text("who takes care of it; without a name: you", "负责人；不写名字则为自己"), s.owner),
        Command("runbook", "ID", Text("follow one more runbook; in the list: show it", "再按一份处置手册处理；在列表中则为查看"),
                s.runbook, one_of(b.id for b in pane.books)),
        Command("run", RUN, Text("walk the runbook, step by step; also one STEP alone", "按处置手册逐步执行；也可只做一步"), s.run),
        Command("others", "", Text("earlier incidents like it, open ones that may be the same matter",
                                   "以往类似事件，以及可能为同一问题的未关闭事件"), lambda _: s.others()),
        Command("link", "NUMBER [--merge]", Text("say that two incidents belong together; --merge takes up the other's findings",
                                                 "关联两个事件；--merge 并入对方的诊断结果"), s.link, s.offered),
        Command("report", "FILE [PRICE CURRENCY]", Text("write the post-mortem: .html .md .json .txt",
                                                        "导出事件报告：.html .md .json .txt"), s.report, files),
        Command("close", "[TEXT]", Text("end the incident: how it ended", "关闭事件并说明结果"), s.close),
    )  # fmt: skip


class Said:
    """What somebody says about the incident that is shown, or under the cursor. UsageError where there is none."""

    def __init__(self, pane: IncidentsPane) -> None:
        self._pane = pane

    def _one(self) -> Incident:
        incident = self._pane.incident
        if incident is None:
            raise UsageError("which incident? Open one first", zh="哪个事件？请先打开一个")
        return incident

    def _add(self, *entries: Entry) -> None:
        self._pane.clerk.add(self._one(), entries)

    def note(self, text: str) -> None:
        """A note."""
        from assistant.incidents import events

        self._add(events.note(text))

    def step(self, line: str) -> None:
        """How far the step under the cursor is."""
        from assistant.incidents import events

        state, _, text = line.strip().partition(" ")
        step = self._pane.step
        if step is None:
            raise UsageError("which step? Open an incident first", zh="哪一步？请先打开一个事件")
        entry = events.step(step.runbook, step.name, state, text)
        if state != step.state or text:  # nothing is said twice
            self._add(entry)

    def status(self, line: str) -> None:
        """How far it is."""
        from assistant.incidents import events

        word, _, text = line.strip().partition(" ")
        self._add(events.status(word, text))

    def severity(self, line: str) -> None:
        """How bad it is."""
        from assistant.incidents import events

        word, _, text = line.strip().partition(" ")
        self._add(events.severity(word, text))

    def owner(self, name: str) -> None:
        """Who takes care of it; who has it, works on it."""
        from assistant.incidents import events
        from assistant.incidents.who import person

        entries = [events.owner(name.strip() or person())]
        if self._one().status is events.Status.OPEN:
            entries.append(events.status(events.Status.WORKING))
        self._add(*entries)

    def runbook(self, name: str) -> None:
        """Follow it too, or show it."""
        from assistant.incidents import events

        if self._pane.shown_kind == "incident":
            self._add(events.runbook(name.strip()))
        else:
            self._pane.go("runbook", name.strip())

    def close(self, text: str) -> None:
        """The end."""
        from assistant.incidents import events

        incident = self._one()
        if not incident.is_open:
            n = incident.number
            raise UsageError(f"incident {n} is closed already", zh=f"事件 {n} 已关闭")
        self._add(events.closed(text))

    def run(self, line: str) -> None:
        """Walk its runbook."""
        from tui.incidents.orders import run_order
        from tui.incidents.walking import WalkDialog

        pane, incident = self._pane, self._one()
        wanted = run_order(line)
        if pane.shown_kind != "incident":
            pane.go("incident", str(incident.number))
        pane.app.push_screen(WalkDialog(incident, wanted), lambda _: pane.clerk.read())

    def others(self) -> None:
        """Which others it is like, and why."""
        from tui.incidents.others import OthersDialog

        incident = self._one()

        def chosen(what: tuple[str, int] | None) -> None:
            if what is not None and what[0] == "show":
                self._pane.go("incident", str(what[1]))
            elif what is not None:
                self._pane.clerk.link(incident.number, what[1], False)

        self._pane.app.push_screen(OthersDialog(incident, self._pane.incidents), chosen)

    def link(self, line: str) -> None:
        """Another one belongs to it."""
        from tui.incidents.orders import link_order

        number, merge = link_order(line)
        self._pane.clerk.link(self._one().number, number, merge)

    def offered(self, _: str) -> list[str]:
        """Numbers that complete ``:link``: those that may be the same matter."""
        from assistant.incidents.links import offers

        incident = self._pane.incident
        return [str(o.incident.number) for o in offers(incident, self._pane.incidents)] if incident is not None else []

    def report(self, line: str) -> None:
        """Write its post-mortem."""
        from tui.incidents.orders import report_order

        self._pane.clerk.report(self._one().number, report_order(line, self._pane.desk.settings))
