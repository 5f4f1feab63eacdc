"""What the history refuses is not lost: it is written when it can be, in its order."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from assistant.watch.errand import WAITING, Errand


def settled(errand: Errand) -> None:
    until = time.monotonic() + 60
    while errand.busy and time.monotonic() < until:
        time.sleep(0.01)
    assert not errand.busy


@pytest.mark.process
def test_what_was_refused_is_tried_again(tmp_path: Path) -> None:
    complaints: list[str] = []
    errand = Errand("tests.assistant.watch.errand_lab", complaints.append)
    folder = tmp_path / "late"

    def send(line: str) -> None:
        errand.send(json.dumps({"folder": str(folder), "line": line}).encode())
        settled(errand)

    send("a")
    send("b")
    assert complaints == ["no folder"] * 2
    folder.mkdir()
    errand.again()
    settled(errand)
    send("c")
    assert (folder / "lines").read_text() == "abc"
    assert complaints == ["no folder"] * 2
    errand.close(1.0)


@pytest.mark.process
def test_what_waits_is_bounded_and_what_is_given_up_is_said(tmp_path: Path) -> None:
    complaints: list[str] = []
    errand = Errand("tests.assistant.watch.errand_lab", complaints.append)
    data = json.dumps({"folder": str(tmp_path / "none"), "line": "x"}).encode()
    errand.send(data)
    for _ in range(WAITING):  # while the first is under way
        errand.send(data)
    settled(errand)
    assert [c for c in complaints if c != "no folder"] == [
        "one round is missing in the history: more waits for the history than is kept"
    ]
    errand.close(1.0)


@pytest.mark.process
def test_a_slow_history_is_waited_for_while_nobody_waits_for_the_end(tmp_path: Path) -> None:
    complaints: list[str] = []
    go = tmp_path / "go"

    def begun(line: str) -> Errand:
        errand = Errand("tests.assistant.watch.errand_lab", complaints.append)
        errand.send(json.dumps({"folder": str(tmp_path), "line": line, "after": str(go)}).encode())
        return errand

    begun("hurried").close(0.0)
    assert complaints == ["one round is missing in the history: the watch ended before that was written"]
    asked: list[None] = []

    def patient() -> bool:
        asked.append(None)
        if len(asked) == 3:
            go.touch()
        return True

    begun("slow").close(0.0, patient)
    assert (tmp_path / "lines").read_text() == "slow"
    assert len(complaints) == 1
