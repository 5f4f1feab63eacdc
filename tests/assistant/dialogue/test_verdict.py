"""Can it be used: the first word, the reasons, and what of it is about the thing that is named."""

from __future__ import annotations

from assistant.diagnosis import State, diagnose
from assistant.intent.parse import understand
from assistant.intent.query import Intent, Slots
from assistant.render.view import view
from knowledge.observation import Observation, Origin, node
from rules.model import Usable
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, query, rules, said, texts
from tests.cases import each
from tests.diagnoses import incident

FIRST = {"en": ("Yes", "No", "Not yet", "Cannot say"), "zh": ("可以", "不可以", "暂不可以", "无法判断")}


@each(
    ("name", "lang", "headline"),
    [
        ("off-the-bus", "en", "Not until the node has been rebooted and the GPU is back: GPU 5 (0000:ba:00.0) has fallen off the bus."),
        ("off-the-bus", "zh", "暂不可以，须等节点已重启且 GPU 恢复：“GPU 5（0000:ba:00.0）：从总线上掉线”。"),
        ("power-brake", "en", "Only for what runs already, no new work until the hardware has been inspected. GPU 4 (0000:9a:00.0): throttled, 82.6 % of the clock lost: power brake holds the GPU at very low clocks."),
        ("cpu-limit", "en", "Yes, but look after this. Node vit-train-1: The CPU limit of the container holds it back."),
        ("healthy", "en", "Yes: nothing wrong was found in what was looked at."),
        ("healthy", "zh", "可以：所查看的内容未发现问题。"),
    ],
)  # fmt: skip
def test_can_it_be_used(name: str, lang: str, headline: str) -> None:
    reply = ask(incident(name), query(Intent.VERDICT, lang=lang))
    assert reply.headline == headline
    assert reply.settled
    assert reply.data["usable"] == str(incident(name).verdict.usable)


def test_nothing_read_is_no_yes() -> None:
    told = [Observation("node.gpu.expected", node("n"), 8, origin=Origin.TOLD)]
    reply = ask(diagnose(told, rules()), query(Intent.VERDICT))
    assert reply.headline.startswith("Cannot say")
    assert not reply.settled
    assert ask(None, query(Intent.VERDICT)).settled is False


def test_one_gpu_of_a_node() -> None:
    d = incident("off-the-bus")
    good = ask(d, query(Intent.VERDICT, "is gpu 3 ok", slots=Slots(gpu=(3,))))
    assert good.headline.startswith("Yes, by itself: nothing wrong was found on GPU 3 (0000:5d:00.0). But RESTART_BM")
    assert "Elsewhere: GPU 5 (0000:ba:00.0) has fallen off the bus (RESTART_BM)" in said(good)
    bad = ask(d, query(Intent.VERDICT, "is gpu 5 ok", slots=Slots(gpu=(5,))))
    assert bad.headline.startswith("Not until ")
    assert bad.focus == d.roots[0].id


def test_a_gpu_that_nobody_read() -> None:
    """A GPU that only its name is known of is not fine."""
    d = diagnose([Observation("gpu.index", s.subject, 1) for s in log(OFF_BUS).events], rules())
    reply = ask(d, query(Intent.VERDICT, slots=Slots(gpu=(1,))))
    assert reply.headline == "Cannot say: nothing was read of GPU 1 (0000:3b:00.0)."
    assert not reply.settled


def test_an_unknown_gpu_is_answered_with_those_there_are() -> None:
    reply = ask(incident("off-the-bus"), query(Intent.VERDICT, slots=Slots(gpu=(9,))))
    assert reply.headline.startswith("Cannot say: no GPU 9 is known; there is: 0 (0000:1a:00.0), 1 (0000:3b:00.0)")
    assert reply.suggestions == ("is gpu 0 ok?", "is gpu 1 ok?", "is gpu 2 ok?")
    assert reply.data["unknown"][0]["slot"] == "gpu"
    zh = ask(incident("off-the-bus"), query(Intent.VERDICT, lang="zh", slots=Slots(pid=(1,))))
    assert zh.headline.startswith("无法判断：未知的进程 1；已知的有：4200")


