"""One law for whatever tells a fact: it stands in the vocabulary, it was promised, and its subject and value are the fact's.

The registries are the lists: a format, a probe or a derivation that is added is held to it without a line here.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import assistant
from knowledge.derive import derive
from knowledge.facts import vocabulary
from knowledge.observation import Observation, Origin
from probes import registry
from probes.base import Context, Format, LogFormat, lines_of
from probes.bundle import BundleHost
from probes.host import CallKind, Reply
from probes.live import Cost, ProbeRequest, probes
from probes.runner import run
from tests.cases import Faults, in_turns
from tests.probes.parse.vocabulary_check import faults_of

CAPTURES = Path(__file__).parent.parent / "captures"
DEMOS = Path(assistant.__file__).parent / "demos"
HEAD, FOREIGN = 65_536, 8192  # characters that a text is recognised by, and of which the parsers of others are given
HOST = "n1"
# It holds no text of its own: each section of it is read by the format that recognises it, and is named after that one.
MANY = "output-bundle"


class Sample(NamedTuple):
    """A text that stands in the repository, and the format that recognises it."""

    name: str
    text: str
    format: Format | None


@cache
def samples() -> tuple[Sample, ...]:
    """Every different capture, and of the demos one file of each name: the probes read all of them below."""
    captures = [path for path in sorted(CAPTURES.rglob("*")) if path.is_file() and path.name != "README.md"]
    ours = ("story.yaml", "manifest.json")
    demos = {p.name: p for p in sorted(DEMOS.rglob("*"), reverse=True) if p.is_file() and p.name not in ours}
    texts: dict[str, str] = {}
    for path in (*captures, *demos.values()):
        data = path.read_bytes()
        texts.setdefault((gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig"), path.name)
    return tuple(Sample(name, text, registry.sniff(text[:HEAD])) for text, name in texts.items())


def parsed(form: Format, sample: Sample) -> list[Observation]:
    context = Context(sample.name, HOST)
    return (
        form.parse(lines_of(sample.text), context) if isinstance(form, LogFormat) else form.parse(sample.text, context)
    )


def promised(form: Format) -> set[str]:
    every = registry.formats() if form.name == MANY else (form,)
    return {fact for each in every for fact in each.provides}


def hold(found: Sequence[Observation], provides: set[str]) -> None:
    """The law, for what one source told."""
    faults = sorted(set(faults_of(found, provides, instead=True)))
    assert not faults, "\n".join(faults[:9])


# --- formats ------------------------------------------------------------------------------


def test_what_parsers_and_probes_promise_stands_in_the_vocabulary() -> None:
    words = vocabulary()
    named = {fact: home.name for home in (*registry.formats(), *probes()) for fact in home.provides}
    assert {fact: home for fact, home in named.items() if words.current(fact) != fact} == {}
    silent = [home.name for home in (*registry.formats(), *probes()) if not home.provides]
    assert silent == [MANY]


@pytest.mark.slow
def test_a_text_tells_only_what_its_format_promises() -> None:
    with Faults() as faults:
        for sample in samples():
            if sample.format is not None:
                with faults.of(f"{sample.name} as {sample.format.name}"):
                    hold(parsed(sample.format, sample), promised(sample.format))


def kind(sample: Sample) -> tuple[str]:
    """The format that recognises it."""
    return (sample.format.name if sample.format is not None else "",)


@pytest.mark.slow
def test_so_it_does_where_a_format_is_given_the_text_of_another() -> None:
    """Each sample to all that are no logs. Those of logs look for the same lines in any text, and `MANY` for outputs whose own
    formats are held to it above: they are given the first sample of each format, and each third of the others.
    """
    some = [form for form in registry.formats() if isinstance(form, LogFormat) or form.name == MANY]
    always = [form for form in registry.formats() if form not in some]
    with Faults() as faults:
        for sample, forms in in_turns(samples(), some, kind, 3):
            part = sample._replace(text=sample.text[:FOREIGN])
            for form in (*always, *forms):
                if form is not sample.format:
                    with faults.of(f"{sample.name} as {form.name}"):
                        hold(parsed(form, part), promised(form))


# What may stand where a number is expected: nothing, a part of one, and what int(), a float or a name of a fact cannot take.
ODD: tuple[Any, ...] = (
    "", "-", "x", "9", "1.", "0x", "²", "٣", "-1", "nan", "inf", "1e999", "9" * 25, "9" * 5000,
    None, True, [], {}, [None], -1, 1.5, 10**25, 10**400, 1e300, math.nan, math.inf,
)  # fmt: skip
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Where the values of a JSON document stand."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    yield from [path] if path else []
    for key, part in inside:
        yield from places(part, *path, key)


def damaged(text: str, nth: int, odd: object) -> str:
    """`text` with something odd in the place of one of its numbers; in JSON, of one of its values."""
    try:
        whole = json.loads(text)
    except ValueError:
        numbers = list(_NUMBER.finditer(text))
        one = numbers[nth % len(numbers)].span() if numbers else (0, 0)
        return f"{text[: one[0]]}{odd}{text[one[1] :]}"
    found = list(places(whole))
    *path, last = found[nth % len(found)]
    holder = whole
    for key in path:
        holder = holder[key]
    holder[last] = odd
    return json.dumps(whole)


@pytest.mark.slow
@given(
    st.deferred(lambda: st.sampled_from([s.name for s in samples() if s.format is not None])), st.integers(0, 999), st.sampled_from(ODD)
)  # fmt: skip
@example("chronyc-far-off.txt", 3, "²")
@example("dmon.txt", 0, "²")
@example("dmon.txt", 0, "9" * 5000)
@example("exporter-k8s.prom", 0, "²")
@example("exporter-k8s.prom", 77, "²")
@example("exporter-mig-1x.prom", 9, "²")
@example("gpu-exporter.prom", 53, "²")
@example("ip-link.json", 7, 10**400)
@example("lspci.gpu-gone.txt", 25, "9")
@example("mlxlink.sick.json", 6, "²")
@example("mlxlink.sick.json", 14, "²")
@example("ncu-details.csv", 25, "1e999")
@example("ncu-details.csv", 128, "1e999")
@example("ncu-details.csv", 145, "1e999")
@example("open-files.json", 19, 10**400)
@example("systemctl-show.txt", 1, "²")
@example("timesync.txt", 17, "²")
def test_an_odd_number_is_no_error_and_tells_nothing_else(name: str, nth: int, odd: object) -> None:
    sample = next(s for s in samples() if s.name == name)
    assert sample.format is not None
    hold(parsed(sample.format, sample._replace(text=damaged(sample.text, nth, odd))), promised(sample.format))


@pytest.mark.slow
def test_every_format_has_a_sample_that_tells_something() -> None:
    told = {
        sample.format.name
        for sample in samples()
        if sample.format is not None and any(o.value is not None for o in parsed(sample.format, sample))
    }
    assert {form.name for form in registry.formats()} - told == set()


# --- probes -------------------------------------------------------------------------------


class Parrot:
    """A machine with one of each device that answers whatever it is asked with one text."""

    name = HOST
    as_of = 1_795_410_440_000_000_000

    def __init__(self, text: str) -> None:
        self._text = text.encode()

    def read(self, path: str) -> Reply:
        return Reply(CallKind.FILE, (path,), data=b"1\n" if path.endswith("/carrier") else self._text)

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:
        return Reply(CallKind.COMMAND, tuple(argv), data=self._text, exit_code=0)

    def snapshot(self, name: str, *args: str, deadline: float) -> Reply:
        return Reply(CallKind.SNAPSHOT, (name, *args), data=self._text, exit_code=0)

    def files(self, pattern: str) -> list[str]:
        return [
            pattern.replace("[0-9]", "0").replace("*", device) for device in ("0", "eth0", "mlx5_0", "nvme0n1", "sda")
        ]


def told() -> dict[str, dict[object, Observation]]:
    """What each probe tells of the machines of the demos, and of one that answers with a text of which it promises all."""
    out: dict[str, dict[object, Observation]] = {spec.name: {} for spec in probes()}

    def note(name: str, found: Sequence[Observation]) -> None:
        out[name] |= {(o.fact, o.subject, repr(o.value), o.status, o.excerpt, o.detail): o for o in found}

    for folder in DEMOS.glob("*/bundle"):
        for result in run(BundleHost(folder), probes()):
            note(result.probe, result.observations)
    for sample in samples():
        facts = promised(sample.format) if sample.format is not None else set()
        for spec in probes():
            if facts and facts <= set(spec.provides):
                note(spec.name, spec.collect(ProbeRequest(5.0), Parrot(sample.text)))
    return out


@pytest.mark.slow
def test_a_probe_tells_only_what_it_promises() -> None:
    found = told()
    with Faults() as faults:
        for spec in probes():
            with faults.of(spec.name):
                hold(list(found[spec.name].values()), set(spec.provides))
    # Active tests need a GPU and job probes a process: tests/probes/live runs them, and holds them to what they promise.
    elsewhere = {spec.name for spec in probes() if spec.wants or spec.cost is Cost.HEAVY}
    assert {name for name, ones in found.items() if all(o.value is None for o in ones.values())} <= elsewhere


# --- derivations --------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_derived_is_declared() -> None:
    seen = [o for s in samples() if s.format is not None for o in parsed(s.format, s)]
    batch = derive(seen)
    derived = {spec.name for spec in vocabulary() if spec.derived}
    made = [o for o in batch if o.origin is Origin.DERIVED]
    assert made
    hold(made, derived)
    assert {o.fact for o in batch} - {o.fact for o in seen} <= derived
