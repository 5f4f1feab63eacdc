"""From a recording of stacks to what the history keeps: how often each stack was met in each ten seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assistant.store.profiles import RAW, S, Sampled, Stack
from knowledge.text import clean, excerpt

OTHER = "(other stacks)"
MOST = 2_000  # distinct stacks of ten seconds; the rarest are one beyond
_SITE = re.compile(r"^.*/(?:site-packages|dist-packages|lib/python\d\.\d+)/")
_NUMBER = re.compile(r"(?<=[-_ ])\d+")


def folded(document: Mapping[str, Any], boot_id: str, pid: int, start: int, title: str, offset: int) -> list[Sampled]:
    """The samples of a recording (the StackDoc of `probes.capture.stacks.stacks`), by ten seconds.

    `offset` is realtime less monotonic, ns. Threads that stood at one place for the whole recording are left out,
    unless they are the main one: a pool that waits for work is not what anybody looks for.
    """
    frames = [_frame(f) for f in document.get("frames", ())]
    stacks = document.get("stacks", ())
    found: dict[int, dict[Stack, int]] = {}
    period = S / max(float(document.get("rate") or 1), 0.01)
    for tid, thread in sorted(document.get("threads", {}).items()):
        samples = thread.get("samples", ())
        name = thread_name(str(thread.get("name", "")))
        if not samples or (len({row[2] for row in samples}) == 1 and str(tid) != str(pid)):
            continue
        for at, count, number in _met(samples, period):
            stack: Stack = (name, *(frames[i] for i in stacks[number]))
            bucket = found.setdefault((at + offset) // (RAW * S) * RAW * S, {})
            bucket[stack] = bucket.get(stack, 0) + count
    return [Sampled(boot_id, pid, start, excerpt(title, 200), at, limited(found[at])) for at in sorted(found)]


def _met(samples: Sequence[Sequence[int]], period: float) -> Iterator[tuple[int, int, int]]:
    """Each sampling of a stretch in which a thread stood still: when, how often, in which stack.

    A stretch is as many samples as periods fit, and at least one; it is laid out over the ten seconds that it spans.
    """
    for at, lasted, number in samples:
        left = max(1, round(lasted / period))
        moment = at
        while left > 0:
            edge = (moment // (RAW * S) + 1) * RAW * S
            here = min(left, max(1, round((edge - moment) / period)))
            yield int(moment), here, number
            moment, left = edge, left - here


def limited(stacks: Mapping[Stack, int], most: int = MOST) -> dict[Stack, int]:
    """The stacks met most, and one that stands for the rest: the sum stays."""
    if len(stacks) <= most:
        return dict(stacks)
    order = sorted(stacks.items(), key=lambda item: (-item[1], item[0]))
    out = dict(order[: most - 1])
    rest = sum(count for _, count in order[most - 1 :])
    out[(OTHER,)] = out.get((OTHER,), 0) + rest
    return out


def thread_name(name: str) -> str:
    """``Thread-12 (work)`` -> ``Thread-* (work)``: threads of one kind are one place."""
    return _NUMBER.sub("*", excerpt(name or "thread", 80))


def _frame(frame: Sequence[Any]) -> str:
    """``step (train.py)``: without the line, so that an edit above it does not make it another function."""
    name, file = str(frame[0]), _SITE.sub("", str(frame[1]))
    return clean(f"{name} ({file})" if file else name)
