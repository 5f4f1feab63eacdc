"""What GPUs do with which nothing is wrong, in one sentence with its figures: a load that is as it should be is told as such."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from assistant.render.labels import gpu_numbers, headline
from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Scope, Status, Subject
from rules.engine import ranges
from rules.factbase import FactBase
from rules.model import facts_named

FIGURES = Text(
    "[busy {gpu.work.busy} %, working {gpu.work.share} %|busy {gpu.work.busy} %|working {gpu.work.share} %|tensor active {gpu.activity.tensor} %, DRAM active {gpu.activity.dram} %|DRAM active {gpu.activity.dram} %|tensor active {gpu.activity.tensor} %][ ({gpu.work.power} of {gpu.work.power.limit} W)| ({gpu.work.power} W)]",
    "[忙碌 {gpu.work.busy} %，工作 {gpu.work.share} %|忙碌 {gpu.work.busy} %|工作 {gpu.work.share} %|tensor active {gpu.activity.tensor} %，DRAM active {gpu.activity.dram} %|DRAM active {gpu.activity.dram} %|tensor active {gpu.activity.tensor} %][（{gpu.work.power}/{gpu.work.power.limit} W）|（{gpu.work.power} W）]",
)
_NAMES = facts_named(FIGURES.en)
# Worth a word; that a GPU works, or is idle and free, goes without saying.
HELD = ("held_idle", "allocated_idle")
TOLD = ("tensor_bound", "memory_bound", *HELD)


def at_work(facts: FactBase, told: Sequence[str] = TOLD) -> Text | None:
    """``8 GPUs: busy 97 to 99 %, working 91 to 94 % (640 to 698 of 700 W): bound by their tensor cores``: of what most do."""
    found: dict[str, list[Subject]] = defaultdict(list)
    for gpu in facts.subjects(Scope.GPU):
        o = facts.current("gpu.work.class", gpu)
        if o is not None and o.status is Status.OK and o.value in told:
            found[str(o.value)].append(gpu)
    if not found:
        return None
    kind = max(found, key=lambda k: (len(found[k]), -told.index(k)))
    figures = ranges(FIGURES, [_known(facts, gpu) for gpu in found[kind]])
    words, called = vocabulary()["gpu.work.class"].labels[kind], gpu_numbers(facts)
    said = Text(f"{figures.en}: {words.en}", f"{figures.in_('zh')}：{words.in_('zh')}")
    named = len({s.id for s in facts.subjects(Scope.NODE) if s.id}) > 1
    return Text(
        *(
            f"{headline(said, found[kind], lang, named=named, called=called)}{end}"
            for lang, end in (("en", "."), ("zh", "。"))
        )
    )


def _known(facts: FactBase, gpu: Subject) -> dict[str, float]:
    read = ((name, facts.current(name, gpu)) for name in _NAMES)
    return {
        n: float(o.value)
        for n, o in read
        if o is not None and o.status is Status.OK and isinstance(o.value, int | float)
    }
