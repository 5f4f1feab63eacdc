"""Incidents as pages (text, Markdown, HTML) and as plain data (JSON)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assistant.incidents import words
from assistant.incidents.progress import BookView, StepView, progress, values_of
from assistant.render.labels import colon, label, listed
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Sheet, Table
from assistant.render.times import iso
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident
    from assistant.incidents.links import Offer
    from assistant.incidents.similar import Like
    from assistant.render.sheet import Part
    from knowledge.runbook import Step, Tree


def many(incidents: Sequence[Incident], lang: str, closed: bool = True) -> Sheet:
    """A list. `closed`: whether closed ones were asked for too."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    data = {"incidents": [plain(i, lang, short=True) for i in incidents]}
    title = t("Incidents", "事件")
    if not incidents:
        none = t("No incident", "没有事件") if closed else t("No incident is open", "没有未关闭的事件")
        how = t(": gpudiag incident open begins one from what is found on this machine, or --title TEXT by hand.",
                "：gpudiag incident open 根据本机诊断结果开立，或用 --title 文字 人工开立。")  # fmt: skip
        return Sheet(title, (Paragraph(none + how),), data)
    head = (t("no", "编号"), t("severity", "级别"), t("status", "状态"), t("opened", "开立时间"), t("owner", "负责人"),
            t("node", "节点"), t("steps", "步骤"), t("what", "内容"))  # fmt: skip
    rows = tuple(
        (str(i.number), words.grade(i.severity, lang), words.STATUS[i.status].in_(lang), words.moment(i.opened_at),
         clean(i.owner) or "–", nodes(i, lang), steps_of(i), clean(i.title.in_(lang)))
        for i in incidents
    )  # fmt: skip
    return Sheet(title, (Table(head, rows),), data)


def nodes(incident: Incident, lang: str) -> str:
    """The node, or how many."""
    hosts = incident.hosts
    if len(hosts) > 1:
        return Text(f"{len(hosts)} nodes", f"{len(hosts)} 个节点").in_(lang)
    return clean(hosts[0]) if hosts else "–"


def steps_of(incident: Incident) -> str:
    """``2/9`` over all runbooks; a dash without one."""
    views = progress(incident)
    return f"{sum(v.ended for v in views)}/{sum(len(v.steps) for v in views)}" if views else "–"


def heading(incident: Incident, lang: str) -> str:
    """Number and title."""
    return f"#{incident.number} {clean(incident.title.in_(lang))}"


