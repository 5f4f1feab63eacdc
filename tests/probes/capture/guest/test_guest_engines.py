"""Steps of serving engines are found by name: stand-ins of ours that are laid out as vLLM and SGLang are."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.capture.model import Item, Window
from tests.live_jobs import ROOT, Job, python
from tests.probes.capture.guests import capture

pytestmark = pytest.mark.process

VLLM = """
import time
class EngineCore:
    def __init__(self, queue=False):
        self.step_fn = self.step_with_batch_queue if queue else self.step  # bound once: replacing the method would see nothing
    def step(self):
        time.sleep(0.001)
        return {}, True
    def step_with_batch_queue(self):
        return self.step()
    def run_busy_loop(self, tick):
        while True:
            self.step_fn()
            tick()
"""
SGLANG = """
import time, functools
def nvtx(function):
    @functools.wraps(function)
    def wrapper(*args, **words):
        return function(*args, **words)
    return wrapper
class Scheduler:
    @nvtx
    def run_batch(self, batch):
        time.sleep(0.001)
        return batch
    def run_busy_loop(self, tick):
        while True:
            self.run_batch([1])
            tick()
"""
MAIN = """
import sys
sys.path[:0] = [{jobs!r}, {here!r}]
from counters import Counters, ready
from {module} import {name}
counters = Counters()
ready()
{name}({args}).run_busy_loop(counters.tick)
"""


@pytest.mark.parametrize("version", [(3, 9), (3, 12)], ids=["3.9", "3.12"])
@pytest.mark.parametrize(
    ("module", "name", "args", "label", "text"),
    [
        ("vllm.v1.engine.core", "EngineCore", "", "EngineCore.step", VLLM),
        ("vllm.v1.engine.core", "EngineCore", "True", "EngineCore.step", VLLM),
        ("sglang.srt.managers.scheduler", "Scheduler", "", "Scheduler.run_batch", SGLANG),
    ],
    ids=["vllm", "vllm-batch-queue", "sglang"],
)
def test_engines(
    version: tuple[int, int], module: str, name: str, args: str, label: str, text: str, tmp_path: Path
) -> None:
    at = tmp_path
    for word in module.split(".")[:-1]:
        at /= word
        at.mkdir()
        (at / "__init__.py").touch()
    (at / f"{module.rpartition('.')[2]}.py").write_text(text)
    script = tmp_path / "serve.py"
    script.write_text(
        MAIN.format(jobs=str(ROOT / "tests/jobs"), here=str(tmp_path), module=module, name=name, args=args)
    )
    with Job(str(script), interpreter=python(*version)) as job:
        got = capture(job, [Item.LOSS], Window(iterations=5, skip=2), tmp_path)
        assert got.state.phase == "done", got.state
        assert got.iterations is not None
        assert got.iterations["anchor"] == f"{module}:{label}"
        assert sum(got.iterations["began"] < e <= got.iterations["ended"] for e in got.iterations["ends"]) == 5
