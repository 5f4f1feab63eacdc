"""Answers as Slack messages: always what Slack takes, the verdict first, and nothing of a stranger's text does anything.

The limits are those of docs.slack.dev/reference/block-kit, written down here a second time.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assistant.commands import demo
from assistant.diagnosis import Diagnosis
from assistant.incidents.events import Event, Kind
from assistant.incidents.fold import fold
from assistant.intent.query import Intent
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part, Table
from assistant.render.view import view
from assistant.reply import Reply
from assistant.slack import budget, cards
from assistant.slack.blocks import Offer, diagnosis, render, sheet
from assistant.slack.mrkdwn import POSTING, fallback
from assistant.slack.page import ATTACHED, Rendered
from knowledge.errors import ConfigError, UnknownNameError
from knowledge.language import NO_TEXT, Text
from knowledge.text import clean
from rules.engine import Finding
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, query, texts
from tests.diagnoses import incident

LANGS = ("en", "zh")
BIDI = chr(0x202E)  # turns what follows around: an editor would show this file wrongly
HOSTILE = (
    "<!channel>", "<!here|here>", "<@U1>", "<#C1|general>", "<!subteam^S1>", "<https://evil.example|ok>", "https://evil.example/x",
    "www.evil.example", "mailto:a@b.example", "@channel", "@here", "*bold*", "_it_", "~no~", "`code`", "```", ":fire:", ":a:b:",
    "&lt;!channel&gt;", "&amp;", "> quoted", "- item", "1. one", "[x](https://evil.example)", "# head", "\x1b[31mred", BIDI + "abc",
    "שלום עולם", "مرحبا", "🔥🔥", "👩‍👩‍👧", "\ud83d", "\x00", "\n", "\t", " ", "", "中文，标点。", "{}", "%s", "\\", "0000:ab:00.0",
)  # fmt: skip


# --- what Slack takes ---------------------------------------------------------------------

RICH = {"rich_text_section", "rich_text_quote", "rich_text_preformatted", "rich_text_list"}
STYLES = {"bold", "italic", "strike", "code"}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2  # raises for half of a pair, which JSON cannot carry


def plain_text(value: Any, most: int) -> int:
    assert set(value) == {"type", "text", "emoji"}
    assert value["type"] == "plain_text"
    assert value["emoji"] is False  # ":fire:" stays as it is written
    assert 1 <= units(value["text"]) <= most
    return units(value["text"])


def rich_element(element: dict[str, Any]) -> int:
    kind = element["type"]
    if kind == "rich_text_list":
        assert set(element) <= {"type", "style", "elements", "offset"}
        assert element["style"] in ("bullet", "ordered")
        assert element.get("offset", 1) >= 1
        assert element["elements"]
        assert {e["type"] for e in element["elements"]} == {"rich_text_section"}
        return sum(map(rich_element, element["elements"]))
    assert kind in RICH
    assert set(element) == {"type", "elements"}
    assert element["elements"]
    total = 0
    for span in element["elements"]:
        # a link, a mention, an emoji would be an element of another type
        assert set(span) <= {"type", "text", "style"}
        assert span["type"] == "text"
        assert span["text"], "Slack refuses an empty text"
        assert set(span.get("style", {})) <= STYLES
        total += units(span["text"])
    return total


def buttons(block: dict[str, Any]) -> int:
    assert set(block) == {"type", "elements"}
    assert 1 <= len(block["elements"]) <= 25
    total = 0
    for b in block["elements"]:
        assert set(b) <= {"type", "action_id", "text", "value", "style"}
        assert b["type"] == "button"
        assert 1 <= len(b["action_id"]) <= 255
        assert 1 <= len(b["value"]) <= 2_000
        assert b.get("style", "primary") in ("primary", "danger")
        total += plain_text(b["text"], 75)
    return total


def valid(message: Rendered) -> Rendered:
    """Slack takes it, it is within the budget, and nothing in it is parsed for markup."""
    assert 1 <= len(message.blocks) <= 40
    total = 0
    for block in message.blocks:
        if block["type"] == "actions":
            total += buttons(block)
            continue
        assert block["type"] == "rich_text"
        assert set(block) == {"type", "elements"}
        assert block["elements"]
        size = sum(map(rich_element, block["elements"]))
        assert 1 <= size <= 3_000
        total += size
    assert total <= 10_000
    assert total == budget.characters(message.blocks)
    ids = [b["action_id"] for block in message.blocks if block["type"] == "actions" for b in block["elements"]]
    assert len(ids) == len(set(ids))
    assert 1 <= units(message.text) <= 40_000
    assert not re.search(r"[<>\n]|&(?!amp;|lt;|gt;)", message.text)
    assert json.loads(json.dumps(message.blocks)) == message.blocks
    closing = any(ATTACHED.in_(lang) in said(message) for lang in LANGS)
    assert closing == message.overflow
    return message


def spans(message: Rendered) -> Iterator[tuple[str, str]]:
    """Kind of the element around it, and text."""
    for block in message.blocks:
        for e in block["elements"] if block["type"] == "rich_text" else ():
            for inner in e["elements"] if e["type"] == "rich_text_list" else [e]:
                yield from ((e["type"], s["text"]) for s in inner["elements"])


def said(message: Rendered) -> str:
    return "".join(text for _, text in spans(message))


def first(message: Rendered) -> str:
    return "".join(s["text"] for s in message.blocks[0]["elements"][0]["elements"])


def codes(message: Rendered) -> list[str]:
    return [text for kind, text in spans(message) if kind == "rich_text_preformatted"]


def row(message: Rendered) -> list[dict[str, Any]]:
    return [b for block in message.blocks if block["type"] == "actions" for b in block["elements"]]


class Tickets:
    """Ids as the bot gives them, remembered."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def __call__(self, kind: str) -> str:
        return self.given.setdefault(kind, secrets.token_urlsafe(12))


