"""Which NVLinks of a GPU are down, from the state of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject

FACT = "gpu.nvlink.down_links"


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with the numbers of the links that are down, of each GPU that has any: what its latest source says."""
    down: dict[Subject, list[Observation]] = defaultdict(list)
    for o in observations:
        holder = o.subject.parent if o.subject.scope is Scope.LINK else None
        if o.fact != "link.state" or holder is None or holder.scope is not Scope.GPU or o.status is not Status.OK:
            continue
        if o.value == "inactive" and o.subject.id.isdigit() and not o.source.call.startswith("history:"):
            down[holder].append(o)
    out = list(observations)
    for gpu, found in down.items():
        last = max(found, key=lambda o: o.at or 0)
        told = [o for o in found if o.source.call == last.source.call and o.at == last.at]
        numbers = tuple(map(str, sorted({int(o.subject.id) for o in told})))
        source = Source("derived", last.source.call, told[0].source.line)
        out.append(
            Observation(FACT, gpu, numbers, source=source, at=last.at, clock=last.clock, origin=Origin.DERIVED,
                        excerpt=f"inactive links: {', '.join(numbers)}")
        )  # fmt: skip
    return out
