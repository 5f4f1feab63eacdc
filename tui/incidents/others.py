"""Other incidents: earlier ones like this, open ones that may be the same matter, those that belong to it; and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from knowledge.language import Text
from tui.tones import Tone
from tui.widgets.columns import Cell, Column, Row
from tui.widgets.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from assistant.incidents.fold import Incident
    from tui.app import GpudiagApp

LINKED, OFFERED, LIKE = Text("linked", "已关联"), Text("same matter?", "同一问题？"), Text("like it", "类似")


class Other(NamedTuple):
    """One other incident, in words."""

    number: int
    what: str  # linked, perhaps the same matter, or like it
    title: str
    why: str
    state: str  # how far it is, or how it ended
    offered: bool = False


def others(incident: Incident, known: Sequence[Incident], lang: str) -> list[Other]:
    """Those that belong to it, those that are offered to it, the earlier ones like it. Each once."""
    from assistant.incidents.links import offers, reason
    from assistant.incidents.similar import Like, how_it_ended, similar, traits, why
    from assistant.render.labels import listed
    from knowledge.text import clean

    out: dict[int, Other] = {}

    def add(other: Incident, what: Text, because: str, offered: bool = False) -> None:
        state = how_it_ended(Like(other, traits(other)), incident.opened_at, lang)
        said = Other(other.number, what.in_(lang), clean(other.title.in_(lang)), because, clean(state), offered)
        out.setdefault(other.number, said)

    by_number = {i.number: i for i in known}
    for n in incident.links:
        if (linked := by_number.get(n)) is not None:
            add(linked, LINKED, reason(incident, linked).in_(lang))
    for offer in offers(incident, known):
        add(offer.incident, OFFERED, listed((w.in_(lang) for w in offer.why), lang, ";"), True)
    for like in similar(incident, known):
        add(like.incident, LIKE, why(like, lang))
    return list(out.values())


def lines(incident: Incident, known: Sequence[Incident], lang: str) -> tuple[str, ...]:
    """For the head of an open incident: the earlier one most like it with its reason, and what may be the same matter."""
    from assistant.incidents.links import offers
    from assistant.incidents.similar import line, similar, why
    from assistant.render.labels import listed

    if not incident.is_open:
        return ()
    out = [listed((line(x, incident.opened_at, lang), why(x, lang)), lang, ";") for x in similar(incident, known, 1)]
    for offer in offers(incident, known)[:2]:
        because, n = listed((w.in_(lang) for w in offer.why), lang, ";"), offer.incident.number
        said = Text(
            f"#{n} may be the same matter ({because}): :link {n}", f"#{n} 可能是同一问题（{because}）：:link {n}"
        )
        out.append(said.in_(lang))
    return tuple(out)


class OthersDialog(ModalScreen["tuple[str, int] | None"]):
    """A table of them. Gives ("show", number) or ("link", number)."""

    app: GpudiagApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close"),
        Binding("L", "link", "Link"),
    ]
    DEFAULT_CSS = """
    OthersDialog { align: center middle; }
    OthersDialog > Vertical { width: 94%; max-width: 130; height: auto; max-height: 80%; background: $panel; padding: 1 2; }
    OthersDialog .title { text-style: bold; margin-bottom: 1; }
    OthersDialog Grid { background: $panel; height: auto; max-height: 16; }
    OthersDialog .keys { color: $faint; margin-top: 1; }
    """

    def __init__(self, incident: Incident, known: Sequence[Incident]) -> None:
        super().__init__()
        self._incident, self._known = incident, known

    def compose(self) -> ComposeResult:
        """The table and its keys."""
        t = self.app.t
        n = self._incident.number
        columns = (
            Column("number", t("no", "编号"), right=True),
            Column("what", t("how", "关系"), least=6),
            Column("why", t("why", "原因"), least=18, most=40),
            Column("title", t("what it was", "内容"), least=16, stretch=True, keep=1),
            Column("state", t("how it ended", "结果"), least=10, most=40, keep=2),
        )
        with Vertical():
            yield Static(t(f"Other incidents, beside #{n}", f"与 #{n} 有关的其他事件"), classes="title", markup=False)
            yield Grid(
                columns,
                empty=t(
                    "None is like it, and none is open that may be the same matter.",
                    "没有类似事件，也没有可能为同一问题的未关闭事件。",
                ),
            )
            yield Static(
                t("Enter: show it   L: link the two   Esc: close", "Enter：查看   L：关联   Esc：关闭"),
                classes="keys", markup=False,
            )  # fmt: skip

    def on_mount(self) -> None:
        """Its rows."""
        grid = self.query_one(Grid)
        found = others(self._incident, self._known, self.app.desk.lang)
        grid.load(Row(str(o.number), (
            Cell(str(o.number), sort=o.number), Cell(o.what, Tone.WARNING if o.offered else Tone.DIM), o.why, o.title,
            Cell(o.state, Tone.DIM),
        ), o) for o in found)  # fmt: skip
        grid.styles.height = max(2, min(16, len(found) + 1))
        grid.focus()

    def _number(self) -> int | None:
        row = self.query_one(Grid).row
        return row.data.number if row is not None else None

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        """Go there."""
        event.stop()
        if event.row is not None:
            self.dismiss(("show", event.row.data.number))

    def action_link(self) -> None:
        """Both are to say that they belong together."""
        if (number := self._number()) is not None:
            self.dismiss(("link", number))

    def action_close(self) -> None:
        """Nothing."""
        self.dismiss(None)