# --- any text -----------------------------------------------------------------------------

TEXT = st.one_of(
    st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=6).map(" ".join),
    st.text(max_size=40),
    st.builds(lambda s, n: s * n, st.sampled_from(HOSTILE), st.sampled_from([300, 3_000, 100_000])),
)
LINES = st.lists(TEXT, max_size=4).map(tuple)
MANY = st.builds(lambda s, n: (s,) * n, st.sampled_from(HOSTILE), st.sampled_from([50, 5_000]))
PART: st.SearchStrategy[Part] = st.one_of(
    st.builds(Paragraph, TEXT),
    st.builds(Heading, TEXT),
    st.builds(Fields, st.lists(st.tuples(TEXT, TEXT), max_size=4).map(tuple)),
    st.builds(Fields, MANY.map(lambda many: tuple(zip(many, many, strict=True)))),
    st.builds(Items, LINES | MANY, st.booleans()),
    st.builds(Code, LINES | MANY),
    st.builds(Table, st.tuples(TEXT, TEXT), st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple)),
)
OFFER = st.none() | st.builds(Offer, st.builds(Text, TEXT), st.builds(Text, TEXT))


@pytest.mark.slow
@settings(max_examples=25)
@given(
    headline=TEXT, parts=st.lists(PART, max_size=6).map(tuple), lang=st.sampled_from(LANGS), question=TEXT, offer=OFFER,
    hints=LINES, hypothetical=st.booleans(),
)  # fmt: skip
@example("x", (Code(("a" * 2_900,)),) * 50, "en", "", None, (), False)
@example("x", tuple(Heading(str(n)) for n in range(500)), "zh", "?", None, (), True)
def test_any_reply_is_a_message_with_its_headline_first(
    headline: str, parts: tuple[Part, ...], lang: str, question: str, offer: Offer | None, hints: tuple[str, ...], hypothetical: bool
) -> None:  # fmt: skip
    tickets = Tickets()
    reply = Reply(lang, headline or "x", parts, log(OFF_BUS), hypothetical=hypothetical, suggestions=hints)
    message = valid(render(reply, tickets, question=question, offer=offer))
    head = clean(reply.headline)
    assert first(message) == (budget.cut(head, 1_000) or "gpudiag")
    assert message.text == fallback(head)
    assert [b["value"] for b in row(message)] == list(tickets.given.values())
    assert ("run_next" in tickets.given) == (offer is not None)


@settings(max_examples=25)
@given(words=st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=8).map(" ".join), lang=st.sampled_from(LANGS))
def test_what_fits_arrives_as_it_is_written(words: str, lang: str) -> None:
    words = f"a {words} z"
    message = valid(sheet("t", (Paragraph(words), Items((words,)), Fields(((words, words),)), Code((words,))), lang))
    assert not message.overflow
    assert said(message).count(clean(words)) == 5
    assert codes(message) == [clean(words)]  # and nothing else is copied


