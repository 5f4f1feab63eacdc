"""A whole answer as a file; and nothing of where the bot keeps files stands in it."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("slack_sdk")
pytest.importorskip("aiohttp")

from slack_sdk.web.async_client import AsyncWebClient

from assistant.config import Settings
from assistant.reply import Reply
from assistant.session.driver import Answer, Conversation, Eyes
from assistant.session.state import Frame, Origin, Pending, Seen
from assistant.session.talk import session_of
from assistant.slack.export import whole
from assistant.slack.heard import Place
from assistant.slack.uploads import Uploads
from knowledge.errors import UnknownNameError
from knowledge.language import Text
from tests.assistant.dialogue.talk import OFF_BUS, rules
from tests.diagnoses import incident

ROOT = Path(__file__).parents[3]
FORMATS = {"html": ".html", "markdown": ".md", "json": ".json", "text": ".txt"}
PLACE = Place("T0LAB", "C1", "1.2")


def answered(reply: Reply, pending: Pending | None = None) -> Answer:
    return Answer(reply, None, pending, Frame())


def settings(name: str) -> Settings:
    plain = Settings()
    return plain._replace(machine=plain.machine._replace(name=name))


class Closing(HTMLParser):
    """Whether every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "hr", "link", "img", "input", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_everything_is_in_the_file_and_its_name_says_node_and_time(form: str, lang: str) -> None:
    found = incident("off-the-bus")
    name, content = whole(answered(Reply(lang, "", diagnosis=found)), Settings(), form)
    assert re.fullmatch(r"gpudiag-[A-Za-z0-9._-]+-\d{4}-\d\d-\d\d-\d{6}Z\.\w+", name)
    assert name.endswith(FORMATS[form])
    text = content.decode()
    for finding in found.roots:
        assert finding.title.in_(lang) in text
    assert "\x1b" not in text
    if form == "json":
        assert json.loads(text)["reply"]["lang"] == lang
    if form == "html":
        parsed = Closing()
        parsed.feed(text)
        assert parsed.open == []


def test_the_question_at_the_end_and_half_a_character_are_in_it() -> None:
    asked = Pending(fact="x", text=Text("Is the fan running?", "风扇转吗？"))
    for form in FORMATS:
        _, content = whole(answered(Reply("zh", "不知道 \ud83d"), asked), Settings(), form)
        assert "风扇转吗？" in content.decode()


@pytest.mark.parametrize(
    "node", ["gpu-12", "../../etc/x", "gpu 12;rm -rf", "机器", "\n\x1b[31m", "x" * 300, "-", ".", "<b>"]
)
def test_any_node_gives_a_safe_name(node: str) -> None:
    name, _ = whole(answered(Reply("en", "Nothing was asked.")), settings(node), "markdown")
    assert re.fullmatch(r"gpudiag-[A-Za-z0-9_][A-Za-z0-9._-]*-\d{4}-\d\d-\d\d-\d{6}Z\.md", name)
    assert len(name) <= 120


def test_another_format_is_named() -> None:
    with pytest.raises(UnknownNameError, match="pdf"):
        whole(answered(Reply("en", "x")), Settings(), "pdf")


# --- with files ---------------------------------------------------------------------------


class FileEyes(Eyes):
    """Eyes that open uploads and nothing else, as the bot's do."""

    uploads: Uploads

    def _look(
        self, origin: Origin, probes: Sequence[str], budget: float | None, options: Mapping[str, str]
    ) -> Seen:  # fmt: skip
        assert all(map(self.uploads.owns, filter(None, (origin.bundle, *origin.logs, *origin.inputs))))
        return self.uploads.told(super()._look(origin, probes, budget, options))


def talk(uploads: Uploads) -> Conversation:
    eyes = FileEyes(Settings(), rules(), history=False)
    eyes.uploads = uploads
    return Conversation(session_of(eyes), eyes)


@pytest.mark.parametrize("what", ["paste", "bundle", "both"])
def test_an_answer_about_uploads_names_them_and_no_path(tmp_path: Path, what: str) -> None:
    uploads = Uploads(AsyncWebClient(token="xoxb-lab"), tmp_path / "kept-here")
    paths = [uploads.paste(PLACE, OFF_BUS)] if what != "bundle" else []
    if what != "paste":
        home = uploads.paste(PLACE, "a bundle").with_name("gpu-07.tar.gz")
        with tarfile.open(home, "w:gz") as tar:
            tar.add(ROOT / "tests/tui/recordings/off-the-bus", "bundle")
        paths.append(home)
    held = talk(uploads)
    origin = uploads.origin(paths)
    for sentence in ("what is wrong?", "how do you know?", "what else could it be?", "what next?"):
        answer = held.say(sentence, origin)
        for form in FORMATS:
            _, content = whole(answer, Settings(), form)
            assert str(tmp_path).encode() not in content
            assert b"kept-here" not in content
    first = whole(held.say("how do you know?", origin), Settings(), "text")[1].decode()
    assert "pasted.log:1" in first or what != "paste"  # in the others another finding comes first
