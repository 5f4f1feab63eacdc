"""What tests would do and cost, shown before anything is started; and the question."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from assistant.active.choosing import Plan
from assistant.asking import on_terminal
from assistant.render.cells import terminal_width, wrap
from assistant.render.labels import colon
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part
from knowledge.errors import UsageError
from knowledge.language import Text
from knowledge.text import clean
from probes.active import duration

DRAIN = Text(
    "gpudiag does not ask the scheduler: drain the node first, or the next job ends the test",
    "gpudiag 不会询问调度器：请先下线（drain）节点，否则下一个作业会终止测试",
)


def asked(plan: Plan, args: argparse.Namespace) -> bool:
    """Whether the person agrees. UsageError where nobody can be asked: a test is never the default."""
    lang = args.settings.output.lang
    if not on_terminal():
        raise UsageError(
            "active tests load the machine, and there is no terminal to ask on",
            hint="--yes agrees to the cost; --dry-run shows it",
        )
    lines = [clean(head(plan, lang))]
    for choice in plan.runs:
        lines += wrap(f"{_takes(choice.seconds, lang)}; {choice.test.cost.in_(lang)}", terminal_width(),
                      f"  {choice.test.name}{colon(lang)}", "    ")  # fmt: skip
    lines += [
        line
        for said in (plan.before.in_(lang), DRAIN.in_(lang))
        for line in wrap(said, terminal_width(), "  ", "  ")
        if said
    ]
    sys.stderr.write("\n".join(map(clean, lines)) + "\n" + Text("Go on? [y/N] ", "继续？[y/N] ").in_(lang))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是")


def head(plan: Plan, lang: str) -> str:
    """Which GPUs, for how long."""
    names = sorted({g.name for g in plan.gpus})
    which = ", ".join(str(g.index) for g in plan.gpus)
    time = duration(plan.seconds, lang)
    of = Text(f" of {plan.there}", f"{plan.there} 的 ") if plan.there else Text("", "")
    return Text(
        f"Active tests on GPU {which}{of.en} ({len(plan.gpus)} x {' / '.join(names)}) would take about {time}:",
        f"在 {of.zh}GPU {which}（{len(plan.gpus)} x {' / '.join(names)}）上的主动测试约需 {time}：",
    ).in_(lang)


def _takes(seconds: float, lang: str) -> str:
    return Text(f"about {duration(seconds, 'en')}", f"约 {duration(seconds, 'zh')}").in_(lang)


# --- dry run ---------------------------------------------------------------------------------------


def parts(plan: Plan, lang: str) -> list[Part]:
    """The plan for people."""
    out: list[Part] = []
    if plan.runs:
        out.append(Paragraph(head(plan, lang) + Text(" Nothing was started.", "未启动任何内容。").in_(lang)))
        out.append(
            Fields(tuple((c.test.name, f"{_takes(c.seconds, lang)}; {c.test.cost.in_(lang)}") for c in plan.runs))
        )
        commands = tuple(clean(shlex.join(s.argv)) for c in plan.runs for s in c.steps)
        out += [Heading(Text("What would run", "将运行").in_(lang)), Code(commands)]
        out += [Paragraph(said) for said in (plan.before.in_(lang), DRAIN.in_(lang)) if said]
    else:
        out.append(Paragraph(_none(plan).in_(lang)))
    if refused := hindrances(plan, lang):
        out += [Heading(Text("What is in the way", "受阻原因").in_(lang)), Items(tuple(refused))]
    return out


def _none(plan: Plan) -> Text:
    if plan.there:
        return Text(f"No test can run on {plan.there} now.", f"目前无法在 {plan.there} 上运行任何测试。")
    return Text("No test can run here now.", "目前无法在此运行任何测试。")


def hindrances(plan: Plan, lang: str) -> list[str]:
    """Why tests, or all of them, cannot run; and what to do."""
    said = [why.in_(lang) for why in ((plan.blind,) if plan.blind else plan.busy)]
    idle = [g.index for g in plan.gpus if not g.busy]
    if plan.busy and idle:
        numbers = ",".join(map(str, idle))
        said.append(Text(f"--gpu {numbers} tests the idle ones", f"--gpu {numbers} 只测试空闲的 GPU").in_(lang))
    missing = [c for c in plan.choices if c.why_not is not None]
    return [*said, *(f"{c.test.name}{colon(lang)}{c.why_not.in_(lang)}" for c in missing if c.why_not is not None)]


def data(plan: Plan, lang: str) -> dict[str, Any]:
    """The plan for machines."""
    return {
        "host": plan.there or None,
        "gpus": [{"index": g.index, "name": g.name, "pci": g.pci, "idle": not g.busy, "why": g.busy.in_(lang) or None} for g in plan.gpus],
        "blind": plan.blind.in_(lang) or None,
        "before": plan.before.in_(lang) or None,
        "seconds": plan.seconds,
        "tests": [
            {
                "name": c.test.name, "level": c.test.level, "title": c.test.title.in_(lang), "seconds": c.seconds,
                "cost": c.test.cost.in_(lang), "runs": c in plan.runs, "why_not": c.why_not.in_(lang) if c.why_not else None,
                "commands": [list(s.argv) for s in c.steps],
            }
            for c in plan.choices
        ],
    }  # fmt: skip