@settings(max_examples=25)
@given(lines=st.lists(st.text("ab\\`&<# ", min_size=1, max_size=1_500), min_size=1, max_size=9).map(tuple))
def test_no_line_to_be_copied_is_shown_in_part(lines: tuple[str, ...]) -> None:
    message = valid(sheet("t", (Code(lines),), "en"))
    shown = "\n".join(codes(message))
    kept = [n for n in range(len(lines) + 1) if "\n".join(lines[:n]) == shown]
    assert kept
    assert message.overflow == (kept[-1] < len(lines))


def test_a_command_is_copied_without_the_prompt_of_a_terminal() -> None:
    message = valid(sheet("t", (Code(("$ echo '$ x'", "a  b")),), "en"))
    assert codes(message) == ["echo '$ x'\na  b"]


def test_fields_stand_one_a_line() -> None:
    message = valid(sheet("t", (Fields((("a", "1"), ("b", ""), ("c", "x: *y*"))),), "en"))
    assert said(message) == "ta: 1\nc: x: *y*\n"


# --- diagnoses ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["healthy", "off-the-bus", "power-brake"])
@pytest.mark.parametrize("lang", LANGS)
def test_a_recorded_incident(name: str, lang: str) -> None:
    found = incident(name)
    shown, tickets = view(found, lang), Tickets()
    message = valid(diagnosis(found, lang, tickets))
    assert shown.headline in first(message)
    assert first(message).startswith(shown.state_label)
    assert shown.headline in message.text
    assert not message.overflow
    for b in shown.blocks:
        for words in (b.severity_label, b.title, b.where, b.bucket, b.action, b.evidence[0].place):
            assert words in said(message)
    assert codes(message) == ["\n".join(s.commands) for s in shown.steps if s.commands]
    assert list(tickets.given) == ["why", "evidence", "what_if", "export"]
    assert "".join(tickets.given.values()) not in said(message)


def test_the_demo_can_be_copied_from() -> None:
    message = valid(diagnosis(incident("off-the-bus"), "en", Tickets()))
    assert codes(message) == ["systemctl reboot"]
    assert "disruptive" in said(message)
    quoted = [text for kind, text in spans(message) if kind == "rich_text_quote"]
    assert "Xid (PCI:0000:ba:00): 79, pid='<unknown>'" in quoted[1]  # unescaped: rich text is not parsed


def test_what_was_not_seen_is_one_line_above_the_buttons() -> None:
    message = valid(diagnosis(incident("off-the-bus"), "en", Tickets()))
    line = message.blocks[-2]
    assert line["elements"][0]["elements"][0]["text"] == "Could not see: "
    assert len(line["elements"]) == 1
    assert message.blocks[-1]["type"] == "actions"


def many(n: int, name: str) -> Diagnosis:
    """`n` findings, each of a rule of its own."""
    base = log(OFF_BUS)
    root = base.roots[0]

    def one(i: int) -> Finding:
        rule = replace(root.rule, id=f"r{i}", title=Text(f"{name} no {i}.", f"{name} 第 {i}。"))
        return replace(root, id=f"f{i}", rule=rule, ending=NO_TEXT)

    return replace(base, findings=tuple(map(one, range(n))))


@pytest.mark.parametrize(
    ("name", "n"), [("<!channel>", 1_000), ("*_~`:fire: https://evil.example", 4), ("🔥" * 20_000, 5)],
    ids=["mention", "markup", "long"],
)  # fmt: skip
@pytest.mark.parametrize("lang", LANGS)
def test_thousands_of_findings_are_three_and_a_file(name: str, n: int, lang: str) -> None:
    message = valid(diagnosis(many(n, name), lang, Tickets()))
    assert message.overflow
    assert view(log(OFF_BUS), lang).headline in first(message)
    shown = [block for block in message.blocks if said_in(block).startswith(("CRITICAL", "严重"))]
    assert len(shown) == 3
    for i, block in enumerate(shown):
        assert {"en": f" no {i}.", "zh": f" 第 {i}。"}[lang] in said_in(block)
        assert name[:90] in said_in(block)  # 300 characters of a title, as JavaScript counts them
    left = {"en": "1 more finding" if n == 4 else f"{n - 3} more findings", "zh": f"另有 {n - 3} 项发现"}[lang]
    assert left in said(message)


