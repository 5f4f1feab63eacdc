"""Whatever is given, the answer is one clear sentence, the right exit code and no traceback."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.assistant.stories import DBE
from tests.conftest import Answer, Gpudiag


def said(answer: Answer) -> str:
    assert "Traceback" not in answer.err
    assert "this is a bug" not in answer.err
    return " ".join((answer.out + answer.err).split())


@pytest.mark.parametrize("option", ["--log", "--input"])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (bytes(range(256)) * 400, "binary"),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 200, "a program"),
        (b"\0" * 5000, ""),
        (b"PK\x03\x04" + b"\0" * 100, "zip"),
        (b"\xfd7zXZ\0" + b"\1" * 100, "xz"),
        ("héllo".encode("utf-16"), "UTF-16"),
        (gzip.compress(b"", mtime=0), "empty"),
    ],
    ids=["empty", "binary", "program", "zeros", "zip", "xz", "utf16", "empty-gzip"],
)
def test_what_cannot_be_read_is_said(
    gpudiag: Gpudiag, tmp_path: Path, option: str, content: bytes, sentence: str
) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    answer = gpudiag("check", option, str(path))
    assert answer.code == 3
    text = said(answer)
    assert "given" in text
    assert sentence in text
    assert answer.out.startswith("UNKNOWN  ")


def test_unrecognised_text_is_said_in_a_line(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary,\nall is well.\n", encoding="utf-8")
    answer = gpudiag("check", "--input", str(path))
    assert answer.code == 3
    flat = said(answer)
    assert "notes.txt: content not recognised: it is none of the " in flat
    assert "nvidia-smi -q text" in flat
    assert len(answer.out.splitlines()) <= 12


def test_a_known_document_given_as_a_log_is_read_as_what_it_is(gpudiag: Gpudiag) -> None:
    demo = Path(__file__).parents[2] / "assistant" / "demos" / "power-brake" / "nvidia-smi-q.txt"
    answer, right = gpudiag("check", "--log", str(demo)), gpudiag("check", "--input", str(demo))
    assert answer.code == right.code == 1
    assert answer.out.splitlines()[0] == right.out.splitlines()[0]
    assert "is nvidia-smi -q text, not a log, and was read as such" in said(answer)


def test_text_that_is_no_log_is_said_to_be_none(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary,\nall is well.\n", encoding="utf-8")
    assert "no line of a known log was found" in said(gpudiag("check", "--log", str(path)))


def test_truncated_gzip_is_used_up_to_the_break(gpudiag: Gpudiag, tmp_path: Path) -> None:
    filler = "".join(f"[{900_000 + i}.000000] usb 1-1: reset number {i * 7919 % 9973}\n" for i in range(20_000))
    packed = gzip.compress((DBE + filler).encode())
    path = tmp_path / "kern.log.gz"
    path.write_bytes(packed[: len(packed) // 2])
    for option in ("--log", "--input"):
        answer = gpudiag("check", option, str(path), "--format", "json")
        assert answer.code == 1
        data = json.loads(answer.out)
        assert [e["code"] for e in data["events"]] == [48, 63, 94, 45, 45]
        assert any("cut off" in note for note in data["notes"])


def test_truncated_gzip_document(gpudiag: Gpudiag, tmp_path: Path) -> None:
    demo = Path(__file__).parents[2] / "assistant" / "demos" / "power-brake" / "nvidia-smi-q.txt"
    packed = gzip.compress(demo.read_bytes())
    path = tmp_path / "smi.txt.gz"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    answer = gpudiag("check", "--input", str(path), "--format", "json")
    assert answer.code in (1, 3)  # never 0: the missing part may hold anything
    assert any("cut off" in note for note in json.loads(answer.out)["notes"])


def test_invalid_utf8_costs_nothing(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_bytes(b"[    1.000000] usb: \xff\xfe\x80 caf\xe9\n" + DBE.encode())
    answer = gpudiag("check", "--log", str(path), "--format", "json")
    assert answer.code == 1
    assert [e["code"] for e in json.loads(answer.out)["events"]] == [48, 63, 94, 45, 45]


def test_one_line_of_200_megabytes(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = tmp_path / "one-line.log"
    with path.open("wb") as f:
        for _ in range(200):
            f.write(b"all work and no play " * 49932)
    for option in ("--log", "--input"):
        answer = gpudiag("check", option, str(path), timeout=120)
        assert answer.code == 3
        assert "longer than" in said(answer)
    path.unlink()


@pytest.mark.parametrize("option", ["--log", "--input"])
def test_nothing_but_missing_files_and_directories_stops(gpudiag: Gpudiag, tmp_path: Path, option: str) -> None:
    for path, sentence in ((tmp_path / "absent.log", "no such file"), (tmp_path, "is a directory")):
        answer = gpudiag("check", option, str(path))
        assert answer.code == 2
        assert answer.out == ""
        assert sentence in said(answer)
    both = gpudiag("check", option, str(tmp_path / "absent.log"), str(tmp_path))
    assert both.code == 2
    assert "no such file" in both.err
    assert "is a directory" in both.err


@pytest.mark.process
def test_unreadable(clean_environment: dict[str, str]) -> None:
    """As another user when the tests run as root, who may read everything."""
    program = (
        "import os, sys\nfrom assistant import sources\nfrom knowledge.errors import InputError\n"
        "os.geteuid() or os.setuid(65534)\n"
        "try: sources.read([sys.argv[1]], [])\nexcept InputError as error: print(error)"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "kern.log"
        path.write_text(DBE, encoding="utf-8")
        path.chmod(0)
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True,
            text=True,
            check=False,
            env=clean_environment,
        )
    assert done.stdout == f"{path} may not be read by this user\n  kernel logs often need root: try sudo\n", done.stderr


def test_strange_names(gpudiag: Gpudiag, tmp_path: Path) -> None:
    for name in ("-", "a\0b", "\x1b[31mred", "x" * 5000):
        if name == "-":
            continue
        try:
            answer = gpudiag("check", "--log", str(tmp_path / name))
        except ValueError:
            continue  # the operating system itself refuses a NUL in an argument
        assert answer.code == 2
        assert "\x1b" not in said(answer)


@pytest.mark.process
def test_a_pipe_is_read_once(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-c", f'{sys.executable} -m assistant check --input <(printf "%s" "$1") --format json', "-", DBE],
        capture_output=True, check=False, env=clean_environment, cwd=clean_environment["PYTHONPATH"],
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert [e["code"] for e in json.loads(done.stdout)["events"]] == [48, 63, 94, 45, 45]


TEN_FAULTS = """\
id: other-name
revision: 0
title: {en: Something}
status: perfect
severity: bad
scope: gpu
colour: red
when:
  all:
    - {fact: gpu.temprature.core, op: above, value: 90}
    - {fact: node.gpu.expected, op: contains, value: 8}
    - {event: xid, where: {kode: 79}}
    - {evnt: xid}
