"""From results to stdout and the exit code: what all subcommands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from assistant.exits import Exit
from assistant.output import write
from assistant.render.labels import label
from assistant.render.sheet import Code, Heading, Items
from assistant.render.trace_page import Head, Judged, Page, Part, show
from assistant.trace.reading import Results, note_failures
from assistant.trace.words import word
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis, Question
    from knowledge.observation import Observation
    from probes.trace.reading.reader import Trace

T = TypeVar("T")
_NOTES = 10  # of hundreds of ranks each may have its own


def judge(
    args: argparse.Namespace,
    observations: Iterable[Observation],
    sources: Sequence[str],
    failed: Iterable[str] = (),
    question: Question | None = None,
) -> Diagnosis:
    """What the rules in force conclude from what traces told; `failed`: the files that told nothing."""
    from assistant.diagnosis import diagnose
    from rules.loader import load

    rules = args.settings.rules
    found = load(rules.packs, rules.site_file)
    return diagnose(observations, found, sources=sources, cut=[clean(f) for f in failed], question=question)


def judged(diagnosis: Diagnosis, lang: str, verbose: bool = False, now: int = 0) -> Judged:
    """The beginning of every page that judges."""
    from assistant.render.view import view
    from assistant.sources import tells

    return Judged(view(diagnosis, lang, tells, verbose, now), verbose)


def answer(
    args: argparse.Namespace,
    results: Results[T],
    data: Mapping[str, Any],
    parts: Callable[[], Sequence[Part]],
    code: int = Exit.OK,
    diagnosis: Diagnosis | None = None,
) -> int:
    """Writes the page of ``gpudiag/trace-<subcommand>/1``; returns the exit code.

    Of an answer that judges (`diagnosis`) state, headline, what to do and exit code are those of every other answer. Of a
    page that begins with a sentence the data hold it as ``headline``: every surface says the same.
    """
    output = args.settings.output
    text = output.format == "text"
    first = judged(diagnosis, output.lang, now=output.now) if diagnosis is not None else None

    def whole() -> list[Part]:
        return [*([first] if first else []), *parts(), *([] if text else unread(results, output.lang))]

    body = {**data, "failed": [{"file": clean(f), "why": clean(w)} for f, w in results.failed.items()]}
    if output.format == "json" and (said := headline(first or next(iter(parts()), None), diagnosis)):
        body["headline"] = said
    write(show(Page(f"gpudiag/trace-{args.action}/1", body, whole), output))
    if text:
        note_failures(results, quiet=False)
    return results.code(code if diagnosis is None else diagnosis.exit)


def headline(part: Part | None, diagnosis: Diagnosis | None) -> dict[str, str]:
    """The first line for programs; empty where a page has none."""
    if isinstance(part, Judged) and diagnosis is not None:
        usable = str(diagnosis.verdict.usable)
        return {"state": part.view.state, "label": part.view.state_label, "text": part.view.headline, "usable": usable}
    return {"state": part.state, "label": part.label, "text": part.text} if isinstance(part, Head) else {}


def findings(diagnosis: Diagnosis, lang: str) -> list[dict[str, Any]]:
    """Finding objects of ``gpudiag/diagnosis/1``, in the order of the answer."""
    from assistant.render.json_ import plain

    found: list[dict[str, Any]] = plain(diagnosis, lang)["findings"]
    place = {f.id: n for n, f in enumerate(diagnosis.leads)}
    return sorted(found, key=lambda f: place.get(f["id"], len(place)))


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
