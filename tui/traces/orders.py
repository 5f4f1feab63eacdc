"""The ``:`` commands of the trace screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from knowledge.errors import UsageError
from knowledge.language import Text
from tui.commands import Command, files

if TYPE_CHECKING:
    from tui.traces.pane import TracesPane


def orders(pane: TracesPane) -> tuple[Command, ...]:
    """As they hold for what is open."""

    def views(_: str) -> Iterable[str]:
        return ("files", *pane.opened.views)

    return (
        Command("trace", "FILE...", Text("open traces: files, or a folder with those of all ranks", "打开轨迹：文件，或包含所有 rank 的文件夹"),
                lambda line: pane.open(_names(line)), files),
        Command("diff", "FILE FILE", Text("what explains the difference of two traces", "两个轨迹差异的原因"),
                lambda line: _diff(pane, line), files),
        Command("steps", "A B", Text("what explains the difference of two iterations", "两个迭代差异的原因"),
                lambda line: _steps(pane, line)),
        Command("rank", "N", Text("look at the trace of this rank", "查看该 rank 的轨迹"), lambda line: _rank(pane, line),
                lambda _: [str(r) for r, _ in pane.reading.ranks]),
        Command("view", "NAME", Text("another view of the traces", "切换轨迹视图"), pane.go, views),
        Command("capture", "ID", Text("look at a capture of a running job", "查看对运行中作业的采集"), pane.open_capture,
                lambda _: pane.captures),
    )  # fmt: skip


def _names(line: str) -> tuple[str, ...]:
    """The files of a line. UsageError for a quote that does not end."""
    import shlex
    from pathlib import Path

    try:
        return tuple(str(Path(word).expanduser()) for word in shlex.split(line))
    except ValueError as error:
        raise UsageError(f"{line}: {error}", zh=f"引号未闭合：{line}") from None


def _diff(pane: TracesPane, line: str) -> None:
    names = _names(line)
    if len(names) != 2:
        raise UsageError(":diff wants two files", hint=":diff before.json after.json", zh=":diff 需要两个文件")
    pane.difference(("--", *names), names)


def _steps(pane: TracesPane, line: str) -> None:
    words = line.replace(":", " ").split()
    if len(words) != 2 or not all(w.isdigit() for w in words):
        raise UsageError(":steps wants two numbers of iterations", hint=":steps 2 6", zh=":steps 需要两个迭代编号")
    if not pane.opened.file:
        raise UsageError("no trace is open", hint=":trace FILE", zh="尚未打开跟踪文件")
    pane.difference(("--iterations", ":".join(words), "--", pane.opened.file))


def _rank(pane: TracesPane, line: str) -> None:
    known = pane.reading.ranks
    found = next(((r, file) for r, file in known if str(r) == line.strip()), None)
    if found is None:
        raise UsageError(
            f"there is no rank {line.strip()}",
            hint=", ".join(str(r) for r, _ in known[:16]),
            zh=f"没有 rank {line.strip()}",
        )
    pane.show_rank(*found)
