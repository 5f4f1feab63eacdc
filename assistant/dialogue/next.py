"""What now: the first thing to do about the verdict's finding, or to look at while it is open; or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.dialogue import _prevent
from assistant.dialogue._named import chosen, named
from assistant.dialogue._scope import Scoped, fine, gpu_index
from assistant.dialogue._words import Words, causes_of, finding_data, nothing_yet, suggest, words
from assistant.render.labels import aside, impact_words, label, listed
from assistant.render.sheet import Code, Fields, Paragraph, Part
from assistant.reply import Reply
from knowledge.observation import Scope
from knowledge.text import clean
from rules.engine import Grade, Role
from rules.model import Bucket, Severity

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from knowledge.runbook import Step
    from rules.engine import Finding

_QUIET = (Bucket.IGNORE, Bucket.MONITOR)


def answer(turn: Turn) -> Reply:
    """The first action; else the next probe or question; else that there is nothing to do."""
    if turn.diagnosis is None:
        return _look(turn) or nothing_yet(turn)
    w, found = words(turn), named(turn)
    if not found.what and (where := fine(turn)) is not None:
        return _spared(turn, w, where)
    f = chosen(turn, found) if found.what else _acting(turn)
    if (kept_away := _prevent.answer(turn, f)) is not None:
        return kept_away
    if f is not None and f.grade is not Grade.RULED_OUT:
        return _act(turn, w, f)
    return _look(turn) or _nothing(turn, w)


def _acting(turn: Turn) -> Finding | None:
    """The finding whose action comes first: the one in focus when it asks for something, else the verdict's."""
    d = turn.diagnosis
    assert d is not None
    here = turn.finding
    if here is not None and turn.focus == here.id and _sure(here):
        first = next(iter(causes_of(here, d)), here) if here.role is Role.SYMPTOM else here  # the cause goes first
        if first.advice.bucket not in _QUIET and _sure(first):
            return first
    return next((f for f in d.leads if _sure(f) and f.severity is not Severity.INFO), None)


def _sure(f: Finding) -> bool:
    return f.grade in (Grade.CONFIRMED, Grade.PROBABLE)


def _act(turn: Turn, w: Words, f: Finding) -> Reply:
    a = f.advice
    step = first_step(f)
    command = clean(a.command) if a.pasteable else ""
    risk = "" if a.risk == "safe" else label(str(a.risk), w.lang)
    rows: list[tuple[str, str]] = [
        (w.t("for", "针对"), w.title(f)),
        (w.t("it", "该问题"), impact_words(f.impact, w.lang)),
        (w.t("decided by", "依据"), "" if a.resolver == "rule" else w.said_by(f)),
        (w.t("risk", "风险"), risk),
        (w.t("who must agree", "需经同意"), _consent(w, step) or (w.t("the operator", "运维人员") if risk else "")),
    ]
    parts: list[Part] = [*([Code((f"$ {command}",))] if command else []), Fields(tuple(rows))]
    if step is not None:
        parts += _runbook(w, f, step)
    then = [t.in_(w.lang) for t in a.then]
    later = [
        x.advice.bucket for x in w.d.leads if x.id != f.id and _sure(x) and x.advice.bucket not in (*_QUIET, a.bucket)
    ]
    if then:
        parts.append(Paragraph(w.t("Then: ", "然后：") + _joined(then, w.lang)))
    if later:
        parts.append(Paragraph(w.t("Also waiting: ", "另有待办：") + listed(dict.fromkeys(map(str, later)), w.lang)))
    return Reply(
        turn.lang,
        w.action(f),
        tuple(parts),
        focus=f.id,
        suggestions=(*((_runbook_words(w, a.runbook),) if a.runbook else ()), *suggest(turn.lang, "why", "confidence")),
        data={"answer": "next", "finding": finding_data(f, turn.lang), "bucket": str(a.bucket), "command": command or None,
              "risk": str(a.risk), "runbook": a.runbook or None, "step": step.id if step else None, "then": then},
    )  # fmt: skip


def _joined(sentences: Sequence[str], lang: str) -> str:
    """Whole sentences one after another."""
    return ("" if lang == "zh" else " ").join(sentences)


def _runbook_words(w: Words, name: str) -> str:
    return w.t(f"show runbook {name}", f"查看处置手册 {name}")


def first_step(f: Finding) -> Step | None:
    """The first step of the finding's runbook."""
    from knowledge.runbook import runbook

    if not f.advice.runbook:
        return None
    steps = runbook(f.advice.runbook).steps
    return steps[0] if steps else None


