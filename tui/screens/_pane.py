"""What a screen is: a pane beside the chat, with habits that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from knowledge.language import Text
from tui.messages import Explain
from tui.widgets.grid import Grid
from tui.widgets.ground import Ground

if TYPE_CHECKING:
    from textual.app import App
    from textual.widget import Widget

    from assistant.live.frames import Frame
    from assistant.render.sheet import Sheet
    from tui.commands import Command
    from tui.desk import Desk, Picture


class ScreenSpec(NamedTuple):
    """One screen. `place`: its digit."""

    name: str  # what ``:go NAME`` and the kept state say
    place: int
    title: Text
    make: Callable[[], Pane]
    about: Text  # one sentence, for help and the command palette


class Pane(Ground):
    """One screen's widget. It is made when it is first shown, and told of changes only while it is.

    Subclasses fill in what they need; every method here has an answer that does nothing.
    """

    DEFAULT_CSS = "Pane { height: 1fr; width: 1fr; }"
    NAME: ClassVar[str] = ""

    @property
    def desk(self) -> Desk:
        """What the app is about."""
        from tui.app import desk_of

        return desk_of(self.app)

    def t(self, en: str, zh: str) -> str:
        """A word of ours in the language of the app."""
        return Text(en, zh).in_(self.desk.lang)

    # --- told by the workspace ------------------------------------------------------------

    def on_shown(self) -> None:
        """It came into view: catch up with what changed meanwhile."""

    def on_hidden(self) -> None:
        """It went out of view: stop what costs anything."""

    def picture_changed(self, picture: Picture) -> None:
        """Another look at the machine or recording. Called while shown, and once before `on_shown` when one was missed."""

    def moment_changed(self, frame: Frame | None, moment: int) -> None:
        """Other readings of the GPUs (`Desk.feed`), or another moment of a recording (ns UTC). Called while shown only."""

    def source_changed(self) -> None:
        """Something else is looked at: let go of what was shown. Called even while hidden."""

    def show_target(self, target: str) -> None:
        """Go to the thing called `target`: a finding's id, a GPU's PCI address, a topic, ``line 12``."""

    # --- habits ---------------------------------------------------------------------------

    @property
    def grid(self) -> Grid | None:
        """The table that `/` filters, `s` sorts and `y` copies from: the focused one, else the first."""
        focused = self.app.focused
        if isinstance(focused, Grid) and self in focused.ancestors:
            return focused
        return next(iter(self.query(Grid)), None)

    def first(self) -> Widget | None:
        """What takes the keys when it is shown; None: the table, else the first widget that takes any."""
        return None

    def question(self) -> str:
        """ "Explain this": the question about what is under the cursor; empty when nothing is."""
        return ""

    def explain(self) -> None:
        """Ask that in the chat."""
        if said := self.question():
            self.post_message(Explain(said))
        else:
            self.app.notify(self.t("There is nothing under the cursor to explain.", "光标处没有可解释的内容。"))

    def filter(self, text: str) -> None:
        """What `/` says."""
        if (grid := self.grid) is not None:
            grid.filter(text)

    def copied(self) -> str:
        """What `y` copies."""
        return grid.text() if (grid := self.grid) is not None else ""

    def exported(self) -> Sheet | None:
        """What ``:export FILE`` writes; None: the table as it stands."""
        return None

    def commands(self) -> Sequence[Command]:
        """Its own ``:`` commands, for the palette as well."""
        return ()

    def own_keys(self) -> Sequence[tuple[str, str]]:
        """Its own keys and what they do, for help."""
        return ()

    def kept(self) -> Mapping[str, Any]:
        """What is to be as it was when the app is opened again: plain data."""
        return {}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """The opposite; anything may be missing or of a wrong kind."""


def pane_of(app: App[Any], name: str) -> Pane | None:
    """The pane called `name`, if it has been made."""
    base = getattr(app, "workspace", app.screen)  # a dialog may lie over it
    return next((p for p in base.query(Pane) if name == p.NAME), None)
