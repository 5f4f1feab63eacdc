"""Kernels, operators and ranks as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from knowledge.language import Text
from tui.tones import Tone
from tui.traces.view import View
from tui.widgets.bars import BLANK, Bars, Line, Said
from tui.widgets.columns import Cell, Column, Row
from tui.widgets.grid import Grid

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from assistant.intent.query import Query
    from tui.traces.opened import Opened

MISSING = "–"


def times(rows: Sequence[Mapping[str, Any]], key: str, tone: Tone = Tone.PLAIN) -> list[Cell]:
    """A column of times in one unit; what the trace does not tell says so."""
    from assistant.render.trace_units import durations

    values = [r[key] for r in rows]
    return [
        Cell(said if v is not None else MISSING, tone if v is not None else Tone.UNKNOWN, v)
        for said, v in zip(durations(values), values, strict=True)
    ]


def part(value: float | None) -> Cell:
    """A share."""
    from assistant.render.trace_units import share

    return Cell(share(value), sort=value) if value is not None else Cell(MISSING, Tone.UNKNOWN)


def count(value: int | None) -> Cell:
    """A number of things."""
    from assistant.render.trace_units import number

    return Cell(number(value), sort=value) if value is not None else Cell(MISSING, Tone.UNKNOWN)


class Table(View):
    """A view that is one grid over rows of the answer."""

    LIST: ClassVar[str] = ""  # of a rank of the answer

    def __init__(self) -> None:
        super().__init__()
        self._data: list[Mapping[str, Any]] = []
        self._rest = ""

    def compose(self) -> ComposeResult:
        """The grid."""
        yield Grid(self._columns())

    def _columns(self) -> Sequence[Column]:
        return ()

    def _rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        return []

    @property
    def grid(self) -> Grid:
        """The table."""
        return self.query_one(Grid)

    def clear(self) -> None:
        """Nothing."""
        self._data = []
        self.grid.empty = ""
        self.grid.load(())

    def show(self, opened: Opened, answer: Any) -> None:
        """The rows of the trace that is shown."""
        ranks = answer.get("ranks") or []
        rank = next((r for r in ranks if r["file"] == opened.file), ranks[0] if ranks else {})
        self._data = list(rank.get(self.LIST, ()))
        more = rank.get("rows", 0) - len(self._data)
        self._rest = self.t(f"{more} more rows below these", f"另有 {more} 行") if more > 0 else ""
        notes = rank.get("notes") or [self.t("the trace holds none", "轨迹中没有此类数据")]
        self.grid.empty = "" if answer.get("headline") else notes[0]  # the sentence above says why
        self.grid.load(self._rows(self._data))

    def _row(self) -> Mapping[str, Any] | None:
        row = self.grid.row
        return self._data[int(row.key.partition(" ")[0])] if row is not None and self._data else None


class Kernels(Table):
    """Device time of kernels."""

    KEY, LIST = "kernels", "kernels"
    TITLE = Text("Kernels", "Kernel")

    def _columns(self) -> Sequence[Column]:
        t = self.t
        return (
            Column("share", t("share", "占比"), right=True), Column("total", t("total", "总计"), right=True),
            Column("calls", t("calls", "次数"), right=True), Column("mean", t("mean", "平均"), right=True, keep=2),
            Column("max", t("max", "最大"), right=True, keep=4), Column("min", t("min", "最小"), right=True, keep=6),
            Column("spread", t("std dev", "标准差"), right=True, keep=5), Column("class", t("class", "类别"), keep=7),
            Column("name", t("kernel", "kernel"), least=26, stretch=True),
        )  # fmt: skip

    def _rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        from assistant.trace.words import short

        cells = [times(rows, f"{k}_ns") for k in ("total", "mean", "max", "min", "stddev")]
        return [
            Row(f"{n} {k['name']}", (part(k["share"]), cells[0][n], count(k["count"]), cells[1][n], cells[2][n], cells[3][n], cells[4][n],
                                     Cell(k["kind"], Tone.DIM), short(k["name"])))
            for n, k in enumerate(rows)
        ]  # fmt: skip

    def question(self) -> Text | None:
        """By its name; where none was recorded by its class."""
        from assistant.trace import questions

        if (k := self._row()) is None:
            return None
        return questions.kernel(k["name"], k["kind"]) if k["name"] == "?" else questions.named_kernel(k["name"])

    def asked(self) -> Query | None:
        """The kernel under the cursor."""
        from assistant.trace import questions

        k = self._row()
        return questions.query_of("kernel", k["name"], self.lang) if k is not None and k["name"] != "?" else None

    def detail(self) -> tuple[str, str]:
        """Its whole name."""
        if (k := self._row()) is None:
            return "", self._rest
        cores = {
            "yes": self.t("on tensor cores, by its name", "使用张量核心（按名称）"),
            "no": self.t("not on tensor cores, by its name", "未使用张量核心（按名称）"),
        }
        return k["name"], " · ".join(x for x in (k["kind"], cores.get(k["tensor_core"], ""), self._rest) if x)

    def hints(self) -> str:
        """Keys."""
        return self.t(
            "Enter: where it is called · s sort · / filter · e explain", "Enter：调用位置 · s 排序 · / 筛选 · e 解释"
        )

    def name_shown(self) -> str:
        """The kernel under the cursor."""
        return str(k["name"]) if (k := self._row()) is not None else ""


class Operators(Table):
    """Host and device time of operators."""

    KEY, LIST = "operators", "ops"
    TITLE = Text("Operators", "算子")

    def _columns(self) -> Sequence[Column]:
        t = self.t
        return (
            Column("share", t("GPU share", "GPU 占比"), right=True), Column("own", t("GPU own", "GPU 自身"), right=True),
            Column("all", t("GPU all", "GPU 合计"), right=True, keep=4), Column("kernels", t("kernels", "kernel 数"), right=True, keep=5),
            Column("host", t("host own", "主机自身"), right=True, keep=1), Column("host_all", t("host all", "主机合计"), right=True, keep=3),
            Column("calls", t("calls", "次数"), right=True, keep=2), Column("name", t("operator", "算子"), least=16, stretch=True),
        )  # fmt: skip

    def _rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        cells = [times(rows, k) for k in ("gpu_ns", "gpu_total_ns", "cpu_self_ns", "cpu_ns")]
        return [
            Row(f"{n} {o['name']}", (part(o["share"]), cells[0][n], cells[1][n], count(o["kernels"]), cells[2][n], cells[3][n], count(o["count"]),
                                     o["name"]))
            for n, o in enumerate(rows)
        ]  # fmt: skip

    def question(self) -> Text | None:
        """By its name; where no device time is known by what the name holds."""
        from assistant.trace import questions

        if (o := self._row()) is None:
            return None
        return questions.frame(o["name"], "op") if o["gpu_ns"] is None else questions.named_operator(o["name"])

    def asked(self) -> Query | None:
        """The operator under the cursor."""
        from assistant.trace import questions

        o = self._row()
        return (
            questions.query_of("operator", o["name"], self.lang) if o is not None and o["gpu_ns"] is not None else None
        )

    def detail(self) -> tuple[str, str]:
        """Its whole name; why a column is empty."""
        if (o := self._row()) is None:
            return "", self._rest
        why = (
            self.t("no GPU activity was recorded: only host times are known", "未录制 GPU 活动：仅知道主机时间")
            if o["gpu_ns"] is None
            else ""
        )
        return o["name"], " · ".join(x for x in (why, self._rest) if x)

    def name_shown(self) -> str:
        """The operator under the cursor."""
        return str(o["name"]) if (o := self._row()) is not None else ""

    def hints(self) -> str:
        """Keys."""
        return self.t(
            "Enter: where it is called · s sort · / filter · e explain", "Enter：调用位置 · s 排序 · / 筛选 · e 解释"
        )


class Ranks(Table):
    """Who is late, and who waits for whom."""

    KEY = "ranks"
    TITLE = Text("Ranks", "Rank")
    DEFAULT_CSS = "Ranks Grid { max-height: 60%; } Ranks Bars { height: 1fr; margin-top: 1; }"

    def compose(self) -> ComposeResult:
        """The ranks, and what is said of them."""
        yield Grid(self._columns())
        yield Bars()

    def _columns(self) -> Sequence[Column]:
        t = self.t
        return (
            Column("rank", "rank"), Column("makes", t("makes wait", "使他人等待"), right=True), Column("waits", t("waits", "等待"), right=True),
            Column("compute", t("computing", "计算"), right=True), Column("comm", t("exp. comm", "未掩盖通信"), right=True, keep=2),
            Column("idle", t("idle", "空闲"), right=True, keep=1), Column("data", t("data", "数据"), right=True, keep=3),
            Column("span", t("span", "跨度"), right=True, keep=4), Column("file", t("file", "文件"), least=8, keep=5, stretch=True),
        )  # fmt: skip

    def show(self, opened: Opened, answer: Any) -> None:
        """The ranks, the late ones marked; below them why, the collectives, and who is missing."""
        from assistant.trace.words import rank_name

        self._data = list(answer.get("timings", ()))
        late = {s["file"] for s in answer.get("stragglers", ())}
        keys = ("makes_wait_ns", "waits_ns", "compute_ns", "exposed_comm_ns", "idle_ns", "data_loader_ns", "span_ns")
        cells = [times(self._data, key) for key in keys]
        self.grid.empty = self.t("no rank could be compared", "没有可比较的 rank")
        self.grid.load(
            Row(f"{n} {r['file']}", (Cell(("▲ " if r["file"] in late else "  ") + rank_name(r["rank"], r["file"]), sort=r["rank"]),
                                     *(c[n] for c in cells), r["file"]), tone=Tone.WARNING if r["file"] in late else Tone.PLAIN)
            for n, r in enumerate(self._data)
        )  # fmt: skip
        self.grid.styles.height = len(self._data) + 1
        first = next((r for r in self.grid.rows if r.tone is Tone.WARNING), None)
        if first is not None:
            self.grid.select(first.key)
        self.query_one(Bars).load(self._said(answer))

    def clear(self) -> None:
        """Nothing."""
        super().clear()
        self.query_one(Bars).load(())

    def _said(self, answer: Mapping[str, Any]) -> list[Line]:
        from assistant.render.trace_units import digits, duration, number
        from assistant.trace.words import rank_name

        out: list[Line] = [
            Said(f"{rank_name(s['rank'], s['file'])}: {s['why']}", Tone.WARNING, lead="  ")
            for s in answer.get("stragglers", ())[:3]
        ]
        if missing := answer.get("missing"):
            names = ", ".join(map(str, missing[:12])) + (" …" if len(missing) > 12 else "")
            out.append(Said(self.t(f"no trace of rank {names}", f"缺少 rank {names} 的轨迹"), Tone.UNKNOWN, lead="  "))
        failed = answer.get("failed") or {}
        pairs = failed.items() if isinstance(failed, dict) else [(f["file"], f["why"]) for f in failed]
        out += [Said(f"{file}: {why}", Tone.ERROR, lead="  ") for file, why in pairs]
        if found := answer.get("collectives"):
            out += [BLANK, Said(self.t("Collectives", "集合通信"), Tone.STRONG)]
            for c in found[:8]:
                rate = f", {digits(c['bus_gbs'])} GB/s" if c["bus_gbs"] is not None else ""
                out.append(Said(self.t(
                    f"{c['name']}: {number(c['count'])} calls, transfer {duration(c['transfer_ns'])}, waiting {duration(c['skew_ns'])}{rate}",
                    f"{c['name']}：{number(c['count'])} 次，传输 {duration(c['transfer_ns'])}，等待 {duration(c['skew_ns'])}{rate}"),
                    Tone.WARNING if c["slow_link"] else Tone.PLAIN, lead="  "))  # fmt: skip
        out += [Said(note, Tone.DIM, lead="  ") for note in answer.get("notes", ())]
        return out

    def question(self) -> Text | None:
        """Why it is late."""
        from assistant.trace import questions

        r = self._row()
        return None if r is None else questions.STRAGGLER if r["rank"] is None else questions.rank(r["rank"])

    def detail(self) -> tuple[str, str]:
        """Its file."""
        r = self._row()
        return (r["file"] if r is not None else ""), ""

    def hints(self) -> str:
        """Keys."""
        return self.t(
            "Enter: look at this rank · d: against the open one · e explain",
            "Enter：查看该 rank · d：与当前 rank 对比 · e 解释",
        )

    def chosen(self) -> Mapping[str, Any] | None:
        """The rank under the cursor."""
        return self._row()
