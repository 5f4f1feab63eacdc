"""Answers from folded logs, next to those of a slow reader that keeps every line.

    python bench/fold_reference.py --logs 2000

makes seeded logs of what the rules' own tests are given: kernel lines and job output in bursts, of several nodes and GPUs, among
chatter. Each log is read twice, with the folds and limits of ``check`` and with a fold that folds nothing, and both are diagnosed.
Verdict, findings with grade, role, severity, what is undecided, what was ruled out and the number of events must be the same;
counts, first and last times as well, apart from rules that count bursts: of those that are far apart in a long log some are one.
Where the folded log says "at least" in a title, the number may be less.
A seed whose answers differ is printed with the difference; ``--seed N --logs 1 --print`` shows its log. ``--jobs`` processes share
the work. ``--longer 10`` makes bursts of 2,000 blocks of those of 200: most logs are folded then. ``--flood`` folds as behind the lines
that a log keeps whole: how far answers go apart in a flood. Where both readers hand the formats the same lines nothing else is
compared: an answer depends on nothing else.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import random
import re
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from assistant.diagnosis import Diagnosis, diagnose  # noqa: E402  the checkout comes first on the path
from knowledge.language import Text  # noqa: E402
from knowledge.observation import Observation, how_many  # noqa: E402
from probes._scan_fold import KEPT, Fold, Folded, Limits, Run, new  # noqa: E402
from probes._scan_windows import EDGE, KEEP  # noqa: E402
from probes.base import Context, Line, LogFormat  # noqa: E402
from probes.registry import log_formats  # noqa: E402
from probes.scan import ScanResult, scan  # noqa: E402
from rules.loader import load, shipped  # noqa: E402

MUCH = 1 << 40
STAMP = re.compile(r"^(?:\[ *\d+\.\d+\] |<\d+>|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ )")
TAGGED = re.compile(r"[a-z][a-z0-9_-]*(\[\d+\])?: ")
CHATTER = (
    "kernel: docker0: port {n}(veth{x:x}) entered forwarding state",
    "kernel: mlx5_core 0000:{c:02x}:00.0 ibp{n}s0: Link up",
    "systemd[1]: Started Session {x} of User user{n}.",
    "nv-hostengine[2901]: INFO: watched fields updated for group {n}",
    "kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.{n}.08",
)


def given() -> tuple[list[list[str]], list[list[str]]]:
    """Kernel lines without their times, and output of jobs, of each test of a rule."""
    kernel, job = [], []
    for _, data in shipped().values():
        for test in data.get("tests", ()):
            for kind, texts in (("kmsg", kernel), ("log", job)):
                if isinstance(text := test["given"].get(kind), str) and text.strip():
                    lines = text.rstrip("\n").split("\n")
                    texts.append([STAMP.sub("", line) for line in lines] if kind == "kmsg" else lines)
    return kernel, job


def stamped(at: int, host: str, line: str) -> str:
    """A line of syslog."""
    clock = f"Nov {1 + at // 86400:2d} {at // 3600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d}"
    return f"{clock} {host} {line if TAGGED.match(line) else f'kernel: {line}'}"


def made(seed: int, kernel: list[list[str]], job: list[list[str]], longer: int = 1) -> Iterator[str]:
    """One log, its bursts `longer`."""
    r = random.Random(seed)
    at = r.randrange(80_000)
    hosts = [f"n{i}" for i in range(r.choice((1, 1, 2, 5)))]
    chosen = r.sample(kernel, r.randrange(4)) + r.sample(job, r.randrange(3))
    for block in r.choices(chosen, k=r.randrange(1, 8)) if chosen else [[]]:
        own, apart = block in kernel, r.choice((0, 1, 7, 60, 900, 5000))
        times = r.choice((1, 1, 3, 20, 60, 200)) if len(block) < 8 else r.choice((1, 1, 3, 20))
        host = r.choice(hosts)
        for _ in range(times * longer):
            at = min(at + apart, 28 * 86_400)
            for line in block:
                fresh = re.sub(r"pid=\d+", f"pid={r.randrange(1000, 99_999)}", line)
                yield stamped(at, host, fresh) if own else fresh
        for _ in range(r.choice((0, 0, 3, 40, 400))):
            at = min(at + r.randrange(3), 28 * 86_400)
            words = {"n": r.randrange(30), "x": r.randrange(1 << 24), "c": r.randrange(99)}
            yield stamped(at, r.choice(hosts), r.choice(CHATTER).format(**words))


class Every:
    """A fold that keeps every line."""

    lost = 0

    def lines(self, data: bytes, start: int, end: int, places: array[int], number: int) -> Folded:
        """See `probes._scan_fold.Fold`."""
        numbers = array("q", (number + data.count(b"\n", start, head) for head in places[::2]))
        return Folded(array("q", [KEPT]) * len(numbers), numbers, number + data.count(b"\n", start, end))

    def runs(self) -> list[Run]:
        """None."""
        return []


def seen(text: bytes, fold: Callable[[], Fold], keep: int) -> ScanResult:
    """What is observed of the lines that `fold` keeps."""
    return scan([io.BytesIO(text)], log_formats(), fold=fold, keep=keep)


def handed(text: bytes, fold: Callable[[], Fold], keep: int) -> tuple[object, ...]:
    """The lines that each format gets, how many each stands for, and the notes: all that a reader's answer depends on."""
    got: list[object] = []

    def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
        got.append((lines, context.times))
        return []

    formats: list[LogFormat] = [replace(f, sniff=lambda _: 1, parse=parse) for f in log_formats()]
    return (got, scan([io.BytesIO(text)], formats, fold=fold, keep=keep).notes)