@each(
    ("name", "text", "start"),
    [
        (
            "off-the-bus",
            "should I reboot it?",
            "Yes, reboot the node: GPU 5 (0000:ba:00.0) has fallen off the bus. RESTART_BM",
        ),
        ("off-the-bus", "should I drain the node", "Yes, drain the node: "),
        ("off-the-bus", "do we need to replace the card?", "No, replacing it is not called for"),
        ("off-the-bus", "is a gpu reset enough?", "No, that is not enough"),
        ("double-bit-error", "should I drain the node?", "Yes, drain the node. "),
        ("double-bit-error", "do I have to reboot?", "No, rebooting the node is not called for"),
        ("driver-hangs", "should I drain it?", "Yes, keep new work away until the GPU has been reset"),
        ("power-brake", "should I RMA it", "Not yet. "),
        ("healthy", "should I reboot the node?", "No: nothing was found that asks to reboot the node."),
        ("off-the-bus", "can it be fixed without a reboot?", "No, rebooting the node is needed"),
        ("half-width", "can it be fixed without draining the node?", "Yes, without draining the node"),
        ("off-the-bus", "不重启能修好吗", "不行，需要重启节点"),
        ("off-the-bus", "为什么不重启吗", "需要重启节点："),
        ("off-the-bus", "要不要重启节点？", "需要重启节点："),
        ("off-the-bus", "需要换卡吗", "目前不需要更换"),
        ("off-the-bus", "这卡还能救吗", "目前不需要更换"),
        ("off-the-bus", "重启作业就行了吗", "不够："),
        ("healthy", "要不要排空", "不需要：没有发现需要排空节点的问题。"),
    ],
)
def test_should_i(name: str, text: str, start: str) -> None:
    lang = "zh" if text[-1] in "？吗空" else "en"
    assert ask(incident(name), query(Intent.VERDICT, text, lang)).headline.startswith(start)


@each("text", ["要换卡吗", "能不能直接复位", "要不要重启"])
def test_of_a_node_without_a_gpu_nothing_follows_for_one(text: str) -> None:
    seen = {"node.pci.gpu_count": 0, "node.cpu.busy": 99.0, "node.load.per_cpu": 5.0}
    overloaded = diagnose([Observation(fact, node("n"), value) for fact, value in seen.items()], rules())
    reply = ask(overloaded, query(Intent.VERDICT, text, "zh"))
    assert reply.headline.startswith("无法判断：该节点总线上没有 GPU")


@each(
    ("code", "text", "start"),
    [
        (63, "要不要换卡", "现在不需要更换："),
        (63, "需要复位吗", "现在不需要复位 GPU："),
        (43, "能不能继续用", "不妨碍继续使用："),
    ],
)
def test_a_code_that_is_no_fault_by_itself_is_answered_as_it_is_asked(code: int, text: str, start: str) -> None:
    asked = understand(f"xid {code} {text}")
    assert ask(diagnose(asked.observations, rules()), asked).headline.startswith(start)


def test_the_node_that_was_named_and_the_sources_do_not_name() -> None:
    reply = ask(log(OFF_BUS), query(Intent.VERDICT, slots=Slots(node=("gpu-12",))))
    assert "The sources do not tell the name of their node; it is taken to be the one you named." in said(reply)


def test_the_verdict_of_one_gpu_goes_with_its_answer() -> None:
    """JSON's verdict says what the headline says; without a narrow question it is that of the whole."""
    d = incident("overheating")
    fine = ask(d, query(Intent.VERDICT, slots=Slots(gpu=(3,))))
    assert fine.diagnosis is not None
    assert (fine.diagnosis.verdict.state, fine.diagnosis.verdict.usable) == (State.OK, Usable.YES)
    assert fine.diagnosis.verdict.text.en == fine.headline
    assert fine.diagnosis.findings == d.findings
    hot = ask(d, query(Intent.VERDICT, slots=Slots(gpu=(1,))))
    assert hot.diagnosis is not None
    assert hot.diagnosis.verdict.state is State.DEGRADED
    lost = ask(incident("off-the-bus"), query(Intent.VERDICT, lang="zh", slots=Slots(gpu=(5,))))
    assert lost.diagnosis is not None
    assert lost.diagnosis.verdict.state is State.UNHEALTHY
    assert lost.diagnosis.verdict.usable is Usable.NOT_YET
    assert lost.diagnosis.verdict.until.zh
    assert lost.diagnosis.verdict.text.zh == lost.headline
    assert ask(d, query(Intent.VERDICT)).diagnosis is None


def test_what_forbids_more_than_its_cause_gives_the_action() -> None:
    d = log(
        "[100.0] NVRM: Xid (PCI:0000:c3:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, subpartition 1.\n"
        "[100.1] NVRM: Xid (PCI:0000:c3:00): 64, pid='<unknown>', name=<unknown>, Row Remapper: Failed to remap row 0x0000000000511d00\n"
    )
    verdict, summary = (ask(d, query(intent)) for intent in (Intent.VERDICT, Intent.SUMMARY))
    assert verdict.headline.startswith("No, not until support has answered.")
    for reply in (verdict, summary):
        assert any(line.startswith("do: CONTACT_SUPPORT") for line in texts(reply))
        assert not any("RESET" in line for line in texts(reply)), texts(reply)
    assert any(line.startswith("evidence: ") and ": 64," in line for line in texts(summary))
    assert [step.bucket for step in view(d, "en").steps] == ["CONTACT_SUPPORT"]
