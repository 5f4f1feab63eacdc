"""What was done about an incident, what helped, what was not seen and what is left: sections of its report."""

from __future__ import annotations

from collections.abc import Callable

from assistant.incidents import pages, words
from assistant.incidents.deeds import NOT_KNOWN, open_ended
from assistant.incidents.events import Event, Kind
from assistant.incidents.fold import text_of
from assistant.incidents.impact import whole
from assistant.incidents.report import Gap, Report, open_points
from assistant.incidents.similar import full
from assistant.render.labels import aside, colon, listed
from assistant.render.sheet import Items, Paragraph, Part, Table
from knowledge.language import Text
from knowledge.text import clean, excerpt

_GAPS = {
    "denied": Text("denied", "权限不足"), "failed": Text("failed", "读取失败"),
    "not_asked": Text("not asked", "未询问"), "cut": Text("read only in part", "仅读取了一部分"),
}  # fmt: skip


def _t(lang: str) -> Callable[[str, str], str]:
    return lambda en, zh: Text(en, zh).in_(lang)


def actions(r: Report, lang: str) -> list[Part]:
    """Steps, actions and probes, with what came of each."""
    t = _t(lang)
    if not r.actions:
        return [Paragraph(t("None was recorded.", "没有记录。"))]
    head = (t("time (UTC)", "时间（UTC）"), t("who", "何人"), t("what", "内容"), t("result", "结果"))
    rows = tuple((words.moment(e.at), clean(e.who) or "–", what_of(e), outcome(e, lang) or "–") for e in r.actions)
    return [Table(head, rows)]


def what_of(e: Event) -> str:
    """What was done, in one line: the step, the name or the command."""
    if e.kind == Kind.STEP:
        return excerpt(f"{e.text('runbook')}/{e.text('step')}")
    told = next((x for name in ("what", "name", "command", "text") if (x := e.text(name))), "")
    argv = e.data.get("argv")
    line = " ".join(map(str, argv)) if isinstance(argv, list) else ""
    place = "/".join(x for name in ("runbook", "step") if (x := e.text(name)))
    return excerpt(f"{place}: {told or line}" if place and (told or line) else place or told or line or e.kind)


def outcome(e: Event, lang: str) -> str:
    """What came of it: state or result, exit code, words; empty when none was recorded."""
    if open_ended(e):
        return NOT_KNOWN.in_(lang)
    state, text = e.text("state"), e.text()
    said = [words.step_state(state, lang)] if state else []
    said += [excerpt(x) for name in ("outcome", "result") if (x := e.text(name))]
    code = next((v for n in ("exit", "exit_code") if whole(v := e.data.get(n))), None)
    if code is not None and not text:  # the words tell it too
        said.append(Text(f"exit code {code}", f"退出码 {code}").in_(lang))
    verdict = e.data.get("verdict")
    if isinstance(verdict, dict) and (told := text_of(verdict)):
        said.append(excerpt(told.in_(lang)))
    said += [excerpt(x) for x in (text, e.text("excerpt")) if x and x != what_of(e)]
    return listed(said, lang, ";")


def worked(r: Report, lang: str) -> list[Part]:
    """What was said at the end, and the steps by how they went."""
    t = _t(lang)
    rows = [(t("done", "完成"), r.done), (t("failed", "失败"), r.failed), (t("left out", "跳过"), r.skipped)]
    out: list[Part] = []
    if r.incident.ended and not r.incident.is_open:
        out.append(Paragraph(t("Said at the end: ", "结束时的说明：") + clean(r.incident.ended)))
    for name, steps in rows:
        if steps:
            said = tuple(f"{clean(s.name)}{colon(lang)}{pages.step_title(s, lang)}" for s in steps)
            out += [Paragraph(name[:1].upper() + name[1:] + colon(lang).rstrip()), Items(said)]
    if not out:
        return [Paragraph(t("Nobody recorded what helped.", "没有人记录哪些措施有效。"))]
    if r.done:
        out.append(Paragraph(t("Done means that the step was carried out; that it helped stands only where somebody said so.",
                               "“完成”表示该步骤已执行；是否有效以有人说明为准。")))  # fmt: skip
    return out


def unseen(r: Report, lang: str) -> list[Part]:
    """What was denied, failed, or was not asked, with the reasons."""
    t = _t(lang)
    if r.gaps is None:
        return [Paragraph(t("Not recorded: it was opened by hand, or by a gpudiag that did not keep it.",
                            "未记录：事件为人工开立，或由不保存此信息的旧版本开立。"))]  # fmt: skip
    asked, answered = r.answered or (0, 0)
    out: list[Part] = [
        Paragraph(t(f"{answered} of {asked} facts were answered.", f"{asked} 项事实中有 {answered} 项得到答案。"))
    ]
    if r.gaps:
        out.append(Items(tuple(_gap(g, lang) for g in r.gaps)))
    return out


def _gap(g: Gap, lang: str) -> str:
    from assistant.render.words import our_words

    why = our_words(g.why, lang) if g.why and g.kind != "cut" else g.why
    more = [Text(f"{g.more} more", f"另有 {g.more} 项").in_(lang)] if g.more else []
    facts = listed((*g.facts, *more), lang)
    lead = f"{_GAPS[g.kind].in_(lang)}{aside(why, lang) if why and facts else ''}"
    return f"{lead}{colon(lang)}{facts or why}"


def left_open(r: Report, lang: str) -> list[Part]:
    """What is left."""
    points = tuple(clean(p.in_(lang)) for p in open_points(r))
    return [Items(points)] if points else [Paragraph(Text("None.", "无。").in_(lang))]


def similar(r: Report, lang: str) -> list[Part]:
    """Earlier incidents, why they are like this one, and how they ended."""
    t = _t(lang)
    if not r.likes:
        return [Paragraph(t("None was found in the history.", "历史中没有。"))]
    return [Items(tuple(full(x, r.incident.opened_at, lang) for x in r.likes))]
