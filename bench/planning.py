"""What the planner saves: the probes that a question needs, against all that `check` would run.

    python bench/planning.py [--demos NAME ...] [--every]

Each question is put to each shipped demo that records a machine: the plan is followed round by round over the recording,
as the session does, and its conclusions are held against those of all recorded probes. Printed are, for each question,
medians over the demos: probes run, their cost (1 is a command that ends within a second; `assistant.planner.ranking`),
rounds, CPU of the slowest plan, and how often findings of the goal's rules or the verdict differ (0 is what has to be).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from assistant.commands.demo import FOLDER, load, names  # noqa: E402  the checkout comes first on the path
from assistant.diagnosis import Diagnosis, diagnose  # noqa: E402
from assistant.intent.query import Intent, Query, Slots  # noqa: E402
from assistant.machine import Look, bundle  # noqa: E402
from assistant.planner import Goal, goal_of, plan  # noqa: E402
from assistant.planner.ranking import cost  # noqa: E402
from knowledge.observation import Observation  # noqa: E402
from knowledge.symptoms import symptoms  # noqa: E402
from probes.host import Host  # noqa: E402
from probes.live import ProbeSpec  # noqa: E402
from probes.runner import run, select  # noqa: E402
from rules.loader import RuleSet  # noqa: E402
from rules.loader import load as load_rules  # noqa: E402

CODES = (13, 31, 43, 48, 63, 74, 79, 94, 109, 119, 145, 154)


class Machine(NamedTuple):
    """A recorded machine and what all its probes say."""

    name: str
    host: Host
    look: Look
    specs: Sequence[ProbeSpec]
    whole: Diagnosis


class Walk(NamedTuple):
    """A question, followed to its end."""

    goal: Goal
    ran: frozenset[str]  # without those that stand in for one that answered: the runner leaves them out
    rounds: int
    cpu: float  # seconds of the slowest plan
    diagnosis: Diagnosis
    decided: bool


def machines(wanted: Sequence[str], rules: RuleSet) -> Iterator[Machine]:
    """The demos that record a machine."""
    for name in wanted or names():
        story = load(name)
        if not story.get("bundle"):
            continue
        host, look = bundle(str(FOLDER / name / story["bundle"]))
        specs = select(look.recording.probes) if look.recording else select()
        yield Machine(name, host, look, specs, diagnose(look.observations, rules, as_of=look.as_of, whole=True))


def questions() -> list[tuple[str, Query]]:
    """A verdict, each symptom, and codes as something to explain and as a reason to doubt a node."""
    out = [("can I use it", Query("", "en", Intent.VERDICT))]
    out += [(name, Query("", "en", Intent.DIAGNOSE, symptoms=(name,))) for name in sorted(symptoms())]
    out += [(f"xid {code}", Query("", "en", Intent.DIAGNOSE, Slots(xid=(code,)))) for code in CODES]
    return [*out, ("48 then 63, use it", Query("", "en", Intent.VERDICT, Slots(xid=(48, 63)))),
            ("79, use it", Query("", "en", Intent.VERDICT, Slots(xid=(79,))))]  # fmt: skip


def walk(machine: Machine, query: Query, rules: RuleSet) -> Walk:
    """Follow the plan until nothing is left that runs unasked."""
    seen: list[Observation] = []
    ran: set[str] = set()
    did: set[str] = set()
    rounds, slowest = 0, 0.0
    while True:
        diagnosis = diagnose(seen, rules, as_of=machine.look.as_of, whole=True)
        begun = process_time()
        goal = goal_of(query, rules, diagnosis.facts)
        found = plan(goal, diagnosis.facts, rules, machine.specs, ran)
        slowest = max(slowest, process_time() - begun)
        if not found.batch:
            return Walk(goal, frozenset(did), rounds, slowest, diagnosis, found.decided)
        results = run(machine.host, [s for s in machine.specs if s.name in found.batch])
        seen += [o for r in results for o in r.observations]
        ran |= set(found.batch)
        did |= {r.probe for r in results}
        rounds += 1


def differs(walked: Walk, whole: Diagnosis) -> bool:
    """Whether findings of the goal's rules, or a verdict, are others than those of all probes.

    A no that was reached early may leave other findings unseen; the answer to the question is the same.
    """

    def said(d: Diagnosis) -> set[tuple[str, str, str]]:
        rules = walked.goal.rules
        every = (*d.findings, *d.ruled_out)
        return {(f.id, str(f.grade), str(f.advice.bucket)) for f in every if rules is None or f.rule.id in rules}

    if walked.goal.verdict:
        return walked.diagnosis.verdict.usable is not whole.verdict.usable
    return said(walked.diagnosis) != said(whole)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demos", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--every", action="store_true", help="a line for each demo too")
    options = parser.parse_args()
    rules = load_rules()
    recorded = list(machines(options.demos, rules))
    print(f"{'question':26}{'probes':>8}{'of':>4}{'cost':>7}{'of':>7}{'rounds':>8}{'plan ms':>9}{'differs':>9}")
    shares, costs, wrong = [], [], 0
    for label, query in questions():
        walks = [(m, walk(m, query, rules)) for m in recorded]
        bad = [m.name for m, w in walks if differs(w, m.whole)]
        wrong += len(bad)
        every = {s.name: cost(s) for m in recorded for s in m.specs}
        spent = [sum(every[name] for name in w.ran) for _, w in walks]
        full = statistics.median(sum(every[r.probe] for r in m.look.results) for m in recorded)
        count = statistics.median(len(w.ran) for _, w in walks)
        total = statistics.median(len(m.look.results) for m in recorded)
        rounds = statistics.median(w.rounds for _, w in walks)
        slowest = 1000 * statistics.median(w.cpu for _, w in walks)
        price = statistics.median(spent)
        shares.append(count / total)
        costs.append(price / full)
        print(
            f"{label:26}{count:>8g}{total:>4g}{price:>7.2f}{full:>7.2f}{rounds:>8g}{slowest:>9.1f}{len(bad):>9}  {' '.join(bad)}"
        )
        if options.every:
            for m, w in walks:
                print(f"  {m.name:24}{len(w.ran):>8}  {' '.join(sorted(w.ran))}")
    print(f"{len(recorded)} demos, {len(shares)} questions: median {statistics.median(shares):.0%} of the probes and "
          f"{statistics.median(costs):.0%} of their cost; {wrong} of {len(recorded) * len(shares)} answers differ")  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
