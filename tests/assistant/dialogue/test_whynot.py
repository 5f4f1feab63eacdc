"""Why not something else: concluded, a consequence, ruled out, not known, not so; and what it would take."""

from __future__ import annotations

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from assistant.dialogue._meant import coded, meant
from assistant.dialogue._standing import Stand, standings
from assistant.intent.query import Intent, Query, Slots
from knowledge.observation import Observation, node
from tests.assistant.dialogue.talk import NOTHING, OFF_BUS, ask, log, query, rules, said, texts
from tests.cases import each
from tests.diagnoses import incident


def lost() -> Diagnosis:
    return incident("off-the-bus")


def why_not(
    text: str = "",
    lang: str = "en",
    slots: Slots = NOTHING,
    topics: tuple[str, ...] = (),
    symptoms: tuple[str, ...] = (),
) -> Query:
    return query(Intent.WHYNOT, text, lang, slots=slots, topics=topics, symptoms=symptoms)


@pytest.mark.parametrize(
    ("code", "stand", "start"),
    [
        (79, Stand.CONCLUDED, "It is among the findings: GPU 5 (0000:ba:00.0) has fallen off the bus (confirmed)."),
        (154, Stand.SYMPTOM, "It holds, but as a consequence: GPU 5 (0000:ba:00.0): The driver asks for a recovery action: reboot the node; the cause is"),
        (48, Stand.NOT_MATCHED, "It was looked at, and it is not so: Uncorrectable memory error (double-bit ECC)."),
    ],
)  # fmt: skip
def test_by_code(code: int, stand: Stand, start: str) -> None:
    reply = ask(lost(), why_not(f"why not xid {code}", slots=Slots(xid=(code,))))
    assert reply.headline.startswith(start)
    assert reply.data["rules"][0]["stand"] == stand
    assert bool(reply.focus) == (stand in (Stand.CONCLUDED, Stand.SYMPTOM))


def test_in_chinese() -> None:
    reply = ask(lost(), why_not("为什么不是 xid 48", "zh", Slots(xid=(48,))))
    assert reply.headline == "已检查，不成立：“不可纠正的显存错误（双比特 ECC）”。"
    assert texts(reply)[1] == "不符之处"
    assert texts(reply)[2].startswith("未见 XID 48（")


def test_not_known_names_what_would_tell() -> None:
    reply = ask(log(OFF_BUS), why_not(slots=Slots(xid=(79,)), topics=("rule hotter-than-peers",)))
    assert reply.data["rules"][0]["stand"] == Stand.CONCLUDED, "a code is named before a topic"
    unknown = ask(log(OFF_BUS), why_not(topics=("rule core-near-slowdown",)))
    assert unknown.headline.startswith(
        "It cannot be excluded, because not all that it takes is known: GPU 0000:3b:00.0: "
    )
    assert "Core temperature: needs nvidia-smi -q text" in said(unknown)


def test_the_value_that_was_seen_stands_beside_the_threshold() -> None:
    reply = ask(incident("healthy"), why_not(topics=("rule thermal-margin-low",)))
    (line,) = [t for t in texts(reply) if t.endswith("; threshold: at most 5 °C")]
    assert "is 29 °C below its highest operating temperature (nvml" in line
    assert "gpu." not in line, "the fact's sentence, not its name"


def test_ruled_out_names_the_observation() -> None:
    reply = ask(lost(), why_not(topics=("rule gpu-lost-without-xid",)))
    assert reply.headline.startswith("Ruled out: ")
    assert any(": 79, " in t and "kernel:11" in t for t in texts(reply)[2:])


@each(
    ("text", "suspect"),
    [("why not NCCL?", "nccl"), ("why did you rule out thermal", "cooling"), ("为什么不是过热", "cooling"), ("why not a pcie problem", "pcie"),
     ("why not a cable problem", "cables"), ("why not the power supply", "power"), ("为什么不是散热问题", "cooling")],
)  # fmt: skip
def test_by_everyday_word(text: str, suspect: str) -> None:
    found = meant(why_not(text), rules().rules)
    assert found.hypotheses
    assert found.said == suspect
    assert not found.rules