def one(incident: Incident, lang: str, likes: Sequence[Like] = (), offered: Sequence[Offer] = ()) -> Sheet:
    """All of one incident: what it is, what was found on each node, the steps, the next one, earlier ones like it (`likes`), open
    ones that may be the same matter (`offered`), and what happened."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    views = progress(incident)
    parts: list[Part] = [
        Fields((
            (t("status", "状态"), words.STATUS[incident.status].in_(lang)),
            (t("severity", "级别"), words.grade(incident.severity, lang)),
            (t("owner", "负责人"), clean(incident.owner) or "–"),
            (t("nodes", "节点"), clean(", ".join(incident.hosts))),
            (t("opened", "开立"), f"{words.moment(incident.opened_at)} {clean(_by(incident))}".rstrip()),
            (t("closed", "关闭"), words.moment(incident.closed_at)),
            (t("how it ended", "结果"), clean(incident.ended)),
            (t("belongs to it", "关联事件"), listed((f"#{n}" for n in incident.links), lang)),
        )),
        *_findings(incident, lang),
    ]  # fmt: skip
    for view in views:
        parts += [
            Heading(f"{t('Runbook', '处置手册')} {view.name}{colon(lang)}{words.done_words(view, lang)}"),
            _table(view, lang),
        ]
    if incident.is_open and (following := next((v.next for v in views if v.next is not None), None)) is not None:
        parts += [Heading(t("Next", "下一步")), *step_parts(following, values_of(incident), lang)]
    if offered:
        same = tuple(o.line(incident.number, lang) for o in offered)
        parts += [Heading(t("Perhaps the same matter", "可能是同一问题")), Items(same)]
    if likes:
        from assistant.incidents.similar import full

        earlier = tuple(full(x, incident.opened_at, lang) for x in likes)
        parts += [Heading(t("Similar earlier incidents", "以往类似事件")), Items(earlier)]
    told = words.story(incident, lang)
    rows = tuple((words.moment(e.at), clean(e.who) or "–", e.surface, text) for (e, *_), text in told)
    parts += [Heading(t("What happened", "经过")),
              Table((t("time", "时间"), t("who", "何人"), t("through", "途径"), t("what", "内容")), rows)]  # fmt: skip
    return Sheet(heading(incident, lang), tuple(parts), {
        "incident": plain(incident, lang), "similar": alike(incident, likes, lang),
        "perhaps_the_same": [{"number": o.incident.number, "why": [w.in_(lang) for w in o.why]} for o in offered],
    })  # fmt: skip


def _findings(incident: Incident, lang: str) -> list[Part]:
    """What was found; of several nodes under the name of each."""
    by_host: dict[str, list[str]] = {}
    for f in incident.findings:
        said = f"{words.grade(f.severity, lang)}{colon(lang)}{words.finding_words(f, lang)}"
        by_host.setdefault(f.host if len(incident.hosts) > 1 else "", []).append(said)
    found = Text("Found", "发现").in_(lang)
    out: list[Part] = []
    for host, lines in by_host.items():
        where = Text(f"Found on {clean(host)}", f"{clean(host)} 上的发现").in_(lang) if host else found
        out += [Heading(where), Items(tuple(lines))]
    return out


def brief(incident: Incident, lang: str) -> Sheet:
    """How it stands, in a few lines: what is printed after a change."""
    parts: list[Part] = [Paragraph(state_line(incident, lang))]
    views = progress(incident)
    if incident.events:
        parts.append(Paragraph(words.said(incident.events[-1], lang, incident)))
    if incident.is_open and (following := next((v.next for v in views if v.next is not None), None)) is not None:
        lead = Text("next", "下一步").in_(lang)
        parts.append(Paragraph(f"{lead}{colon(lang)}{following.name}{colon(lang)}{step_title(following, lang)}"))
    return Sheet(heading(incident, lang), tuple(parts))


def state_line(incident: Incident, lang: str) -> str:
    """Severity, status, owner, node and how many steps are done, in one line."""
    nobody = Text("no owner", "无负责人").in_(lang)
    done = [f"{v.name} {v.ended}/{len(v.steps)}" for v in progress(incident)]
    said = (
        words.grade(incident.severity, lang) if incident.severity else "", words.STATUS[incident.status].in_(lang),
        clean(incident.owner) or nobody, nodes(incident, lang) if incident.hosts else "", *done,
    )  # fmt: skip
    return " · ".join(part for part in said if part)


def _by(incident: Incident) -> str:
    return incident.events[0].who if incident.events else ""


def _table(view: BookView, lang: str) -> Table:
    head = tuple(
        x.in_(lang)
        for x in (
            Text("step", "步骤"),
            Text("state", "状态"),
            Text("who", "何人"),
            Text("time", "时间"),
            Text("what", "内容"),
        )
    )
    rows = tuple(
        (s.name, words.STATES[s.state].in_(lang), clean(s.mark.who) if s.mark else "", words.moment(s.mark.at) if s.mark else "",
         step_title(s, lang))
        for s in view.steps
    )  # fmt: skip
    return Table(head, rows)


def step_title(s: StepView, lang: str) -> str:
    """What a step is called; its name where the runbook has none of it any more. What was said of it stands behind."""
    title = (
        s.step.title.in_(lang)
        if s.step is not None
        else Text(f"{s.name} (not in the runbook any more)", f"{s.name}（处置手册中已没有）").in_(lang)
    )
    return f"{clean(title)}{colon(lang)}{clean(s.mark.text)}" if s.mark is not None and s.mark.text else clean(title)


def command_of(s: StepView, values: Mapping[str, str]) -> str:
    """The command of a step with what is known filled in; what is not stands in capitals, as in a manual. Empty without one."""
    from knowledge.runbook import ready

    return ready(s.step.command, values) if s.step is not None and s.step.command else ""


def step_parts(s: StepView, values: Mapping[str, str], lang: str) -> list[Part]:
    """What to do in a step, its command, what it costs, and how to see that it is done."""
    from knowledge.runbook import ready

    def condition(tree: Tree | None, lang: str) -> str:
        if tree is None:
            return ""  # most steps: nothing of the rules is loaded for them
        from assistant.runbooks.pages import condition as words_of

        return words_of(tree, lang)

    step: Step | None = s.step
    if step is None:
        return [Paragraph(step_title(s, lang))]

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    out: list[Part] = [Paragraph(f"{s.number}. {step.title.in_(lang)}"), Paragraph(step.do.in_(lang))]
    if command := command_of(s, values):
        out.append(Code((f"$ {command}",)))
    consent = words.CONSENT.get(str(step.consent))
    out.append(
        Fields((
            (t("if", "条件"), condition(step.only_if, lang)),
            (t("when", "何时"), step.when.in_(lang)),
            (t("risk", "风险"), "" if step.risk == "safe" else label(str(step.risk), lang)),
            (t("consent", "需经同意"), consent.in_(lang) if consent else ""),
            (t("done when", "完成标志"), step.verify.in_(lang)),
            (t("verified by", "核对条件"), condition(step.verify_if, lang)),
            (t("check with", "核对命令"), ready(step.verify_command, values) if step.verify_command else ""),
            (t("otherwise", "否则"), step.on_failure),
        ))
    )  # fmt: skip
    return out


# --- data ---------------------------------------------------------------------------------


def plain(incident: Incident, lang: str, short: bool = False) -> dict[str, Any]:
    """An incident for JSON; `short`: without steps, findings and events."""
    head = {
        "number": incident.number, "uid": incident.uid, "title": incident.title.in_(lang), "severity": incident.severity or None,
        "status": str(incident.status), "owner": incident.owner or None, "hosts": list(incident.hosts),
        "opened_at": iso(incident.opened_at), "opened_by": _by(incident), "changed_at": iso(incident.changed_at),
        "closed_at": iso(incident.closed_at) if incident.closed_at is not None else None, "ended": incident.ended or None,
        "runbooks": list(incident.runbooks), "origin": incident.origin or None, "linked": list(incident.links),
    }  # fmt: skip
    if short:
        return head
    return {
        **head,
        "findings": [dict(f.data) for f in incident.findings],
        "steps": [_step(s, incident, lang) for v in progress(incident) for s in v.steps],
        "events": [
            {"seq": e.seq, "at": iso(e.at), "kind": e.kind, "who": e.who, "surface": e.surface, "data": dict(e.data)}
            for e in incident.events
        ],
    }


def alike(incident: Incident, likes: Sequence[Like], lang: str) -> list[dict[str, Any]]:
    """Earlier incidents, why they are like it and how they ended, for JSON."""
    from assistant.incidents.similar import how_it_ended, why

    return [
        {"number": x.incident.number, "title": x.incident.title.in_(lang), "why": why(x, lang),
         "ended": how_it_ended(x, incident.opened_at, lang)}
        for x in likes
    ]  # fmt: skip


def _step(s: StepView, incident: Incident, lang: str) -> dict[str, Any]:
    return {
        "runbook": s.runbook, "step": s.name, "number": s.number or None,
        "title": s.step.title.in_(lang) if s.step is not None else None, "state": str(s.state),
        "who": s.mark.who if s.mark else None, "at": iso(s.mark.at) if s.mark else None, "text": (s.mark.text or None) if s.mark else None,
        "command": command_of(s, values_of(incident)) or None,
    }  # fmt: skip
