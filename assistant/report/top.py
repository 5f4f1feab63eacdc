"""What stands around the sections: the head with the verdict, the contents, the notes, the foot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import PurePath
from typing import Any

from assistant import __version__
from assistant.render import trace_units as units
from assistant.render.labels import colon, listed
from assistant.render.view import View
from assistant.report import verdict
from assistant.report.inputs import Flame, Inputs, name_of
from assistant.report.markup import bullets, section
from assistant.report.pack import Pack, timeline
from assistant.report.sections import RANKS, contents, window_words
from assistant.report.words import word
from knowledge.text import clean, excerpt

STEPS = 1_000  # iterations that the timeline can be sent to
_SECTION = re.compile(r'^<section id="([\w-]+)"[^>]*>\n<h2[^>]*>([^<]*)</h2>')


def title(inputs: Inputs) -> str:
    """As it was given, else the traces by name. One line, clean."""
    if inputs.title:
        return excerpt(inputs.title, 160)
    names = [excerpt(PurePath(f).name or f, 60) for f in inputs.files[:2]]
    more = f" +{len(inputs.files) - 2}" if len(inputs.files) > 2 else ""
    return f"{word('title', inputs.lang)}: {', '.join(names)}{more}" if names else word("title", inputs.lang)


def around(inputs: Inputs, seen: View, parts: Sequence[str]) -> str:
    """Head, contents, the sections as they are, foot."""
    lang = inputs.lang
    links = [(m[1], _text(m[2])) for p in parts if (m := _SECTION.match(p))]
    head = (
        f'<a class="skip" href="#findings">{escape(word("skip", lang))}</a>\n<header>\n<p class="kicker">{escape(inputs.kicker or word("title", lang))}</p>\n'
        f"<h1>{escape(_heading(inputs))}</h1>\n{verdict.headline(seen)}\n{_facts(inputs)}\n</header>\n"
        f'<nav aria-label="{escape(word("contents", lang))}"><ul>{"".join(contents(links))}</ul></nav>\n'
    )
    foot = " | ".join([*seen.footer, word("made", lang, version=__version__)])
    absent = f"<noscript><p>{escape(word('noscript', lang))}</p></noscript>\n"
    body = "\n".join(parts)
    return f'{head}<main>\n{absent}<p id="too-old" class="soft" hidden></p>\n{body}\n</main>\n<footer>{escape(foot)}</footer>'


def _text(escaped: str) -> str:
    from html import unescape

    return unescape(escaped)


def _heading(inputs: Inputs) -> str:
    if inputs.title:
        return excerpt(inputs.title, 160)
    names = [excerpt(PurePath(f).name or f, 80) for f in inputs.files] or [
        excerpt(PurePath(d.summary.file).name, 80) for d in inputs.digests
    ]
    return names[0] + (f" +{len(names) - 1}" if len(names) > 1 else "") if names else word("title", inputs.lang)


def _facts(inputs: Inputs) -> str:
    """GPU, ranks and window in one line each, as a description list."""
    lang = inputs.lang
    summaries = [d.summary for d in inputs.digests]
    if not summaries:
        return ""
    first = summaries[0]
    gpus = ", ".join(dict.fromkeys(excerpt(s.gpu, 60) for s in summaries if s.gpu))
    if first.devices > 1:
        gpus = f"{gpus}, {word('devices', lang, n=first.devices)}".lstrip(", ")
    world = next((s.world_size for s in summaries if s.world_size), None)
    known = sorted(s.rank for s in summaries if s.rank is not None)
    ranks = (
        f"{_ranges(known)} {word('of_world', lang, n=world) if world and world > 1 else ''}".strip() if known else ""
    )
    longest = max(s.span_ns for s in summaries)
    window = f"{units.duration(longest)}, {window_words(first.window, lang)}" if longest > 0 else ""
    rows = (("GPU", gpus), (word("rank", lang), ranks), (word("span", lang), window))
    return "<dl>" + "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in rows if v) + "</dl>"


def _ranges(numbers: Sequence[int]) -> str:
    """``0-3, 6``."""
    runs: list[list[int]] = []
    for n in dict.fromkeys(numbers):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in runs[:12]) + (", ..." if len(runs) > 12 else "")


def notes(inputs: Inputs, seen: View) -> str:
    """What the numbers mean, and what the traces could not tell."""
    lang = inputs.lang
    said = [word("definitions", lang)]
    said += _told(inputs)
    said += _once([*seen.notes, *seen.unseen])
    return section("notes", word("notes", lang), bullets(said))


def _told(inputs: Inputs) -> list[str]:
    """The notes on the traces; what is not so of all of them with the ranks where it is."""
    who: dict[str, list[str]] = {}
    for d in inputs.by_rank:
        for line in _once(clean(t.in_(inputs.lang)) for t in d.summary.notes):
            who.setdefault(line, []).append(name_of(d.summary, inputs.lang))
    lines = []
    for line, names in who.items():
        few = listed(names[:RANKS], inputs.lang) + (" ..." if len(names) > RANKS else "")
        lines.append(line if len(names) == len(inputs.digests) else f"{few}{colon(inputs.lang)}{line}")
    return lines[:60]


def _once(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(line for line in lines if line))[:60]


def over_time(pack: Pack, inputs: Inputs) -> dict[str, Any] | None:
    """The timeline for the script, with the iterations that it can go to: (number, start, end), ns since its start."""
    line = inputs.timeline
    if line is None or not line.lanes:
        return None
    found = inputs.digests[0].iterations if inputs.digests else None
    items = [
        i for i in (found.items if found is not None else ()) if line.start_ns <= i.start_ns < i.end_ns <= line.end_ns
    ]
    steps = [(i.number, i.start_ns - line.start_ns, i.end_ns - line.start_ns) for i in items[:STEPS]]
    return timeline(pack, line) | {"iterations": steps}


def flame(pack: Pack, number: int, f: Flame) -> dict[str, Any]:
    """A flame graph for the script: its columns and names."""
    for key, values in (("depth", f.depth), ("x0", f.x0), ("width", f.width), ("name", f.name), ("kind", f.kind)):
        pack.add(f"f{number}.{key}", values)
    return {"key": f"f{number}", "total": int(f.total_ns), "names": [excerpt(n, 200) for n in f.names]}
