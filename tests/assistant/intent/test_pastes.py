"""Log lines within a message, and codes that are only said."""

from __future__ import annotations

from assistant.intent.parse import understand
from assistant.intent.query import Intent
from knowledge.observation import Event, Origin
from tests.cases import each

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


def test_a_pasted_line_is_read_by_the_parser() -> None:
    query = understand(XID)
    assert query.intent is Intent.DIAGNOSE
    assert (query.slots.xid, query.slots.gpu, query.slots.pid) == ((79,), ("0000:3b:00.0",), (1234,))
    (event,) = [o for o in query.observations if o.fact == "xid"]
    assert event.origin is Origin.MEASURED
    assert str(event.source).startswith("the message")
    assert query.topics[0].id == "xid 79"


@each(
    ("said", "intent"),
    [
        (f"what does this mean: {XID}", Intent.EXPLAIN),
        (f"what does this mean?\n{XID}", Intent.EXPLAIN),
        (f"```{XID}``` how do I fix this?", Intent.FIX),
        (f"{XID}\ncan I keep using it?", Intent.VERDICT),
        (f"这行日志是什么意思 {XID}", Intent.EXPLAIN),
        (f"> {XID}", Intent.DIAGNOSE),
    ],
)
def test_what_is_asked_of_a_paste(said: str, intent: Intent) -> None:
    query = understand(said)
    assert query.intent is intent
    assert query.slots.xid == (79,)


def test_a_traceback_is_a_diagnosis_with_its_signature() -> None:
    query = understand(
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
        "RuntimeError: CUDA error: an illegal memory access was encountered"
    )
    assert query.intent is Intent.DIAGNOSE
    assert query.topics[0].id == "cuda cudaErrorIllegalAddress"


def test_codes_that_are_said_become_told_events() -> None:
    query = understand("node gpu-12 threw xid 48 then 63, can I keep using it?")
    assert [(o.fact, o.origin, o.value.code) for o in query.observations if isinstance(o.value, Event)] == [
        ("xid", Origin.TOLD, 48), ("xid", Origin.TOLD, 63),
    ]  # fmt: skip
    assert {o.subject.host for o in query.observations} == {"gpu-12"}
    assert all("threw xid 48" in o.excerpt for o in query.observations)


@each("said", ["what is xid 63", "has xid 63 happened before?", "how do I fix xid 79", "no xid 48 but training hangs"])
def test_codes_that_are_only_asked_about_did_not_happen(said: str) -> None:
    assert understand(said).observations == ()
