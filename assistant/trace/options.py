"""The options of ``gpudiag trace``: what each subcommand takes, and how values are written."""

from __future__ import annotations

import argparse
import re
from typing import NamedTuple

from assistant.render.cells import terminal_width

_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(i?)(b?)", re.IGNORECASE)
_TIME = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*(ns|us|µs|ms|s)")
_COUNT = re.compile(r"(\d{1,12}(?:\.\d{1,9})?(?:e\d{1,2})?)\s*([kmbt]?)", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "b": 3, "t": 4}
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}
LEAST = 16 << 20  # bytes of columns under which nothing useful can be kept
TOP = 10
ROWS = 20
BY = ("name", "shape", "module", "python", "stream", "class")


class Pair(NamedTuple):
    """``A:B``: two iterations, or two ranks."""

    a: int
    b: int


def size(text: str) -> int:
    """``1GiB``, ``500MB``, ``2g``: bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    base = 1000 if found[4] and not found[3] else 1024  # 500MB is decimal; 512M and 1GiB are not
    value = float(found[1]) * base ** _POWER[found[2].lower()]
    if not LEAST <= value <= 1 << 50:
        raise ValueError(text)
    return int(value)


def count(text: str) -> int:
    """A number of rows, processes or columns."""
    value = int(text)
    if not 1 <= value <= 100_000:
        raise ValueError(text)
    return value


def rank(text: str) -> int:
    """The number of a rank."""
    value = int(text)
    if not 0 <= value < 1 << 31:
        raise ValueError(text)
    return value


def amount(text: str) -> float:
    """``7e9``, ``7B``, ``350M``, ``12500``: a positive number of parameters or tokens."""
    found = _COUNT.fullmatch(text.strip())
    value = float(found[1]) * 1000 ** _POWER[found[2].lower()] if found else 0.0
    if value <= 0:
        raise ValueError(text)
    return value


def pair(text: str) -> Pair:
    """``3:7``."""
    a, mark, b = text.partition(":")
    if not mark:
        raise ValueError(text)
    return Pair(rank(a), rank(b))


def moment(text: str) -> int:
    """``120ms``, ``1.5s``, ``300us``: ns."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return round(float(found[1]) * _UNITS[found[2]])


def fraction(text: str) -> float:
    """``0.01`` or ``1%``."""
    value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 <= value < 1:
        raise ValueError(text)
    return value


def seconds(text: str) -> float:
    """A deadline."""
    value = float(text)
    if not 0.1 <= value <= 86_400:
        raise ValueError(text)
    return value


# argparse names the type in its complaint.
size.__name__ = "size (such as 1GiB or 500MB, at least 16MiB)"
count.__name__ = "number (1 or more)"
rank.__name__ = "rank (0 or more)"
amount.__name__ = "number (such as 7e9, 7B or 12500)"
pair.__name__ = "pair (such as 3:7)"
moment.__name__ = "time (such as 120ms or 1.5s)"
fraction.__name__ = "share (such as 0.01 or 1%)"
seconds.__name__ = "number of seconds (0.1 to 86400)"


class _Examples(argparse.RawDescriptionHelpFormatter):
    """Help whose examples stay as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=terminal_width())


def child(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, *examples: str
) -> argparse.ArgumentParser:
    """One subcommand, with what all of them take."""
    lines = "\n".join(["examples:", *(f"  gpudiag trace {name} {e}".rstrip() for e in examples)])
    parser = actions.add_parser(name, help=text, description=text, epilog=lines, formatter_class=_Examples)
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        metavar="FILE",
        help="traces (.json, .json.gz), exports of Nsight Systems, or folders of them; - is standard input",
    )
    add(
        "--memory",
        type=size,
        default=1 << 30,
        metavar="SIZE",
        help="memory for the events of a trace; what is more is kept on disk (default: 1GiB)",
    )
    return parser


def window(parser: argparse.ArgumentParser) -> None:
    """Which part of a trace counts."""
    parser.add_argument(
        "--window",
        choices=("trace", "iterations", "auto"),
        default="trace",
        help="the whole trace, the union of its whole iterations, or auto: that union where it holds three (default: trace)",
    )
    marker(parser)


def marker(parser: argparse.ArgumentParser) -> None:
    """What an iteration is."""
    parser.add_argument(
        "--marker",
        default="",
        metavar="PATTERN",
        help="regular expression of the annotations that are iterations (default: the best known kind that is there)",
    )


def one_rank(parser: argparse.ArgumentParser) -> None:
    """Only one of many."""
    parser.add_argument("--rank", type=rank, metavar="N", help="only the trace of this rank")


def jobs(parser: argparse.ArgumentParser) -> None:
    """How many traces at once."""
    parser.add_argument(
        "--jobs",
        type=count,
        metavar="N",
        help="traces read at the same time, each in a process of its own (default: the cores)",
    )


def top(parser: argparse.ArgumentParser, rows: int | None) -> None:
    """How many rows."""
    usual = f" (default: {rows})" if rows else ""
    parser.add_argument("--top", type=count, default=rows, metavar="N", help=f"at most so many rows{usual}")


def model(parser: argparse.ArgumentParser) -> None:
    """What the trace cannot tell of the GPU and the model."""
    add = parser.add_argument
    add("--gpu", default="", metavar="MODEL", help="GPU model, such as H100 SXM, when the trace does not name it")
    add("--parameters", type=amount, metavar="N", help="parameters of the model, such as 7e9, for the MFU")
    add("--tokens-per-second", type=amount, metavar="X", help="tokens of all ranks per second, for the MFU")


def target(parser: argparse.ArgumentParser, what: str) -> None:
    """A file instead of stdout."""
    parser.add_argument("-o", "--output", default="", metavar="FILE", help=what)
