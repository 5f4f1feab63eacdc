"""Tasks are found by a verb and the things that it is done to, in whatever order and company."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.dialogue import Turn, answerer
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from assistant.intent.tasks import asked_how, asked_who
from knowledge.howto import Does, Howto, howtos, spoken
from rules.loader import load
from tests.cases import each

TASKS = [(h, d) for h in howtos().values() for d in h.does]
FRAMES = ("how do I {} the {}", "what is the command to {} {}", "please, steps to {} my {} quickly")
NO_TASKS = ("why is the gpu lost, how come I see that", "how much memory does gpu 3 use", "see nvlink", "怎么办，掉卡了", "how do I fix it", "how are you")  # fmt: skip


def words(kind: str, name: str) -> list[str]:
    """The English words of a verb or thing, slots left out, and what asks ("whats the state") and can follow no "how do I"."""
    said = [said for said, of in spoken(kind) if of == name and said.isascii() and "<" not in said]
    return [s for s in said if not s.startswith("what")]


@given(st.sampled_from(TASKS), st.sampled_from(FRAMES), st.data())
def test_every_task_is_found_by_its_verb_and_things(one: tuple[Howto, Does], frame: str, data: st.DataObject) -> None:
    howto, does = one
    verb = data.draw(st.sampled_from(words("verb", data.draw(st.sampled_from(sorted(does.verbs))))))
    things = [data.draw(st.sampled_from(words("thing", t))) for t in sorted(does.things)]
    found = asked_how(said := frame.format(verb, " of the ".join(things)), said)
    assert found
    assert found == howto.id or max(len(d.things) for d in howtos()[found].does) >= len(does.things)


@pytest.mark.parametrize(
    ("said", "task"),
    [("how to cordon a k8s node with a bad gpu", "drain-kubernetes"), ("how do I disable ecc", "disable-ecc"), ("怎么看哪张卡慢", "find-straggler"), ("怎么看 GPU 有没有降频", "read-throttle-reasons"), ("怎么查是谁占了 GPU", "find-gpu-users"), ("怎么给 2 号卡限功率到 350W", "set-power-limit"), ("ECC 怎么开？", "enable-ecc"), ("ECC 怎么关？", "disable-ecc"), ("how do you cordon a node", "drain-kubernetes"),
     ("how do I kill a zombie process that still holds GPU memory", "kill-stuck-process")],
)  # fmt: skip
def test_the_thing_right_behind_the_verb_decides(said: str, task: str) -> None:
    assert understand(said).topics[0].id == f"howto {task}"


@pytest.mark.parametrize("said", NO_TASKS)
def test_what_asks_for_no_task_finds_none(said: str) -> None:
    assert not asked_how(said, said)


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("how could we tell which rank lags, any slowest rank finder?", "sh -c 'gpudiag check --log rank*.log'"),
        ("掉的是哪张卡，怎么查", "lspci -d 10de:"),
        ("what's the procedure to pull out a machine from k8s", "kubectl cordon NODE"),
        ("怎么把节点从 slurm 摘掉", "scontrol update nodename=NODE state=drain reason=gpu-check"),
        ("how can I record a profile of pid 4242 without restarting it", "gpudiag profile --pid 4242 --duration 2000ms"),
        ("where do I look for nvlinks that are down", "nvidia-smi nvlink -s -i GPU_INDEX"),
    ],
)  # fmt: skip
def test_the_commands_are_in_the_answer(said: str, command: str) -> None:
    query = understand(said)
    assert query.intent is Intent.FIX
    reply = answerer(query.intent).answer(Turn(query, query.lang, load()))
    assert any(command in getattr(part, "lines", ()) for part in reply.parts), reply.headline


def test_who_uses_a_gpu_is_a_task_where_no_machine_tells_it() -> None:
    assert (
        asked_who("which process is holding the memory of gpu 3", "which process is holding the memory of <gpu>")
        == "find-gpu-users"
    )
    assert not asked_who("which process is slow", "which process is slow")


@pytest.mark.parametrize(
    ("said", "topic"),
    [
        ("host memory is full and the oom killer shot python, how do I find out who", "howto find-oom-killer"),
        ("机器内存被吃光，oom killer 杀了进程，怎么查是谁", "howto find-oom-killer"),
        ("怎么看 pcie 是不是从 x16 变成 x8", "howto check-pcie"),
        ("set up MIG as 2x 3g.40gb, exact commands pls", "howto create-mig"),
        ("srun: error gres/gpu invalid, how do i set up gres.conf", "advice slurm-gres"),
        ("srun 报 gres/gpu invalid，gres.conf 怎么写", "advice slurm-gres"),
    ],
)
def test_how_it_is_done_is_answered_whatever_is_told_beside_it(said: str, topic: str) -> None:
    query = understand(said)
    assert query.intent in (Intent.FIX, Intent.EXPLAIN)
    assert query.topics[0].id == topic
    assert not query.observations


@each(
    ("said", "page"),
    [
        ("nsys report is 9gb and gui crashes, how do i capture only 5 steps", "nsys-some-steps"),
        ("nsys 怎么只采 10 个 step", "nsys-some-steps"),
        ("py-spy: Operation not permitted when i attach to the training in docker", "py-spy-permission"),
        ("容器里 py-spy 没权限怎么办", "py-spy-permission"),
        ("加了 gres.conf，slurm 还是不认卡", "gres-not-taken"),
        ("can two processes share one mig slice with mps", "mps-in-mig"),
        ("prometheus alert for gpu falling off bus, which dcgm metric do i use", "lost-gpu-alert"),
        ("GPU 掉卡用什么指标告警", "lost-gpu-alert"),
        ("dcgm-exporter shows no DCGM_FI_PROF_* metrics", "exporter-without-prof"),
        ("trtllm engine built on A100 wont load on L40S, do I need to rebuild", "tensorrt-engine-on-another-gpu"),
        ("triton 排队 300ms 推理 10ms 怎么调", "triton-queue-or-compute"),
        ("loss spike at step 41k then recovered, hardware or data? grad norm 38", "loss-spike"),
        ("batch 翻倍速度没怎么变快，为什么", "bigger-batch-no-faster"),
        ("lustre checkpoint writes get slower every day", "saves-get-slower"),
        ("ib port physical state Polling, what does it mean", "ib-physical-state"),
        ("ibstat shows Rate: 200 but these are ndr 400 cards, one node only", "port-below-its-rate"),
        ("imex service not running on one node of the nvl72", "imex-down"),
        ("vram grows every step until oom", "oom-after-hours"),
        ("what saves the most memory for the least slowdown", "fit-in-memory"),
        ("ib 网卡 symbol error 每小时涨 200 多，要不要换线", "symbol-errors"),
        ("loss 突然变 nan，重跑同一个 ckpt 又好了，是不是卡坏了", "nan-hardware-or-code"),
        ("does NCCL_P2P_DISABLE=1 make training slower", "nccl-p2p-disable"),
    ],
)
def test_what_the_sentence_names_is_answered_and_no_general_page(said: str, page: str) -> None:
    assert understand(said).page == f"advice {page}"


@each("said", [
    "prometheus alert gpu lost fired on node 7, what now", "doubled the batch size and now it ooms", "host memory grows every hour",
    "sxid 20034 reboot or rma", "loss spiked, then nan from step 900",
])  # fmt: skip
def test_a_report_of_words_like_these_is_no_such_question(said: str) -> None:
    assert not understand(said).page


@each(("said", "page"), [
    ("clocks_event_reasons.active 0x0000000000000004 what does that mean", "clock 0x0000000000000004"),
    ("clocks_throttle_reasons.active 是 0x8 啥意思", "clock 0x8"), ("the register reads 0x8, what does that mean", ""),
])  # fmt: skip
def test_a_mask_beside_its_name_is_what_is_asked(said: str, page: str) -> None:
    assert understand(said).page == page
