"""The steps of training runs, in the words of each trainer: what was seen of their pace, and what is quiet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from knowledge.observation import Event, Observation
from probes.base import Context, lines_of
from probes.parse._step_lines import read as step
from probes.parse.training_log import parse, sniff
from tests.probes.parse.vocabulary_check import faults_of

LINES = [
    (" iteration      100/  500000 | consumed samples:       102400 | elapsed time per iteration (ms): 4100.3 | lm loss: 2.101000E+00 | grad norm: 0.412 |", 100, 4.1003),
    (" iteration        7/   24000 | consumed samples: 1024 | elapsed time per iteration (ms): 271607.0/3455.1 | lm loss: 2.1E+00 |", 7, 271.607),
    ("Training epoch 0, iteration 1/249 | lr: 3.9e-06 | global_batch_size: 8 | global_step: 1 | reduced_train_loss: 1.653 | train_step_timing in s: 2.505", 1, 2.505),
    ("Epoch 0: : 99%|███ | 99/100 [10:48<00:00, reduced_train_loss=0.0172, global_step=99.00, train_step_timing in s=3.130]", 99, 3.13),
    ("Epoch 3:  40%|####      | 400/1000 [13:40<20:30,  0.5it/s, v_num=1, train_loss=2.1]", 400, 2.0),
    (" 12%|█▏        | 120/1000 [04:10<30:22,  2.07s/it]", 120, 2.07),
    ("iter 100: loss 2.1034, time 210.50ms, mfu 41.22%", 100, 0.2105),
    ("2024/01/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][100/7330]  lr: 2.0e-02  time: 0.3100  data_time: 0.0100  loss: 1.2", 100, 0.31),
    ("Epoch: [0][ 100/5005]\tTime  0.213 ( 0.413)\tData  0.001 ( 0.183)\tLoss 6.9e+00", 100, 0.213),
    ("[rank5]: step 3 | loss 2.1 | step_time 2.210 s", 3, 2.21),
    ("I1125 02:00:10.000000 140 metric_logger.py:181] completed step: 60, seconds: 4.200, TFLOP/s/device: 180.1, Tokens/s/device: 2600.1, loss: 7.1", 60, 4.2),
    ("step 12100 | loss 2.1132 | grad_norm 0.82 | 1.82 s/it", 12100, 1.82),
]  # fmt: skip


def log(took: Callable[[int], float], n: int = 40, batch: Callable[[int], int] = lambda i: 1024) -> list[str]:
    return [
        f" [2026-11-24 09:{i:02d}:00] iteration {100 * i + 100:8d}/  500000 | consumed samples: {1024 * i:12d} | elapsed time per iteration (ms): "
        f"{1000 * took(i):.1f} | learning rate: 2.4E-04 | global batch size: {batch(i):5d} | lm loss: 2.1E+00 | grad norm: 0.4 |"
        for i in range(n)
    ]


def told(lines: list[str]) -> list[Observation]:
    text = "\n".join(lines)
    found = parse(lines_of(text), Context("train.log"))
    assert faults_of(found, instead=True) == []
    assert sniff(text) == 30
    return found


def events(lines: list[str]) -> list[Event]:
    return [o.value for o in told(lines) if isinstance(o.value, Event)]


def noise(i: int) -> float:
    return 0.03 * ((7 * i) % 5 - 2)


@pytest.mark.parametrize(("line", "number", "seconds"), LINES)
def test_each_trainer_has_its_words_for_a_step(line: str, number: int, seconds: float) -> None:
    found = step(line)
    assert found is not None
    assert (found.number, round(found.seconds or 0.0, 6)) == (number, seconds)


@pytest.mark.parametrize(
    ("line", "rate", "unit"),
    [
        ("step 100 loss 2.311 tok/s/gpu 11823 mfu 0.43", 11823.0, "tokens/s"),
        ("step 200 loss 2.266 it/s 1.18", 1.18, "it/s"),
        ("step 7 loss 3.1 2.5 it/s lr 1e-4", 2.5, "it/s"),
        ("step 10 loss: 2.3 throughput: 1200 tok/s/gpu", 1200.0, "tokens/s"),
        ("step 10 loss 2.3 tokens/s/GPU: 812", 812.0, "tokens/s"),
    ],
)
def test_the_number_of_a_rate_is_its_own(line: str, rate: float, unit: str) -> None:
    found = step(line)
    assert found is not None
    assert (found.rate, found.unit) == (rate, unit)


@pytest.mark.parametrize(
    "line",
    [
        "Loading checkpoint shards: 100%|██████████| 4/4 [00:10<00:00,  2.61s/it]",
        "Map:  40%|####      | 400/1000 [00:40<00:30,  20.1it/s]",
        "step into the office",
        "batch size 32, epochs 3",
    ],
)
def test_what_is_no_step_of_a_training_is_none(line: str) -> None:
    assert step(line) is None


@pytest.mark.parametrize(
    ("took", "kind"),
    [
        (lambda i: 4.1 + noise(i), None),
        (lambda i: 30.0 if i == 0 else 4.1 + noise(i), None),  # it compiles
        (lambda i: 40.0 if i == 17 else 4.1 + noise(i), None),  # one checkpoint
        (lambda i: 4.1 * (1.0 + 0.15 * ((7 * i) % 5)), None),  # lengths that differ
        (lambda i: (7.0 if i < 20 else 4.1) + noise(i), None),  # faster
        (lambda i: (4.1 if i < 20 else 7.0) + noise(i), "slower"),
        (lambda i: 4.1 + 2.9 * i / 40 + noise(i), "slowing"),
        (lambda i: (7.0 if 12 <= i < 24 else 4.1) + noise(i), "slow_for_a_while"),
        (lambda i: 21.0 if i % 10 == 9 else 4.1 + noise(i), "slow_each"),
        (lambda i: (2.6 if (i // 5) % 2 else 1.3) + noise(i) / 4, "slow_each"),  # in waves
        (lambda i: 31.0 if i in (5, 8, 12, 29) else 4.1 + noise(i), "slow_now_and_then"),
    ],
)
def test_what_stands_out_of_the_pace(took: Callable[[int], float], kind: str | None) -> None:
    assert [e.get("kind") for e in events(log(took))] == ([kind] if kind else [])


def test_before_after_and_when_are_told() -> None:
    [event] = events(log(lambda i: (4.1 if i < 20 else 7.0) + noise(i)))
    assert (event.get("before"), event.get("after"), event.get("since")) == ("4.1 s", "7 s", "step 2100 (11-24 09:20)")


def test_a_larger_batch_takes_longer_and_should() -> None:
    assert events(log(lambda i: 4.1 if i < 20 else 8.2, batch=lambda i: 1024 if i < 20 else 2048)) == []


def test_a_rate_falls_where_steps_become_slower() -> None:
    lines = [f"[titan] 2025-10-30 14:{i:02d}:58,897 - root - INFO - step: {i}  loss:  8.1  grad_norm:  3.6  tps: {'7,100' if i < 20 else '4,100'}" for i in range(1, 40)]  # fmt: skip
    [event] = events(lines)
    assert (event.get("before"), event.get("after")) == ("7100 tokens/s", "4100 tokens/s")


def test_lines_without_times_of_their_own_are_timed_by_the_clock() -> None:
    lines = [f"2026-11-24 {9 + t // 3600:02d}:{t // 60 % 60:02d}:{t % 60:02d} step {10 * i} loss 2.1" for i in range(40) for t in [i * 60 + max(0, i - 20) * 60]]  # fmt: skip
    assert [e.get("kind") for e in events(lines)] == ["slower"]


def test_gradients_that_grow_to_the_end_diverge_and_single_peaks_do_not() -> None:
    def run(norm: Callable[[int], float]) -> list[Event]:
        return events([f"step {i} | loss 2.1 | grad_norm {norm(i):.2f}" for i in range(60)])

    assert [e.get("kind") for e in run(lambda i: 0.4 if i < 50 else 0.4 * 4.0 ** (i - 49))] == ["gradients_grow"]
    assert run(lambda i: 90.0 if i in (20, 41) else 0.4) == []
    assert run(lambda i: 40.0 / (i + 1)) == []


def test_times_since_the_start_are_told_from_those_of_steps() -> None:
    def run(took: Callable[[int], float]) -> list[Event]:
        return events([f"step {10 * i} loss 2.1 time {sum(map(took, range(i + 1))):.1f}s" for i in range(40)])

    assert run(lambda i: 35.0 + 10 * noise(i)) == []
    [event] = run(lambda i: 35.0 if i < 20 else 60.0)
    assert (event.get("kind"), event.get("before"), event.get("after")) == ("slower", "3.5 s", "6 s")


def test_steps_that_are_skipped_to_the_end_are_told() -> None:
    def run(skipped: Callable[[int], int]) -> list[Event]:
        return events(
            [f"{line} number of skipped iterations: {skipped(i):3d} |" for i, line in enumerate(log(lambda i: 4.1))]
        )

    [event] = run(lambda i: 100 if i >= 30 else 0)
    assert (event.get("kind"), event.get("count"), event.get("since")) == (
        "steps_skipped",
        1000,
        "step 3100 (11-24 09:30)",
    )
    assert run(lambda i: 7 if i < 4 else 0) == []
    assert run(lambda i: 12) == []
