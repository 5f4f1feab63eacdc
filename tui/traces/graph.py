"""The flame graph of a trace, with what its boxes stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text as Rich
from textual.widgets import Static

from knowledge.language import Text
from tui.traces.view import View
from tui.widgets.flame import WHOLE, Flame, washed

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from assistant.render.sheet import Sheet
    from assistant.trace.child import Told
    from assistant.trace.icicle import Icicle
    from tui.traces.opened import Opened

_LEGEND = (
    (("python", "module"), Text("Python", "Python")), (("frame",), Text("function", "函数")), (("mark",), Text("annotation", "标注")),
    (("op",), Text("operator", "算子")), (("runtime",), Text("runtime", "运行时")),
    (("kernel", "copy"), Text("kernel", "kernel")),
)  # fmt: skip
_KINDS = {
    "root": Text("thread", "线程"), "python": Text("Python", "Python"), "module": Text("module", "模块"), "mark": Text("annotation", "标注"),
    "op": Text("operator", "算子"), "runtime": Text("runtime call", "运行时调用"), "kernel": Text("kernel", "kernel"),
    "copy": Text("copy or set", "拷贝或置值"),
}  # fmt: skip


class Graph(View):
    """Boxes, and a legend."""

    KEY = "flame"
    TITLE = Text("Flame graph", "火焰图")
    DEFAULT_CSS = "Graph #legend { height: 1; padding: 0 1; margin-bottom: 1; }"

    def compose(self) -> ComposeResult:
        """The legend above, callers first."""
        yield Static(id="legend", markup=False)
        yield Flame()

    @classmethod
    def prepared(cls, told: Told) -> Icicle:
        """The tree."""
        from assistant.trace.icicle import icicle
        from knowledge.errors import InputError

        ranks = told.data().get("ranks") or [{}]
        try:
            return icicle(ranks[0])
        except ValueError as error:
            raise InputError(str(error)) from None

    @property
    def flame(self) -> Flame:
        """The graph."""
        return self.query_one(Flame)

    def clear(self) -> None:
        """Nothing."""
        self.flame.empty = ""
        self.flame.load(None)
        self.query_one("#legend", Static).update("")

    def show(self, opened: Opened, answer: Any) -> None:
        """This tree."""
        tree: Icicle = answer
        gpu = tree.time == "gpu"
        self.flame.empty = (
            self.t("it holds no GPU time; t shows that of the host", "没有 GPU 时间；按 t 显示主机时间") if gpu
            else self.t("it holds no call stacks: record with ProfilerActivity.CPU", "没有调用栈：请使用 ProfilerActivity.CPU 录制")
        )  # fmt: skip
        self.flame.load(tree if tree.total else None)
        self._legend(tree)

    def _legend(self, tree: Icicle) -> None:
        from assistant.render.trace_units import duration

        variables = self.app.theme_variables
        of = self.t("GPU time", "GPU 时间") if tree.time == "gpu" else self.t("host time", "主机时间")
        whole = (
            duration(tree.total)
            if tree.unit == "nanoseconds"
            else self.t(f"{tree.total:,} samples", f"{tree.total:,} 个样本")
        )
        line = Rich(f"{of} {whole}" if tree.unit == "nanoseconds" else whole, style=variables["faint"], no_wrap=True)
        there = {f.kind for f in tree.frames}
        for kinds, title in _LEGEND:
            if there.intersection(kinds):
                line.append(" ")
                line.append(f" {title.in_(self.lang)} ", style=washed(variables, kinds[0]))
        self.query_one("#legend", Static).update(line)

    def question(self) -> Text | None:
        """Of the frame."""
        from assistant.trace import questions

        tree, place = self.flame.icicle, self.flame.cursor
        if tree is None or place == WHOLE:
            return None
        return questions.frame(tree.frames[place].name, tree.frames[place].kind)

    def detail(self) -> tuple[str, str]:
        """Name, shares, own time, calls; and what a search found."""
        from assistant.render.trace_units import duration, number, share

        flame, tree = self.flame, self.flame.icicle
        if tree is None or flame.pointed == WHOLE or flame.pointed >= len(tree.frames):
            return "", ""
        f = tree.frames[flame.pointed]

        def amount(value: int) -> str:
            return duration(value) if tree.unit == "nanoseconds" else self.t(f"{value:,} samples", f"{value:,} 个样本")

        kind = _KINDS.get(f.kind)
        said = [kind.in_(self.lang)] if kind is not None else []
        own = self.t(f"self {amount(f.own)}", f"自身 {amount(f.own)}")
        said += [share(tree.share(flame.pointed)), amount(f.total), own]
        if f.calls:
            n = number(f.calls)
            said.append(self.t(f"{n} call{'' if f.calls == 1 else 's'}", f"{n} 次调用"))
        if f.parent != WHOLE and tree.frames[f.parent].total:
            of = share(f.total / tree.frames[f.parent].total)
            said.append(self.t(f"{of} of its caller", f"占调用者 {of}"))
        if flame.words:
            count, time = flame.found
            of = share(time / tree.total)
            said = [self.t(f"/{flame.words}: {count} found, {of}", f"/{flame.words}：{count} 个，{of}"), *said]
        return f.name, " · ".join(said)

    def find(self, words: str) -> None:
        """Set off what is called so."""
        self.flame.search(words)

    def copied(self) -> str:
        """The stack, as others draw it: callers first."""
        tree, place = self.flame.icicle, self.flame.cursor
        return ";".join(tree.frames[n].name for n in tree.way(place)) if tree is not None and place != WHOLE else ""

    def hints(self) -> str:
        """Keys."""
        return self.t("Enter zoom · ⌫ back · / search, n next · t GPU or host · e explain",
                      "Enter 放大 · ⌫ 返回 · / 搜索，n 下一个 · t GPU 或主机 · e 解释")  # fmt: skip

    def exported(self) -> Sheet | None:
        """All frames, the largest first."""
        from assistant.render.sheet import Paragraph, Sheet, Table
        from assistant.render.trace_units import duration, share

        tree = self.flame.icicle
        if tree is None:
            return Sheet(self.TITLE.in_(self.lang), (Paragraph(self.flame.empty),))
        order = sorted(range(len(tree.frames)), key=lambda n: -tree.frames[n].total)

        def amount(value: int) -> str:
            return duration(value) if tree.unit == "nanoseconds" else f"{value:,}"

        header = (self.t("share", "占比"), self.t("total", "合计"), self.t("self", "自身"), self.t("stack", "调用栈"))
        rows = tuple((share(tree.share(n)), amount(tree.frames[n].total), amount(tree.frames[n].own),
                      " > ".join(tree.frames[m].label for m in tree.way(n))) for n in order)  # fmt: skip
        plain = [
            {
                "path": [tree.frames[m].name for m in tree.way(n)],
                "total": tree.frames[n].total,
                "own": tree.frames[n].own,
            }
            for n in order
        ]
        return Sheet(
            self.TITLE.in_(self.lang), (Table(header, rows),), {"unit": tree.unit, "total": tree.total, "frames": plain}
        )
