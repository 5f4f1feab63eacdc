"""The decisive detail stands in the headline: which port, rank, link or part, for every rule that reads events."""

from __future__ import annotations

import pytest

from assistant.diagnosis import diagnose
from assistant.render.labels import headline, titled
from assistant.sources import parse_text
from knowledge.facts import vocabulary
from knowledge.observation import Event
from knowledge.text import clean, excerpt
from rules.engine import Finding, run
from rules.loader import load
from rules.testing import facts_of_case
from tests.cases import Faults

# What tells one thing from others of its kind, wherever it stands among the fields of an event.
NAMES = {"device", "interface", "hca", "slot", "server", "ring", "cpu", "sensor", "link", "host"}
TITLES = [r.title.en for r in load().rules]


def told(f: Finding) -> list[str]:
    """What the first event of a finding tells of its place."""
    o = f.events[0]
    out = (
        [clean(excerpt(part, 100)) for part in vocabulary()[o.fact].place(o.value)]
        if isinstance(o.value, Event)
        else []
    )
    part = o.subject != f.subject and f.subject in o.subject.ancestors()
    return [*out, o.subject.id] if part and o.subject.id else out


@pytest.mark.slow
def test_every_rule_says_which_of_many_it_is() -> None:
    with Faults() as faults:
        for r in load().rules:
            for case in r.tests:
                if case.expect != "matched":
                    continue
                for f in run([r], facts_of_case(case, parse_text)).findings:
                    if f.events:
                        with faults.of(f"{r.id}: {case.name}"):
                            said = headline(titled([f]), [f.subject], "en") + (f.program.words.en if f.program else "")
                            assert [
                                word for word in told(f) if word.rpartition(" ")[2].lower() not in said.lower()
                            ] == []


def test_every_event_that_names_a_thing_says_how_a_headline_calls_it() -> None:
    for spec in vocabulary():
        said = " ".join([*(part.en for part in spec.which), *TITLES])
        assert [n for n in NAMES & spec.fields.keys() if f"{{{n}" not in said] == [], spec.name


def test_a_rank_is_named_though_its_number_stands_in_the_title() -> None:
    text = """[rank8]: Traceback (most recent call last):
[rank8]:   File "/w/t.py", line 3, in read
[rank8]: FileNotFoundError: [Errno 2] No such file or directory: '/data/shard_8.bin'
[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.
"""
    assert "(rank 8)" in diagnose(parse_text("log", text), load()).verdict.text.en


def test_what_two_lines_say_of_one_thing_is_said_once() -> None:
    text = """Allocator (GPU_0_bfc) ran out of memory trying to allocate 12.50GiB (rounded to 13421772800)requested by op
jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 13421772800 bytes.
"""
    assert "(GPU 0, asked for 12800 MiB)" in diagnose(parse_text("log", text), load()).verdict.text.en


LINK = "2026-06-16T16:{}+00:00 n1 kernel: mlx5_core 0000:5e:00.0 ens5: Link {}\n"


def test_what_went_away_again_is_not_said_to_be_back() -> None:
    """The last word about a thing counts, however often it came back before."""
    once = LINK.format("50:10", "down") + LINK.format("58:31", "up")
    for log, back in ((once, True), (once + LINK.format("59:50", "down"), False)):
        d = diagnose(parse_text("log", log), load())
        (f,) = [f for f in d.findings if f.rule.id == "link-went-down"]
        assert ("up again after" in titled([f]).en) is back, titled([f]).en
