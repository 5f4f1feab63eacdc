"""From results to stdout and the exit code: what all subcommands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from assistant.exits import Exit
from assistant.output import write
from assistant.render.labels import label
from assistant.render.sheet import Code, Heading, Items
from assistant.render.trace_page import Head, Page, Part, show
from assistant.trace.reading import Results, note_failures
from assistant.trace.words import word
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    from probes.trace.reading.reader import Trace

T = TypeVar("T")
_NOTES = 10  # of hundreds of ranks each may have its own


def answer(
    args: argparse.Namespace,
    results: Results[T],
    data: Mapping[str, Any],
    parts: Callable[[], Sequence[Part]],
    code: int = Exit.OK,
) -> int:
    """Writes the page of ``gpudiag/trace-<subcommand>/1``; returns the exit code.

    Of a page that begins with a sentence the data hold it as ``headline``: every surface says the same.
    """
    lang = args.settings.output.lang
    text = args.settings.output.format == "text"

    def whole() -> list[Part]:
        return [*parts(), *([] if text else unread(results, lang))]

    body = {**data, "failed": [{"file": clean(f), "why": clean(w)} for f, w in results.failed.items()]}
    if args.settings.output.format == "json" and (said := _head(parts())) is not None:
        body["headline"] = {"state": said.state, "label": said.label, "text": said.text}
    write(show(Page(f"gpudiag/trace-{args.action}/1", body, whole), args.settings.output))
    if text:
        note_failures(results, quiet=False)
    return results.code(code)


def _head(parts: Sequence[Part]) -> Head | None:
    first = next(iter(parts), None)
    return first if isinstance(first, Head) else None


class Counted(Protocol):
    """The statistics of one trace."""

    @property
    def stats(self) -> Sequence[object]:
        """A row for each key; none when the trace holds nothing of the kind."""


C = TypeVar("C", bound=Counted)


def counted(
    args: argparse.Namespace, results: Results[C], plain: Callable[[C, str], Any], parts: Callable[[C], Iterable[Part]]
) -> int:
    """The page of statistics ``--by`` something, rank after rank; undecided when no trace holds any."""
    data = {"by": args.by, "ranks": [plain(r, args.settings.output.lang) for r in results.found]}
    code = Exit.OK if any(r.stats for r in results.found) else Exit.UNDECIDED
    return answer(args, results, data, lambda: [p for r in results.found for p in parts(r)], code)


def unread(results: Results[T], lang: str) -> list[Part]:
    """The files that gave nothing."""
    if not results.failed:
        return []
    return [
        Heading(word("not_read", lang)),
        Items(tuple(clean(w if f in w else f"{f}: {w}") for f, w in results.failed.items())),
    ]


def notes(texts: Sequence[Text], lang: str) -> list[Part]:
    """What a reader of the numbers must know."""
    said = tuple(dict.fromkeys(clean(t.in_(lang)) for t in texts if t))
    more = (label("more_lines", lang).format(n=len(said) - _NOTES),) if len(said) > _NOTES else ()
    return [Heading(word("notes", lang)), Items((*said[:_NOTES], *more))] if said else []


def commands(lines: Sequence[str], lang: str) -> list[Part]:
    """What to run next."""
    return [Heading(word("next", lang)), Code(tuple(lines))] if lines else []


def unknown(text: Text, lang: str) -> Head:
    """The first line where the question stays open."""
    return Head("unknown", label("unknown", lang), clean(text.in_(lang)))


def no_gpu(trace: Trace) -> Text:
    """Why nothing can be said of the GPU: the trace holds none of its events."""
    from probes.trace.columns import Group

    return no_gpu_text(
        trace.path, bool(len(trace.tables.get(Group.OP, ())) or len(trace.tables.get(Group.RUNTIME, ())))
    )


def no_gpu_text(file: str, host: bool = False) -> Text:
    """As `no_gpu`, of a file."""
    if host:
        return Text(f"{file} holds host events and no GPU activity: record with ProfilerActivity.CUDA, while the GPU works.",
                    f"{file} 只有主机事件，没有 GPU 活动：请在 GPU 工作期间使用 ProfilerActivity.CUDA 录制。")  # fmt: skip
    return Text(f"{file} holds no GPU activity: record with ProfilerActivity.CUDA, while the GPU works.",
                f"{file} 没有 GPU 活动：请在 GPU 工作期间使用 ProfilerActivity.CUDA 录制。")  # fmt: skip


def quoted(file: str) -> str:
    """A file's name as a shell takes it."""
    import shlex

    return shlex.quote(clean(file))
