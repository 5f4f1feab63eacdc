"""What the history costs: writing a check of an 8-GPU node, the file it makes in a day, and reading it.

    python bench/history.py --checks 240

A made-up node, the same for the same seed: every fact about eight GPUs, their 144 links and the node, checked once
a minute; levels jitter, work is counted up, errors now and then, states stay. Beside it the same readings go into
one plain table with the standard library's sqlite3, a row for each reading, with the same pragmas. Printed are
medians and the ratios to that table in the same run; bytes of a day are those of the checks that were made, scaled.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter, process_time

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from assistant.store.codec import KEPT, collect, subject_text  # noqa: E402  the checkout comes first on the path
from assistant.store.location import Location  # noqa: E402
from assistant.store.read import Reader, Wanted, open_reader, over_time  # noqa: E402
from assistant.store.write import Batch, Writer  # noqa: E402
from knowledge.facts import FactSpec, Kind, Type, vocabulary  # noqa: E402
from knowledge.language import Text  # noqa: E402
from knowledge.observation import Clock, Observation, Scope, Source, Subject, Value, gpu, node  # noqa: E402
from rules.loader import load  # noqa: E402

GPUS, LINKS, HOST = 8, 18, "n1"
MINUTE = 60 * 10**9
T0 = 1_700_000_000 * 10**9  # ns
DAY = 1440  # checks
ERRORS = 0.002  # share of counters of errors that move between two checks: a node with a few bad links


class Machine:
    """The node; `read` gives what one check sees."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        home = node(HOST)
        gpus = [gpu(f"0000:{i + 1:02x}:00.0", HOST) for i in range(GPUS)]
        places = {
            Scope.NODE: [home],
            Scope.GPU: gpus,
            Scope.LINK: [Subject(Scope.LINK, str(n), g) for g in gpus for n in range(LINKS)],
        }
        self.known: dict[tuple[str, Subject], Value] = {
            (s.name, where): self._first(s) for s in vocabulary() if not s.derived and s.kind is not Kind.EVENT for where in places.get(s.scope, ())
        }  # fmt: skip

    def _first(self, spec: FactSpec) -> Value:
        match spec.type:
            case Type.BOOL:
                return self.rng.random() < 0.5
            case Type.INT:
                return self.rng.randrange(100)
            case Type.FLOAT:
                return round(self.rng.random() * 100, 2)
            case Type.SET | Type.ENUM:
                return spec.values[:1] if spec.type is Type.SET else (spec.values or ("x",))[0]
            case _:
                return f"{self.rng.randrange(1000)}.{self.rng.randrange(100)}"

    def read(self, at: int) -> list[Observation]:
        """One check."""
        out = []
        for (name, where), value in self.known.items():
            spec = vocabulary()[name]
            if isinstance(value, int | float) and not isinstance(value, bool):
                moves = spec.kind is Kind.GAUGE or (
                    spec.kind is Kind.COUNTER and (spec.unit != "count" or self.rng.random() < ERRORS)
                )
                step = self.rng.randrange(1, 5) * (1 if spec.kind is Kind.COUNTER else self.rng.choice((-1, 1)))
                value = value + step if moves else value
                self.known[name, where] = value
            source = Source("nvml", f"nvmlDeviceGetFieldValues({spec.name})")
            out.append(
                Observation(
                    spec.name, where, value, source=source, at=at, clock=Clock.REALTIME, excerpt=f"{spec.name} {value}"
                )
            )
        return out


class Plain:
    """One table, a row for each reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = wal")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute(
            "CREATE TABLE reading (fact TEXT, subject TEXT, at INTEGER, status TEXT, num REAL, text TEXT, excerpt TEXT)"
        )
        self.connection.execute("CREATE INDEX by_fact ON reading (fact, subject, at)")

    def write(self, observations: list[Observation]) -> None:
        """All readings of one check in one transaction."""
        rows = [
            (o.fact, subject_text(o.subject), o.at, str(o.status), float(o.value) if isinstance(o.value, int | float) else None,
             None if isinstance(o.value, int | float) else str(o.value), o.excerpt)
            for o in observations
        ]  # fmt: skip
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany("INSERT INTO reading VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self.connection.execute("COMMIT")

    def read(self, fact: str, subject: str) -> int:
        """How many readings there are of one fact about one subject; all are fetched."""
        return len(
            self.connection.execute(
                "SELECT at, num FROM reading WHERE fact = ? AND subject = ? ORDER BY at", (fact, subject)
            ).fetchall()
        )


def batch(samples: list[Observation], at: int, watched: frozenset[str]) -> Batch:
    return Batch(HOST, at, "watch", "b", "r", "ok", "yes", Text("fine"), 0, {}, collect(samples), (), (), watched)


def timed(work: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def median(work: Callable[[], object], runs: int = 9) -> float:
    return statistics.median(timed(work) for _ in range(runs))


def at_rest(path: Path) -> int:
    """Bytes of a file once its log is worked in."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


