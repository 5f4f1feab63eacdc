"""The plan of a walk as a page and as plain data, and the words for what a condition came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assistant.render import describe
from assistant.render.labels import colon, label
from assistant.render.sheet import Code, Fields, Heading, Paragraph, Sheet
from assistant.runbooks.engine import longest
from knowledge.language import Text
from knowledge.text import clean
from knowledge.units import format_duration
from rules.proof import LeafProof, Truth, leaf_proofs

if TYPE_CHECKING:
    from assistant.render.sheet import Part
    from assistant.runbooks.dry import Plan, Planned
    from assistant.runbooks.judging import Judged
    from knowledge.runbook import Step, Tree

LEAVES = 4  # of a condition that are told
_TRUTH = {
    Truth.TRUE: Text("holds", "成立"), Truth.FALSE: Text("does not hold", "不成立"), Truth.UNKNOWN: Text("is not known", "未知"),
}  # fmt: skip


def condition(tree: Tree | None, lang: str) -> str:
    """A condition in one line; empty without one. One that cannot be read is shown as it stands."""
    if tree is None:
        return ""
    from assistant.runbooks.judging import parse

    parsed = parse(tree, lambda *_: None)
    if parsed is None:
        return str(dict(tree))
    lines = [line.strip() for line in describe.lines(parsed, lang)]
    return "".join(f"{x} " if x.endswith(":") else f"{x}; " for x in lines).rstrip("; ")


def why(judged: Judged, lang: str) -> str:
    """What a condition came to, with the leaves that made it so; of what is not known, what would tell it."""
    if judged.fault:
        said = Text(f"the condition cannot be read: {judged.fault}", f"无法读取该条件：{judged.fault}")
        return said.in_(lang)
    told = [p for proof in judged.proofs for p in leaf_proofs(proof) if p.truth is judged.truth]
    words = list(dict.fromkeys(_leaf(p, lang) for p in told))
    more = ["…"] if len(words) > LEAVES else []
    out = Text("; ", "；").in_(lang).join([*words[:LEAVES], *more]) or _TRUTH[judged.truth].in_(lang)
    if judged.truth is Truth.UNKNOWN and judged.probes:
        names = ", ".join(judged.probes)
        out += Text(f" (would tell: probe {names})", f"（可由探针 {names} 得知）").in_(lang)
    return out


def _leaf(proof: LeafProof, lang: str) -> str:
    """``gpu.row_remap.pending is true: does not hold (false)``."""
    said = f"{describe.leaf(proof.leaf, lang)}{colon(lang)}{_TRUTH[proof.truth].in_(lang)}"
    if proof.missing:
        gaps = list(dict.fromkeys(f"{m.subject}: {m.reason}" for m in proof.missing))
        return clean(f"{said} ({gaps[0]})") if lang == "en" else clean(f"{said}（{gaps[0]}）")
    if not proof.seen:
        return clean(said)
    return clean(f"{said} ({proof.seen})") if lang == "en" else clean(f"{said}（{proof.seen}）")


def sheet(plan: Plan, lang: str) -> Sheet:
    """The plan for people; as data for machines."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    taken = [p for p in plan.steps if p.taken.rounds]
    asked = [p for p in taken if p.taken.asked]
    out = [p for p in plan.steps if not p.taken.rounds]
    title = t(
        f"Runbook {plan.book.id} on paper: {len(taken)} of {len(plan.book.steps)} steps would be taken, {len(out)} left out; nothing was run.",
        f"处置手册 {plan.book.id}（演练）：共 {len(plan.book.steps)} 步，将执行 {len(taken)} 步，略过 {len(out)} 步；未运行任何命令。",
    )
    names = ", ".join(p.taken.step.id for p in asked)
    unsure = [Paragraph(t(f"Not known whether they apply: {names}.", f"尚不清楚是否适用：{names}。"))] if asked else []
    about = ", ".join(str(s) for s in plan.subjects)
    wait = longest(plan.book)
    parts: list[Part] = [
        *unsure,
        Fields((
            (t("about", "对象"), clean(about)),
            (t("runbook of", "来自"), clean(plan.book.file)),
            (t("waits at most", "最长等待"), format_duration(wait) if wait else ""),
        )),
    ]  # fmt: skip
    for planned in plan.steps:
        parts += _step(planned, lang)
    if plan.passed:
        parts.append(Paragraph(t("Passed over: ", "跳过：") + ", ".join(plan.passed)))
    return Sheet(title, tuple(parts), {"plan": plain(plan, lang)})