def test_three_findings_need_no_file() -> None:
    message = valid(diagnosis(many(3, "Broken"), "en", Tickets()))
    assert not message.overflow
    assert "more finding" not in said(message)


def said_in(block: dict[str, Any]) -> str:
    return said(Rendered([block], ""))


@pytest.mark.parametrize("lang", LANGS)
def test_more_commands_than_fit_are_told_and_none_is_cut(lang: str) -> None:
    lines = "".join(
        f"[{n}.0] NVRM: Xid (PCI:0000:{n:02x}:00): 119, pid=7, name=x, Timeout after 6s of waiting for RPC response from GPU{n} GSP!\n"
        for n in range(1, 8)
    )
    found = log(lines)
    commands = [c for step in view(found, lang).steps for c in step.commands]
    assert len(commands) == 7
    message = valid(diagnosis(found, lang, Tickets()))
    assert codes(message) == ["\n".join(commands[:4])]
    assert message.overflow
    assert {"en": "and the same for 3 more", "zh": "以下对象同样处理：另有 3 条"}[lang] in said(message)


@pytest.mark.parametrize("intent", [Intent.WHY, Intent.EVIDENCE, Intent.NEXT, Intent.CONFIDENCE, Intent.VERDICT])
@pytest.mark.parametrize("lang", LANGS)
def test_what_the_conversation_answers(intent: Intent, lang: str) -> None:
    reply = ask(incident("off-the-bus"), query(intent, lang=lang))
    assert row(render(reply, Tickets())) == []  # without a diagnosis there is nothing to ask further
    reply = replace(reply, diagnosis=incident("off-the-bus"))
    message = valid(render(reply, Tickets(), question="which node?"))
    assert first(message).endswith(reply.headline or incident("off-the-bus").verdict.text.in_(lang))
    for line in texts(reply)[1:] if not message.overflow else ():
        assert clean(line).removeprefix("$ ").partition(": ")[0] in said(message)
    assert "which node?" in said(message)
    assert len(row(message)) == 4


def test_a_log_line_of_a_stranger_is_quoted_as_it_stands() -> None:
    name = "<!channel> *x* `y` :fire: https://evil.example & <@U1>"
    line = OFF_BUS.replace("name=<unknown>", f"name={name}")
    message = valid(diagnosis(log(line), "en", Tickets()))
    assert any(name in text for kind, text in spans(message) if kind == "rich_text_quote")


def test_a_probe_that_waits_for_consent_has_a_button_with_its_cost() -> None:
    offer = Offer(
        Text("dcgmi diag -r 2", "dcgmi diag -r 2"), Text("about 2 min, the GPU must be idle", "约 2 分钟，GPU 须空闲")
    )
    for lang, words in (
        ("en", "Run next (about 2 min, the GPU must be idle)"),
        ("zh", "运行下一项（约 2 分钟，GPU 须空闲）"),
    ):
        message = valid(diagnosis(incident("power-brake"), lang, Tickets(), offer=offer))
        assert words in [b["text"]["text"] for b in row(message)]
        assert "dcgmi diag -r 2" in said(message)
        assert not any("dcgmi" in json.dumps(b) for b in row(message))
    strange = Offer(Text("x"), Text("<!channel>"))
    assert "Run next" in [
        b["text"]["text"] for b in row(diagnosis(incident("healthy"), "en", Tickets(), offer=strange))
    ]


# --- the other messages -------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=15)
@given(words=TEXT, more=TEXT, lang=st.sampled_from(LANGS))
def test_cards_of_any_text_are_messages(words: str, more: str, lang: str) -> None:
    tickets = Tickets()
    valid(cards.consent(Text(words), Text(more), lang, tickets, why=Text(words), command=more))
    line = cards.looking_words(3, 7, (words, more), lang)
    valid(cards.status(words, more, line, lang, tickets))
    valid(cards.error(UnknownNameError("node", words, [more]), lang))
    at = 1_700_000_000_000_000_000
    told = {"key": "k", "rule": words, "title": more, "severity": "critical", "host": words, "subject": more}
    events = [
        Event(1, at, Kind.OPENED, words, "slack", {"title": words, "severity": "error", "host": more}),
        *(Event(n, at, Kind.FINDING, words, "slack", {**told, "key": f"k{n}"}) for n in range(2, 8)),
        Event(8, at, Kind.OWNER, words, "slack", {"owner": more}),
    ]
    message = valid(cards.incident(fold(events, 7), lang, tickets))
    assert first(message).startswith("#7")
    assert message.overflow  # of six findings three stand there
    assert [b["value"] for b in row(message)] == [tickets.given[kind] for kind in ("note", "close")]


