"""The dialog that picks what could have been concluded and was not."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.tones import Tone, of_severity
from tui.widgets.columns import Cell, Column, Row
from tui.widgets.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from assistant.diagnosis import Diagnosis
    from assistant.proofs.hypotheses import Hypothesis
    from tui.app import GpudiagApp
    from tui.work import Job

_WALK = {"down": 1, "up": -1}


class WhyNot(ModalScreen[str]):
    """Rules that hold nowhere, those nearest to holding first. Gives a rule's id, or the words that were typed; empty: nothing."""

    app: GpudiagApp
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]
    DEFAULT_CSS = """
    WhyNot { align: center middle; }
    WhyNot > Vertical { width: 94%; max-width: 130; height: 88%; background: $panel; padding: 1 2; }
    WhyNot .title { text-style: bold; }
    WhyNot Input { border: none; height: 1; padding: 0 1; margin: 1 0; background: $background; }
    WhyNot Grid { background: $panel; }
    WhyNot .keys { color: $faint; margin-top: 1; }
    """

    class Weighed(Message):
        """From the thread that weighed them."""

        def __init__(self, found: Sequence[Hypothesis]) -> None:
            super().__init__()
            self.found = found

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__()
        self._d = diagnosis
        self._job: Job | None = None

    def compose(self) -> ComposeResult:
        """The words, and the rules that hold them."""
        t = self.app.t
        columns = (
            Column("title", t("what it could have been", "可能的原因"), least=24, most=52),
            Column("reason", t("what keeps it from being so", "为什么不是"), least=20, stretch=True),
            Column("rule", t("rule", "规则"), least=10, most=34, keep=1),
        )
        with Vertical():
            yield Static(t("Why not …", "为什么不是……"), classes="title", markup=False)
            yield Input(
                placeholder=t("words, a rule, a code; or what you suspect", "输入词语、规则、代码，或你的猜测"),
                compact=True,
            )
            yield Grid(columns, empty=t("weighing all rules …", "正在评估所有规则……"))
            yield Static(
                t("Enter: ask in the chat   ↑ ↓: choose   Esc: close", "Enter：在对话中提问   ↑ ↓：选择   Esc：关闭"),
                classes="keys",
                markup=False,
            )

    def on_mount(self) -> None:
        """Type at once; weigh beside the screen."""
        grid = self.query_one(Grid)
        grid.can_focus = False
        grid.add_class("-steady")  # its cursor is walked from the field
        self.query_one(Input).focus()
        self._job = self.app.desk.jobs.start("why not", self._weigh)

    def _weigh(self, job: Job) -> None:
        """In a thread: where each rule stands."""
        from assistant.proofs.hypotheses import hypotheses

        desk = self.app.desk
        found = hypotheses(self._d, desk.ruleset(), desk.lang)
        if not job.stopped:
            self.post_message(self.Weighed(found))

    def on_why_not_weighed(self, event: Weighed) -> None:
        """Show them."""
        self.query_one(Grid).load(
            Row(h.rule, (Cell(h.title, of_severity(h.severity) if h.stand in ("ruled_out", "unknown") else Tone.PLAIN),
                         Cell(h.reason, Tone.DIM), Cell(h.rule, Tone.DIM)))
            for h in event.found
        )  # fmt: skip

    def on_key(self, event: events.Key) -> None:
        """Up and down walk the rules while words are typed."""
        if event.key in _WALK:
            event.stop()
            self.query_one(Grid).action_move(_WALK[event.key])
        elif event.key in ("pageup", "pagedown"):
            event.stop()
            self.query_one(Grid).action_page(1 if event.key == "pagedown" else -1)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Fewer rules."""
        event.stop()
        self.query_one(Grid).filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The rule under the cursor; where no rule has these words, the words."""
        event.stop()
        row = self.query_one(Grid).row
        self._end(row.key if row is not None else event.value.strip())

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        """A rule was clicked twice."""
        event.stop()
        if event.row is not None:
            self._end(event.row.key)

    def _end(self, chosen: str) -> None:
        if self._job is not None:
            self._job.stop()
        self.dismiss(chosen)

    def action_close(self) -> None:
        """Nothing was asked."""
        self._end("")