def _step(planned: Planned, lang: str) -> list[Part]:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    step, came = planned.taken.step, planned.taken
    if not came.rounds:
        fate = t("left out", "略过")
    elif came.asked:
        fate = t("a person is asked", "需询问人员")
    else:
        fate = t("taken", "执行")
    out: list[Part] = [Heading(f"{planned.number}. {step.title.in_(lang)} [{step.id}]{colon(lang)}{fate}")]
    rows = [(t("if", "条件"), why(planned.gate, lang))] if planned.gate is not None else []
    if not came.rounds:
        return [*out, Fields(tuple(rows))]
    if planned.command:
        out.append(Code((f"$ {planned.command}",)))
    rows += [
        (t("when", "何时"), step.when.in_(lang)),
        (t("risk", "风险"), "" if step.risk == "safe" else label(str(step.risk), lang)),
        (t("run by", "由谁运行"), _runner(step, lang)),
        (t("loop", "循环"), _loop(planned, lang)),
        (t("done when", "完成标志"), step.verify.in_(lang)),
        (t("verified by", "核对条件"), f"{t('now', '当前')}{colon(lang)}{why(planned.verified, lang)}" if planned.verified else ""),
        (t("otherwise", "否则"), step.on_failure),
    ]  # fmt: skip
    return [*out, Fields(tuple(rows))]


def _runner(step: Step, lang: str) -> str:
    if not step.command or step.risk == "safe":
        return ""
    if step.risk == "destructive":
        return Text("a person; gpudiag never runs it", "由人员执行；gpudiag 从不运行").in_(lang)
    return Text("after the node's name was typed", "输入节点名确认后运行").in_(lang)


def _loop(planned: Planned, lang: str) -> str:
    repeat = planned.taken.step.repeat
    if repeat is None or planned.until is None:
        return ""
    every = format_duration(repeat.every)
    times = Text(
        f"at most {repeat.at_most} times, every {every}, until: ", f"至多 {repeat.at_most} 次，每 {every} 一次，直到："
    )
    return times.in_(lang) + why(planned.until, lang)


# --- data ---------------------------------------------------------------------------------


def plain(plan: Plan, lang: str) -> dict[str, Any]:
    """The plan for JSON."""
    return {
        "runbook": plan.book.id, "file": plan.book.file or None, "replaces": plan.book.replaces,
        "subjects": [str(s) for s in plan.subjects], "values": dict(plan.values),
        "steps": [_plain_step(p, lang) for p in plan.steps], "passed": list(plan.passed), "leads": plan.end.leads or None,
        "waits_s": longest(plan.book) / 10**9,
    }  # fmt: skip


def _plain_step(p: Planned, lang: str) -> dict[str, Any]:
    step = p.taken.step
    fate = "left_out" if not p.taken.rounds else "asked" if p.taken.asked else "taken"
    return {
        "step": step.id, "number": p.number, "title": step.title.in_(lang), "fate": fate, "command": p.command or None,
        "risk": str(step.risk), "consent": str(step.consent), "if": _plain(p.gate, lang), "verify_if": _plain(p.verified, lang),
        "until": _plain(p.until, lang), "on_failure": step.on_failure or None,
    }  # fmt: skip


def _plain(judged: Judged | None, lang: str) -> dict[str, Any] | None:
    if judged is None:
        return None
    return {
        "truth": str(judged.truth), "why": why(judged, lang), "missing": list(judged.lacking), "probes": list(judged.probes),
    }  # fmt: skip
