"""What a capture would do and cost, shown before anything is injected; and the question."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from assistant.asking import on_terminal
from assistant.capture.flow import who
from assistant.capture.looking import called
from assistant.capture.words import word
from assistant.output import say
from assistant.render.cells import terminal_width, wrap
from assistant.render.labels import colon
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph
from assistant.render.trace_page import Column, Grid, Page, Part, show
from assistant.render.trace_units import duration
from knowledge.language import Text
from knowledge.text import clean
from probes.capture.model import INJECTED
from probes.capture.plan import Plan


def asked(plan: Plan, args: argparse.Namespace) -> bool:
    """Whether the person agrees. Without a terminal nobody can: then what is left out is told, and the command that gets it."""
    lang = args.settings.output.lang
    costs = [c for c in plan.costs if c.item in INJECTED]
    if not on_terminal():
        left = ", ".join(str(c.item) for c in costs) or "iterations"
        said = Text(f"without consent nothing runs inside the job, so {left} is left out; --yes agrees to it",
                    f"未获同意，不在作业内运行任何内容，因此略去 {left}；--yes 表示同意")  # fmt: skip
        say(f"gpudiag: {said.in_(lang)}", args.quiet)
        return False
    lines = [Text(f"To capture from {who([p.target for p in plan.targets], 'en')}, this would run inside the job:",
                  f"要采集 {who([p.target for p in plan.targets], 'zh')}，需要在作业内运行：").in_(lang)]  # fmt: skip
    seen: dict[str, list[str]] = {}
    for cost in costs:
        seen.setdefault(cost.says.in_(lang), []).append(str(cost.item))
    for says, items in seen.items():
        lines += wrap(says, terminal_width(), f"  {', '.join(items)}{colon(lang)}", "    ")
    rungs = sorted({str(s.rung) for p in plan.targets for s in p.steps if s.runs and s.item in INJECTED})
    rungs = rungs or sorted({str(p.ways[0]) for p in plan.targets if plan.inject(p)})
    lines.append(
        Text(
            f"  by {', '.join(rungs)}; N captures what can be read from outside",
            f"  途径：{'、'.join(rungs)}；选择 N 则只采集可从外部读取的内容",
        ).in_(lang)
    )
    sys.stderr.write("\n".join(map(clean, lines)) + "\n" + Text("Go on? [y/N] ", "继续？[y/N] ").in_(lang))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是")


# --- dry run ---------------------------------------------------------------------------------------


def shown(plan: Plan, args: argparse.Namespace) -> str:
    """The plan as an answer: targets, ways, refusals, costs."""
    lang = args.settings.output.lang
    return show(Page("gpudiag/profile-plan/1", _data(plan, lang), lambda: _parts(plan, lang)), args.settings.output)


def _parts(plan: Plan, lang: str) -> list[Part]:
    n = len(plan.targets)
    w = plan.window
    span = (
        Text(f"{w.iterations} iterations after {w.skip}", f"跳过 {w.skip} 次后的 {w.iterations} 次迭代") if w.by_iterations
        else Text(duration(w.duration_ns), duration(w.duration_ns))
    ).in_(lang)  # fmt: skip
    title = Text(
        f"Would capture {span} of {n} process{'es' if n != 1 else ''}; nothing was touched.",
        f"将采集 {n} 个进程的 {span}；未触碰任何进程。",
    )
    rows: list[tuple[str, ...]] = []
    refused: dict[str, list[str]] = {}
    for p in plan.targets:
        for step in p.steps:
            if step.runs:
                rows.append((str(step.item), str(step.rung or "-"), called(p.target, lang), p.target.why))
            elif step.refusal is not None:
                why = [step.refusal.why.in_(lang), step.refusal.remedy.in_(lang)]
                why += (
                    [Text("--force does it all the same", "--force 可强制执行").in_(lang)]
                    if step.refusal.forced
                    else []
                )
                said = f"{called(p.target, lang)}{colon(lang)}{'; '.join(t for t in why if t)}"
                refused.setdefault(said, []).append(str(step.item))
    columns = (
        Column(word("part", lang), left=True),
        Column(word("way", lang), left=True),
        Column(word("target", lang), left=True),
        Column(word("targets", lang), 1, left=True),
    )
    out: list[Part] = [Paragraph(title.in_(lang)), Grid(columns, tuple(rows), named=False)]
    if plan.costs:
        out += [Heading(word("costs", lang)), Fields(tuple((str(c.item), c.says.in_(lang)) for c in plan.costs))]
    if refused:
        out += [
            Heading(word("refused", lang)),
            Items(tuple(clean(f"{', '.join(items)}{colon(lang)}{said}") for said, items in refused.items())),
        ]
    return [*out, Heading(word("next", lang)), Code((f"{plan.wish.line}{' --yes' if plan.injects else ''}",))]


def _data(plan: Plan, lang: str) -> dict[str, Any]:
    return {
        "window": {"duration_ns": plan.window.duration_ns, "iterations": plan.window.iterations, "skip": plan.window.skip, "anchor": plan.window.anchor},
        "injects": plan.injects, "line": plan.wish.line,
        "targets": [
            {"pid": p.target.process.pid, "rank": p.target.rank, "job": p.target.job or None, "why": p.target.why, "ways": [str(w) for w in p.ways],
             "steps": [{"item": str(s.item), "rung": str(s.rung) if s.rung else None, "refused": s.refusal.code if s.refusal else None,
                        "why": s.refusal.why.in_(lang) if s.refusal else None, "remedy": s.refusal.remedy.in_(lang) if s.refusal else None,
                        "forced": s.refusal.forced if s.refusal else None} for s in p.steps]}
            for p in plan.targets
        ],
        "costs": [{"item": str(c.item), "says": c.says.in_(lang), "rate_percent": c.rate_percent, "stall_ms": c.stall_ms} for c in plan.costs],
    }  # fmt: skip
