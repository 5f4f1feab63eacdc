"""Material of recorded incidents and kernel logs, through the real engine; faithful narratives over them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from assistant.commands import demo
from assistant.diagnosis import Diagnosis
from assistant.narrate.fence import Narration, Withheld, judge
from assistant.narrate.material import Material, of_diagnosis
from tests.diagnoses import incident, of_log
from tests.incidents.kernel_cases import cases

HERE = Path(__file__).parent


def diagnosis(case: str) -> Diagnosis:
    """A recorded incident (``gpudiag demo``), or one of the kernel logs."""
    return incident(case) if case in demo.names() else of_log(next(c.log for c in cases() if c.id == case))


@cache
def made(case: str, lang: str) -> Material:
    """The material of a case."""
    return of_diagnosis(diagnosis(case), lang)


@cache
def _lines(file: Path) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


def faithful() -> tuple[dict[str, Any], ...]:
    """Narratives that say what was found, written by the prompt and without a look at the fence."""
    return _lines(HERE / "faithful.jsonl")


@dataclass(frozen=True)
class Lie:
    """What somebody wrote that the material does not hold."""

    case: str
    lang: str
    sentences: tuple[tuple[str, tuple[str, ...]], ...]  # each with what it cites
    why: str
    blind: bool  # written from the material alone, by someone who had not read the fence

    def __str__(self) -> str:
        return f"{self.case}, {self.lang}: {' '.join(text for text, _ in self.sentences)}"

    def told(self) -> Narration | Withheld:
        """What the fence makes of it."""
        said = [{"text": text, "cites": list(cites)} for text, cites in self.sentences]
        return say(made(self.case, self.lang), *said)


LIES = tuple(sorted(path.stem for path in (HERE / "lies").glob("*.jsonl")))  # the classes


@cache
def lies(name: str) -> tuple[Lie, ...]:
    """The lies of a class. A line stands for several: ``[one|other]`` in its text, and each of its cases and cites."""
    out = []
    for line in _lines(HERE / "lies" / f"{name}.jsonl"):
        cases = line["case"] if isinstance(line["case"], list) else [line["case"]]
        said = [_variants(s["text"], s["cites"]) for s in line.get("say", [line])]
        for case, *sentences in product(cases, *said):
            out.append(Lie(case, line["lang"], tuple(sentences), line.get("why", ""), line.get("blind", False)))
    return tuple(out)


def _variants(text: str, cites: list[Any]) -> list[tuple[str, tuple[str, ...]]]:
    split = re.split(r"\[([^\]]*)\]", text)
    parts = [part.split("|") if n % 2 else [part] for n, part in enumerate(split)]
    of_each = cites if isinstance(cites[0], list) else [cites]
    return [("".join(words), tuple(cited)) for words in product(*parts) for cited in of_each]


def say(material: Material, *sentences: dict[str, Any]) -> Narration | Withheld:
    """The fence over these sentences."""
    return judge(material, json.dumps({"sentences": list(sentences)}, ensure_ascii=False))
