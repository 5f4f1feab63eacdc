"""What explains the difference of two traces, steps or ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from knowledge.language import Text
from tui.tones import Tone
from tui.traces.tables import Table
from tui.widgets.columns import Cell, Column, Row

if TYPE_CHECKING:
    from tui.traces.opened import Opened

_LEVELS = (("parts", Text("time", "时间")), ("kernels", Text("kernel", "kernel")),
           ("tree", Text("path", "路径")), ("host", Text("host path", "主机路径")))  # fmt: skip

_TOLD = 2  # frames of a call path
_PHASES = {
    "compute": "compute", "exposed communication": "exposed_comm", "exposed copies": "exposed_mem", "idle: data loader": "data_loader",
    "idle: synchronisation": "sync", "idle: host": "host", "idle: launch": "launch",
}  # fmt: skip


class Compare(Table):
    """One table: parts of the time first, then kernels, then call paths."""

    KEY = "compare"
    TITLE = Text("Difference", "对比")

    def _columns(self) -> Sequence[Column]:
        t = self.t
        return (
            Column("gap", t("difference", "差值"), right=True), Column("share", t("of the gap", "占差距"), right=True, keep=3),
            Column("before", t("before", "之前"), right=True, keep=4), Column("after", t("after", "之后"), right=True, keep=4),
            Column("calls", t("calls", "次数"), right=True, keep=6), Column("why", t("why", "原因"), keep=1),
            Column("level", t("of what", "层级"), keep=2), Column("name", t("name", "名称"), least=24, stretch=True),
        )  # fmt: skip

    def show(self, opened: Opened, answer: Any) -> None:
        """The lines of all levels."""
        self._data = [
            {**row, "level": level}
            for level, _ in _LEVELS
            for row in answer.get(level, ())
            if row["a_ns"] != row["b_ns"] or row["a_count"] != row["b_count"]
        ]
        self.grid.empty = answer.get("why") or self.t("there is no difference", "没有差异")
        self.grid.load(self._rows(self._data))

    def _rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        from assistant.render.trace_units import duration, share, signed

        names = {level: title.in_(self.lang) for level, title in _LEVELS}
        out = []
        for n, d in enumerate(rows):
            gap = d["b_ns"] - d["a_ns"]
            calls = (
                ""
                if not d["a_count"] and not d["b_count"]
                else f"{d['a_count']:,}"
                if d["a_count"] == d["b_count"]
                else f"{d['a_count']:,} > {d['b_count']:,}"
            )
            out.append(Row(f"{n} {d['path']}", (
                Cell(signed(gap), Tone.WARNING if gap > 0 else Tone.OK if gap < 0 else Tone.PLAIN, abs(gap)),
                Cell(share(d["share"]).replace("-", "−", 1), sort=d["share"]), Cell(duration(d["a_ns"]), sort=d["a_ns"]),
                Cell(duration(d["b_ns"]), sort=d["b_ns"]), Cell(calls, sort=d["b_count"]), self._why(d["why"]), Cell(names[d["level"]], Tone.DIM),
                self._called(d))))  # fmt: skip
        return out

    def _called(self, d: Mapping[str, Any]) -> str:
        from assistant.trace.words import short
        from probes.trace.trees.reasons import PARTS

        if d["path"] in PARTS:
            return PARTS[d["path"]].in_(self.lang)
        frames = [short(frame) for frame in str(d["path"]).split(" > ")]
        return " > ".join(frames if len(frames) <= _TOLD else ["…", *frames[-_TOLD:]])  # the end says most

    def _why(self, why: str) -> str:
        from probes.trace.trees.reasons import WHY, Why

        return WHY[Why(why)].in_(self.lang) if why and why in set(Why) else ""

    def question(self) -> Text | None:
        """Of the part, kernel or function."""
        from assistant.trace import questions

        if (d := self._row()) is None:
            return None
        if d["level"] == "parts":
            return questions.phase(_PHASES.get(d["path"], "idle"))
        last = str(d["path"]).rpartition(" > ")[2]
        return questions.frame(last, "kernel" if d["level"] == "kernels" or d["kind"] == "kernel" else "op")

    def detail(self) -> tuple[str, str]:
        """The whole path, and what took whose place."""
        if (d := self._row()) is None:
            return "", ""
        return " > ".join(d["frames"]) if d["frames"] else str(d["path"]), str(d["detail"] or "")

    def hints(self) -> str:
        """Keys."""
        return self.t("+ takes longer than before · s sort · e explain", "+ 表示变慢 · s 排序 · e 解释")
