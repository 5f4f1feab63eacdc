"""What launchers put in front of a line, and tracebacks of many processes in one log."""

from __future__ import annotations

import json

from knowledge.observation import Clock
from probes.base import Context, Line, lines_of
from probes.parse._app_lines import is_application_log, peel, peel_all
from probes.parse._app_traceback import tracebacks
from tests.cases import each

CASES = [
    # line, text, rank, label
    ("RuntimeError: x", "RuntimeError: x", None, ""),
    ("[rank3]: RuntimeError: x", "RuntimeError: x", 3, "rank3"),
    ("[rank3]:[E1206 18:44:12.715298746 a.cpp:607] x", "[E1206 18:44:12.715298746 a.cpp:607] x", 3, "rank3"),
    ("[default3]:[rank11]: x", "x", 11, "rank11"),
    ("[default3]:x", "x", None, "default3"),
    ("3: x", "x", None, "3"),
    (" 12: x", "x", None, "12"),
    ("[1,3]<stderr>:x", "x", 3, "rank3"),
    ("[prterun-node-1-42@1,3]<stdout>: x", "x", 3, "rank3"),
    ("(RayTrainWorker pid=1234, ip=10.0.0.1) x", "x", None, "RayTrainWorker pid=1234, ip=10.0.0.1"),
    ("(WorkerDict pid=77) [rank1]: x", "x", 1, "rank1"),
    ("(VllmWorker rank=1 pid=77) x", "x", None, "VllmWorker rank=1 pid=77"),
    ("vllm-1  | x", "x", None, "vllm-1"),
    ("loss | 2.1", "loss | 2.1", None, ""),
    (" [2026-11-24 09:16:50] iteration 1", "iteration 1", None, ""),
    ("[2026-01-20 10:00:01 DP1 TP0] x", "x", None, ""),
    ("[pod/train-0/main] x", "x", None, "train-0/main"),
    ("2025-11-15T12:00:00.000000001Z stderr F x", "x", None, ""),
    ("[2025-11-15 12:00:00] x", "x", None, ""),
    ("2025-11-15 12:00:00,123 x", "x", None, ""),
    ("gpu-12: x", "x", None, "gpu-12"),
    ("Nov 15 12:00:00 gpu-12 train.sh[42]: x", "x", None, "gpu-12"),
    ("ERROR 11-15 12:00:00 [core.py:500]   File x", "  File x", None, ""),
    ('{"log":"x\\n","stream":"stderr","time":"2025-11-15T12:00:00Z"}', "x", None, ""),
    ('{"asctime": "2025-11-15 12:00:00,123", "message": "x", "rank": 4}', "x", 4, "rank4"),
    ('{"event": "x", "rank": true}', "x", None, ""),
    ("epoch 1: 50%|##   |[rank2]: x", "x", 2, "rank2"),
    ("\x1b[31m[rank2]: x\x1b[0m", "x", 2, "rank2"),
    # near misses
    ("RuntimeError: 3: x", "RuntimeError: 3: x", None, ""),
    ("12:30:01 x", "12:30:01 x", None, ""),
    ("[3]: x", "[3]: x", None, ""),
    ("[ranking]: x", "[ranking]: x", None, ""),
    ('{"loss": 1}', '{"loss": 1}', None, ""),
]


@each(("line", "text", "rank", "label"), CASES)
def test_marks_are_taken_off_and_kept(line: str, text: str, rank: int | None, label: str) -> None:
    peeled = peel(Line(7, line))
    assert (peeled.text, peeled.rank, peeled.label, peeled.number) == (text, rank, label, 7)


def test_a_message_of_several_lines_within_json_is_as_many_lines_of_one_process() -> None:
    record = {
        "ts": "2025-11-15T12:00:00Z",
        "message": "failed",
        "rank": 5,
        "exc_info": "Traceback (most recent call last):\nValueError: x",
    }
    app = peel_all([Line(3, json.dumps(record)), Line(4, "y")], Context("train.log"))
    assert [a.text for a in app] == ["failed", "Traceback (most recent call last):", "ValueError: x", "y"]
    assert {(a.number, a.rank, a.at, a.clock) for a in app[:3]} == {(3, 5, 1_763_208_000 * 10**9, Clock.REALTIME)}


def test_times_say_which_clock_they_are_of() -> None:
    day = 1_763_208_000 * 10**9  # 2025-11-15 12:00:00 UTC
    utc = peel(Line(1, "2025-11-15T12:00:00.5Z x"))
    zone = peel(Line(1, "2025-11-15T20:00:00+08:00 x"))
    bare = peel(Line(1, "[2025-11-15 12:00:00] x"))
    short = peel(Line(1, "[rank0]:[E1115 12:00:00.000000001 a.cpp:1] x"))
    assert (utc.at, utc.clock) == (day + 5 * 10**8, Clock.REALTIME)
    assert (zone.at, zone.clock) == (day, Clock.REALTIME)
    assert (bare.at, bare.clock) == (day, Clock.LOCAL)
    assert short.clock is Clock.YEARLESS
    assert peel(Line(1, "2025-13-45T12:00:00Z x")).at is None


@each(
    ("line", "known"),
    [
        ("[2026-11-28 22:00:05,332] [INFO] [logging.py:107:log_dist] [Rank 0] step=10, skipped=2", True),
        (
            'time=2026-11-29T10:11:01Z level=INFO source=types.go:130 msg="inference compute" id=GPU-1 library=cuda',
            True,
        ),
        ('time=2026-11-29T10:11:01Z level=INFO source=main.go:130 msg="listening"', False),
    ],
)
def test_the_log_of_a_program_on_gpus_is_known_by_its_logger(line: str, known: bool) -> None:
    assert is_application_log(peel_all([Line(1, line)], Context("x"))) is known


INTERLEAVED = """\
[rank0]: Traceback (most recent call last):
[rank1]: Traceback (most recent call last):
[rank0]:   File "/proj/a.py", line 1, in main
[rank1]:   File "/proj/b.py", line 2, in main
[rank0]:     go()
[rank0]:   File "/opt/venv/lib/python3.11/site-packages/torch/x.py", line 9, in go
[rank1]: ValueError: second
[rank0]: KeyError: 'first'
[rank0]: step 3
"""


def test_tracebacks_of_two_ranks_are_told_apart() -> None:
    first, second = tracebacks(peel_all(lines_of(INTERLEAVED), Context()))
    assert (first.rank, first.exception, first.message[0]) == (0, "KeyError", "'first'")
    assert (second.rank, second.exception, second.message[0]) == (1, "ValueError", "second")
    assert first.user_frame is not None
    assert (first.user_frame.file, first.user_frame.code) == ("/proj/a.py", "go()")


def test_an_exception_that_was_handled_is_marked() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\nKeyError: 1\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 2, in g\n    y\nValueError: 2\n'
    )
    first, second = tracebacks(peel_all(lines_of(text), Context()))
    assert (first.caught, second.caught) == (True, False)