def cpu_of(program: str) -> float:
    """CPU seconds of a fresh Python, the least of three."""
    script = f"import time\n{program}\nprint(time.process_time())"
    return min(
        float(
            subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT).stdout
        )
        for _ in range(3)
    )


def opened(path: Path) -> Reader:
    found = open_reader(Location(path))
    assert found is not None
    return found


def run(checks: int, seed: int, folder: Path) -> None:
    machine, rules = Machine(seed), load().rules
    wanted = over_time(c for r in rules for c in (r.when, *r.confirms, *r.excludes))
    watched = frozenset(wanted)
    history, table = Writer(Location(folder / "history.db"), 30, vocabulary()), Plain(folder / "plain.db")
    first: tuple[float, float] | None = None
    ours: list[float] = []
    theirs: list[float] = []
    cpu: list[float] = []
    rows, begun = 0, (0, 0)
    for number in range(checks):
        at = T0 + number * MINUTE
        seen = machine.read(at)
        rows = len([o for o in seen if o.subject.scope in KEPT])
        if number == 0:
            history.write(batch([], at - MINUTE, watched))  # the tables are made; not what is measured
        data = batch(seen, at, watched)
        spent = process_time()
        a = timed(lambda data=data: history.write(data))  # type: ignore[misc]  # bound at once
        cpu.append(process_time() - spent)
        b = timed(lambda seen=seen: table.write(seen))  # type: ignore[misc]  # bound at once
        if number == 0:
            first = (a, b)
            begun = (at_rest(folder / "history.db"), at_rest(folder / "plain.db"))
        else:
            ours.append(a)
            theirs.append(b)
    assert first is not None
    history.close()
    ends = (at_rest(folder / "history.db"), at_rest(folder / "plain.db"))
    kept = sqlite3.connect(folder / "history.db")
    (stored,) = kept.execute("SELECT count(*) FROM observation").fetchone()
    kept.close()
    say(f"{checks} checks of {rows} readings, {GPUS} GPUs and {GPUS * LINKS} links")
    say(
        f"first check          {first[0] * 1e3:8.1f} ms  {rows / first[0]:9.0f} rows/s  {first[0] / first[1]:6.2f} times the plain table"
    )
    a, b = statistics.median(ours), statistics.median(theirs)
    p90 = statistics.quantiles(ours, n=10)[-1]
    say(
        f"later check          {a * 1e3:8.1f} ms  (90 %: {p90 * 1e3:.1f} ms, CPU {statistics.median(cpu) * 1e3:.1f} ms)  {a / b:6.2f} times the plain table"
    )
    mine, other = ((end - start) * DAY / (checks - 1) / 1e6 for start, end in zip(begun, ends, strict=True))
    say(f"rows kept            {stored / (rows * checks):8.1%} of the readings")
    say(
        f"a day at 60 s        {mine:8.1f} MB  {mine / other:6.3f} times the plain table ({other:.0f} MB); the first check: {begun[0] / 1e6:.1f} MB"
    )
    reading(folder, table, wanted, checks)
    base, writing = cpu_of("pass"), cpu_of("import assistant.store.write")
    light = cpu_of("import assistant.store.read")
    say(
        f"loading to read      {light * 1e3:8.1f} ms CPU, to write {writing * 1e3:.1f} ms CPU (python -c pass: {base * 1e3:.1f} ms)"
    )


def reading(folder: Path, table: Plain, wanted: Mapping[str, Wanted], checks: int) -> None:
    fact, device = "gpu.pcie.replay", gpu("0000:01:00.0", HOST)
    assert fact in wanted
    now = T0 + checks * MINUTE
    with opened(folder / "history.db") as r:
        one = median(lambda: r.series(fact, device))
        points = len(r.series(fact, device).times)
        last = median(lambda: (r.last_run(HOST), r.open_findings(HOST), r.latest(HOST)))
        rules = median(lambda: r.history_observations(HOST, now, wanted))
        count = len(r.history_observations(HOST, now, wanted))
    other = median(lambda: table.read(fact, subject_text(device)))
    say(f"series of {points:5d}      {one * 1e3:8.1f} ms  {one / other:6.2f} times the plain table")
    say(f"since_last           {last * 1e3:8.1f} ms")
    say(f"for rules over time  {rules * 1e3:8.1f} ms  ({count} samples)")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--checks", type=int, default=240, help="how many checks, one a minute (default: 240)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(max(2, args.checks), args.seed, Path(folder))


if __name__ == "__main__":
    main()
