"""The verdict of a job's traces as the first lines of a page: what bounds it, the evidence, the change to make."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from assistant.render.cells import cut, width
from assistant.render.labels import aside, colon, label, listed, many, subject_name
from assistant.render.sheet import Heading, Paragraph
from assistant.render.trace_page import Card, Head, Part
from assistant.render.trace_units import duration, share
from assistant.render.view import Builder
from assistant.trace.answer import no_gpu_text
from assistant.trace.words import rank_name, word
from knowledge.language import Text
from knowledge.observation import Scope
from knowledge.text import clean
from rules.engine import Grade

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.trace.looking import Job
    from rules.engine import Finding, Impact

_SHOWN = 5  # findings; the others are counted
_EVIDENCE = 4
_CLAUSE = re.compile(r"[.;:](?=\s)|[。；：]")
_LATE = "trace-straggler"  # of rules on the rank that the others wait for
_SHORT = 48  # columns of an advice that say enough
_CLASS = re.compile(r"([^:：.]{2,32})(?:: |：)(.+)", re.DOTALL)  # "GPU compute-bound: arithmetic limits"


def ranked(diagnosis: Diagnosis, ranks: int = 1) -> list[list[Finding]]:
    """The root findings, the same on several of the `ranks` together, each as its worst rank; those that explain most first.

    What one rank of many does counts as a part of the time of all of them: a straggler computes nearly all the time, and
    what bounds the job is that the others wait for it. What tells no time keeps its order behind them.
    """
    groups: dict[object, list[Finding]] = {}
    for f in diagnosis.roots:
        if f.grade is not Grade.RULED_OUT:
            groups.setdefault((f.rule.id, f.grade, f.subject.scope), []).append(f)
    found = [sorted(group, key=lambda f: -_share(f)) for group in groups.values()]
    return sorted(found, key=lambda group: -_weight(group, ranks))


def _weight(group: list[Finding], ranks: int) -> float:
    """The share of all ranks' time that a group of findings explains."""
    if group[0].subject.scope is not Scope.RANK or ranks < 2:
        return _share(group[0])
    worst: dict[object, float] = {}
    for f in group:
        worst[f.subject] = max(worst.get(f.subject, 0.0), _share(f))
    return sum(worst.values()) / ranks


def _share(f: Finding) -> float:
    return f.impact.share if f.impact is not None else 0.0


def plain_findings(diagnosis: Diagnosis, lang: str, ranks: int = 1) -> list[dict[str, Any]]:
    """Finding objects of ``gpudiag/diagnosis/1``: roots by the time they explain, then what they explain."""
    from assistant.render.json_ import plain

    found: list[dict[str, Any]] = plain(diagnosis, lang)["findings"]
    place = {f.id: n for n, f in enumerate(f for group in ranked(diagnosis, ranks) for f in group)}
    return sorted(found, key=lambda f: place.get(f["id"], len(place)))


def _bound(groups: list[list[Finding]]) -> list[Finding]:
    """What bounds the job: of all that is found what explains most, a mere candidate for tuning only when it is alone."""
    return next((g for g in groups if not g[0].rule.id.endswith("-candidate")), groups[0])


def head(found: Job, lang: str) -> Head:
    """What bounds the job, and what to change."""
    if found.empty:
        return Head("unknown", label("unknown", lang), clean(no_gpu_text(found.digests[0].file).in_(lang)))
    roots = ranked(found.diagnosis, len(found.digests))
    if not roots:
        state = "unknown" if found.diagnosis.undecided else "ok"
        text = Text("No rule finds a bottleneck in what these traces tell.", "现有轨迹信息中没有规则发现瓶颈。")
        return Head(state, label(state, lang), text.in_(lang))
    group = _bound(roots)
    f = group[0]
    title, state = clean(f.title.in_(lang)), label(str(f.severity), lang)
    if parted := _CLASS.fullmatch(title):  # the class is the word to begin with
        state, title = parted[1].upper(), parted[2]
    culprit = _culprit(found, group, lang) if len(found.digests) > 1 else ""
    who = f"{culprit}{colon(lang)}" if culprit else ""
    title = title if who or lang == "zh" else title[:1].upper() + title[1:]
    stop = "。" if lang == "zh" else ". "
    said = impact(f.impact, lang)
    told = f"{said if lang == 'zh' else f'It {said}'}{stop}" if said else ""
    return Head(str(f.severity), state, f"{who}{title}{stop}{told}{_first(clean(f.advice.text.in_(lang)))}")


def _first(advice: str) -> str:
    """The beginning of an advice, to the end of a clause: the whole of it stands below."""
    for found in _CLAUSE.finditer(advice):
        if width(advice[: found.start()]) >= _SHORT:
            return advice[: found.start()] + ("。" if found[0] in "。；：" else ".")
    return advice


def impact(i: Impact | None, lang: str) -> str:
    """``explains 58 % of the traced window, 0.54 s``; empty without an impact."""
    if i is None:
        return ""
    said = label("impact", lang).format(share=share(i.share).removesuffix(" %"), of=clean(i.of.in_(lang)))
    return said if i.seconds is None else listed([said, duration(i.seconds * 1e9)], lang)


def _culprit(found: Job, group: list[Finding], lang: str) -> str:
    """The ranks that a finding is about; of one about the job the rank that the others wait for, where it speaks of that."""
    if group[0].subject.scope is not Scope.JOB:
        return _who(group, lang)
    late = found.ranks.stragglers[:1] if found.ranks is not None else ()
    if not late or not group[0].rule.id.startswith(_LATE):
        return ""
    return rank_name(late[0].rank, late[0].file)


def _who(group: list[Finding], lang: str) -> str:
    """The rank, or how many."""
    about = list(dict.fromkeys(f.subject for f in group))
    return clean(subject_name(about[0], lang)) if len(about) == 1 else many(about, lang)


def verdicts(found: Job, lang: str) -> list[Part]:
    """All findings, those that explain most first: title, evidence, change."""
    builder = Builder(found.diagnosis, lang, lambda _: "", False)
    groups = ranked(found.diagnosis, len(found.digests))
    if not groups:
        return []
    first = groups[0] if found.empty else _bound(groups)
    shown = groups[:_SHOWN] if first in groups[:_SHOWN] else [first, *groups[: _SHOWN - 1]]
    several = len(found.digests) > 1
    out: list[Part] = [Heading(word("found", lang)), *(_card(builder, g, lang, several) for g in shown)]
    if len(groups) > len(shown):
        names = listed([clean(g[0].title.in_(lang)) for g in groups if g not in shown], lang, ";")
        out.append(Paragraph("  " + label("more_lines", lang).format(n=len(groups) - len(shown)) + colon(lang) + names))
    return out


def _card(builder: Builder, group: list[Finding], lang: str, several: bool) -> Card:
    """One finding, with the evidence of the rank where it explains most."""
    b, worst = builder._block(group), builder._block(group[:1])
    lines = [
        cut(f"{e.text}{aside(e.note, lang) if e.note else ''}" if e.text else e.raw, 400)
        for e in worst.evidence[:_EVIDENCE]
    ]
    if worst.explains:
        lines.append(label("explains", lang) + listed(worst.explains, lang, ";"))
    title = " · ".join([b.title, *([b.where] if several else []), b.grade])
    said = impact(group[0].impact, lang)
    if said and len(group) > 1:
        said += aside(clean(subject_name(group[0].subject, lang)), lang)
    return Card(b.severity, b.severity_label, title, said, b.action, tuple(lines))
