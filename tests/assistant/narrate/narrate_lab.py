"""Material of recorded incidents and kernel logs, through the real engine; faithful narratives over them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from assistant.commands import demo
from assistant.diagnosis import Diagnosis, diagnose
from assistant.narrate.fence import Narration, Withheld, judge
from assistant.narrate.material import Material, of_diagnosis
from assistant.sources import parse_text
from rules.loader import load

HERE = Path(__file__).parent
KERNEL = HERE.parent.parent / "incidents" / "kernel_cases.yaml"


@cache
def _kernel_logs() -> dict[str, str]:
    entries = yaml.load(KERNEL.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {e["id"]: e["log"] for e in entries}


@cache
def diagnosis(case: str) -> Diagnosis:
    """A recorded incident (``gpudiag demo``), or one of the kernel logs."""
    if case in demo.names():
        return demo.diagnosed(case, demo.load(case))
    return diagnose(parse_text("kmsg", _kernel_logs()[case]), load())


@cache
def made(case: str, lang: str) -> Material:
    """The material of a case."""
    return of_diagnosis(diagnosis(case), lang)


@cache
def lines(name: str) -> tuple[dict[str, Any], ...]:
    """What stands in a file of narratives or lies beside this one."""
    text = (HERE / f"{name}.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def faithful() -> tuple[dict[str, Any], ...]:
    """Narratives that say what was found, written by the prompt and without a look at the fence."""
    return lines("faithful")


def say(material: Material, *sentences: dict[str, Any]) -> Narration | Withheld:
    """The fence over these sentences."""
    return judge(material, json.dumps({"sentences": list(sentences)}, ensure_ascii=False))
