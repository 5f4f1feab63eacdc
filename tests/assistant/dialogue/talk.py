"""Turns to answer: over the recorded incidents and over a few lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from assistant.diagnosis import Diagnosis, diagnose
from assistant.dialogue import Turn, answerer
from assistant.intent.parse import understand
from assistant.intent.query import Assumed, Intent, Query, Slots, Topic
from assistant.planner import Plan
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Table
from assistant.reply import Reply
from assistant.sources import parse_text
from knowledge.observation import Observation, Source, gpu, node
from rules.loader import RuleSet, load
from tests.diagnoses import incident, of_log, smaller

OFF_BUS = "[100.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
MINE = (Intent.WHY, Intent.EVIDENCE, Intent.CONFIDENCE, Intent.WHYNOT, Intent.WHATIF, Intent.ALTERNATIVES, Intent.NEXT, Intent.VERDICT)  # fmt: skip

NOTHING = Slots()


def rules() -> RuleSet:
    """The shipped rules."""
    return load()


def log(text: str) -> Diagnosis:
    """The diagnosis of kernel log lines."""
    return of_log(text)


def query(
    intent: Intent, text: str = "", lang: str = "en", *, slots: Slots = NOTHING, topics: tuple[str, ...] = (),
    symptoms: tuple[str, ...] = (), assumed: tuple[Assumed, ...] = (), facts: tuple[str, ...] = (),
) -> Query:  # fmt: skip
    """A sentence as understood; the names of its topics stand in it."""
    found = tuple(Topic(t, 5.0) for t in topics)
    said = " ".join((text or str(intent), *(t.partition(" ")[2] for t in topics)))
    return Query(said, lang, intent, slots, found, symptoms, facts, assumed)


def turn(
    diagnosis: Diagnosis | None, q: Query, *, focus: str = "", plan: Plan | None = None, base: Query | None = None
) -> Turn:
    """A turn about `diagnosis`."""
    return Turn(q, q.lang, rules(), diagnosis, base=base, focus=focus, plan=plan)


def ask(
    diagnosis: Diagnosis | None, q: Query, *, focus: str = "", plan: Plan | None = None, base: Query | None = None
) -> Reply:
    """The answer to a sentence."""
    return answerer(q.intent).answer(turn(diagnosis, q, focus=focus, plan=plan, base=base))


@cache
def understood(text: str, lang: str) -> Query:
    """A sentence as the parser understands it."""
    return understand(text, lang=lang)


@cache
def answered(name: str, q: Query, focus: str = "", base: Query | None = None) -> Reply:
    """The answer about a recorded incident, worked out once for all laws."""
    return ask(asked_of(name, q), q, focus=focus, base=base)


def asked_of(name: str, q: Query) -> Diagnosis:
    """What is asked about: an incident; of a smaller machine where a supposition has all of it concluded anew."""
    return smaller(name) if q.assumed else incident(name)


def texts(reply: Reply) -> list[str]:
    """Everything a reply says, one entry a line, row or item."""
    out = [reply.headline]
    for part in reply.parts:
        match part:
            case Paragraph(text) | Heading(text):
                out.append(text)
            case Items(items):
                out += items
            case Fields(rows):
                out += [f"{name}: {value}" for name, value in rows if value]
            case Code(lines):
                out += lines
            case Table(header, rows):
                out += [" | ".join(header), *(" | ".join(row) for row in rows)]
    return out


def said(reply: Reply) -> str:
    """Everything a reply says, as one text."""
    return "\n".join(texts(reply))


XIDS = st.lists(st.sampled_from((13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 119, 154)), max_size=5)
STATES = st.dictionaries(
    st.sampled_from(("gpu.nvml.reachable", "gpu.ecc.mode", "gpu.row_remap.pending", "gpu.row_remap.failure", "gpu.persistence_mode")),
    st.booleans(),
)  # fmt: skip


def small(xids: Sequence[int], states: dict[str, bool]) -> Diagnosis:
    """XIDs in a kernel log and states of one GPU."""
    lines = "".join(f"[{10 + n}.0] NVRM: Xid (PCI:0000:3b:00): {code}, \n" for n, code in enumerate(xids))
    one = gpu("0000:3b:00.0")
    seen = [Observation(fact, one, value, source=Source("smi", "smi.txt")) for fact, value in states.items()]
    return diagnose([*parse_text("kmsg", lines), *seen, Observation("node.driver.state", node(), "ok")], rules())
