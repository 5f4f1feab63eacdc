"""The words for alerts and for what a machine did about them, in both languages."""

from __future__ import annotations

from assistant.incidents.alerts import FIRING, RESOLVED
from assistant.incidents.events import Event
from assistant.render.labels import colon, subject_name
from assistant.render.times import iso, readable
from knowledge.language import NO_TEXT, Text
from knowledge.text import clean

STATES = {"firing": Text("alert fires", "告警触发"), "resolved": Text("alert is over", "告警恢复")}
AGAIN = Text("alert fires again", "告警再次触发")
BECAUSE = {
    RESOLVED: Text("all its alerts are over; somebody closes it", "其全部告警均已恢复，由人工关闭"),
    FIRING: Text("an alert fires", "有告警触发"),
}
_EARLIEST, _LATEST = 0, 2**63  # ns UTC


def because(event: Event) -> Text:
    """Why a machine changed something; empty where a person did."""
    return BECAUSE.get(event.text("because"), NO_TEXT)


def alert_words(event: Event, lang: str) -> str:
    """``alert fires: GpuLost on n1 GPU 0000:3b:00.0, since 2026-03-03 12:00:01 UTC: the summary``."""
    more = event.data.get("more")
    if isinstance(more, int):
        said = Text(f"{more} more alerts of the group are not in the message", f"消息中未包含该组另外 {more} 条告警")
        return said.in_(lang)
    known = AGAIN if "again" in event.data else STATES.get(event.text("state"), Text("alert", "告警"))
    state = known.in_(lang)
    name = clean(event.text("name")) or "–"
    about = f"{state}{colon(lang)}{name}{_place(event, lang)}{_moment(event, lang)}"
    text = clean(event.text())
    return f"{about}{colon(lang)}{text}" if text else about


def _place(event: Event, lang: str) -> str:
    from assistant.store.codec import subject_of
    from knowledge.observation import Scope

    said = [clean(event.text("host"))]
    try:
        about = subject_of(event.text("subject")) if event.text("subject") else None
    except ValueError:
        about = None
    if about is not None and about.scope is not Scope.NODE:
        said.append(clean(subject_name(about, lang)))
    where = " ".join(s for s in said if s)
    return Text(f" on {where}", f"（{where}）").in_(lang) if where else ""


def _moment(event: Event, lang: str) -> str:
    """Since when, or when it was over; nothing for what is no moment."""
    over = event.text("state") == "resolved"
    at = event.data.get("ends" if over else "starts")
    if not isinstance(at, int) or isinstance(at, bool) or not _EARLIEST < at < _LATEST:
        return ""
    when = readable(iso(at - at % 10**9))
    return (Text(f", {when}", f"，{when}") if over else Text(f", since {when}", f"，自 {when}")).in_(lang)


def check_words(event: Event, lang: str) -> str:
    """What a check that an alert asked for came to; empty for another probe."""
    if event.text("name") != "check":
        return ""
    host, other = clean(event.text("host")), event.data.get("see")
    if isinstance(other, int):
        return Text(f"{host} was checked a moment ago: see #{other}", f"{host} 刚检查过，见 #{other}").in_(lang)
    lead = Text(f"{host} was checked", f"已检查 {host}").in_(lang)
    verdict = event.data.get("verdict")
    told = (
        Text(*(str(verdict.get(n) or "") for n in ("en", "zh"))).in_(lang)
        if isinstance(verdict, dict)
        else event.text()
    )
    return f"{lead}{colon(lang)}{clean(told)}" if told else lead
