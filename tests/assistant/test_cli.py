"""The command line as a whole: help, flags, errors, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.cli import _command_index, command_modules, main
from tests.cases import each
from tests.conftest import Gpudiag
from tests.overlay import checkout

COMMANDS = sorted(command_modules())


def test_the_folder_is_the_list() -> None:
    folder = (
        Path("assistant/commands")
        if Path("assistant/commands").is_dir()
        else Path(__file__).parents[2] / "assistant/commands"
    )
    assert sorted(p.stem for p in folder.glob("[a-z]*.py")) == [
        m.rsplit(".", 1)[1] for _, m in sorted(command_modules().items())
    ]


def test_version(gpudiag: Gpudiag) -> None:
    from assistant import __version__

    for flag in ("--version", "-V"):
        answer = gpudiag(flag)
        assert (answer.code, answer.out, answer.err) == (0, f"gpudiag {__version__}\n", "")


def test_nothing_is_help(gpudiag: Gpudiag) -> None:
    nothing, asked = gpudiag(), gpudiag("--help")
    assert nothing.code == asked.code == 0
    assert nothing.out == asked.out
    for name in COMMANDS:
        assert f"    {name} " in nothing.out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(gpudiag: Gpudiag, name: str) -> None:
    answer = gpudiag(name, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"usage: gpudiag {name}")
    assert "==SUPPRESS==" not in answer.out


def test_unknown_command_names_the_nearest(gpudiag: Gpudiag) -> None:
    answer = gpudiag("chekc")
    assert answer.code == 2
    assert "no command named 'chekc'" in answer.err
    assert "check" in answer.err.splitlines()[1]
    assert answer.out == ""


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("check", "--lgo", "x"), "did you mean --log"),
        (("check", "--log"), "expected at least one argument"),
        (("check", "--expect-gpus", "many"), "number of GPUs"),
        (("explain",), "KIND NAME"),
        (("explain", "xid"), "explain xid needs a name"),
        (("--format", "xml", "check"), "--format does not take 'xml'"),
        (("--frmat", "json"), "--frmat"),
        (("rules",), "ACTION"),
        (("rules", "lst"), "did you mean list?"),
        (("rules", "show", "gpu-fell-off-buss"), "gpu-fell-off-bus"),
        (("runbook", "show", "gpu-of-bus"), "gpu-off-bus"),
        (("check", "--probe", "nvmll"), "nvml"),
        (("check", "--bundle", "x.tar"), "no such file"),
        (("demo", "nope"), "gpudiag demo --list"),
    ],
)
def test_asked_wrongly(gpudiag: Gpudiag, words: tuple[str, ...], part: str) -> None:
    answer = gpudiag(*words)
    assert answer.code == 2
    assert part in answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert len(answer.err.splitlines()) <= 3


def test_output_flags_stand_anywhere(gpudiag: Gpudiag) -> None:
    before = gpudiag("--format", "json", "--lang", "zh", "explain", "xid", "79")
    after = gpudiag("explain", "xid", "79", "--format=json", "--lang=zh")
    assert before.code == 0
    assert before.out == after.out


@each(
    ("words", "index"),
    [
        ([], None),
        (["check"], 0),
        (["--lang", "zh", "check"], 2),
        (["--lang=zh", "-q", "check"], 2),
        (["--help", "check"], None),
        (["--lang", "check"], None),  # the language is "check": there is no command
    ],
)
def test_where_the_command_stands(words: list[str], index: int | None) -> None:
    assert _command_index(words) == index


@pytest.mark.process
def test_a_reader_that_leaves_is_no_error(clean_environment: dict[str, str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "assistant", "rules", "list"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment, cwd=clean_environment["PYTHONPATH"],
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(60) == 0
    assert errors == b""
    process.stderr.close()


BROKEN = """
NAME, HELP = "broken", "opens what is not there"
def add_arguments(parser): pass
def run(args): open("/no/such/folder/file")
"""
INTERRUPTED = """
import os, signal
NAME, HELP = "interrupted", "gets Ctrl-C while it works"
def add_arguments(parser): pass
def run(args): os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.fixture(scope="module")
def more_commands(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkout with two commands more."""
    folder = checkout(tmp_path_factory.mktemp("checkout"))
    (folder / "assistant/commands/broken.py").write_text(BROKEN)
    (folder / "assistant/commands/interrupted.py").write_text(INTERRUPTED)
    return str(folder)


def test_a_bug_is_one_line_without_paths(gpudiag_process: Gpudiag, more_commands: str, tmp_path: Path) -> None:
    """A command module that breaks: the sentence names it as ours, with exit code 70."""
    for debug in ("", "1"):
        done = gpudiag_process("broken", env={"PYTHONPATH": more_commands, "GPUDIAG_DEBUG": debug}, cwd=tmp_path)
        assert done.code == 70
        lines = done.err.splitlines()
        assert "this is a bug in gpudiag (FileNotFoundError: " in lines[-1]
        assert "/no/such" not in done.err
        assert more_commands not in done.err
        assert len(lines) == (1 if not debug else len(lines))
        assert bool(debug) == ("in run" in done.err)


def test_unprintable_characters_cost_no_answer(gpudiag_process: Gpudiag) -> None:
    answer = gpudiag_process("explain", "xid", "79", "--lang", "zh", env={"PYTHONIOENCODING": "ascii"})
    assert answer.code == 0
    assert answer.out.startswith("XID 79: GPU ")


def test_completion(gpudiag: Gpudiag, require: Callable[[str], str], tmp_path: Path) -> None:
    for shell in ("bash", "zsh", "tcsh"):
        script = gpudiag("completion", shell)
        assert script.code == 0
        assert all(name in script.out for name in COMMANDS)
        file = tmp_path / f"completion.{shell}"
        file.write_text(script.out, encoding="utf-8")
    for shell in ("bash", "zsh", "tcsh"):  # each shell parses its own
        subprocess.run([require(shell), "-n", str(tmp_path / f"completion.{shell}")], check=True, capture_output=True)


def test_interrupt_is_130(gpudiag_process: Gpudiag, more_commands: str, tmp_path: Path) -> None:
    done = gpudiag_process("interrupted", env={"PYTHONPATH": more_commands}, cwd=tmp_path)
    assert (done.code, done.out, done.err) == (130, "", "")


def test_main_takes_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "xid", "79", "--lang", "en"]) == 0
    assert capsys.readouterr().out.startswith("XID 79: ")


@pytest.mark.parametrize("flags", [["--quiet"], ["--color", "never"]])
def test_words_without_a_parser_mean_the_same(gpudiag: Gpudiag, flags: list[str]) -> None:
    """`explain` takes a short cut when it has no flags."""
    for words in (["xid", "79"], ["purple", "elephants"], ["xid"]):
        short, parsed = gpudiag("explain", *words), gpudiag("explain", *words, *flags)
        assert (short.code, short.out, short.err) == (parsed.code, parsed.out, parsed.err)


@pytest.mark.process
def test_a_module_in_the_place_of_a_library_cannot_end_a_check_well(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("import sys; sys.exit(0)\n")
    done = subprocess.run(
        [sys.executable, "-m", "assistant", "check", "--no-history", "--probe", "system"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False,
        cwd=Path(__file__).parent.parent.parent,
    )  # fmt: skip
    assert done.returncode == 70, done.stdout


def test_a_misspelt_flag_is_named_and_not_its_value(gpudiag: Gpudiag) -> None:
    done = gpudiag("profile", "--pdi", "1")
    assert done.code == 2
    assert "--pdi" in done.err
    assert "did you mean --pid?" in done.err
