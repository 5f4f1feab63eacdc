"""Conversations as text: whatever is said and answered is read back as it was, and faults have a place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.session.transcript import KEYS, Recorder, Said, Transcript, diff, parse, read, text_of
from knowledge.errors import FaultsError, InputError, UsageError

# Anything, and much of what means something in the file.
ANY = st.one_of(st.text(), st.text("\n#>\\ \r\ta`: \u2028\ud800", max_size=30))
TURNS = st.builds(Said, ANY, ANY, st.lists(ANY, max_size=2).map(tuple))
HEADS = st.lists(st.tuples(st.sampled_from(KEYS), ANY), max_size=4).map(tuple)


def plain(transcript: Transcript) -> tuple[object, ...]:
    return transcript.about, [turn[:3] for turn in transcript.turns]


@given(HEADS, st.lists(TURNS, min_size=1, max_size=4).map(tuple))
def test_what_is_written_is_read_back(about: tuple[tuple[str, str], ...], turns: tuple[Said, ...]) -> None:
    made = Transcript(about, turns)
    assert plain(parse(text_of(made))) == plain(made)


@given(st.lists(TURNS, min_size=1, max_size=3))
def test_a_file_that_is_written_turn_by_turn_is_the_same(turns: list[Said]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "talk.txt"
        recorder = Recorder(str(path), [("lang", "zh")])
        for i, said in enumerate(turns):
            recorder.add(said)
            if i == 0:
                assert len(read(str(path)).turns) == 1, "a turn is on file at once"
        recorder.close()
        found = read(str(path))
    assert plain(found) == ((("lang", "zh"),), [t[:3] for t in turns])


def test_a_transcript_reads_well() -> None:
    turns = (
        Said("what is wrong?", "UNHEALTHY  GPU 3\n\n# 1 thing\n", ("a.tar.gz",)),
        Said("why?\nreally", "> because\n"),
    )
    made = Transcript((("lang", "en"), ("log", "kern.log")), turns)
    assert text_of(made) == (
        "# gpudiag conversation 1\n# lang: en\n# log: kern.log\n\n"
        "# look: a.tar.gz\n> what is wrong?\nUNHEALTHY  GPU 3\n\n\\# 1 thing\n\n"
        "> why?\n>> really\n\\> because\n"
    )
    assert [t.line for t in parse(text_of(made)).turns] == [6, 11]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["f:1:1: a conversation begins"]),
        ("hello\n> x\n", ["f:1:1: a conversation begins"]),
        ("# gpudiag conversation 2\n> x\n", ["f:1:1: a conversation begins"]),
        ("# gpudiag conversation 1\n", ["f:1:1: nothing is said in it"]),
        ("# gpudiag conversation 1\nhello\n> x\n", ["f:2:1: an answer stands here"]),
        ("# gpudiag conversation 1\n# bundel: x\n> x\n", ["f:2:1: '# bundel' is not known (did you mean bundle"]),
        ("# gpudiag conversation 1\n#\n> x\n", ["f:2:1: '# ' is not known"]),
        ("# gpudiag conversation 1\n>x\n", ["f:2:1: a blank stands behind '>'"]),
        ("# gpudiag conversation 1\n>> x\n> y\n", ["f:2:1: '>> ' goes on"]),
        ("# gpudiag conversation 1\n> x\nanswer\n>> y\n", ["f:4:1: '>> ' goes on"]),
        ("# gpudiag conversation 1\n> x\n>>y\n", ["f:3:1: a blank stands behind '>>'"]),
        ("# gpudiag conversation 1\n> x\n\n# lang: en\n", ["f:4:1: '# lang' belongs above"]),
        ('# gpudiag conversation 1\n# log: "x\n> x\n', ["f:2:1: what begins with a quotation mark"]),
        ("# gpudiag conversation 1\n> x\n\n# look: a\n", ["f:2:1: a '# look: FILE' stands above"]),
        ("x\n>y\n# z: 1\n", ["f:1:1: ", "f:2:1: ", "f:3:1: "]),
    ],
)
def test_faults_come_with_their_place_and_all_at_once(text: str, faults: list[str]) -> None:
    with pytest.raises(FaultsError) as caught:
        parse(text, "f")
    found = [str(f) for f in caught.value.faults]
    assert len(found) == len(faults)
    for said, wanted in zip(found, faults, strict=True):
        assert said.startswith(wanted)


@given(st.text())
def test_any_text_is_a_transcript_or_has_faults(text: str) -> None:
    try:
        found = parse(text)
    except FaultsError:
        return
    assert found.turns
    assert plain(parse(text_of(found))) == plain(found)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read(str(tmp_path / "none"))
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read(str(tmp_path))
    (tmp_path / "latin").write_bytes(b"# gpudiag conversation 1\n> caf\xe9\n")
    with pytest.raises(FaultsError, match=r"latin:2:1: this is not UTF-8"):
        read(str(tmp_path / "latin"))


def test_a_recorder_takes_nobodys_place(tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    Recorder(str(path), []).close()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="exists already"):
        Recorder(str(path), [])
    for bad in (tmp_path / "no" / "x", "\0"):
        with pytest.raises(UsageError, match="cannot be written"):
            Recorder(str(bad), [])


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path / "talk.txt"), [])
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, recorder._handle)
    with pytest.raises(UsageError, match="No space left"):
        recorder.add(Said("x", "y"))
    recorder.close()
    os.close(full)


def test_a_difference_is_shown_under_its_line() -> None:
    before = parse("# gpudiag conversation 1\n\n> a\none\ntwo\n\n> b\nsame\n", "talk.txt")
    after = Transcript((), (before.turns[0]._replace(answer="one\nthree\n"), before.turns[1]))
    assert diff(before, before) == []
    assert diff(before, after) == [
        "--- talk.txt:3 recorded", "+++ talk.txt:3 now", "@@ -1,3 +1,3 @@", " one", "-two", "+three", " ",
    ]  # fmt: skip


def test_other_rules_alone_are_no_difference() -> None:
    head = "# gpudiag conversation 1\n\n> a\n"
    for words in ("43 facts | rules {}", "43 项 | 规则集 {}"):
        before, after = (parse(f"{head}{words.format(h)}\n") for h in ("f0807406670e", "6b1d045d7ee5"))
        assert diff(before, after) == []
    assert diff(parse(f"{head}rules say 1\n"), parse(f"{head}rules say 2\n"))
