"""Frames in a bundle, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from assistant import machine
from assistant.commands.demo import FOLDER
from assistant.live.frames import Frame
from assistant.live.recording import NAME, SCHEMA, Recorder, frames_of, read, record
from knowledge.errors import InputError
from tests import live_story
from tests.assistant.live.live_lab import runs


@given(runs())
def test_what_is_written_is_read_again(frames: list[Frame]) -> None:
    assert list(read(record(frames))) == frames if frames else record(frames) == b""


@given(runs())
def test_every_line_is_one_frame_and_the_header_counts_them(frames: list[Frame]) -> None:
    lines = record(frames, note="made up").splitlines()
    if frames:
        assert json.loads(lines[0]) == {"schema": SCHEMA, "host": "n1", "frames": len(frames), "note": "made up"}
        assert [json.loads(line)["at"] for line in lines[1:]] == [f.at for f in frames]


@given(runs())
def test_a_recording_that_was_cut_off_gives_what_is_whole(frames: list[Frame]) -> None:
    data = record(frames)
    if len(frames) > 1:
        assert list(read(data[:-3])) == frames[:-1]


def test_without_commands_no_argument_is_written() -> None:
    frames = live_story.frames(0.1)
    assert b"pretrain.py" in record(frames)
    assert b"pretrain.py" not in record(frames, commands=False)


def test_times_only_go_forward() -> None:
    recorder = Recorder()
    for at in (5, 5, 3, 6):
        recorder.add(Frame(at, "n1"))
    assert [f.at for f in read(recorder.data())] == [5, 6]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"nonsense", "Expecting value"),
        (b"[]", "is not a JSON object"),
        (b'{"at": "now", "gpus": []}', "is no time"),
        (b'{"at": 3, "gpus": []}', "is not newer"),
        (b'{"at": 9, "gpus": [{"values": {}}]}', "'pci'"),
        (b'{"at": 9, "gpus": [], "processes": [{"pid": "x", "gpus": {}}]}', "invalid literal"),
    ],
)
def test_a_line_that_is_none_is_named(line: bytes, why: str) -> None:
    data = record([Frame(1, "n1"), Frame(5, "n1")])
    with pytest.raises(InputError, match=why) as error:
        list(read(data + line + b"\n", "b.tar.gz: live.jsonl"))
    assert "b.tar.gz: live.jsonl:4" in str(error.value)


def test_another_schema_is_refused() -> None:
    with pytest.raises(InputError, match="gpudiag/live/9"):
        list(read(b'{"schema": "gpudiag/live/9"}\n'))


@pytest.mark.parametrize("name", ["story.tar.gz", "story.zip", "story"])
def test_a_bundle_holds_them_and_is_diagnosed_as_without(tmp_path: Path, name: str) -> None:
    path = live_story.bundle(tmp_path / name, minutes=0.2)
    frames = frames_of(str(path))
    assert (len(frames), frames[-1]) == (12, live_story.frames(0.2)[-1])
    _, look = machine.bundle(str(path))
    _, other = machine.bundle(str(FOLDER / live_story.DEMO / "bundle"))
    assert look.observations == other.observations


def test_a_bundle_without_any_has_none() -> None:
    assert frames_of(str(FOLDER / "off-the-bus" / "bundle")) == []


def test_the_story_says_that_it_is_made_up(tmp_path: Path) -> None:
    path = live_story.bundle(tmp_path / "story", minutes=0.1)
    assert json.loads((path / NAME).read_bytes().splitlines()[0])["note"] == live_story.NOTE
