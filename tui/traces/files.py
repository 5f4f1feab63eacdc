"""What can be opened: traces of late, those that are looked at, and captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.containers import VerticalScroll
from textual.widgets import Static

from assistant.render.cells import cut
from knowledge.language import Text
from tui.tones import Tone
from tui.traces.view import View
from tui.widgets.columns import Cell, Column, Row
from tui.widgets.grid import Grid

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from assistant.trace.child import Told
    from tui.traces.opened import Opened


class Choice(NamedTuple):
    """One thing that can be opened."""

    kind: str  # trace, input, capture
    files: tuple[str, ...]
    said: str = ""  # what it told last
    time: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the conversation is to read of it."""
        return (f"{self.files[0]}/capture.json",) if self.kind == "capture" else self.files


class Files(View):
    """A table of them."""

    KEY = "files"
    TITLE = Text("Open", "打开")

    def __init__(self) -> None:
        super().__init__()
        self._choices: list[Choice] = []

    def compose(self) -> ComposeResult:
        """The table."""
        t = self.t
        yield Grid((
            Column("kind", t("what", "类型")), Column("name", t("name", "名称"), least=16, most=60), Column("time", t("when", "时间"), keep=2),
            Column("said", t("what it told", "结论"), least=30, stretch=True),
        ))  # fmt: skip

    @property
    def grid(self) -> Grid:
        """The table."""
        return self.query_one(Grid)

    def load(self, choices: Sequence[Choice], empty: str) -> None:
        """What there is; `empty`: what to say when there is nothing."""
        self._choices = list(choices)
        kinds = {
            "trace": self.t("trace", "轨迹"), "input": self.t("looked at", "当前来源"), "capture": self.t("capture", "采集"),
        }  # fmt: skip
        self.grid.empty = empty
        self.grid.load(
            Row(f"{n} {c.files[0]}", (Cell(kinds[c.kind], Tone.DIM), _named(c), Cell(c.time, Tone.DIM), c.said))
            for n, c in enumerate(self._choices)
        )

    @property
    def chosen(self) -> Choice | None:
        """The one under the cursor."""
        row = self.grid.row
        return self._choices[int(row.key.partition(" ")[0])] if row is not None and self._choices else None

    def question(self) -> Text | None:
        """What it tells."""
        from assistant.trace import questions

        return questions.BOUND if self.chosen is not None else None

    def detail(self) -> tuple[str, str]:
        """Where it lies."""
        c = self.chosen
        return (", ".join(c.files), c.said) if c is not None else ("", "")

    def hints(self) -> str:
        """Keys."""
        return self.t(
            "Enter opens · d: against what is open · :trace FILE",
            "Enter 打开 · d：与当前轨迹对比 · :trace 文件",
        )


def _named(c: Choice) -> str:
    first = c.files[0].rstrip("/")
    parts = first.split("/")
    name = "/".join(parts[-2:]) if c.kind != "capture" else parts[-1]
    return name + (f" +{len(c.files) - 1}" if len(c.files) > 1 else "")


def choices(
    recent: Sequence[Mapping[str, Any]], inputs: Sequence[str], captures: Sequence[Mapping[str, Any]]
) -> list[Choice]:  # fmt: skip
    """What is looked at, then what was open of late, then the captures, the newest first."""
    out = [Choice("input", (name,)) for name in inputs]
    out += [
        Choice("trace", tuple(r["files"]), str(r.get("said", ""))) for r in recent if list(r["files"]) != list(inputs)
    ]
    out += [
        Choice("capture", (str(c["folder"]),), " ".join(str(c["verdict"]).split()), str(c["time"]))
        for c in sorted(captures, key=lambda c: str(c["id"]), reverse=True)
    ]
    return out


class Paged(View):
    """What a command says, as it says it."""

    KEY = "page"
    TITLE = Text("Report", "报告")
    FORMAT = "text"
    DEFAULT_CSS = "Paged VerticalScroll { padding: 0 1; scrollbar-size-vertical: 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._text, self._kind = "", ""
        self._body = Static(markup=False)

    def compose(self) -> ComposeResult:
        """Lines that scroll."""
        with VerticalScroll():
            yield self._body

    @classmethod
    def prepared(cls, told: Told) -> str:
        """The text."""
        return told.text

    def clear(self) -> None:
        """Nothing."""
        self._text = ""
        self._body.update("")

    def show(self, opened: Opened, answer: Any) -> None:
        """The lines."""
        self._text, self._kind = str(answer), opened.kind
        self._body.update(self._text)

    def question(self) -> Text | None:
        """Of the whole."""
        from assistant.trace import questions

        return questions.FRAGMENTS if self._kind == "snapshot" else questions.WORST

    def copied(self) -> str:
        """All of it."""
        return self._text

    def hints(self) -> str:
        """Keys."""
        return self.t("e explain · o other files", "e 解释 · o 其他文件")


def headline(said: Mapping[str, Any] | None) -> str:
    """A verdict in a few words, for the list of what was open."""
    return cut(f"{said['label']}  {said['text']}", 160) if said else ""
