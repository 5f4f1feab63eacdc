"""A post-mortem as sections of text, Markdown and HTML, and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from assistant.incidents import pages, report_deeds, report_impact, words
from assistant.incidents.events import Kind, Status
from assistant.incidents.fold import Incident, Linked
from assistant.incidents.report import Cause, Report, Told, evidence, open_points, timeline
from assistant.render.labels import aside, colon, label, listed
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part, Sheet, Table
from assistant.render.times import iso
from knowledge.language import Text
from knowledge.text import clean, excerpt, opened


class Section(NamedTuple):
    """A heading and what stands below it."""

    name: str
    title: str
    parts: tuple[Part, ...]


def _t(lang: str) -> Callable[[str, str], str]:
    return lambda en, zh: Text(en, zh).in_(lang)


def state_word(r: Report, lang: str) -> str:
    """``CLOSED``: how far it is, as the first line begins."""
    return words.STATUS[r.incident.status].in_(lang).upper()


def verdict(r: Report, lang: str) -> str:
    """What it was, how long it went on, what it cost and how it ended, in one line."""
    i, t = r.incident, _t(lang)
    out = [excerpt(i.title.in_(lang)) or t("an incident without a title", "无标题事件")]
    out += [_lasted(r, lang)] if i.closed_at is not None else []
    if said := report_impact.headline(r, lang):
        out.append(said)
    if i.ended and not i.is_open:
        ended = excerpt(i.ended, 200)
        out.append(opened(ended))
    return t(". ", "。").join(x.rstrip(".。") for x in out if x) + t(".", "。")


def _lasted(r: Report, lang: str) -> str:
    """From the first measured event to the end; from the opening where nothing was measured. Empty when the clocks disagree."""
    i = r.incident
    starts = [x.since for x in (*r.impact.named.rows, *r.impact.nodes.rows) if x.measured]
    gone = (i.closed_at or 0) - min(starts, default=i.opened_at)
    if gone < 0:
        return ""
    en, zh = words.lasting(gone, "en"), words.lasting(gone, "zh")
    said = Text(f"Over {en} after its first event", f"首个事件后 {zh}结束")
    return (said if starts else Text(f"Closed {en} after it was opened", f"开立后 {zh}关闭")).in_(lang)


def sections(r: Report, lang: str) -> tuple[Section, ...]:
    """All of it, in the order in which it is read."""
    t = _t(lang)
    named: Sequence[tuple[str, str, Sequence[Part]]] = (
        ("summary", t("Summary", "摘要"), _summary(r, lang)),
        ("cause", t("Cause", "原因"), _cause(r, lang)),
        ("impact", t("Impact", "影响"), report_impact.parts(r, lang)),
        ("timeline", t("Timeline", "经过"), _timeline(timeline(r.incident, lang), lang)),
        ("evidence", t("Evidence", "证据"), _evidence(r, lang)),
        ("actions", t("Actions taken", "已采取的措施"), report_deeds.actions(r, lang)),
        ("worked", t("What worked", "哪些有效"), report_deeds.worked(r, lang)),
        ("unseen", t("What was not seen", "未能看到的内容"), report_deeds.unseen(r, lang)),
        ("open", t("Open points", "遗留问题"), report_deeds.left_open(r, lang)),
        ("similar", t("Similar earlier incidents", "以往类似事件"), report_deeds.similar(r, lang)),
    )
    return tuple(Section(name, title, tuple(parts)) for name, title, parts in named)


def sheet(r: Report, lang: str) -> Sheet:
    """For text, Markdown and JSON."""
    parts: list[Part] = []
    for s in sections(r, lang):
        parts += [Heading(s.title), *s.parts]
    title = f"{state_word(r, lang)}{colon(lang)}{verdict(r, lang)}"
    return Sheet(title, tuple(parts), {"report": plain(r, lang)})


# --- sections -----------------------------------------------------------------------------


def _summary(r: Report, lang: str) -> list[Part]:
    i, t = r.incident, _t(lang)
    said = [e.data["verdict"] for e in i.events if e.kind == Kind.OPENED and isinstance(e.data.get("verdict"), dict)]
    then = next((v for x in said if isinstance(v := x.get(lang) or x.get("en"), str)), "")
    source = next((x for e in i.events if e.kind == Kind.OPENED and (x := e.text("source"))), "")
    links = listed((f"#{n}" for n in i.links), lang)
    return [Fields((
        (t("incident", "事件"), f"#{i.number}"),
        (t("severity", "级别"), words.grade(i.severity, lang)),
        (t("owner", "负责人"), clean(i.owner) or "–"),
        (t("nodes", "节点"), clean(listed(sorted(i.hosts), lang)) or t("not recorded", "未记录")),
        (t("opened", "开立"), f"{words.moment(i.opened_at)} {clean(i.events[0].who) if i.events else ''}".strip()),
        (t("closed", "关闭"), words.moment(i.closed_at) or t("not yet", "尚未")),
        (t("how it ended", "结果"), clean(i.ended)),
        (t("verdict then", "当时的结论"), excerpt(then)),
        (t("read from", "来源"), excerpt(source)),
        (t("belongs to it", "关联事件"), links),
        (t("people", "参与者"), clean(listed(sorted(i.people), lang))),
    ))]  # fmt: skip


def _cause(r: Report, lang: str) -> list[Part]:
    t = _t(lang)
    if not r.causes and not r.loose:
        return [
            Paragraph(
                t("No cause was recorded: there is no finding in the events.", "未记录原因：事件中没有任何发现。")
            )
        ]
    several = len(r.incident.hosts) > 1
    out: list[Part] = []
    for c in r.causes:
        out.append(Paragraph(cause_line(c, several, lang)))
        if c.chain:
            out.append(Items(tuple(chain_line(depth, plain_words(f, several, lang)) for depth, f in c.chain)))
    if r.loose:
        out.append(Paragraph(t("Symptoms that no recorded cause explains:", "没有已记录原因能解释的症状：")))
        out.append(Items(tuple(plain_words(f, several, lang) for f in r.loose)))
    return out


def cause_line(c: Cause, several: bool, lang: str) -> str:
    """A root finding with severity and grade."""
    f = c.finding
    said = f"{words.grade(f.severity, lang)}{colon(lang)}{plain_words(f, several, lang)}"
    return said + (aside(grade, lang) if (grade := grade_words(f, lang)) else "")


def grade_words(f: Linked, lang: str) -> str:
    """How sure it is; empty when that was not recorded."""
    return label(f.grade, lang) if f.grade in ("confirmed", "probable", "possible") else clean(f.grade)


def plain_words(f: Linked, several: bool, lang: str) -> str:
    """A finding in one clause; where it stands says whether it is a symptom. With the node where there are `several`."""
    return words.finding_words(replace(f, role="root"), lang, named=several)


def chain_line(depth: int, said: str) -> str:
    """A symptom behind so many links."""
    return "→ " * depth + said


def _timeline(told: Sequence[Told], lang: str) -> list[Part]:
    t = _t(lang)
    if not told:
        return [Paragraph(t("Nothing was written.", "没有任何记录。"))]
    head = (
        t("written (UTC)", "记录时间（UTC）"),
        t("measured", "实测时间"),
        t("who", "何人"),
        t("through", "途径"),
        t("what", "内容"),
    )
    rows = tuple(
        (
            words.moment(x.events[0].at),
            x.measured or "–",
            clean(x.events[0].who) or "–",
            clean(x.events[0].surface) or "–",
            x.text,
        )
        for x in told
    )
    return [Table(head, rows)]


def timeline_sheet(incident: Incident, lang: str) -> Sheet:
    """The timeline alone: `incident show --timeline`."""
    told = timeline(incident, lang)
    return Sheet(pages.heading(incident, lang), tuple(_timeline(told, lang)), {"timeline": [_told(x) for x in told]})


def every_finding(r: Report) -> Sequence[Linked]:
    """Causes, what they explain, then the rest; what two causes explain once."""
    every = (*(c.finding for c in r.causes), *(f for c in r.causes for _, f in c.chain), *r.loose)
    return tuple({(f.host, f.key): f for f in every}.values())


def _evidence(r: Report, lang: str) -> list[Part]:
    t, several = _t(lang), len(r.incident.hosts) > 1
    out: list[Part] = []
    for f in every_finding(r):
        if lines := evidence(f):
            out.append(Paragraph(plain_words(f, several, lang)))
            out.append(Code(tuple(f"{x.source or '–'}: {x.line}" if x.source not in x.line else x.line for x in lines)))
    return out or [Paragraph(t("No line of evidence was recorded.", "没有记录任何证据。"))]


# --- data ---------------------------------------------------------------------------------


def plain(r: Report, lang: str) -> dict[str, Any]:
    """For JSON: times in ISO 8601, GPU-hours as decimal words."""
    i = r.incident
    return {
        **pages.plain(i, lang, short=True), "verdict": verdict(r, lang), "people": sorted(i.people), "linked": list(i.links),
        "causes": [{"rule": c.finding.rule, "title": c.finding.title.in_(lang), "host": c.finding.host or None,
                    "subject": c.finding.subject or None, "grade": c.finding.grade or None,
                    "explains": [{"depth": n, "rule": f.rule, "host": f.host or None, "subject": f.subject or None} for n, f in c.chain],
                    "evidence": [x._asdict() for x in c.evidence]} for c in r.causes],
        "impact": report_impact.plain(r, lang),
        "timeline": [_told(x) for x in timeline(i, lang)],
        "actions": [{"at": iso(e.at), "who": e.who, "kind": e.kind, "what": report_deeds.what_of(e), "result": report_deeds.outcome(e, lang) or None} for e in r.actions],
        "not_seen": None if r.gaps is None else [
            {"kind": g.kind, "why": g.why or None, "facts": list(g.facts), "more": g.more} for g in r.gaps],
        "open_points": [p.in_(lang) for p in open_points(r)],
        "similar": pages.alike(i, r.likes, lang),
    }  # fmt: skip


def _told(x: Told) -> dict[str, Any]:
    e = x.events[0]
    return {
        "seq": e.seq,
        "at": iso(e.at),
        "measured": x.measured or None,
        "who": e.who,
        "surface": e.surface,
        "kind": e.kind,
        "text": x.text,
    }


def colour(r: Report) -> str:
    """Of the first line of the page: green once it is over, else its severity's."""
    if r.incident.status is Status.CLOSED:
        return "ok"
    return r.incident.severity or "unknown"
