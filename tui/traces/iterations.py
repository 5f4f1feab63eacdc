"""The steps: a plot, and their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text as Rich
from textual.widgets import Static

from knowledge.language import Text
from tui.tones import Tone
from tui.traces.tables import Table, times
from tui.widgets.columns import Cell, Column, Row
from tui.widgets.grid import Grid
from tui.widgets.steps import COLOURS, SHADES, Step, Steps

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tui.traces.opened import Opened

_PARTS = ("compute_ns", "exposed_comm_ns", "mem_ns", "idle_ns", "data_loader_ns")
_LOW = 22  # lines of the pane from which the plot has its whole height


class Iterations(Table):
    """Each step as a column of its parts, and a row."""

    KEY = "iterations"
    TITLE = Text("Iterations", "迭代")
    TIGHT = True
    DEFAULT_CSS = """
    Iterations #legend { height: 1; padding: 0 1; margin-bottom: 1; }
    Iterations.-low Steps { height: 7; }
    Iterations.-low #legend { margin-bottom: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._median = 0
        self._device = True

    def compose(self) -> ComposeResult:
        """Plot, legend, table."""
        yield Steps()
        yield Static(id="legend", markup=False)
        yield Grid(self._columns())

    def on_resize(self) -> None:
        """A low screen has a low plot."""
        self.set_class(self.size.height < _LOW, "-low")

    def _columns(self) -> Sequence[Column]:
        """Parts that no step has are left out."""
        t = self.t
        parts = {
            "compute_ns": Column("compute", t("computing", "计算"), right=True, keep=3),
            "exposed_comm_ns": Column("comm", t("exp. comm", "未掩盖通信"), right=True, keep=4),
            "mem_ns": Column("copies", t("copies", "拷贝"), right=True, keep=5),
            "idle_ns": Column("idle", t("idle", "空闲"), right=True, keep=1),
            "data_loader_ns": Column("data", t("data", "数据"), right=True, keep=2),
        }
        return (
            Column("step", "#", right=True), Column("length", t("length", "时长"), right=True), *(parts[k] for k in self._parts_shown),
            Column("odd", t("unusual", "异常"), least=20, stretch=True),
        )  # fmt: skip

    @property
    def _parts_shown(self) -> list[str]:
        return [k for k in _PARTS if any(i[k] for i in self._data)] if self._data else list(_PARTS)

    def show(self, opened: Opened, answer: Any) -> None:
        """The steps of the trace that is shown."""
        ranks = answer.get("ranks") or []
        rank = next((r for r in ranks if r["file"] == opened.file), ranks[0] if ranks else {})
        self._data = list(rank.get("items", ()))
        self._median, self._device = rank.get("median_ns") or 0, bool(rank.get("device", True))
        steps = [
            Step(f"{n}", str(i["number"]), i["span_ns"], self._parts(i), bool(i["outlier"]))
            for n, i in enumerate(self._data)
        ]
        self.query_one(Steps).display = bool(steps)
        self.query_one(Steps).load(steps, self._median, "")
        self._legend(bool(steps))
        none = (rank.get("notes") or [self.t("the trace holds no iterations", "轨迹中没有迭代")])[0]
        self.grid.empty = "" if answer.get("headline") else none
        self.grid.set_columns(self._columns())
        self.grid.load(self._rows(self._data))
        odd = next((n for n, i in enumerate(self._data) if i["outlier"]), None)
        if odd is not None:
            self.grid.select(str(odd))

    def clear(self) -> None:
        """Nothing."""
        super().clear()
        self.query_one(Steps).load((), 0, "")
        self.query_one("#legend", Static).update("")

    def _parts(self, i: Mapping[str, Any]) -> tuple[int, ...]:
        if not self._device:
            return ()
        copies = max(0, i["span_ns"] - i["idle_ns"] - i["compute_ns"] - i["exposed_comm_ns"])
        return (i["compute_ns"], i["exposed_comm_ns"], copies, i["idle_ns"])

    def _legend(self, shown: bool) -> None:
        from assistant.render.trace_units import duration
        from assistant.trace.words import word

        line = Rich(no_wrap=True)
        if shown:
            variables = self.app.theme_variables
            line.append(
                " " * 9 + self.t(f"median {duration(self._median)}", f"中位数 {duration(self._median)}"),
                style=variables["faint"],
            )
            sums = [sum(column) for column in zip(*(self._parts(i) for i in self._data), strict=True)]
            names = ("compute", "exposed_comm", "mem", "idle")
            for mark, colour, key, ns in zip(SHADES, COLOURS, names, sums, strict=False):
                if not ns:
                    continue
                line.append("   " + mark, style=variables[colour])
                line.append(" " + word(key, self.lang), style=variables["faint"])
        self.query_one("#legend", Static).update(line)

    def _rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        cells = [times(rows, k) for k in ("span_ns", *self._parts_shown)]
        return [
            Row(str(n), (Cell(str(i["number"]), sort=i["number"]), *(c[n] for c in cells),
                         Cell(f"▲ {self._why(i['outlier'])}", Tone.WARNING) if i["outlier"] else ""))
            for n, i in enumerate(rows)
        ]  # fmt: skip

    def _why(self, key: str) -> str:
        from assistant.trace.words import word

        return word(key, self.lang) if key in ("compute", "comm", "exposed_comm", "mem", "idle", "data_loader") else key

    def on_grid_moved(self, event: Grid.Moved) -> None:
        """The plot points at the same step."""
        self.query_one(Steps).point(event.row.key if event.row is not None else "")

    def on_steps_picked(self, event: Steps.Picked) -> None:
        """And the other way."""
        self.grid.select(event.key)
        self.grid.focus()

    def question(self) -> Text | None:
        """Why it is slow."""
        from assistant.trace import questions

        i = self._row()
        return questions.step(i["number"]) if i is not None else None

    def detail(self) -> tuple[str, str]:
        """Its name, and how far it is from the median."""
        from assistant.render.trace_units import share, signed

        if (i := self._row()) is None:
            return "", ""
        gap = i["span_ns"] - self._median
        said = self.t(f"{signed(gap)} against the median", f"与中位数相差 {signed(gap)}") if self._median else ""
        of = f" ({share(gap / self._median)})" if self._median and gap else ""
        extra = [f"{k} {i[k]:.4g}" for k in ("loss", "gradnorm", "batch", "tokens") if i.get(k) is not None]
        blind = (
            ""
            if self._device
            else self.t("no GPU activity: only host times are known", "没有 GPU 活动：仅知道主机时间")
        )
        return i["name"], " · ".join(x for x in (said + of, *extra, blind) if x)

    def hints(self) -> str:
        """Keys."""
        return self.t("d: against an ordinary step · s sort · e explain", "d：与普通迭代对比 · s 排序 · e 解释")

    def pair(self) -> tuple[int, int] | None:
        """The step under the cursor behind the most ordinary one; None when there are not two."""
        i = self._row()
        if i is None or len(self._data) < 2:
            return None
        others = [o for o in self._data if o["number"] != i["number"]]
        usual = min(others, key=lambda o: abs(o["span_ns"] - self._median))
        return usual["number"], i["number"]
