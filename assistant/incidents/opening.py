"""How an incident begins: from a diagnosis, with the findings that ask for one, or by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assistant.incidents import recorded
from assistant.incidents.events import Entry, Kind, known_severity, runbook, title_of
from knowledge.errors import UnknownNameError, UsageError
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.incidents.fold import Incident
    from assistant.store.incidents import Same
    from rules.engine import Finding

EVIDENCE = 12  # lines of a finding that are kept with it
LINE = 300  # characters of each


def by_hand(title: str, severity: str = "", runbooks: Sequence[str] = (), host: str = "") -> list[Entry]:
    """An incident that somebody tells of. UsageError for a title without words or a severity that is none."""
    words = title_of(title)
    about: dict[str, Any] = {"title": {"en": words, "zh": words}, "origin": "hand"}
    if severity:
        about["severity"] = known_severity(severity)
    if host:
        about["host"] = host
    return [Entry(Kind.OPENED, about), *(runbook(name) for name in runbooks)]


def from_diagnosis(diagnosis: Diagnosis, host: str = "", chosen: Collection[str] = (), source: str = "") -> list[Entry]:
    """The events that open an incident about what was found: root findings of error or worse, else warnings, with what they explain.

    `chosen`: ids of findings; then it is about those. UsageError when nothing asks for one, UnknownNameError for an id that is
    none. `source`: where it was read, for people.
    """
    roots = _asked(diagnosis, chosen) if chosen else _grave(diagnosis)
    if not roots:
        raise UsageError(
            "nothing was found that asks for an incident",
            hint="by hand: gpudiag incident open --title TEXT, in the terminal app :incident TITLE",
            zh="没有发现需要开立事件的问题",
            hint_zh="人工开立：gpudiag incident open --title 标题，终端应用中用 :incident 标题",
        )
    first, own = roots[0], {f.id for f in roots}
    explained = {key for f in roots for key in f.explains} - own
    symptoms = [f for f in diagnosis.findings if f.id in explained]
    verdict = diagnosis.verdict
    about = {
        "title": _title(roots), "severity": str(first.severity), "origin": "diagnosis", "host": first.subject.host or host,
        "as_of": diagnosis.as_of, "ruleset": diagnosis.ruleset, "source": clean(source)[:LINE],
        "verdict": {"state": str(verdict.state), "usable": str(verdict.usable), "en": verdict.text.en, "zh": verdict.text.zh},
        "gpus": recorded.gpus(diagnosis, host), "coverage": recorded.coverage(diagnosis),
    }  # fmt: skip
    found = (_finding(f, host, recorded.parts(f, diagnosis.facts)) for f in (*roots, *symptoms))
    return [Entry(Kind.OPENED, about), *found]


def same_as(entries: Sequence[Entry]) -> Same:
    """Which open incident is about one of the same root findings; what is new of the others is added to it."""
    told = [e for e in entries if e.kind == Kind.FINDING]
    roots = {_key(e) for e in told if e.data.get("role") == "root"}

    def same(incident: Incident) -> Sequence[Entry] | None:
        known = {(f.host, f.key) for f in incident.findings}
        if not roots & {(f.host, f.key) for f in incident.findings if f.role == "root"}:
            return None
        return [e for e in told if _key(e) not in known]

    return same


def _key(entry: Entry) -> tuple[str, str]:
    return str(entry.data.get("host", "")), str(entry.data.get("key", ""))


def _grave(diagnosis: Diagnosis) -> list[Finding]:
    """Errors and worse; only where there are none the warnings, of which a busy machine always has some."""
    from assistant.diagnosis import bad_roots
    from rules.model import Severity

    roots = bad_roots(diagnosis.findings)
    return [f for f in roots if f.severity.rank >= Severity.ERROR.rank] or roots


def _asked(diagnosis: Diagnosis, chosen: Collection[str]) -> list[Finding]:
    known = {f.id: f for f in diagnosis.findings}
    for name in chosen:
        if name not in known:
            raise UnknownNameError("finding", name, known, kind_zh="诊断结果")
    return [f for f in diagnosis.findings if f.id in chosen]


def _title(roots: Sequence[Finding]) -> dict[str, str]:
    """The first of them in one clause, with all that it is about."""
    from assistant.render.labels import headline

    first = roots[0]
    about = [f.subject for f in roots if f.rule.id == first.rule.id]
    return {lang: excerpt(headline(first.title, about, lang), LINE) for lang in ("en", "zh")}


def _finding(f: Finding, host: str, parts: Mapping[str, str]) -> Entry:
    """All of a finding that is worth keeping when the machine is well again and its log is gone."""
    from assistant.store.codec import subject_text

    first, last = f.times
    lines = [*f.events, *(o for o in f.because if o not in f.events)]
    data = {
        "key": f.id, "rule": f.rule.id, "revision": f.rule.revision, "xid": f.xid, "host": f.subject.host or host,
        "subject": subject_text(f.subject), "title": {"en": f.title.en, "zh": f.title.in_("zh")},
        "severity": str(f.severity), "grade": str(f.grade), "role": str(f.role), "explains": list(f.explains),
        "events": f.count, "first": first, "last": last,
        "clock": next((str(o.clock) for o in f.events if o.at is not None), "none"),
        "evidence": [{"line": excerpt(o.excerpt, LINE), "source": excerpt(str(o.source), LINE)} for o in lines[:EVIDENCE] if o.excerpt],
        "action": {"bucket": str(f.advice.bucket), "en": f.advice.text.en, "zh": f.advice.text.in_("zh"), "command": f.advice.command},
        "runbook": f.advice.runbook, "parts": dict(parts),
    }  # fmt: skip
    return Entry(Kind.FINDING, data)
