"""The way in: nothing raises, nothing waits, every failure has a reason and a line in the log, and nothing of what was said is in it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assistant.config import Llm, Machine, Settings
from assistant.narrate.limits import NAME as USAGE
from assistant.narrate.log import CAP, note
from assistant.narrate.log import NAME as LOG
from assistant.narrate.narrator import Narrated, Narrator, Pending, Rewording, Withheld
from assistant.narrate.reasons import NarrationError, Reason
from assistant.reply import Reply
from tests.llm_lab import FINE, Model, llm_python, serving, stand_in_python

REPLY = Reply("en", "GPU 3 has fallen off the bus.")
SECRET = "rack-7-secret-node"


class Payload:
    """A payload of the test's own, judged by its closing brace."""

    messages = ({"role": "user", "content": f"reword {SECRET}"},)

    def finish(self, text: str) -> str:
        if "bad" in text:
            raise NarrationError(Reason.FENCE, f"word: {SECRET}")
        return text


def payload(reply: Reply, llm: Llm) -> Payload:
    return Payload()


def settings(folder: Path, **llm: Any) -> Settings:
    return Settings(machine=Machine(state_dir=folder), llm=Llm(**{"model": "openai/m", "deadline": 30, **llm}))


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines()]


def begun(narrator: Narrator) -> Pending:
    pending = narrator.begin(REPLY)
    assert pending is not None
    return pending


@pytest.fixture(scope="module")
def server() -> Iterator[Model]:
    with serving() as model:
        yield model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def narrator(server: Model, folder: Path) -> Iterator[Narrator]:
    """One for the file."""
    llm = {"base": server.base, "python": stand_in_python(), "price": "1/10", "requests_per_minute": 100}
    one = Narrator(settings(folder, **llm), payload)
    assert one.wait(120)
    yield one
    one.close()


@pytest.fixture(autouse=True)
def _as_it_was(request: pytest.FixtureRequest) -> None:
    if "server" in request.fixturenames:
        model: Model = request.getfixturevalue("server")
        model.mode, model.text = "ok", FINE
        model.requests.clear()
    if "folder" in request.fixturenames:
        (request.getfixturevalue("folder") / LOG).unlink(missing_ok=True)


def test_without_a_model_there_is_nothing_to_say(tmp_path: Path) -> None:
    narrator = Narrator(settings(tmp_path, model=""), payload)
    assert narrator.begin(REPLY) is None
    assert not narrator.ready
    narrator.close()
    assert list(tmp_path.iterdir()) == []


def spent(folder: Path) -> tuple[int, int]:
    """Tokens and millionths of a dollar so far."""
    file = folder / USAGE
    used = json.loads(file.read_bytes()) if file.exists() else {"tokens": 0, "micros": 0}
    return used["tokens"], used["micros"]


def test_an_answer_that_passes(narrator: Narrator, server: Model, folder: Path) -> None:
    tokens, micros = spent(folder)
    found = begun(narrator).result(60)
    assert isinstance(found, Narrated)
    assert (found.narration, found.completion.prompt_tokens) == (FINE, 100)
    assert narrator.ready
    (line,) = lines(folder)
    assert (line["result"], line["tokens_in"], line["tokens_out"]) == ("narrated", 100, 20)
    assert spent(folder) == (tokens + 120, micros + 300)  # 100 at 1 and 20 at 10 dollars a million


def test_an_answer_that_does_not_pass_comes_with_what_it_was(narrator: Narrator, server: Model, folder: Path) -> None:
    server.text = '{"bad": "a lie"}'
    found = begun(narrator).result(60)
    assert isinstance(found, Withheld)
    assert found.reason is Reason.FENCE
    assert found.completion is not None
    assert lines(folder)[0]["detail"] == "word"


def test_the_log_holds_nothing_of_what_was_said(narrator: Narrator, server: Model, folder: Path) -> None:
    for mode, said in (("ok", '{"bad": 1}'), ("refuse", FINE), ("html", FINE), ("ok", SECRET)):
        server.mode, server.text = mode, said
        assert isinstance(begun(narrator).result(60), Withheld)
    text = (folder / LOG).read_text()
    assert text.count("\n") == 4
    assert SECRET not in text
    assert "lie" not in text
    assert (folder / LOG).stat().st_mode & 0o077 == 0


