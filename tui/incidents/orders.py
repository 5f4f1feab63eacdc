"""What stands behind ``:run``, ``:link`` and ``:report``: words as on the command line."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from knowledge.errors import UsageError

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.incidents.impact import Price

SHAPES = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json", ".txt": "text"}
_FLAGS = {"--yes-safe": "yes_safe", "--show-only": "show_only", "--take-over": "take_over"}
_NAMED = {"--step": "step", "--from": "begin", "--node": "node"}
RUN = "[STEP] [--from STEP] [--node NAME] [--take-over] [--show-only] [--yes-safe]"


class RunOrder(NamedTuple):
    """How an incident's runbook is to be walked: the options of ``gpudiag incident run``."""

    step: str = ""
    begin: str = ""
    node: str = ""
    yes_safe: bool = False
    show_only: bool = False
    take_over: bool = False


class ReportOrder(NamedTuple):
    """Where a report goes."""

    path: Path
    shape: str  # html, markdown, json, text
    price: Price | None


def words_of(line: str) -> list[str]:
    """UsageError for a quote that is not closed."""
    try:
        return shlex.split(line)
    except ValueError:
        raise UsageError(f"a quote is not closed: {line}", zh=f"引号未闭合：{line}") from None


def run_order(line: str) -> RunOrder:
    """What was typed behind ``:run``. UsageError for what is none of its words."""
    flags: dict[str, bool] = {}
    named: dict[str, str] = {}
    words = words_of(line)
    while words:
        word = words.pop(0)
        if word in _FLAGS:
            flags[_FLAGS[word]] = True
        elif word in _NAMED:
            if not words:
                raise UsageError(f"{word} wants a name", zh=f"{word} 后应有名称")
            named[_NAMED[word]] = words.pop(0)
        elif word.startswith("-") or "step" in named:
            raise UsageError(f":run does not know {word!r}", hint=f":run {RUN}", zh=f":run 不认识 {word!r}")
        else:
            named["step"] = word
    return RunOrder(
        named.get("step", ""), named.get("begin", ""), named.get("node", ""), flags.get("yes_safe", False),
        flags.get("show_only", False), flags.get("take_over", False),
    )  # fmt: skip


def link_order(line: str) -> tuple[int, bool]:
    """The other incident, and whether its findings are taken up. UsageError for anything else."""
    words = [w.lstrip("-#").lower() for w in words_of(line)]
    rest = [w for w in words if w not in ("merge", "with")]
    if len(rest) != 1 or not (rest[0].isascii() and rest[0].isdecimal()) or len(rest[0]) > 9:
        raise UsageError(
            ":link wants the number of the other incident",
            hint=":link 5, :link 5 --merge",
            zh=":link 需要另一事件的编号",
        )
    return int(rest[0]), "merge" in words


def report_order(line: str, settings: Settings) -> ReportOrder:
    """The file, its kind by its name, and the price of a GPU-hour. UsageError when one of them cannot be used."""
    from assistant.incidents.impact import price_of, set_price

    words = words_of(line)
    if len(words) not in (1, 3):
        raise UsageError(
            ":report wants a file, and may be told a price", hint=":report incident.html 2.10 EUR",
            zh=":report 需要文件名，可附单价",
        )  # fmt: skip
    path = Path(words[0]).expanduser()
    shape = SHAPES.get(path.suffix.lower(), "")
    if not shape:
        raise UsageError(
            f"{path.name}: of which kind?", hint="name it .html, .md, .json or .txt",
            zh=f"{path.name}：哪种格式？", hint_zh="请以 .html、.md、.json 或 .txt 结尾",
        )  # fmt: skip
    if path.exists():
        raise UsageError(
            f"{path} exists already", hint="name another file", zh=f"{path} 已存在", hint_zh="请换一个文件名"
        )
    price = price_of(words[1], words[2]) if len(words) == 3 else set_price(settings.gpu_hour_price)
    return ReportOrder(path, shape, price)
