"""What is told around a machine and is no state of it: what it is, and that nothing else passes for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.intent import setting
from assistant.intent.parse import understand
from assistant.intent.query import Intent
from tests.cases import each

SETTINGS = (
    "fp16", "bf16 zero3", "int4 awq", "TP8 on one node", "2xTP4", "tp=4 pp=2", "batch 32", "seq len 8k", "num_workers=16", "lr 3e-4",
    "llama-3.1-70b", "mixtral 8x7b", "qwen2.5-72b", "pytorch 2.4", "cuda 12.4", "vllm 0.6.3", "at 3am", "every night", "since march",
    "2026-11-30", "$2.4/hr", "python train.py --bs 64", "in docker", "8x H100", "port 29500 open",
)  # fmt: skip
STATES = (
    "python crashed", "srun hangs", "fan 2 is dead", "link 3 inactive", "gpu 3 lost", "8 gpus at 99 C", "only 12 nodes", "7 gpus",
    "sm clock 345", "ecc errors 3", "row_remap_failure=1", "batch 32 fails", "it is down since tuesday", "pcie 1.0 on one gpu", "driver 470.1",
)  # fmt: skip


@given(st.lists(st.sampled_from(SETTINGS), min_size=1, max_size=4))
def test_settings_together_are_no_state(said: list[str]) -> None:
    """However many of them stand in a clause."""
    assert setting.only(" with ".join(said))


@given(st.sampled_from(STATES), st.lists(st.sampled_from(SETTINGS), max_size=3), st.booleans())
def test_a_state_beside_settings_is_kept(state: str, said: list[str], first: bool) -> None:
    """Nobody may say yes over a clause that holds one."""
    assert not setting.only(" ".join([state, *said] if first else [*said, state]))


@given(st.sampled_from(SETTINGS), st.integers(30, 70))
def test_a_usual_value_is_judged_beside_settings(said: str, warm: int) -> None:
    """Nothing of it is quoted as not understood."""
    assert not understand(f"gpu 3 at {warm}C, {said}, can I keep it running?").unread


@each("said", ["llama1" + "1" * 4000 + "xx", "python " + "--a " * 2000 + "!", "1." * 3000 + "x"])
def test_it_takes_no_time_whatever_is_said(said: str) -> None:
    """Patterns without a choice to go back to: a repetition that could be split in two ways would not end."""
    assert not setting.only(said + " dead")


@each(
    ("said", "page"),
    [
        ("pods pending: Insufficient nvidia.com/gpu although 5 gpus are free", "gpu-pod-pending"),
        ("someone ran nvidia-smi -r and the training died, is that the cause", "smi-reset-and-jobs"),
        ("after the driver update fabricmanager fails to start", "fabric-manager-version"),
        ("TP2 or 2x TP1 for a 13b", "tensor-parallel-serving"),
        ("MIG slices gone after last reboot", "mig-after-reboot"),
        ("card sits in P8 while training", "low-pstate-under-load"),
        ("who set the power limit on these", "power-limit-set-by"),
        ("nccl falls back to sockets instead of ib", "nccl-not-on-infiniband"),
    ],
)
def test_what_is_asked_in_other_words_has_its_page(said: str, page: str) -> None:
    query = understand(said)
    assert (query.intent, query.page) == (Intent.EXPLAIN, f"advice {page}")


@each(
    "said",
    [
        "gpu 2 uncorrectable ecc 5 and mig devices gone after reboot, usable?",
        "row remap failure on gpu 1, alert on ecc fired",
        "nvlink inactive on gpu 3 since the riser was swapped, slow",
    ],
)
def test_broken_memory_and_dead_links_are_judged(said: str) -> None:
    """Whatever page their words remind of."""
    assert any(o.fact.startswith(("gpu.ecc.", "gpu.row_remap.", "link.state")) for o in understand(said).observations)


@each("said", ["4 nodes, allreduce 12 GB/s busbw, IB 200G x 8 per node", "8 nodes with 400G x8, busbw 90 GB/s", "8xH100 70B training MFU 31% at seq 8k, expected?"])  # fmt: skip
def test_what_a_machine_is_made_of_is_no_reading(said: str) -> None:
    """Neither the lanes of a slot nor what a value should be."""
    query = understand(said)
    assert not query.compared
    assert not any(o.fact.startswith("gpu.pcie.") for o in query.observations)
