"""How long the rules take: CPU seconds of evaluating the whole shipped catalogue.

    python bench/engine.py --runs 5

Two made-up batches, the same for the same seed: a node with eight GPUs, every gpu.* and link.*
fact and 144 links; and a kernel log of 20,000 XIDs of the GPUs of one node. Printed are the medians of
building the fact base and of evaluating, each in CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from knowledge.facts import FactSpec, Kind, Type, vocabulary  # noqa: E402  the checkout comes first on the path
from knowledge.observation import Clock, Event, Observation, Scope, Source, Status, Subject, Value, gpu, node  # noqa: E402
from rules.engine import run  # noqa: E402
from rules.factbase import FactBase  # noqa: E402
from rules.loader import load  # noqa: E402

NOW = 1_700_000_000 * 10**9  # ns
GPUS, LINKS = 8, 18  # of a node, of a GPU
CODES = (13, 31, 43, 45, 48, 63, 74, 79, 92, 94, 95, 119, 145, 154)


def value_of(spec: FactSpec, rng: random.Random) -> Value:
    """Some value that the fact accepts."""
    match spec.type:
        case Type.BOOL:
            return rng.random() < 0.9
        case Type.INT:
            return rng.randrange(100)
        case Type.FLOAT:
            return rng.random() * 100
        case Type.ENUM:
            return rng.choice(spec.values)
        case Type.SET:
            return spec.values[:1]
        case Type.SUBJECT:
            return f"gpu:0000:{rng.randrange(1, GPUS + 1):02x}:00.0"
        case _:
            return f"{rng.randrange(1000)}.{rng.randrange(100)}"


def one_node(rng: random.Random) -> list[Observation]:
    """Every fact of GPUs and links, once for each of them."""
    specs = [s for s in vocabulary() if s.kind is not Kind.EVENT]
    source = Source("bench", "node.txt", 1)
    out: list[Observation] = []
    for index in range(1, GPUS + 1):
        device = gpu(f"0000:{index:02x}:00.0", "n1")
        out += [Observation(s.name, device, value_of(s, rng), source=source) for s in specs if s.scope is Scope.GPU]
        for number in range(LINKS):
            link = Subject(Scope.LINK, str(number), device)
            out += [Observation(s.name, link, value_of(s, rng), source=source) for s in specs if s.scope is Scope.LINK]
    return out


def many_events(rng: random.Random, count: int, nodes: int) -> list[Observation]:
    """Kernel logs of `nodes` nodes, full of XIDs in the course of a day."""
    out: list[Observation] = []
    for number in range(count):
        device = gpu(f"0000:{rng.randrange(1, GPUS + 1):02x}:00.0", f"n{rng.randrange(nodes)}")
        event = Event(rng.choice(CODES), {"pid": rng.randrange(1, 99999)})
        at = NOW - rng.randrange(86400 * 10**9)
        out.append(
            Observation("xid", device, event, Status.OK, Source("kernel-log", "kern.log", number), at, Clock.REALTIME)
        )
    quiet = (node(f"n{host}") for host in range(nodes))
    source = Source("kernel-log", "kern.log")
    out.extend(Observation("xid", here, None, Status.NONE_SEEN, source) for here in quiet)
    return out


def measure(batch: Sequence[Observation], runs: int) -> tuple[float, float, str]:
    """Median seconds of building and of evaluating, and what was found; a fact base of its own for each run."""
    rules, vocab = load().rules, vocabulary()
    builds, evaluations, said = [], [], ""
    for _ in range(runs):
        start = process_time()
        facts = FactBase(batch, vocab, NOW)
        built = process_time()
        result = run(rules, facts)
        evaluations.append(process_time() - built)
        builds.append(built - start)
        said = f"{result.rules_tried} conditions, {len(result.findings)} findings"
    return statistics.median(builds), statistics.median(evaluations), said


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each batch (5)")
    parser.add_argument("--events", type=int, default=20_000, help="XIDs in the log (20000)")
    parser.add_argument("--nodes", type=int, default=1, help="nodes that the XIDs are of, eight GPUs each (1)")
    parser.add_argument("--seed", type=int, default=7, help="of the batches (7)")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    batches = {
        f"node, {GPUS} GPUs, {GPUS * LINKS} links": one_node(rng),
        f"log, {options.events} XIDs, {options.nodes} nodes": many_events(rng, options.events, options.nodes),
    }
    print(f"{'batch':28}{'observations':>13}{'build s':>9}{'rules s':>9}  result")
    for name, batch in batches.items():
        build, evaluation, said = measure(batch, max(1, options.runs))
        print(f"{name:28}{len(batch):>13}{build:>9.3f}{evaluation:>9.3f}  {said}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