def concluded(read: ScanResult) -> Diagnosis:
    """The answer."""
    return diagnose(read.observations, load(), notes=[str(n) for n in read.notes])


LEAST = re.compile(r"\b[Aa]t least (\d+)")


def least(slow: Diagnosis, fast: Diagnosis) -> frozenset[str]:
    """The findings of which the folded log says the least, where every line tells no less."""
    whole = {f.id: f.title.en for f in slow.findings}
    said = {f.id: int(m[1]) for f in fast.findings if (m := LEAST.search(f.title.en))}
    return frozenset(i for i, n in said.items() if (m := re.search(r"\d+", whole.get(i, ""))) and int(m[0]) >= n)


def told(d: Diagnosis, least: frozenset[str]) -> dict[str, object]:
    """What has to be the same; of the findings `least` not how many there are."""
    counted = [f for f in d.findings if f.id not in least and not re.search(r"gap=\d", repr(f.rule.when))]
    said = d.verdict.text
    for f in d.findings:
        if f.id in least:
            said = Text(said.en.replace(f.title.en, f.id), said.zh.replace(f.title.zh, f.id))
    return {
        "verdict": replace(d.verdict, text=said),
        "findings": [(f.id, f.grade, f.role, f.severity, f.advice.bucket) for f in d.findings],
        "titles": [(f.id, f.title) for f in counted],
        "times": [(f.id, f.times) for f in counted],
        "counts": [(f.id, f.count) for f in counted],
        "undecided": sorted((u.rule.id, str(u.subject)) for u in d.undecided),
        "ruled out": sorted(f.id for f in d.ruled_out),
        "events": how_many(d.events),
        "notes": list(d.notes),
    }


Texts = list[list[str]]
Compared = tuple[int, int, bool, str]  # seed, lines, whether lines were folded, the difference


def compared(limits: Limits, kernel: Texts, job: Texts, longer: int, seed: int) -> Compared:
    """One log, read twice."""
    head = b"" if limits.whole else b"\n" * EDGE  # nothing is folded in the beginning of a log
    text = head + "\n".join(made(seed, kernel, job, longer)).encode() + b"\n"
    lines = text.count(b"\n")
    ways: tuple[tuple[Callable[[], Fold], int], ...] = ((Every, MUCH), (partial(new, limits), KEEP))
    every, folded = (handed(text, *way) for way in ways)
    if every == folded:
        return seed, lines, False, ""
    whole, part = (seen(text, *way) for way in ways)
    if (whole.observations, whole.notes) == (part.observations, part.notes):
        return seed, lines, True, ""
    answers = [concluded(read) for read in (whole, part)]
    fewer = least(*answers)
    slow, fast = (told(answer, fewer) for answer in answers)
    apart = (
        f"seed {seed}, {name}:\n  every line {_only(slow[name], fast[name])}\n  folded     {_only(fast[name], slow[name])}"
        for name in slow
        if slow[name] != fast[name]
    )
    return seed, lines, True, "\n".join(apart)


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=2000, help="how many logs (2000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work (1)")
    parser.add_argument("--longer", type=int, default=1, help="bursts so many times as long (1)")
    parser.add_argument("--print", action="store_true", help="show the logs")
    parser.add_argument("--flood", action="store_true", help="keep no lines whole")
    options = parser.parse_args()
    limits = Limits(whole=0, calm_whole=0) if options.flood else Limits()
    kernel, job = given()
    seeds = range(options.seed, options.seed + options.logs)
    if options.print:
        for seed in seeds:
            sys.stdout.write("\n".join(made(seed, kernel, job, options.longer)) + "\n")
    load()  # once, ahead of the fork
    lines = folded = differ = 0
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for _, many, some, difference in pool.imap_unordered(
            partial(compared, limits, kernel, job, options.longer), seeds
        ):
            lines += many
            folded += some
            if difference:
                differ += 1
                print(difference, flush=True)
    print(f"{options.logs} logs, {lines} lines; lines were folded in {folded}; answers differ in {differ}")
    return 1 if differ else 0


def _only(one: object, other: object) -> object:
    """Of two lists what the first has alone."""
    return [x for x in one if x not in other] if isinstance(one, list) and isinstance(other, list) else one


if __name__ == "__main__":
    raise SystemExit(main())
