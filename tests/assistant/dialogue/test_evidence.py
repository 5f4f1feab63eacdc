"""How do you know: rows with value, place, time and raw line; what was told is marked; contradictions are named."""

from __future__ import annotations

import pytest

from assistant.diagnosis import diagnose
from assistant.dialogue.evidence import ROWS
from assistant.intent.query import Intent, Slots
from assistant.render.sheet import Items
from assistant.sources import parse_text
from knowledge.observation import Observation, Origin, Source, gpu
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, query, rules, said
from tests.diagnoses import incident


def test_rows() -> None:
    reply = ask(log(OFF_BUS), query(Intent.EVIDENCE))
    assert reply.headline == "1 observation stands behind this: GPU 0000:3b:00.0 has fallen off the bus."
    shown = reply.parts[0]
    assert isinstance(shown, Items)
    assert shown.items == (f"{OFF_BUS.strip()} (kmsg:1, boot+100.000s)",)
    assert "Is somebody resetting GPUs or servicing this node right now?" in said(reply)
    assert reply.data["rows"][0]["source"] == "kmsg:1"
    assert reply.data["rows"][0]["excerpt"] == OFF_BUS.strip()


def test_in_chinese() -> None:
    reply = ask(incident("double-bit-error"), query(Intent.EVIDENCE, lang="zh"))
    assert reply.headline == "“GPU 2（0000:48:00.0）：不可纠正的显存错误（双比特 ECC）”的依据有 4 条观测。"
    shown = reply.parts[0]
    assert isinstance(shown, Items)
    (pending,) = [item for item in shown.items if "nvidia-smi-q.txt:435" in item]
    assert pending.startswith("GPU 0000:48:00.0 有待生效的行重映射：是")


@pytest.mark.slow
def test_every_row_is_an_observation_of_the_finding() -> None:
    for name in ("off-the-bus", "double-bit-error", "nfs-hung", "rail-down"):
        d = incident(name)
        for f in d.findings:
            reply = ask(d, query(Intent.EVIDENCE), focus=f.id)
            assert reply.focus == f.id
            known = {str(o.source) for o in (*f.events, *f.because, *f.advice.because)}
            assert {row["source"] for row in reply.data["rows"]} == known


def test_what_was_told_is_marked() -> None:
    told = [Observation(o.fact, o.subject, o.value, source=Source("told", "you"), origin=Origin.TOLD, excerpt=o.excerpt)
            for o in parse_text("kmsg", OFF_BUS) if o.fact == "xid"]  # fmt: skip
    reply = ask(diagnose(told, rules()), query(Intent.EVIDENCE))
    assert "(1 as told, not measured)" in reply.headline
    assert "as told" in said(reply)
    assert reply.data["rows"][0]["origin"] == "told"


def test_contradictions_about_what_the_rule_asks() -> None:
    d = diagnose(
        [
            *parse_text("kmsg", OFF_BUS),
            *(Observation("gpu.nvml.reachable", gpu("0000:3b:00.0"), v, source=Source("x", call)) for v, call in ((True, "one"), (False, "two"))),
        ],
        rules(),
    )  # fmt: skip
    told = said(ask(d, query(Intent.EVIDENCE)))
    assert "Sources contradict each other" in told
    assert "GPU 0000:3b:00.0, whether the driver's management interface still gets live answers from the GPU: " in told
    assert "yes (one)" in told
    assert "no (two)" in told


def test_more_than_fit() -> None:
    lines = "".join(OFF_BUS.replace("100.0", f"{100 + n}.0") for n in range(20))
    reply = ask(log(lines), query(Intent.EVIDENCE))
    shown = reply.parts[0]
    assert isinstance(shown, Items)
    assert len(shown.items) == ROWS
    assert f"{20 - ROWS} more" in said(reply)
    assert len(reply.data["rows"]) == 20


def test_no_finding() -> None:
    reply = ask(incident("healthy"), query(Intent.EVIDENCE))
    assert reply.headline == "Nothing wrong was found. This was looked at:"
    assert (
        ask(incident("healthy"), query(Intent.EVIDENCE, slots=Slots(xid=(79,)))).headline
        == "There is no finding about xid 79."
    )
