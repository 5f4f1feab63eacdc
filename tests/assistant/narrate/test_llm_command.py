"""``gpudiag llm``: what is shown as sent is what the server got, and the exit code says whether the words may be shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.config import load
from knowledge.errors import ConfigError
from tests.conftest import Gpudiag
from tests.llm_lab import Model, serving, stand_in_python

TRUE = json.dumps({"sentences": [{"text": "{gpu_1} has fallen off the bus.", "cites": ["f1"]}]})
FALSE = json.dumps({"sentences": [{"text": "A failing power supply broke {gpu_1}.", "cites": ["f1"]}]})
KEY = "sk-a-key-that-nobody-may-see"
HOST = "oak-h100-042"  # of the demo


@pytest.fixture(scope="module")
def server() -> Iterator[Model]:
    with serving() as model:
        yield model


def environment(folder: Path, base: str, **more: str) -> dict[str, str]:
    return {
        "GPUDIAG_STATE_DIR": str(folder), "GPUDIAG_LLM_MODEL": "openai/m", "GPUDIAG_LLM_BASE": base, "GPUDIAG_LLM_KEY": KEY, **more
    }  # fmt: skip


def test_off_until_a_model_is_set(gpudiag: Gpudiag, tmp_path: Path) -> None:
    got = gpudiag("llm", env={"GPUDIAG_STATE_DIR": str(tmp_path)})
    assert got.code == 0
    assert got.out.startswith("Nothing is sent to any model.")
    assert "llm_model" in got.out
    got = gpudiag("llm", "test", env={"GPUDIAG_STATE_DIR": str(tmp_path)})
    assert got.code == 2  # a test was asked for, and there is nothing to test
    assert got.out.startswith("Nothing is sent to any model.")
    assert list(tmp_path.iterdir()) == []


def test_the_status_shows_no_key_and_sends_nothing(gpudiag: Gpudiag, server: Model, tmp_path: Path) -> None:
    server.requests.clear()
    got = gpudiag("llm", "status", env=environment(tmp_path, server.base))
    assert got.code == 0
    assert got.out.startswith("Narration is on: openai/m")
    shown = gpudiag("config", "show", env=environment(tmp_path, server.base))
    assert "llm_key" in shown.out
    assert KEY not in got.out + got.err + shown.out + shown.err
    assert server.requests == []
    away = gpudiag("llm", "status", "--lang", "zh", env=environment(tmp_path, "https://api.openai.com/v1"))
    assert away.code == 2
    assert "llm_hosts" in away.out


def test_a_dry_run_is_what_a_run_sends(gpudiag: Gpudiag, server: Model, tmp_path: Path) -> None:
    server.requests.clear()
    server.text = TRUE
    env = environment(tmp_path, server.base, GPUDIAG_LLM_PYTHON=stand_in_python(), GPUDIAG_LLM_DEADLINE="60")
    dry = json.loads(gpudiag("llm", "test", "--dry-run", "--format", "json", env=env).out)
    assert (dry["result"], server.requests) == ("not-sent", [])
    got = gpudiag("llm", "test", "--show-redaction", "--format", "json", env=env)
    assert got.code == 0, got.out + got.err
    told = json.loads(got.out)
    (sent,) = server.requests
    assert dry["messages"] == told["messages"] == sent.body["messages"]
    assert (told["result"], told["received"]["text"], told["received"]["tokens_in"]) == ("shown", TRUE, 100)
    (sentence,) = told["narration"]
    assert sentence["text"] == f"{told['redaction']['{gpu_1}']} has fallen off the bus."
    assert any(HOST in kept for kept in told["redaction"].values())
    assert HOST not in json.dumps(sent.body)
    assert KEY not in got.out + got.err
    assert told["received"]["cost_usd"] is None


def test_what_the_fence_refuses_is_shown_here_and_nowhere_else(gpudiag: Gpudiag, server: Model, tmp_path: Path) -> None:
    server.text = FALSE
    env = environment(tmp_path, server.base, GPUDIAG_LLM_PYTHON=stand_in_python(), GPUDIAG_LLM_DEADLINE="60")
    got = gpudiag("llm", "test", env=env)
    assert got.code == 3
    assert got.out.startswith("Narration withheld: the answer of gpudiag stands alone.")
    assert "failing power supply" in got.out
    assert "failing power supply" not in (tmp_path / "narration.log").read_text()


def test_one_answer_at_a_time(gpudiag: Gpudiag, tmp_path: Path) -> None:
    dry, env = ("llm", "test", "--dry-run"), {"GPUDIAG_STATE_DIR": str(tmp_path)}
    got = gpudiag(*dry, "--demo", "power-brake", "--log", "x", env=env)
    assert got.code == 2
    assert "--demo" in got.err
    assert gpudiag(*dry, "--demo", "no-such", env=env).code == 2


def test_a_key_does_not_belong_into_a_file_of_settings(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('llm_key = "sk-x"\n')
    with pytest.raises(ConfigError) as caught:
        load({}, {}, (tmp_path / "config.toml",))
    assert "llm_key_file" in caught.value.message
    assert "sk-x" not in caught.value.message
