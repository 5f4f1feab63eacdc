"""Incidents as messages beside the card: the list, one line after a change, what is like it, forms to fill in, the report as files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assistant.incidents import pages, words
from assistant.incidents.events import Event, Kind
from assistant.incidents.fold import fold
from assistant.incidents.progress import progress
from assistant.slack import rich
from assistant.slack.page import Page, Rendered
from assistant.slack.rich import span
from assistant.slack.walk_rights import sees_all
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.incidents.fold import Incident
    from assistant.slack.bot import Asker

LISTED = 25  # incidents of a list: a screen and a half of a telephone
FILLED = 3_000  # characters of a form's field, as Slack takes them
_FORMS = {
    "note": (Text("Note", "备注"), Text("What is there to note?", "要记录什么？")),
    "close": (Text("Close", "关闭"), Text("How did it end?", "结果如何？")),
}  # fmt: skip


def line(incident: Incident, lang: str, now: int) -> str:
    """``error · working · gpu-12 · 3 h 5 min · alice · next: Reset the GPU``; `now`: ns UTC."""
    following = next((v.next for v in progress(incident) if v.next is not None), None) if incident.is_open else None
    lead = Text("next: ", "下一步：").in_(lang)
    said = (
        words.grade(incident.severity, lang) if incident.severity else "", words.STATUS[incident.status].in_(lang),
        pages.nodes(incident, lang) if incident.hosts else "", words.lasting(now - incident.opened_at, lang),
        clean(incident.owner) or Text("no owner", "无负责人").in_(lang),
        lead + pages.step_title(following, lang) if following is not None else "",
    )  # fmt: skip
    return " · ".join(part for part in said if part)


def many(found: Sequence[Incident], lang: str, *, closed: bool = False) -> Rendered:
    """The list; `closed`: closed ones were asked for too."""
    if not found:
        none = Text("No incident", "没有事件") if closed else Text("No incident is open", "没有未关闭的事件")
        page = Page(lang, [span(none.in_(lang), "bold")])
        how = Text("/gpudiag incident open TITLE begins one; in the thread of a diagnosis: incident open",
                   "/gpudiag incident open 标题 可开立；在诊断话题中：incident open")  # fmt: skip
        page.add(rich.section(span(how.in_(lang))))
        return page.done()
    n = len(found)
    said = Text(f"{n} incident{'s' if n != 1 else ''}", f"{n} 个事件") if closed else Text(f"{n} open", f"{n} 个未关闭")
    page = Page(lang, [span(said.in_(lang), "bold")])
    now = time.time_ns()
    for one in found[:LISTED]:
        head = span(page.cut(pages.heading(one, lang), 300), "bold")
        page.add(rich.section(head, span("\n" + page.cut(line(one, lang, now), 400) + "\n")))
    if rest := n - LISTED if n > LISTED else 0:
        page.add(rich.section(span(Text(f"{rest} more", f"另有 {rest} 个").in_(lang), "italic")))
    return page.done()


def changed(incident: Incident, lang: str) -> Rendered:
    """What was written last, and how it stands now."""
    page = Page(lang, [span(pages.heading(incident, lang), "bold")])
    last = incident.events[-1]
    page.add(rich.section(span(page.cut(f"{last.who}: {words.said(last, lang, incident)}", 1_000))))
    page.add(rich.section(span(page.cut(pages.state_line(incident, lang), 600), "italic")))
    return page.done()


def alike(incident: Incident, others: Sequence[Incident], lang: str, *, always: bool = False) -> Rendered | None:
    """Earlier ones like it, and open ones that may be the same matter; None without any, unless that is asked for (`always`)."""
    from assistant.incidents.links import offers
    from assistant.incidents.similar import full, similar

    likes, same = similar(incident, others), offers(incident, others)
    if not likes and not same and not always:
        return None
    first = (
        Text("Similar earlier incidents", "以往类似事件")
        if likes
        else Text("Perhaps the same matter", "可能是同一问题")
    )
    if not likes and not same:
        first = Text(f"No earlier incident is like #{incident.number}", f"没有与 #{incident.number} 类似的以往事件")
    page = Page(lang, [span(first.in_(lang), "bold")])
    page.add(rich.bullets([[span(page.cut(full(x, incident.opened_at, lang), 600))] for x in likes]))
    if likes and same:
        page.add(rich.section(span(Text("Perhaps the same matter", "可能是同一问题").in_(lang), "bold")))
    page.add(rich.bullets([[span(page.cut(o.line(incident.number, lang), 600))] for o in same]))
    return page.done()


def form(kind: str, incident: Incident, lang: str, ticket: str) -> dict[str, Any]:
    """A form for a note, or for how it ended."""
    title, label = _FORMS[kind]

    def plain(text: str) -> dict[str, Any]:
        return {"type": "plain_text", "text": text, "emoji": False}

    field = {
        "type": "plain_text_input", "action_id": "text", "multiline": True, "max_length": FILLED, "focus_on_load": True,
    }  # fmt: skip
    asked = {
        "type": "input",
        "block_id": "text",
        "label": plain(label.in_(lang)),
        "element": field,
        "optional": kind == "close",
    }
    head = rich.block(rich.section(span(pages.heading(incident, lang)[:600], "bold")))
    return {
        "type": "modal", "callback_id": f"gpudiag.{kind}", "private_metadata": ticket, "blocks": [head, asked],
        "title": plain(f"{title.in_(lang)} #{incident.number}"[:24]), "submit": plain(title.in_(lang)),
        "close": plain(Text("Cancel", "取消").in_(lang)),
    }  # fmt: skip


# --- the report ---------------------------------------------------------------------------


def as_seen(incident: Incident, asker: Asker) -> Incident:
    """The incident as it may be shown to them: without the right to see other users, no output of a command, and of findings
    that were not written down from a chat (where they are veiled) no raw line."""
    if sees_all(asker):
        return incident
    return fold((_shown(e) for e in incident.events), incident.number, incident.uid)


def _shown(event: Event) -> Event:
    if event.kind == Kind.ACTION:
        return replace(event, data={**event.data, "text": event.text().partition(": ")[0], "excerpt": ""})
    if event.kind == Kind.FINDING and event.surface != "slack" and event.data.get("evidence"):
        return replace(event, data={**event.data, "evidence": []})
    return event


def report(incident: Incident, others: Sequence[Incident], asker: Asker, settings: Settings) -> list[tuple[str, bytes]]:
    """The post-mortem as files: name and content, HTML first. UsageError for a price that is none."""
    from assistant.incidents.deeds import of_journal
    from assistant.incidents.impact import set_price
    from assistant.incidents.report import report as made
    from assistant.incidents.report_html import render
    from assistant.incidents.report_page import sheet
    from assistant.incidents.similar import similar
    from assistant.render.sheet import show

    lang = asker.lang
    more = tuple(_shown(e) if not sees_all(asker) else e for e in of_journal(settings.history.url, incident))
    told = made(as_seen(incident, asker), similar(incident, others), set_price(settings.gpu_hour_price), more)
    output = settings.output._replace(lang=lang, format="markdown", color="never")
    name = f"incident-{incident.number}"
    texts = ((f"{name}.html", render(told, lang)), (f"{name}.md", show(sheet(told, lang), output)))
    return [(file, text.encode("utf-8", "replace")) for file, text in texts]