def test_a_question_for_consent() -> None:
    tickets = Tickets()
    what, cost = (
        Text("Run a memory test on gpu-12?", "在 gpu-12 上运行显存测试？"),
        Text("2 min of an idle GPU", "空闲 GPU 2 分钟"),
    )
    message = valid(cards.consent(what, cost, "en", tickets, command="gpudiag test memory"))
    assert first(message) == "Run a memory test on gpu-12?"
    assert "cost: 2 min of an idle GPU" in said(message)
    assert codes(message) == ["gpudiag test memory"]
    assert [b["text"]["text"] for b in row(message)] == ["Agree", "No"]
    assert [b["text"]["text"] for b in row(cards.consent(what, cost, "zh", tickets))] == ["同意", "不同意"]


def test_how_far_a_look_is() -> None:
    line = cards.looking_words(3, 7, ("nvml",), "en")
    assert line == "looking: probes 3/7, waiting for nvml"
    assert cards.looking_words(3, 7, ("nvml",), "zh") == "正在查看：探针 3/7，等待 nvml"
    assert cards.looking_words(1, 7, "abcde", "en") == "looking: probes 1/7, waiting for a, b, c, d, …"
    message = valid(cards.status("Ann", "check gpu-12", line, "en", Tickets()))
    assert said(message).startswith("Ann: check gpu-12\nlooking: probes 3/7")
    assert [b["text"]["text"] for b in row(message)] == ["Cancel"]
    assert row(valid(cards.status("Ann", "check gpu-12", "healthy", "en"))) == []


def test_an_error_says_what_to_do() -> None:
    message = valid(cards.error(ConfigError("slack.yaml:3: token is missing", hint="set GPUDIAG_SLACK_TOKEN"), "en"))
    assert first(message) == "Not done: slack.yaml:3: token is missing"
    assert "set GPUDIAG_SLACK_TOKEN" in said(message)


@pytest.mark.parametrize("lang", LANGS)
def test_an_incident_that_has_a_next_step(lang: str) -> None:
    at, root = 1_700_000_000_000_000_000, demo.load("off-the-bus")
    opened = {"title": root["title"], "severity": "critical", "host": "gpu-12"}
    finding = {
        "key": "k", "rule": "gpu-fell-off-bus", "title": {"en": "GPU has fallen off the bus", "zh": "GPU 从总线上掉线"},
        "severity": "critical", "host": "gpu-12", "subject": "node:gpu-12/gpu:0000:ba:00.0", "runbook": "gpu-off-bus",
    }  # fmt: skip
    events = [Event(1, at, Kind.OPENED, "ann", "slack", opened), Event(2, at, Kind.FINDING, "ann", "slack", finding)]
    events.append(Event(3, at, Kind.OWNER, "ann", "slack", {"owner": "ann"}))
    message = valid(cards.incident(fold(events, 12), lang, Tickets()))
    assert first(message).startswith("#12 ")
    assert "ann" in said(message)
    assert "0000:ba:00.0" in said(message)
    assert not message.overflow
    assert [b["action_id"] for b in row(message)] == ["gpudiag.note", "gpudiag.walk", "gpudiag.close"]
    closed = fold([*events, Event(4, at, Kind.CLOSED, "ann", "slack", {"text": "done"})], 12)
    assert [b["action_id"] for b in row(valid(cards.incident(closed, lang, Tickets())))] == ["gpudiag.note"]


# --- the small neighbours -----------------------------------------------------------------


@settings(max_examples=40)
@given(TEXT, st.integers(10, 400))
def test_a_cut_text_is_short_enough_and_keeps_its_ends(text: str, limit: int) -> None:
    text = clean(text)
    short = budget.cut(text, limit)
    assert units(short) <= limit
    assert (short == text) == (units(text) <= limit)
    assert short == text or budget.MARK in short


def test_the_line_of_a_notification_is_read_literally() -> None:
    assert fallback("a <!channel>\n& b") == "a &lt;!channel&gt; &amp; b"
    assert fallback("\x00") == "gpudiag"
    assert POSTING["parse"] == "none"
    assert POSTING["mrkdwn"] is False
