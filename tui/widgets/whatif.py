"""The dialog that edits a value of a proof, and shows what would be different."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from tui.widgets.page import Page

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from assistant.diagnosis import Diagnosis
    from assistant.intent.query import Query
    from assistant.proofs.supposing import Target
    from assistant.reply import Reply
    from tui.app import GpudiagApp
    from tui.work import Job

SHARE = 92  # percent of the terminal that it may fill


class WhatIf(ModalScreen["Query | None"]):
    """One value, as it is and as it might be. Enter shows the difference; Enter again gives the question for the chat."""

    app: GpudiagApp
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]
    DEFAULT_CSS = """
    WhatIf { align: center middle; }
    WhatIf > Vertical { width: 92%; max-width: 92; height: auto; max-height: 92%; background: $panel; padding: 1 2; }
    WhatIf .title { text-style: bold; }
    WhatIf .faint, WhatIf .keys { color: $faint; }
    WhatIf .keys { margin-top: 1; dock: bottom; background: $panel; }
    WhatIf Horizontal { height: 1; margin-top: 1; }
    WhatIf Horizontal > Static { width: auto; }
    WhatIf Input { border: none; height: 1; width: 1fr; padding: 0 1; background: $background; }
    WhatIf OptionList, WhatIf OptionList:focus { border: none; height: auto; max-height: 10; margin-top: 1; padding: 0; background: $panel; }
    WhatIf OptionList > .option-list--option { padding: 0 1; }
    WhatIf #problem { color: $text-error; display: none; }
    WhatIf #difference { height: auto; max-height: 100%; margin: 1 0 0 0; display: none; scrollbar-size-vertical: 1; }
    WhatIf Page { padding: 0; }
    """

    class Supposed(Message):
        """From the thread that weighed it: the answer to a value."""

        def __init__(self, asked: Query, reply: Reply) -> None:
            super().__init__()
            self.asked, self.reply = asked, reply

    def __init__(self, target: Target, diagnosis: Diagnosis, focus: str = "") -> None:
        super().__init__()
        self._target, self._d, self._focus = target, diagnosis, focus
        self._job: Job | None = None
        self._weighed = ""  # the value whose difference is shown
        self._asked: Query | None = None

    def compose(self) -> ComposeResult:
        """What it is, the field, and room for the difference."""
        from assistant.proofs.forms import form

        t = self.app.t
        self._form = f = form(self._target, self._d, self.app.desk.lang)
        facts = [
            f.about,
            t("now: ", "当前：") + f.now,
            t("the rule asks for: ", "规则要求：") + f.against if f.against else "",
        ]
        with Vertical():
            yield Static(t("What if: ", "假如：") + f.title, classes="title", markup=False)
            yield Static("  ·  ".join(filter(None, facts)), classes="faint", markup=False)
            if f.choices:
                yield OptionList(*(words for _, words in f.choices), markup=False, compact=True)
            else:
                with Horizontal():
                    yield Static(t("it were ", "其值为 "), markup=False)
                    yield Input(f.start, compact=True)
                    yield Static(f" {f.unit}", markup=False)
                yield Static(f.allowed, classes="faint", markup=False)
            yield Static(id="problem", markup=False)
            with VerticalScroll(id="difference"):
                yield Page()
            yield Static(self._keys(), classes="keys", markup=False)

    def on_mount(self) -> None:
        """The field has the keys; of choices the first that is not so already."""
        if not self._form.choices:
            self.query_one(Input).focus()
            return
        options = self.query_one(OptionList)
        options.highlighted = next((n for n, (_, words) in enumerate(self._form.choices) if words != self._form.now), 0)
        options.focus()

    def _keys(self) -> str:
        t = self.app.t
        if self._asked is None:
            return t("Enter: what would be different   Esc: close", "Enter：查看会有什么不同   Esc：关闭")
        return t("Enter: ask it in the chat   Esc: close", "Enter：在对话中提问   Esc：关闭")

    # --- what was typed -------------------------------------------------------------------

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A value was typed."""
        event.stop()
        self._enter(event.value)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A value was chosen."""
        event.stop()
        self._enter(self._form.choices[event.option_index][0])

    def on_input_changed(self, event: Input.Changed) -> None:
        """Another value: what is shown is no longer about it."""
        event.stop()
        if self._asked is not None and event.value != self._weighed:
            self._forget()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Another choice: the same."""
        event.stop()
        if self._asked is not None and self._form.choices[event.option_index][0] != self._weighed:
            self._forget()

    def _forget(self) -> None:
        self._asked, self._weighed = None, ""
        self.query_one("#difference").display = False
        self.query_one(".keys", Static).update(self._keys())

    def _enter(self, said: str) -> None:
        from assistant.proofs.supposing import problem, query

        lang = self.app.desk.lang
        if self._asked is not None and said == self._weighed:
            self.dismiss(self._asked)
            return
        wrong = problem(self._target, said, lang)
        about = self.query_one("#problem", Static)
        about.update(wrong)
        about.display = bool(wrong)
        if wrong:
            self._forget()
            return
        asked = query(self._target, said, self._d, lang)
        self._weighed = said
        if self._job is not None:
            self._job.stop()
        self._job = self.app.desk.jobs.start("suppose", lambda job: self._weigh(job, asked))

    def _weigh(self, job: Job, asked: Query) -> None:
        """In a thread: the diagnosis as it would be."""
        from assistant.proofs.supposing import supposed

        reply = supposed(self._d, self.app.desk.ruleset(), asked, self._focus)
        if not job.stopped:
            self.post_message(self.Supposed(asked, reply))

    def on_what_if_supposed(self, event: Supposed) -> None:
        """Show what would be different."""
        self._asked = event.asked
        self.query_one(Page).show(event.reply.headline, event.reply.parts)
        self.query_one("#difference").display = True
        self.query_one(".keys", Static).update(self._keys())
        self.call_after_refresh(self._fit)

    def on_resize(self) -> None:
        """Another room for the difference."""
        self.call_after_refresh(self._fit)

    def _fit(self, again: int = 5) -> None:
        """The difference scrolls in what is left between the field and the keys."""
        box, difference = self.query_one(Vertical), self.query_one("#difference")
        above = difference.region.y - box.region.y
        if difference.display and not difference.region.height and again:  # it is laid out a moment later
            self.set_timer(0.02, lambda: self._fit(again - 1))
        elif difference.display and above > 0:
            difference.styles.max_height = max(
                3, self.size.height * SHARE // 100 - above - 3
            )  # a blank, the keys, the edge

    def action_close(self) -> None:
        """Nothing was asked."""
        if self._job is not None:
            self._job.stop()
        self.dismiss(None)
