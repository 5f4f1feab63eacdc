"""What is wrong: the whole, a part of it, or the causes of a symptom."""

from __future__ import annotations

import pytest

from assistant.diagnosis import State, diagnose
from assistant.dialogue import Turn, answerer
from assistant.dialogue.diagnose import BESIDE
from assistant.intent.parse import understand
from assistant.intent.query import Intent, Slots
from assistant.render.sheet import Items, Table
from assistant.sources import parse_text
from rules.loader import load
from rules.model import Usable
from tests.assistant.dialogue.talk import ask, query, texts
from tests.cases import each
from tests.diagnoses import incident


def test_the_whole_is_the_diagnosis_itself() -> None:
    d = incident("off-the-bus")
    reply = ask(d, query(Intent.DIAGNOSE))
    assert (reply.headline, reply.diagnosis, reply.shown) == ("", d, None)


@pytest.mark.parametrize(("gpu", "wrong"), [(5, True), (4, False)])
def test_of_a_part_only_what_concerns_it_is_shown(gpu: int, wrong: bool) -> None:
    d = incident("off-the-bus")
    reply = ask(d, query(Intent.DIAGNOSE, slots=Slots(gpu=(gpu,))))
    if wrong:
        assert reply.shown is not None
        assert reply.shown.verdict.usable is Usable.NOT_YET
        assert reply.diagnosis == d  # the data tell everything
    else:
        assert reply.headline == "Nothing wrong was found on GPU 4 (0000:9a:00.0)."
        assert any(line.startswith("Elsewhere: GPU 5 (0000:ba:00.0) has fallen off the bus") for line in texts(reply))


def test_a_symptom_without_a_cause_stays_open() -> None:
    reply = ask(incident("healthy"), query(Intent.DIAGNOSE, "training is slow", symptoms=("slow-training",)))
    assert reply.shown is not None
    assert reply.shown.verdict.state is State.UNKNOWN
    assert not reply.settled
    assert "no cause found yet" in reply.shown.verdict.text.en
    (table,) = [p for p in reply.parts if isinstance(p, Table)]
    assert table.header == ("hypothesis", "for", "against", "unknown", "next")


def test_what_else_is_wrong_stands_beside_in_a_line_each() -> None:
    d = incident("off-the-bus")
    reply = ask(d, query(Intent.DIAGNOSE, "training is slow", symptoms=("slow-training",)))
    (beside,) = [p for p in reply.parts if isinstance(p, Items)]
    assert 1 <= len(beside.items) <= BESIDE + 1
    assert reply.shown is not None
    assert {f.id for f in reply.shown.findings} < {f.id for f in d.findings}


def suspects(text: str, lang: str = "en") -> str:
    """What is suspected first of a machine that nobody looked at."""
    asked = understand(text, lang=lang)
    reply = answerer(asked.intent).answer(Turn(asked, lang, load(), diagnose(asked.observations, load())))
    assert reply.shown is not None
    return reply.shown.verdict.text.in_(lang)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("training got slower this week", "then: The GPU is too hot"),
        ("temps are 55 C, but training got slower this week", "then: Power holds the clocks down"),
        ("no xid, ecc is 0, but nccl hangs at init", "suspect first: A rank is missing or late"),
    ],
)
def test_what_was_said_to_be_usual_is_suspected_last(text: str, first: str) -> None:
    """The order is the symptom's own, not that of a fleet's failures: nobody looked; what a usual reading speaks against comes last."""
    assert first in suspects(text)


QUEUE = "".join(
    f"INFO 11-28 11:0{n}:20 metrics.py:406] Avg prompt throughput: 660.6 tokens/s, Avg generation throughput: 1103.0 tokens/s, "
    f"Running: 106 reqs, Swapped: 0 reqs, Pending: {18 * n} reqs, GPU KV cache usage: 99.1%, CPU KV cache usage: 0.0%.\n"
    for n in range(1, 9)
)
FEWER = """NodeName=h22 Arch=x86_64 CoresPerSocket=48
   Gres=gpu:h100:8
   State=IDLE+DRAIN+INVALID_REG ThreadsPerCore=1 TmpDisk=0 Weight=1
   Reason=gres/gpu count reported lower than configured (7 < 8) [slurm@2026-11-27T04:12:09]
"""

SPLIT = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 79.11 GiB of which 1.21 GiB is free. "
    "Of the allocated memory 70.02 GiB is allocated by PyTorch, and 5.91 GiB is reserved by PyTorch but unallocated.\n"
)
PREEMPTED = "slurmstepd: error: *** JOB 9 CANCELLED AT 2026-11-29T07:01:10 DUE TO PREEMPTION ***\n"


@each(
    ("kind", "lines", "text", "said", "state"),
    [
        # what is slow is the server that tells it itself
        ("input", QUEUE, "why did throughput drop?", "is slow, full or fails. input: vLLM: the KV cache is full", State.DEGRADED),
        # what a job's own log shows is how it ended, whatever hypotheses the symptom has; slowness is not its end
        ("log", SPLIT, "why did my job die?", "crashed with an error. log: Out of GPU memory although", State.DEGRADED),
        ("log", SPLIT, "why is training slow?", "no known cause of it is shown. Found here: log: Out of", State.DEGRADED),
        ("log", PREEMPTED, "why did my job die?", "log: The job was preempted or evicted (job 9). No fault", State.OK),
        # what brings the symptom about stands one step behind its hypothesis
        ("input", FEWER, "why is the node drained?", "the node. Node h22 reports less than the scheduler is configured for", State.UNHEALTHY),
        # what may have nothing to do with it is not kept back, nor called the cause, nor made milder
        ("input", FEWER, "why is training slow?", "no known cause of it is shown. Found here: Node h22 reports less", State.UNHEALTHY),
    ],
)  # fmt: skip
def test_what_was_found_leads_where_no_hypothesis_is_supported(
    kind: str, lines: str, text: str, said: str, state: State
) -> None:
    asked = understand(text, lang="en")
    reply = ask(diagnose(parse_text(kind, lines), load()), asked)
    assert reply.shown is not None
    assert said in reply.shown.verdict.text.en
    assert reply.shown.verdict.state is state