def test_a_limit_withholds_and_nothing_is_sent(narrator: Narrator, server: Model, folder: Path) -> None:
    kept = (folder / USAGE).read_bytes() if (folder / USAGE).exists() else b""
    full = {"schema": "gpudiag/llm-usage/1", "day": time.strftime("%Y-%m-%d", time.gmtime()), "requests": 9, "tokens": 200_000,
            "micros": 0, "recent": []}  # fmt: skip
    (folder / USAGE).write_text(json.dumps(full))
    found = begun(narrator).result(60)
    (folder / USAGE).write_bytes(kept) if kept else (folder / USAGE).unlink()
    assert isinstance(found, Withheld)
    assert found.reason is Reason.LIMIT
    assert "tokens of the day" in found.said.en
    assert server.requests == []


def test_a_model_that_is_down_does_not_eat_the_tokens_of_the_day(
    narrator: Narrator, server: Model, folder: Path
) -> None:
    assert isinstance(begun(narrator).result(60), Narrated)
    before = json.loads((folder / USAGE).read_bytes())["tokens"]
    server.mode = "error"
    found = begun(narrator).result(60)
    assert isinstance(found, Withheld)
    assert found.reason is Reason.DOWN
    assert json.loads((folder / USAGE).read_bytes())["tokens"] == before


def test_a_result_that_is_not_there_is_not_waited_for(narrator: Narrator, server: Model) -> None:
    server.mode, server.seconds = "slow", 1.5
    pending = begun(narrator)
    found = pending.result()  # at once: the model is at it still
    assert isinstance(found, Withheld)
    assert found.reason is Reason.SLOW
    assert not pending.done
    assert isinstance(pending.result(60), Narrated)  # it is not lost: it came later


@pytest.mark.process
@pytest.mark.parametrize(
    ("llm", "reason"),
    [
        ({"base": ""}, Reason.NOT_CONFIGURED),
        ({"base": "https://api.openai.com/v1"}, Reason.HOST),
        ({"base": "http://127.0.0.1:9/v1", "python": "/none/python"}, Reason.NOT_INSTALLED),
    ],
    ids=["no-address", "no-host", "no-python"],
)
def test_what_will_never_work_is_said_at_once(tmp_path: Path, llm: dict[str, str], reason: Reason) -> None:
    narrator = Narrator(settings(tmp_path, **llm), payload)
    found = begun(narrator).result(30)
    narrator.close()
    assert isinstance(found, Withheld)
    assert found.reason is reason
    assert found.said.zh
    assert lines(tmp_path)[0]["result"] == reason.value


@pytest.mark.process
def test_a_bug_of_ours_costs_the_narration_and_nothing_else(narrator: Narrator, folder: Path) -> None:
    def broken(reply: Reply, llm: Llm) -> Payload:
        raise KeyError("a bug")

    wrong: Rewording = broken
    other = Narrator(settings(folder, base="http://127.0.0.1:9/v1", python="/none/python"), wrong)
    found = begun(other).result(30)
    other.close()
    assert isinstance(found, Withheld)
    assert found.reason is Reason.BROKEN


@pytest.mark.process
def test_a_dead_model_is_known_for_one_and_nobody_waits_for_it(tmp_path: Path) -> None:
    """Nobody listens there, and the real litellm is still being loaded: what it costs is `bench/narration.py`'s business."""
    narrator = Narrator(settings(tmp_path, base="http://127.0.0.1:9/v1", python=llm_python(), deadline=20), payload)
    pending = begun(narrator)
    found = pending.result(60)
    narrator.close()
    assert isinstance(found, Withheld)
    assert found.reason in (Reason.DOWN, Reason.SLOW)


def test_the_log_stays_small(tmp_path: Path) -> None:
    for _ in range(3 * CAP // 1000):
        note(tmp_path, {"detail": "\x1b[2J" + "x" * 900})
    sizes = [p.stat().st_size for p in sorted(tmp_path.iterdir())]
    assert len(sizes) == 2
    assert max(sizes) <= CAP
    assert b"\x1b" not in (tmp_path / LOG).read_bytes()
