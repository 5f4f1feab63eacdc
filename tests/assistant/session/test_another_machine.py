"""Whose machine a sentence speaks of."""

from __future__ import annotations

import pytest

from assistant.session.phrases import another_machine, speaks_of_jobs


@pytest.mark.parametrize(
    "text",
    ["our other node keeps killing the trainer", "a customer's machine lost a gpu", "since we added two new nodes it is slow",
     "另一台机器掉卡了", "只换了两台新节点", "is swap on at our DGX?", "does the customer's HGX have free disk?", "is docker up on that node",
     "我们的 DGX 上 docker 在跑吗"],
)  # fmt: skip
def test_another_machine_is_heard(text: str) -> None:
    assert another_machine(text)


@pytest.mark.parametrize(
    "text",
    [
        "is this node healthy?",
        "the other nodes are fine, only this node is slow",
        "gpu 3 is hot",
        "这台机器怎么了",
        "is this DGX healthy?",
        "what is a DGX",
        "is dgx-01 healthy?",
        "does it know that nodes fail?",
    ],
)
def test_this_one_is_no_other(text: str) -> None:
    assert not another_machine(text)


def test_work_that_takes_gpus_is_none_of_a_machine_without() -> None:
    assert speaks_of_jobs("nccl works on one node and fails on two")
    assert not speaks_of_jobs("the disk is full")
