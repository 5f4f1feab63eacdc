"""Log lines within a message, and codes that are only said."""

from __future__ import annotations

from assistant.intent.parse import understand
from assistant.intent.paste import looks_pasted
from assistant.intent.query import Intent
from assistant.intent.tables import tables
from knowledge.catalog.lookup import Family, signatures
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


def test_every_message_of_the_catalogues_is_known_without_what_stands_around_it_in_a_log() -> None:
    """What people quote: the message itself, in a sentence of theirs."""
    for s in (s for family in (Family.PYTORCH, Family.CUDA) for s in signatures(family)):
        for message in (m for m in tables()["messages"] if m in s.sample.casefold()):
            assert looks_pasted(f"we get {message} since monday"), (s.id, message)


@each(
    ("said", "page"),
    [
        ("ncu 报 ERR_NVGPUCTRPERM", "pytorch profiling-counters-denied"),
        ("ERR_NVGPUCTRPERM ncu in container as non root", "pytorch profiling-counters-denied"),
        ("NVMLError_DriverNotLoaded in dcgm container", "pytorch nvml-driver-not-loaded"),
        ("ibv_reg_mr failed Cannot allocate memory 容器里跑的，宿主机没问题", "nccl ib-reg-mr-memlock"),
        ("peer mapping resources exhausted with 16 gpus", "cuda cudaErrorTooManyPeers"),
        ("slurmd 报 invalid gres", "pytorch slurm-gres-invalid"),
        ("unhandled cuda error, NCCL version 2.18", "nccl nccl-unhandledcudaerror"),
    ],
)
def test_an_error_that_is_quoted_says_more_than_its_symptom(said: str, page: str) -> None:
    assert (understand(said).intent, understand(said).page) == (Intent.EXPLAIN, page)


@each(
    ("said", "fact"),
    [
        ("cuInit returns 802 on hgx h100 after kernel upgrade", "cuda_error"),
        ("torch says system not yet initialized after kernel upgrade", "cuda_error"),
        ("重启之后 cuInit 返回 802", "cuda_error"),
        ("job hung, HW Exception by GPU node-1 Reason: GPU Hang", "cuda_error"),
        ("RmInitAdapter failed! (0x62:0x40:2477) after driver update, 1 of 8 gpus", "gpu_init_failed"),
    ],
)
def test_a_named_error_comes_before_the_change_that_is_told_with_it(said: str, fact: str) -> None:
    query = understand(said)
    assert [o.fact for o in query.observations] == [fact]
    assert not query.slots.node


@each("said", ["custom script returned 1", "cudaMemcpy gives 12 GB/s", "torch.load works again, all keys match"])
def test_what_quotes_no_error(said: str) -> None:
    query = understand(said)
    assert (query.page, query.observations, query.pasted) == ("", (), False)
