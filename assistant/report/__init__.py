"""``gpudiag trace report``: one HTML file that holds everything, needs no network, prints, and can be read aloud."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.report.inputs import Digest, Flame, Inputs
    from probes.trace.breakdown.timeline import Timeline
    from probes.trace.breakdown.utilisation import HeatRow
    from probes.trace.model import Diff, KernelStat, OpStat, Ranks


def build(
    digests: Sequence[Digest],
    diagnosis: Diagnosis,
    *,
    ranks: Ranks | None = None,
    diff: Diff | None = None,
    trees: Sequence[Flame] = (),
    timeline: Timeline | None = None,
    heat: Sequence[HeatRow] = (),
    rank_heat: Sequence[HeatRow] = (),
    kernels: Sequence[KernelStat] = (),
    ops: Sequence[OpStat] = (),
    lang: str = "en",
    title: str = "",
    files: Sequence[str] = (),
    about: str = "",
    above: Sequence[str] = (),
    kicker: str = "",
) -> str:
    """The page as text.

    `trees`: laid out call trees; `heat`: streams of one trace, `rank_heat`: ranks
    (`probes.trace.breakdown.utilisation`); `kernels` and `ops`: all rows of the tables, else the summary's top ones;
    `files`: the traces as they were named, for the commands that the page shows; `about`: whose timeline, trees, kernels
    and ops these are (the first digest's); `above`: sections of HTML behind the findings; `kicker`: what kind of page it is. What is empty is left out. `assistant.report.parts` makes them of a trace.
    """
    from assistant.report.inputs import Inputs

    return _page(
        Inputs(
            digests,
            diagnosis,
            ranks,
            diff,
            trees,
            timeline,
            heat,
            rank_heat,
            kernels,
            ops,
            lang,
            title,
            files,
            above,
            kicker,
            about,
        )
    )


def write(path: str, digests: Sequence[Digest], diagnosis: Diagnosis, **parts: Any) -> int:
    """`build` into the file at `path`, at once or not at all; how many bytes it has. OSError when it cannot be written."""
    from knowledge.whole import replace_file

    content = build(digests, diagnosis, **parts).encode("utf-8")
    replace_file(Path(path), content)
    return len(content)


def _page(inputs: Inputs) -> str:
    from assistant.report import breakdown, jobs, page, sections, top, work
    from assistant.report import verdict as verdict_
    from assistant.report.pack import Pack
    from assistant.report.words import page_words

    seen = verdict_.seen(inputs)
    made: list[tuple[str, sections.Charts]] = [
        (verdict_.findings(inputs, seen), {}), *((body, {}) for body in inputs.above), (breakdown.breakdown(inputs), {}), sections.iterations(inputs),
        (sections.timeline(inputs), {}), sections.heat(inputs), (work.kernels(inputs), {}), (work.operators(inputs), {}),
        (jobs.flames(inputs), {}), work.roofline(inputs), work.memory(inputs), (jobs.ranks(inputs), {}),
        jobs.difference(inputs), (top.notes(inputs, seen), {}),
    ]  # fmt: skip
    parts = [body for body, _ in made if body]
    pack = Pack()
    values = {
        "lang": inputs.lang,
        "words": page_words(inputs.lang),
        "charts": {name: spec for _, charts in made for name, spec in charts.items()},
        "timeline": top.over_time(pack, inputs),
        "flames": [top.flame(pack, n, f) for n, f in enumerate(inputs.flames) if len(f.depth) and f.total_ns > 0],
    }
    return page.document(top.title(inputs), top.around(inputs, seen, parts), values, pack, inputs.lang)
