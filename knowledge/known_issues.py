"""Known issues: faults of versions of driver, NCCL, DCGM and others, each with the page that says so.

A version that is not known says nothing, and nothing is said of a branch of which the source does not speak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from knowledge.compiled import shard
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.record import dataclass

COMPONENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "driver": ("NVIDIA driver", ("node.driver.version",)),
    "nccl": ("NCCL", ("job.nccl.version", "process.nccl.version")),
    "dcgm": ("DCGM", ("node.dcgm.version",)),
    "fabric_manager": ("Fabric Manager", ("node.fabricmanager.version",)),
    "cuda": ("CUDA", ("node.cuda.version", "process.cuda.version")),
}  # what a component is called, and the facts that tell its version
_BRANCHED = frozenset({"driver", "fabric_manager"})  # their first number is a branch that has fixes of its own
_NUMBERS = lazy(r"\d{1,5}(?:\.\d{1,5}){0,3}")


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """One row."""

    id: str
    component: str
    since: tuple[int, ...]  # first version that has it; empty: the source does not tell
    until: tuple[int, ...]  # last; a shorter one stands for all that begin so
    fixed_in: tuple[str, ...]
    gpus: str
    rules: frozenset[str]
    codes: frozenset[int]  # of XIDs; empty: any
    words: str  # a word that the finding's own lines or title must hold; empty: any
    symptom: Text
    workaround: Text
    source: str

    @property
    def product(self) -> str:
        """What the component is called."""
        return COMPONENTS[self.component][0]

    def affects(self, version: str) -> bool:
        """Whether the source speaks of `version` as one that has it."""
        v = numbers(version)
        if not v or (self.since and v < self.since) or (self.until and v[: len(self.until)] > self.until):
            return False
        fixes = [numbers(f) for f in self.fixed_in]
        if not fixes:
            return True
        if self.component in _BRANCHED:
            fixes = [f for f in fixes if f[0] == v[0]]
        return bool(fixes) and v < max(fixes)


def numbers(version: str) -> tuple[int, ...]:
    """``535.129.03`` as numbers, to be compared; empty when it begins with none (``2.21.5+cuda12.4`` is (2, 21, 5))."""
    found = _NUMBERS.match(version.strip().removeprefix("v"))
    return tuple(map(int, found[0].split("."))) if found else ()


@cache
def known_issues() -> Sequence[KnownIssue]:
    """Every row, in the order of the files."""
    return tuple(
        KnownIssue(
            e["id"], e["component"], numbers(e.get("since") or ""), numbers(e.get("until") or ""), tuple(e.get("fixed_in", ())),
            e.get("gpus", ""), frozenset(e["rules"]), frozenset(e.get("codes", ())), e.get("words", ""),
            Text.of(e["symptom"]),
            Text.of(e["workaround"]) if e.get("workaround") else NO_TEXT, e["source"],
        )
        for e in shard("known_issues")
    )  # fmt: skip
