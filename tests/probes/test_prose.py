"""XIDs that people write of: which sentences tell of one, and which deny it, speak in general, or are a line of a log."""

from __future__ import annotations

from knowledge.observation import Event, Origin
from probes import prose
from tests.cases import each


def told(text: str) -> list[tuple[str, str, int]]:
    found = list(prose.told(text, "paste", "n1"))
    assert all(o.origin is Origin.TOLD and o.source.line for o in found)
    return [(o.fact, o.subject.id, int(str(o.value.code if isinstance(o.value, Event) else o.value))) for o in found]


@each(
    "text, fact, subject, code",
    [
        ("Xid 79 on GPU 3 of gpu-07, what now", "xid_reported", "index:3", 79),
        ("XID 119 GPU 0000:3b:00.0 gpu-07", "xid_reported", "0000:3b:00.0", 119),
        ("昨晚 GPU 3 报了 XID 94", "xid_reported", "index:3", 94),
        ("we got xid 48 last night", "input.xid_beside", "n1", 48),
        (
            "Thu 09:10 after the alert: xid 79 on gpu 3\nThu 11:30: node back, 8 GPUs again",
            "input.xid_beside",
            "n1",
            79,
        ),
    ],
)
def test_a_sentence_tells_of_an_xid(text: str, fact: str, subject: str, code: int) -> None:
    assert told(text) == [(fact, subject, code)]


@each(
    "text",
    [
        "no xid 79 on gpu 3 since the reboot",
        "XID 79 means that the GPU has fallen off the bus",
        "if XID 48 is seen on GPU 3 then reset it",
        "we replaced GPU 3 after xid 79",
        "| 79 | XID 79 | GPU has fallen off the bus |",
        "2026-11-16 09:10:11 exporter: xid 79 on gpu 3",
        "DCGM_FI_DEV_XID_ERRORS: xid 79 on gpu 3",
        "没有 XID 79",
    ],
)
def test_other_lines_do_not(text: str) -> None:
    assert told(text) == []
