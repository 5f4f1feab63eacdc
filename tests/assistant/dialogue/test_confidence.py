"""How sure: the grade in words, which signs agree, what is missing, and what would change the answer."""

from __future__ import annotations

import re

import pytest

from assistant.diagnosis import diagnose
from assistant.intent.query import Intent, Slots
from assistant.sources import parse_text
from knowledge.observation import Observation, gpu
from rules.engine import Grade
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, query, rules, said, texts
from tests.diagnoses import incident


def with_reach(value: bool | None) -> list[Observation]:
    extra = [] if value is None else [Observation("gpu.nvml.reachable", gpu("0000:3b:00.0"), value)]
    return [*parse_text("kmsg", OFF_BUS), *extra]


def test_grades_in_words() -> None:
    for value, start in (
        (None, "Probable: GPU 0000:3b:00.0 has fallen off the bus. The condition holds; whether further signs agree is not known."),
        (False, "Confirmed: GPU 0000:3b:00.0 has fallen off the bus. The condition holds and an independent sign agrees."),
        (True, "Possible: GPU 0000:3b:00.0 has fallen off the bus. The condition holds, but the signs that should agree do not all do so."),
    ):  # fmt: skip
        d = diagnose(with_reach(value), rules())
        assert ask(d, query(Intent.CONFIDENCE)).headline == start


def test_what_is_missing_and_what_would_tell_it() -> None:
    reply = ask(log(OFF_BUS), query(Intent.CONFIDENCE))
    lines = texts(reply)
    assert (
        "Not known; whether the driver's management interface still gets live answers from the GPU: needs nvidia-smi -q text"
        in lines
    )
    assert (
        "Needs nvidia-smi -q text; not among the inputs; to ask: Is somebody resetting GPUs or servicing this node right now?"
        in lines
    )
    assert (
        "It no longer holds without this: [100.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
        in lines
    )
    assert any("A planned reset or hot removal prints the same line" in x for x in lines)
    assert reply.data["confirms"] == [
        {"clause": ["gpu.nvml.reachable is false"], "truth": "unknown"},
        {"clause": ["gpu.unlisted is true"], "truth": "unknown"},
    ]


def test_in_chinese() -> None:
    reply = ask(log(OFF_BUS), query(Intent.CONFIDENCE, lang="zh"))
    assert reply.headline == "很可能：“GPU 0000:3b:00.0：从总线上掉线”。条件成立；其他迹象是否印证尚不清楚。"
    assert "未知；驱动管理接口是否仍能从该 GPU 获得实时应答：需要 nvidia-smi -q 文本" in texts(reply)


def test_a_consequence_names_its_cause() -> None:
    d = incident("nfs-hung")
    stuck = next(f for f in d.findings if f.rule.id == "gpu-process-stuck")
    assert stuck.grade is Grade.POSSIBLE
    told = said(ask(d, query(Intent.CONFIDENCE), focus=stuck.id))
    assert "Does not agree: the blocked thread of process 4200 sleeps in module sunrpc" in told
    assert "the verdict rests on its cause: /data: A mounted file system does not answer" in told


def test_no_percentages_are_invented() -> None:
    """How sure something is has none; one that stands in the title of a finding was measured, and is what the finding stands on."""
    for name in ("off-the-bus", "double-bit-error", "power-brake", "healthy"):
        for f in incident(name).findings or (None,):
            headline = ask(incident(name), query(Intent.CONFIDENCE), focus=f.id if f else "").headline
            measured = {f"{o.value:.3g}" for o in f.because if isinstance(o.value, float)} if f else set()
            assert set(re.findall(r"([\d.]+)\s*%", headline)) <= measured, headline
            assert "%" not in headline.rsplit(": ", 1)[-1], headline


def test_silence() -> None:
    reply = ask(incident("healthy"), query(Intent.CONFIDENCE))
    assert reply.headline == "Sure as far as rules and sources reach: nothing wrong was found, and no reading failed."
    unsettled = ask(diagnose([], rules()), query(Intent.CONFIDENCE))
    assert unsettled.headline.startswith("Not sure at all")
    assert not unsettled.settled


@pytest.mark.parametrize("intent", [Intent.CONFIDENCE, Intent.EVIDENCE])
def test_a_part_without_a_finding_is_about_its_silence(intent: Intent) -> None:
    """Not "there is no finding": somebody who asks how sure that is wants to know what was looked at there."""
    d = incident("overheating")
    fine, bad = (query(intent, slots=Slots(gpu=(n,))) for n in (3, 1))
    assert "nothing wrong was found on GPU 3 (0000:5d:00.0)" in said(ask(d, fine, base=query(Intent.VERDICT))).replace(
        "Nothing", "nothing"
    )
    hot = "GPU 1 (0000:3b:00.0): throttled, 82.6 % of the clock lost: slowed down by its hardware because it is too hot"
    assert hot in said(ask(d, bad, base=query(Intent.VERDICT)))
    nowhere = ask(d, query(intent, slots=Slots(gpu=(42,))), base=query(Intent.VERDICT))
    assert nowhere.headline == "There is no finding about gpu 42."
