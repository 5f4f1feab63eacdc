"""What each sign of a sentence is worth, learned from labelled examples.

Multinomial logistic regression over the signs of `assistant.intent.features`, fitted by stochastic gradient descent with a
step per weight (AdaGrad: Duchi, Hazan and Singer 2011, "Adaptive Subgradient Methods"). Fitted in a fixed order and from a
fixed seed; what is kept are whole numbers in ``weights.json``, so that the same sentence weighs the same everywhere.
Nothing here is hidden: `reasons` tells which signs decided.

    python -m assistant.intent.weights --write     fits them again (a quarter of a minute): after a change of the examples
    python -m assistant.intent.weights --check     exit code 1 when they belong to other examples or other signs
"""

from __future__ import annotations

import json
import math
import random
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from assistant.intent.query import BY_PHRASE, Intent
from knowledge import compiled

FILE = Path(__file__).with_name("weights.json")
FITTING = 1  # grows when the fitting itself changes
INTENTS = tuple(i for i in Intent if i not in BY_PHRASE)
SCALE = 100
EPOCHS, STEP, DECAY = 4, 0.5, 1e-4
SEEN = 2  # examples that must show a sign: what one sentence alone has is chance
BUCKETS = 256
LEAST = 8  # weights below say nothing
_SEED = 1


def likely(signs: Mapping[str, float]) -> list[tuple[Intent, float]]:
    """The intents of a sentence with these signs, the likeliest first, with their share of 1."""
    sums = [0.0] * len(INTENTS)
    for sign, value in signs.items():
        for number, weight in _weights(sign):
            sums[number] += value * weight / SCALE
    return sorted(zip(INTENTS, _shares(sums), strict=True), key=lambda pair: -pair[1])


def reasons(signs: Mapping[str, float], intent: Intent, most: int = 5) -> list[tuple[str, float]]:
    """The signs that spoke most for `intent`, with their weight."""
    number = INTENTS.index(intent)
    found = [(sign, value * dict(_weights(sign)).get(number, 0) / SCALE) for sign, value in signs.items()]
    return sorted((pair for pair in found if pair[1] > 0), key=lambda pair: -pair[1])[:most]


def example(words: Sequence[str]) -> Intent | None:
    """The intent of the example that says just this."""
    text: str = _data()["examples"]
    key = f"\n{said(words)}\t"
    at = text.find(key)
    return INTENTS[int(text[at + len(key) : text.index("\n", at + 1)])] if at >= 0 else None


def said(words: Sequence[str]) -> str:
    """The words of a sentence as examples are found by."""
    return " ".join(w for w in words if w not in (",", "!"))


@cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(FILE.read_bytes())
    return data


@lru_cache(maxsize=4096)
def _weights(sign: str) -> Sequence[tuple[int, int]]:
    lines: str = _data()["weights"][_bucket(sign)]
    key = f"\n{sign}\t"
    at = lines.find(key)
    if at < 0:
        return ()
    numbers = list(map(int, lines[at + len(key) : lines.index("\n", at + 1)].split(" ")))
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _bucket(sign: str) -> int:
    return zlib.crc32(sign.encode(errors="replace")) % BUCKETS


def _shares(sums: Sequence[float]) -> list[float]:
    top = max(sums)
    powers = [math.exp(x - top) for x in sums]
    total = sum(powers)
    return [x / total for x in powers]


def build() -> dict[str, Any]:
    """The weights as plain data. FaultsError when the examples have faults."""
    rows: list[tuple[dict[str, float], int]] = []
    exact: dict[str, set[int]] = {}
    for signs, number, key in _examples():
        rows.append((signs, number))
        exact.setdefault(key, set()).add(number)
    counts = Counter(sign for signs, _ in rows for sign in signs)
    rows = [({s: v for s, v in signs.items() if counts[s] >= SEEN}, number) for signs, number in rows]
    lines = [["\n"] for _ in range(BUCKETS)]
    for sign, weights in sorted(_fit(rows).items()):
        kept = [(n, round(w * SCALE)) for n, w in enumerate(weights) if abs(w) * SCALE >= LEAST]
        if kept:
            lines[_bucket(sign)].append(f"{sign}\t{' '.join(f'{n} {w}' for n, w in kept)}\n")
    known = "".join(f"{key}\t{next(iter(numbers))}\n" for key, numbers in sorted(exact.items()) if len(numbers) == 1)
    return {"made_from": made_from(), "weights": ["".join(bucket) for bucket in lines], "examples": f"\n{known}"}


def _examples() -> Iterator[tuple[dict[str, float], int, str]]:
    from assistant.intent.features import features
    from assistant.intent.intents import hint
    from assistant.intent.reading import read
    from knowledge.examples import examples

    for text, intent, tuned in examples():
        reading = read(text)
        if not reading.raw:
            signs = features(reading, None if tuned else hint(reading.sentence))
            yield signs, INTENTS.index(Intent(intent)), said(reading.words)


def _fit(rows: Sequence[tuple[Mapping[str, float], int]]) -> dict[str, list[float]]:
    """Sign -> weight for each intent."""
    many = len(INTENTS)
    weights: dict[str, list[float]] = defaultdict(lambda: [0.0] * many)
    squares: dict[str, list[float]] = defaultdict(lambda: [1e-2] * many)
    order = list(range(len(rows)))
    shuffled = random.Random(_SEED)
    for _ in range(EPOCHS):
        shuffled.shuffle(order)
        for at in order:
            signs, number = rows[at]
            held = [(value, weights[sign], squares[sign]) for sign, value in signs.items()]
            scaled = [weight if value == 1.0 else [value * w for w in weight] for value, weight, _ in held]
            sums = list(map(sum, zip(*scaled, strict=True)))
            shares = _shares(sums)
            shares[number] -= 1.0
            wrong = [n for n in range(many) if abs(shares[n]) > 3e-3]
            for value, weight, square in held:
                for n in wrong:
                    slope = shares[n] * value + DECAY * weight[n]
                    square[n] += slope * slope
                    weight[n] -= STEP * slope / math.sqrt(square[n])
    return weights


def made_from() -> str:
    """Checksum of what the weights are fitted from. Not of the phrases: a changed phrase is worth what phrases are worth."""
    low, length = 0, 0
    for path in (*compiled.shard_files("examples"), Path(__file__).with_name("features.py")):
        content = path.read_bytes()
        low, length = zlib.crc32(content, low), length + len(content)
    return f"{low:08x}-{length:x}-{FITTING}"


def main(argv: Sequence[str]) -> int:
    """Write the file, or say whether it is stale."""
    if list(argv) == ["--write"]:
        from knowledge.whole import replace_file

        replace_file(FILE, (json.dumps(build(), ensure_ascii=False, indent=0) + "\n").encode())
        FILE.chmod(0o644)
        return 0
    if list(argv) == ["--check"]:
        if _data()["made_from"] == made_from():
            return 0
        sys.stderr.write("assistant/intent/weights.json is stale: python -m assistant.intent.weights --write\n")
        return 1
    sys.stderr.write("usage: python -m assistant.intent.weights --write | --check\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