def _consent(w: Words, step: Step | None) -> str:
    said = {"operator": w.t("the operator", "运维人员"), "owner": w.t("the owner of the job", "作业所有者")}
    return said.get(str(step.consent), "") if step is not None else ""


def _runbook(w: Words, f: Finding, step: Step) -> list[Part]:
    from assistant.dialogue._remedy import ready

    values = filled(w, f)
    heading = w.t(f"Runbook {f.advice.runbook}, step 1: ", f"处置手册 {f.advice.runbook} 第 1 步：")
    parts: list[Part] = [
        Paragraph(f"{heading}{step.title.in_(w.lang)}{aside(step.when.in_(w.lang), w.lang) if step.when else ''}")
    ]
    if step.command:
        parts.append(Code((f"$ {ready(step.command, values)}",)))
    parts.append(Fields((
        (w.t("done when", "完成标志"), step.verify.in_(w.lang)),
        (w.t("check with", "核对命令"), ready(step.verify_command, values)),
    )))  # fmt: skip
    return parts


def filled(w: Words, f: Finding) -> dict[str, str | int]:
    """What the facts know of the placeholders of a runbook's commands."""
    s = f.subject
    gpu, process, job = s.up(Scope.GPU), s.up(Scope.PROCESS), s.up(Scope.JOB)
    values: dict[str, str | int] = {"node": s.host}
    if gpu is not None and not gpu.id.startswith(("index:", "unknown:", "GPU-")):
        values["gpu_pci"] = gpu.id
    if gpu is not None and (index := gpu_index(gpu, w.d.facts)) is not None:
        values["gpu_index"] = index
    if process is not None:
        values["pid"] = process.id
    if job is not None:
        values["job"] = job.id
    return {name: value for name, value in values.items() if value != ""}


# --- nothing to do about, something to look at --------------------------------------------


def _look(turn: Turn) -> Reply | None:
    """The next probe or question, while the outcome is open."""
    plan = turn.plan
    if plan is None or plan.decided or not (plan.probes or plan.questions):
        return None
    lang = turn.lang
    zh = lang == "zh"
    if plan.probes:
        first = plan.probes[0]
        names = plan.batch or (first.probe,)
        said = listed(names, lang)
        head = f"接下来查看：{said}。" if zh else f"Look next at: {said}."
        asks = (
            ("会占用运行中的资源，需要同意" if zh else "it needs your consent: it takes time on the node")
            if first.consent
            else ""
        )
        parts: list[Part] = [Paragraph(first.reason.in_(lang)), Paragraph(asks)]
        return Reply(lang, head, tuple(p for p in parts if isinstance(p, Paragraph) and p.text), settled=False,
                     suggestions=suggest(lang, "rerun", "why", "alternatives"),
                     data={"answer": "next", "probes": list(names)})  # fmt: skip
    q = plan.questions[0]
    return Reply(lang, q.text.in_(lang), (Paragraph(q.reason.in_(lang)),), settled=False,
                 suggestions=(("为什么问这个？", "不知道") if zh else ("why do you ask?", "I don't know")),
                 data={"answer": "next", "question": q.fact})  # fmt: skip


def _spared(turn: Turn, w: Words, where: Scoped) -> Reply:
    """Nothing for the part that was asked about; what the node needs elsewhere stands below."""
    from assistant.dialogue.verdict import elsewhere

    what = w.view.where(where.subjects)
    open_ = _look(turn)
    if open_ is not None and not w.d.settled:
        return open_
    gap = " " if what[:1].isascii() else ""
    return Reply(
        turn.lang,
        w.t(f"Nothing needs doing for {what}.", f"无需对{gap}{what}{' ' if what[-1:].isascii() else ''}进行任何操作。"),
        elsewhere(w, where),
        settled=w.d.settled,
        suggestions=suggest(turn.lang, "evidence", "confidence", "rerun"),
        data={"answer": "next", "finding": None, "subjects": [str(s) for s in where.subjects]},
    )


def _nothing(turn: Turn, w: Words) -> Reply:
    d = w.d
    if d.settled:
        head = w.t("Nothing: no finding asks for an action.", "无需操作：没有需要处理的结论。")
        parts = w.section("Could not be seen", "未能查看", w.unseen(2))
    else:
        head = w.t(
            "Get more to look at: what was read does not settle it.", "请提供更多信息：已读到的内容不足以下结论。"
        )
        parts = w.section("Would tell more", "可提供更多信息", w.unseen(3))
    return Reply(turn.lang, head, tuple(parts), settled=d.settled, suggestions=suggest(turn.lang, "why", "alternatives", "rerun"),
                 data={"answer": "next", "finding": None})  # fmt: skip