action: {bucket: REBOOT}
why: {en: Because.}
"""


def test_a_rule_file_with_ten_faults_shows_them_all_with_their_places(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = tmp_path / "ten-faults.yaml"
    path.write_text(TEN_FAULTS, encoding="utf-8")
    answer = gpudiag("rules", "lint", str(path), cwd=tmp_path)
    assert answer.code == 2
    assert "Traceback" not in answer.err
    faults = [line for line in answer.out.splitlines() if line.startswith("ten-faults.yaml:")]
    assert len(faults) >= 10
    places = [tuple(map(int, f.split(":")[1:3])) for f in faults]
    assert places == sorted(places)
    assert {line for line, _ in places} >= {1, 2, 4, 5, 7, 10, 11, 12, 13, 14}
    assert "did you mean gpu.temperature.core" in answer.out
    # The same file as a pack of a check: what it cannot be read for, on stderr, exit code 2.
    log = tmp_path / "kern.log"
    log.write_text(DBE, encoding="utf-8")
    used = gpudiag("check", "--log", str(log), "--rules", str(path))
    assert used.code == 2
    assert used.out == ""
    unread = [line[line.index("ten-faults.yaml:") :] for line in used.err.splitlines() if "ten-faults.yaml:" in line]
    assert len(unread) >= 10
    assert set(unread) <= set(faults)
