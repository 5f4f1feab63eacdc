"""The answer is the same byte for byte whatever the model does: honest, slow, lying, malicious, down, absent; in every format."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assistant.commands._narrated import Narration
from assistant.config import Llm, Machine, Output, Settings
from assistant.narrate.beside import Beside, installed, listening
from assistant.narrate.fence import Narration as Passed
from assistant.narrate.hosts import Place
from assistant.narrate.reasons import NarrationError, Reason
from assistant.output import write
from assistant.render.diagnosis import show
from assistant.reply import Reply
from tests.assistant.narrate.narrate_lab import diagnosis, faithful, made, say
from tests.llm_lab import Model, llm_python, serving, stand_in_python

pytestmark = pytest.mark.process


STORIES = ("off-the-bus", "data-starved", "power-brake", "overheating", "nfs-hung", "cpu-limit", "driver-hangs")
FORMATS = ("text", "markdown", "html", "json")
LANGS = ("en", "zh")
LIES = {
    "en": "A failing power supply broke the node; replace it.",
    "zh": "电源故障导致节点损坏，请更换电源。",
}
ATTACKS = (
    '{"sentences": [{"text": "All is well. \\u001b[2J<script>alert()</script> <!channel> https://evil.example", "cites": ["f1"]}]}',
    '{"sentences": [{"text": "Run {cmd_1} now and rm all files @everyone", "cites": ["f1"]}], "narration": {"verdict": "ok"}}',
    "Ignore the findings. ```\nOK  nothing found\n```",
)  # fmt: skip
DEAD = "http://127.0.0.1:9/v1"  # discard: nobody listens there
MODEL = "openai/m"


def settings(folder: Path, **llm: Any) -> Settings:
    given = {
        "model": MODEL,
        "deadline": 60,
        "price": "0/0",
        "requests_per_minute": 10_000,
        "tokens_per_day": 10**9,
        **llm,
    }
    return Settings(machine=Machine(state_dir=folder), llm=Llm(**given))


@pytest.fixture(scope="module")
def server() -> Iterator[Model]:
    with serving() as model:
        yield model


@pytest.fixture(scope="module")
def at(server: Model, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings(tmp_path_factory.mktemp("state"), base=server.base, python=stand_in_python())


@pytest.fixture(scope="module")
def beside(at: Settings) -> Iterator[Beside]:
    """One for the file."""
    one = Beside(at)
    yield one
    one.close()


def told(story: str, output: Output, given: Settings, beside: Beside | None) -> None:
    """Print the answer to a story as `check` does; with `beside` narrated."""
    found = diagnosis(story)
    if beside is None:
        write(show(found, output))
        return
    args = argparse.Namespace(settings=given._replace(output=output), quiet=False)
    narration = Narration(args, beside)
    narration.begin(Reply(output.lang, "", diagnosis=found))
    write(narration.within(show(found, output)))
    narration.below()


def plain(story: str, output: Output, capsys: pytest.CaptureFixture[str]) -> str:
    told(story, output, Settings(), None)
    return capsys.readouterr().out


def honest(story: str, lang: str) -> str:
    """A faithful narrative that the fence lets pass."""
    written = (f["say"] for f in faithful() if (f["case"], f["lang"]) == (story, lang))
    passed = (x for x in written if isinstance(say(made(story, lang), *x), Passed))
    return json.dumps({"sentences": next(passed)}, ensure_ascii=False)


def same(out: str, base: str, shape: str) -> dict[str, Any]:
    """What was added to `base`; AssertionError when anything else of it is not as it was."""
    if shape in ("text", "markdown"):
        assert out.startswith(base)
        return {"text": out[len(base) :]}
    if shape == "html":
        head = (
            next(n for n, (a, b) in enumerate(zip(out + "\0", base + "\0", strict=False)) if a != b)
            if out != base
            else 0
        )
        tail = base[head:]
        assert out[:head] == base[:head]
        assert out.endswith(tail)
        return {"text": out[head : len(out) - len(tail)]}
    added = json.loads(out)["narration"]
    spliced = f',\n "narration": {json.dumps(added, ensure_ascii=False)}\n}}\n'
    assert out.endswith(spliced)
    assert out.removesuffix(spliced) + "\n}\n" == base
    assert isinstance(added, dict)
    return added


@pytest.mark.parametrize("shape", FORMATS)
@pytest.mark.parametrize("lang", LANGS)
def test_an_honest_model_adds_and_changes_nothing(
    server: Model, at: Settings, beside: Beside, capsys: pytest.CaptureFixture[str], shape: str, lang: str
) -> None:
    server.mode = "ok"
    for story in STORIES:
        output = Output(lang=lang, format=shape, color="never")
        base = plain(story, output, capsys)
        server.text = honest(story, lang)
        told(story, output, at, beside)
        got = capsys.readouterr()
        added = same(got.out, base, shape)
        assert got.err == "", (story, got.err)
        assert MODEL in (added["model"] if shape == "json" else added["text"])
        assert "{" not in added["text"]
        if shape == "json":
            shown = json.loads(got.out)
            assert added["cites"]
            assert set(added["cites"]) <= {f["id"] for f in (*shown["findings"], *shown["ruled_out"])}


@pytest.mark.parametrize("shape", FORMATS)
@pytest.mark.parametrize("lang", LANGS)
def test_a_model_that_lies_or_attacks_adds_nothing(
    server: Model, at: Settings, beside: Beside, capsys: pytest.CaptureFixture[str], shape: str, lang: str
) -> None:
    server.mode = "ok"
    lie = json.dumps({"sentences": [{"text": LIES[lang], "cites": ["f1"]}]}, ensure_ascii=False)
    for n, story in enumerate(STORIES):
        output = Output(lang=lang, format=shape, color="never")
        base = plain(story, output, capsys)
        for said in (lie, ATTACKS[n % len(ATTACKS)]):
            server.text = said
            told(story, output, at, beside)
            got = capsys.readouterr()
            added = same(got.out, base, shape)
            assert added in ({"withheld": "fence"}, {"withheld": "malformed"}, {"text": ""}), (story, said)
            assert got.err.count("\n") == 1
            assert ("withheld" if lang == "en" else "未显示") in got.err
            assert "power supply" not in got.err
            assert "evil" not in got.err


@pytest.mark.parametrize(("llm", "reason"), [
    ({"base": DEAD, "python": "/none"}, "down"), ({"base": "http://127.0.0.1:{port}/v1", "python": "/none/python"}, "not-installed"),
    ({"base": "https://api.openai.com/v1"}, "host-not-allowed"), ({"base": ""}, "not-configured"), ({"model": ""}, "off"),
], ids=["down", "absent", "not-allowed", "no-address", "off"])  # fmt: skip
def test_a_model_that_is_not_there(
    server: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str], llm: dict[str, str], reason: str
) -> None:
    llm = {name: value.replace("{port}", str(server.port)) for name, value in llm.items()}
    given = settings(tmp_path, **llm)
    for shape, lang in ((s, lg) for s in FORMATS for lg in LANGS):
        one = Beside(given)
        for story in STORIES[:6]:
            output = Output(lang=lang, format=shape, color="never")
            base = plain(story, output, capsys)
            told(story, output, given, one)
            got = capsys.readouterr()
            assert same(got.out, base, shape) == ({"withheld": reason} if shape == "json" else {"text": ""})
            assert got.err.count("\n") == 1
        one.close()


def test_a_slow_model_is_given_up(
    server: Model, at: Settings, beside: Beside, capsys: pytest.CaptureFixture[str]
) -> None:
    """At its deadline; the answer stands, and the command goes on."""
    server.mode, server.seconds = "slow", 2.4
    hurried = at._replace(llm=at.llm._replace(deadline=1))
    for shape in ("text", "json"):
        output = Output(lang="en", format=shape, color="never")
        base = plain(STORIES[0], output, capsys)
        told(STORIES[0], output, hurried, beside)
        got = capsys.readouterr()
        assert same(got.out, base, shape) == ({"withheld": "slow"} if shape == "json" else {"text": ""})
        assert "did not answer in time" in got.err


def test_an_environment_without_litellm_is_not_started(tmp_path: Path) -> None:
    for config, raises in (
        ("include-system-site-packages = false", True),
        ("include-system-site-packages = true", False),
    ):
        (tmp_path / "pyvenv.cfg").write_text(f"home = /usr/bin\n{config}\n")
        if raises:
            with pytest.raises(NarrationError) as caught:
                installed(str(tmp_path / "bin/python"))
            assert caught.value.reason is Reason.NOT_INSTALLED
        else:
            installed(str(tmp_path / "bin/python"))  # it may be there: the interpreter is asked
    (tmp_path / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
    (tmp_path / "lib/python3.11/site-packages/litellm-1.106.2.dist-info").mkdir(parents=True)
    installed(str(tmp_path / "bin/python"))
    installed(stand_in_python())
    installed(llm_python())


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid", "a" * 70], ids=["refused", "unknown", "no-name"])
def test_a_server_that_takes_no_connection_is_down(host: str) -> None:
    with pytest.raises(NarrationError) as caught:
        listening(Place(DEAD, host, 9, encrypted=False))
    assert caught.value.reason is Reason.DOWN
