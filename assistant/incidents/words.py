"""The words for incidents, in both languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from assistant.incidents.deeds import deeds
from assistant.incidents.events import Event, Kind, Status, StepState
from assistant.render.labels import aside, colon, label
from assistant.render.times import iso, readable
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident, Linked
    from assistant.incidents.progress import BookView

STATUS = {
    Status.OPEN: Text("open", "待处理"), Status.WORKING: Text("working", "处理中"),
    Status.MITIGATED: Text("mitigated", "已缓解"), Status.CLOSED: Text("closed", "已关闭"),
}  # fmt: skip
STATES = {
    StepState.TODO: Text("to do", "待办"), StepState.DOING: Text("doing", "进行中"), StepState.DONE: Text("done", "完成"),
    StepState.SKIPPED: Text("skipped", "跳过"), StepState.FAILED: Text("failed", "失败"),
}  # fmt: skip
_ORIGINS = {
    "diagnosis": Text("opened from what was found", "根据诊断结果开立"), "hand": Text("opened by hand", "人工开立"),
    "alertmanager": Text("opened from an alert", "根据告警开立"),
}  # fmt: skip
_FIELDS = {Kind.STATUS: Text("status", "状态"), Kind.SEVERITY: Text("severity", "级别")}
CONSENT = {"operator": Text("the operator's", "运维人员"), "owner": Text("the owner's", "所有者")}


def moment(ns: int | None) -> str:
    """A time for people, in UTC; empty when there is none."""
    return "" if ns is None else readable(iso(ns - ns % 10**9))


def grade(severity: str, lang: str) -> str:
    """A severity; a dash where nobody told one."""
    return label(severity, lang) if severity else "–"


def done_words(view: BookView, lang: str) -> str:
    """``2 of 9 steps done``."""
    n, all_ = view.ended, len(view.steps)
    return Text(f"{n} of {all_} steps done", f"{all_} 步中已完成 {n} 步").in_(lang)


def finding_words(f: Linked, lang: str, *, named: bool = False) -> str:
    """A finding with what it is about, in one clause, and whether it is a symptom; with the node where there are several
    (`named`)."""
    from assistant.render.labels import headline
    from assistant.store.codec import subject_of

    try:
        words = headline(f.title, (subject_of(f.subject),), lang, named=named)
    except ValueError:
        words = f.title.in_(lang)
    return clean(words) if f.role == "root" else clean(words) + aside(Text("a symptom", "症状").in_(lang), lang)


def said(event: Event, lang: str, incident: Incident | None = None) -> str:
    """What happened, in one line or more. `incident`: whose findings it may name."""
    text = clean(event.text())
    match event.kind:
        case Kind.OPENED:
            return _with(_opening(event.text("origin")).in_(lang), text, lang)
        case Kind.FINDING:
            return f"{Text('found', '发现').in_(lang)}{colon(lang)}{_found(event, lang, incident)}"
        case Kind.RUNBOOK:
            name = clean(event.text("runbook"))
            return Text(f"follows runbook {name}", f"按处置手册 {name} 处理").in_(lang)
        case Kind.STEP:
            known = step_state(event.text("state"), lang)
            name = f"{clean(event.text('runbook'))}/{clean(event.text('step'))}"
            return _with(f"{name}{colon(lang)}{known}", text, lang)
        case Kind.NOTE:
            return text
        case Kind.MESSAGE if text:
            said_by = clean(event.text("from")) + (aside(where, lang) if (where := clean(event.text("where"))) else "")
            return f"{said_by.strip()}{colon(lang)}{text}" if said_by else text
        case Kind.LINKED:
            return _link(event, lang)
        case Kind.ALERT:
            from assistant.incidents.alert_words import alert_words

            return alert_words(event, lang)
        case Kind.PROBE if event.text("name") == "check":
            from assistant.incidents.alert_words import check_words

            return check_words(event, lang)
        case Kind.STATUS | Kind.SEVERITY:
            word = event.text(event.kind)
            known = STATUS[Status(word)].in_(lang) if word in list(Status) else _grade(word, lang)
            return _with(
                f"{_FIELDS[Kind(event.kind)].in_(lang)}{colon(lang)}{known}", text or _because(event, lang), lang
            )
        case Kind.OWNER:
            who = clean(event.text("owner"))
            said = (
                Text(f"{who} takes care of it", f"由 {who} 负责")
                if who
                else Text("nobody takes care of it", "无人负责")
            )
            return said.in_(lang)
        case Kind.CLOSED:
            return _with(Text("closed", "关闭").in_(lang), text, lang)
        case _:
            kind, name = clean(event.kind), clean(event.text("name"))
            return _with(f"{kind}{colon(lang)}{name}" if name else kind, text, lang)


def step_state(word: str, lang: str) -> str:
    """How far a step is; a word that this version does not know as it was written."""
    return STATES[StepState(word)].in_(lang) if word in list(StepState) else clean(word)


def _because(event: Event, lang: str) -> str:
    """Why a machine changed it."""
    if not event.text("because"):
        return ""
    from assistant.incidents.alert_words import because

    return because(event).in_(lang)


def _link(event: Event, lang: str) -> str:
    from assistant.incidents.fold import text_of

    n = event.data.get("incident")
    number = f"#{n}" if isinstance(n, int) else "–"
    known = {
        "into": Text(f"goes on in {number}", f"并入 {number} 继续处理"),
        "from": Text(f"{number} went into it", f"{number} 已并入"),
    }
    said = known.get(event.text("merged"), Text(f"belongs together with {number}", f"与 {number} 相关联"))
    return _with(said.in_(lang), clean(text_of(event.data.get("why")).in_(lang)), lang)


def _opening(origin: str) -> Text:
    known = _ORIGINS.get(origin)
    if known is not None or not origin:
        return known or Text("opened", "开立")
    return Text(f"opened ({clean(origin)})", f"开立（{clean(origin)}）")


class Told(NamedTuple):
    """One line of the timeline: the event, and those that it stands for."""

    events: tuple[Event, ...]
    text: str


def story(incident: Incident, lang: str) -> list[Told]:
    """What happened, oldest first. Symptoms that came in with their root are one line: a lost GPU has many."""
    out: list[Told] = []
    for event in deeds(incident.events):
        last = out[-1].events if out else ()
        if last and _symptom(event) and _symptom(last[-1]) and (last[-1].at, last[-1].who) == (event.at, event.who):
            n = len(last) + 1
            many = Text(f"found: {n} symptoms that it explains", f"发现：由它解释的 {n} 个症状")
            out[-1] = Told((*last, event), many.in_(lang))
        else:
            out.append(Told((event,), said(event, lang, incident)))
    return out


def _symptom(event: Event) -> bool:
    return event.kind == Kind.FINDING and event.text("role") == "symptom"


def _with(words: str, text: str, lang: str) -> str:
    return f"{words}{colon(lang)}{text}" if text else words


def _grade(word: str, lang: str) -> str:
    from assistant.incidents.events import SEVERITIES

    return label(word, lang) if word in SEVERITIES else clean(word)


def _found(event: Event, lang: str, incident: Incident | None) -> str:
    from assistant.incidents.fold import fold

    owner = incident if incident is not None else fold((event,))
    key = (event.text("host"), event.text("key"))
    linked = next((f for f in owner.findings if (f.host, f.key) == key), None)
    if linked is None:
        return clean(event.text("rule")) or "–"
    return finding_words(linked, lang, named=len(owner.hosts) > 1)


def lasting(ns: int, lang: str) -> str:
    """A length of time in two words at most: ``3 days``, ``5 h 12 min``, ``8 s``; of several days no hours."""
    seconds = max(0, ns) // 10**9
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if days >= 2:
        return Text(f"{days} days", f"{days} 天").in_(lang)
    if hours:
        rest = f" {minutes % 60} min" if minutes % 60 else ""
        return Text(f"{hours} h{rest}", f"{hours} 小时" + (f" {minutes % 60} 分" if rest else "")).in_(lang)
    if minutes:
        return Text(f"{minutes} min", f"{minutes} 分钟").in_(lang)
    return Text(f"{seconds} s", f"{seconds} 秒").in_(lang)
