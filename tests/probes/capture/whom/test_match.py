"""Names and command lines: what a name means, and who is never meant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import probes
from probes.capture.whom._match import NO, STRONG, WEAK, launches, line_of, ours, strength
from tests.cases import each


@each(
    ("words", "script", "module"),
    [
        ("python train.py --lr 1", "train.py", ""),
        ("/usr/bin/python3.11 -u -X dev -W ignore /job/train.py -m fast", "/job/train.py", ""),
        ("python -m pkg.train --x", "", "pkg.train"),
        ("python -Im pkg.train", "", "pkg.train"),
        ("python -mpkg.train", "", "pkg.train"),
        ("python -Xdev -Wignore train.py", "train.py", ""),
        ("python -uX dev train.py", "train.py", ""),
        ("python --check-hash-based-pycs always train.py", "train.py", ""),
        ("python -m", "", ""),
        ("python -W", "", ""),
        ("python -c print(1) train.py", "", ""),
        ("python -uc print(1) train.py", "", ""),
        ("python", "", ""),
        ("python -", "", ""),
        ("bash train.py", "", ""),
    ],
)
def test_script_and_module(words: str, script: str, module: str) -> None:
    line = line_of(words.split())
    assert (line.script, line.module) == (script, module)


def test_a_script_that_is_run_by_its_first_line() -> None:
    """``#!/usr/bin/python3``: the kernel puts the interpreter in front; vLLM writes a title over its command line."""
    assert line_of(["/usr/bin/python3", "/venv/bin/vllm", "serve"]).script == "/venv/bin/vllm"
    assert line_of(["VLLM::EngineCore"], python=True).short == "VLLM::EngineCore"


@each(
    ("name", "how"),
    [
        ("train.py", STRONG), ("train", STRONG), ("/job/src/train.py", STRONG), ("src/train.py", STRONG), ("./src/train.py", STRONG),
        ("tra*", STRONG), ("python", STRONG), ("python3", STRONG), ("llama.yaml", WEAK), ("--lr", WEAK), ("conf/llama.yaml", WEAK),
        ("train.py --config", WEAK), ("rain.py", NO), ("", NO), ("train.pyc", NO), ("b/src/train.py", NO), ("ob/src/train.py", NO),
    ],
)  # fmt: skip
def test_what_a_name_means(name: str, how: int) -> None:
    words = ["/usr/bin/python3", "-u", "/job/src/train.py", "--config", "/job/conf/llama.yaml", "--lr", "1e-4"]
    line = line_of(words)
    assert strength(name, "python", line) == how


@each(("name", "how"), [("pkg.train", STRONG), ("train", STRONG), ("pkg", NO), ("x.py", WEAK)])
def test_a_module_by_its_name(name: str, how: int) -> None:
    assert strength(name, "python", line_of(["python", "-m", "pkg.train", "x.py"])) == how


def test_the_short_name() -> None:
    assert strength("VLLM::EngineCor", "VLLM::EngineCor", line_of([])) == STRONG


@each(
    ("words", "yes"),
    [
        ("torchrun --nproc-per-node 8 train.py", True), ("/usr/bin/python /venv/bin/torchrun train.py", True),
        ("python -m torch.distributed.run train.py", True), ("python -m torch.distributed.launch train.py", True),
        ("python /venv/lib/python3.11/site-packages/torch/distributed/run.py train.py", True),
        ("python /venv/bin/accelerate launch train.py", True), ("python -m accelerate.commands.launch train.py", True),
        ("python /venv/bin/deepspeed train.py", True), ("python -u -m deepspeed.launcher.launch train.py", True),
        ("srun python train.py", True), ("mpirun -n 2 python train.py", True), ("sudo -u a python train.py", True),
        ("bash -c python-train.py", True), ("nsys profile python train.py", True), ("uv run train.py", True),
        ("python train.py", False), ("python -m pkg.train", False), ("python my_torchrun.py", False),
        ("python /x/torch/distributed/runner.py", False), ("vllm serve", False), ("", False),
    ],
)  # fmt: skip
def test_who_starts_others(words: str, yes: bool) -> None:
    assert launches(line_of(words.split())) is yes


@each(
    ("words", "yes"),
    [
        ("/usr/bin/python /venv/bin/gpudiag profile --name train.py", True), ("python -m assistant.cli profile", True),
        (f"python -I -S -B {next(iter(probes.__path__))}/collectors/nvml.py --deadline 3", True), ("py-spy record --pid 3", True),
        ("python train.py --name gpudiag", False), ("python -m gpudiag_trainer", False),
    ],
)  # fmt: skip
def test_who_is_gpudiag(words: str, yes: bool) -> None:
    assert ours(line_of(words.split())) is yes


WORDS = st.lists(st.text(max_size=20), max_size=6)


@given(WORDS, st.text(max_size=20), st.booleans())
def test_no_line_and_no_name_is_too_odd(words: list[str], name: str, python: bool) -> None:
    line = line_of(words, python=python)
    assert strength(name, "comm", line) in (NO, WEAK, STRONG)
    assert launches(line) in (True, False)
    assert ours(line) in (True, False)


@given(st.lists(st.from_regex(r"[a-z][a-z0-9_./]{0,12}", fullmatch=True), min_size=1, max_size=5))
def test_a_script_is_always_found_by_its_own_name(words: list[str]) -> None:
    line = line_of(["python", *words])
    assert line.script == words[0]
    assert strength(words[0], "python", line) == STRONG
