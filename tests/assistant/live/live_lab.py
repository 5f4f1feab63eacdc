"""Frames of all kinds: each is made of one number, so that hypothesis is quick with many of them."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from assistant.live.frames import LOST, METRICS, SECOND, SILENT, Frame, Gpu, Instance, Proc
from knowledge.language import Text

ADDRESSES = ("0000:1a:00.0", "0000:3b:00.0", "0001:4c:00.0")
_WORDS = ("", "H100", "训练 作业", 'a "b"\n\\', "\x1b[31m", "namespace/pod-1")
_KEYS = sorted(METRICS)
_STATES = ("", "", LOST, SILENT)
_REASONS = ((), ("sw_power_cap",), ("sw_power_cap", "hw_thermal_slowdown"))
_INSTANCES = ((), (Instance("1", 0, "3g.40gb", "MIG-1", 2.0**34, 2.0**35), Instance("9/1", None)))
_TROUBLE = (Text(""), Text("driver unresponsive", "驱动无响应"))


def gpu_at(pci: str, at: int, **values: float) -> Gpu:
    """A GPU that answers."""
    return Gpu(pci, ADDRESSES.index(pci), f"GPU-{pci}", "H100", values, {}, (), "", at)


def _gpu(chance: Random, pci: str, at: int) -> Gpu:
    # a recording keeps three digits behind the point
    values = {
        key: round(chance.choice((0.0, chance.random() * 1e5, float(2**40))), 3) for key in chance.sample(_KEYS, 4)
    }
    missing = {key: f"failed: {chance.choice(_WORDS)}" for key in chance.sample(_KEYS, chance.randrange(3))}
    state = chance.choice(_STATES)
    answered = max(at - chance.randrange(100), 0) if state else at
    return Gpu(pci, chance.choice((None, 0, 7)), chance.choice(_WORDS), chance.choice(_WORDS), values, missing,
               chance.choice(_REASONS), state, answered, chance.choice(_INSTANCES))  # fmt: skip


def _process(chance: Random, pid: int) -> Proc:
    uses = {
        pci: (chance.choice((None, 2**36)), chance.choice((None, 0.0, 55.0))) for pci in chance.sample(ADDRESSES, 2)
    }
    words = [chance.choice(_WORDS) for _ in range(7)]
    where = chance.choice(({}, {ADDRESSES[0]: "1"}))
    return Proc(pid, words[0], words[1], words[2], uses, words[3], words[4], words[5], words[6], where)


def _frame(at: int, number: int) -> Frame:
    chance = Random(number)  # the same number is the same frame
    gpus = tuple(_gpu(chance, pci, at) for pci in chance.sample(ADDRESSES, chance.randrange(4)))
    processes = tuple(_process(chance, pid) for pid in range(1, 1 + chance.randrange(3)))
    return Frame(at, "n1", gpus, processes, chance.choice(_TROUBLE))


def runs(most: int = 12) -> st.SearchStrategy[list[Frame]]:
    """Frames of one machine, each newer than the one before."""
    times = st.dictionaries(st.integers(1, 10**6), st.integers(0, 10**6), max_size=most)
    return times.map(lambda found: [_frame(at * SECOND, number) for at, number in sorted(found.items())])