def test_by_plain_words() -> None:
    found = meant(why_not("why not a zombie process"), rules().rules)
    assert "zombie-holds-gpu" in {r.id for r in found.rules}


def test_by_symptom() -> None:
    reply = ask(incident("half-width"), why_not("why not the network", symptoms=("network-trouble",)))
    assert len(reply.data["hypotheses"]) > 3
    assert reply.headline.startswith("Nothing points to the network")


def test_codes_mean_the_rules_that_name_them() -> None:
    assert next(r.id for r in coded("xid", 79, rules().rules)) == "gpu-fell-off-bus"
    assert [r.id for r in coded("xid", 8, rules().rules)] == ["xid-catalogue-action"]
    assert "unknown-xid" in {r.id for r in coded("xid", 9999, rules().rules)}
    assert coded("sxid", 20034, rules().rules)


def test_no_rule_is_about_it() -> None:
    reply = ask(lost(), why_not("why not the phase of qwzzk"))
    assert reply.headline.startswith("Nothing that a rule is about was named: ")
    assert not reply.settled
    zh = ask(lost(), why_not("为什么不是 qwzzk", "zh"))
    assert zh.headline.startswith("没有指出任何规则所涉及的问题")


def test_nothing_of_the_kind_is_known() -> None:
    d = diagnose([Observation("node.driver.state", node("n"), "ok")], rules())
    (s,) = standings([rules()["gpu-fell-off-bus"]], d)
    assert s.stand is Stand.NO_SUBJECT
    reply = ask(d, why_not(slots=Slots(xid=(79,))))
    assert reply.headline == "It cannot be told, because nothing is known of any GPU here: GPU has fallen off the bus."


def test_an_unknown_gpu() -> None:
    assert ask(lost(), why_not(slots=Slots(xid=(48,), gpu=(42,)))).headline.startswith("No GPU 42 is known")


def test_nearest_first() -> None:
    """What holds, then what lacks least."""
    order = [s.order for s in standings(rules().rules, lost())]
    assert order == sorted(order)
    stands = [s.stand for s in standings(rules().rules, lost())]
    assert stands[0] in (Stand.CONCLUDED, Stand.SYMPTOM)
    assert stands.index(Stand.CONCLUDED) < stands.index(Stand.SYMPTOM) < stands.index(Stand.NOT_MATCHED)


def test_why_not_use_it_is_about_use() -> None:
    reply = ask(lost(), query(Intent.WHYNOT, "why not use gpu 3?", slots=Slots(gpu=(3,))))
    assert reply.headline.startswith("Yes, by itself")
    assert ask(lost(), query(Intent.WHYNOT, "为什么不使用 5 号卡", "zh", slots=Slots(gpu=(5,)))).headline.startswith(
        "暂不可以"
    )


def test_a_rule_about_many_codes_is_called_by_the_code() -> None:
    reply = ask(lost(), why_not("why not xid 8", slots=Slots(xid=(8,))))
    assert "{" not in said(reply)
    assert "XID 8: Channel made no progress" in reply.headline


def test_another_code_of_the_same_rule_is_no_answer() -> None:
    """XID 8 was printed and XID 32 was not: one rule is about both."""
    d = log("[100.0] NVRM: Xid (PCI:0000:3b:00): 8, pid=7, name=python, Channel 00000010\n")
    assert [f.rule.id for f in d.findings] == ["xid-catalogue-action"]
    yes = ask(d, why_not("why not xid 8", slots=Slots(xid=(8,))))
    assert yes.headline.startswith("It is among the findings: GPU 0000:3b:00.0: XID 8: Channel made no progress")
    no = ask(d, why_not("why not xid 32", slots=Slots(xid=(32,))))
    assert no.data["rules"][0]["stand"] in (Stand.NOT_MATCHED, Stand.UNKNOWN)
    assert "XID 32" in no.headline
    assert any(t.startswith("No XID 32 was seen") for t in texts(no))
