"""What somebody typed comes out of Slack's markup as it was, and no line of a log is lost on the way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assistant.slack.mrkdwn import escape
from assistant.slack.said import plain, split
from assistant.sources import parse_text
from knowledge.observation import Observation, Status
from tests.cases import each

CAPTURES = Path(__file__).parents[2] / "captures"
XID = "[100.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
NVLINK = "[101.5] NVRM: Xid (PCI:0000:5e:00): 74, pid=4242, name=python, NVLink: fatal error detected on link 3"
TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    step()\nRuntimeError: CUDA error: x'


@each(
    ("sent", "typed"),
    [
        ("<@U0BOT> check gpu-12", "check gpu-12"),
        ("<@U0BOT|gpudiag>  why pid 4242", "why pid 4242"),
        ("is gpu-12 healthy <@U0BOT>", "is gpu-12 healthy"),
        ("why &lt;IRQ&gt; &amp; &amp;lt;", "why <IRQ> & &lt;"),
        ("&lt;@U0BOT&gt; is in the log", "<@U0BOT> is in the log"),
        ("check <http://gpu-12.dc1.example.com|gpu-12.dc1.example.com>", "check gpu-12.dc1.example.com"),
        ("see <https://a.example/b?c=1&amp;d=2>", "see https://a.example/b?c=1&d=2"),
        ("<mailto:ops@gpu-12.example|ops@gpu-12.example> or <mailto:a@b.c>", "ops@gpu-12.example or a@b.c"),
        ("ask <@U2> or <@U3|ann> in <#C1|ops> and <#C2>", "ask @U2 or @ann in #ops and #C2"),
        ("<!here> <!subteam^S1|@oncall> <!subteam^S2> <!channel|channel>", "@here @oncall @subteam channel"),
        ("since <!date^1392734382^{date}|Feb 18>", "since Feb 18"),
        ("what is \u201cxid 79\u201d on gpu\u2011\u2018a\u2019", "what is \"xid 79\" on gpu-'a'"),
        ("check \u2014host gpu-12", "check --host gpu-12"),
        ("slow \u2014 why?", "slow \u2014 why?"),
        ("`check gpu-12`", "check gpu-12"),
        ("*check gpu-12*", "check gpu-12"),
        ("```say \u201chi\u201d\u00a0\u2014x```", "```say \u201chi\u201d\u00a0\u2014x```"),
        ("std::vector<std::string> <IRQ> <TASK> <0>", "std::vector<std::string> <IRQ> <TASK> <0>"),
        ("gpu-12\u00a0掉卡了", "gpu-12 掉卡了"),
        ("", ""),
        ("<@U0BOT>", ""),
    ],
)
def test_what_slack_makes_of_words_is_undone(sent: str, typed: str) -> None:
    assert plain(sent, "U0BOT") == typed


TYPED = st.text(st.characters(exclude_characters="\r\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00a0\u202f\u2013\u2014\u2010\u2011"), max_size=60)  # fmt: skip


@given(TYPED | st.sampled_from([XID, NVLINK, "<@U0BOT>", "<https://a|b>", "&lt;", "<!here>"]))
def test_whatever_was_typed_comes_out_of_slacks_escapes(text: str) -> None:
    typed = f"({text})"  # nothing at the edges is trimmed, nothing wraps all of it
    assert plain(escape(typed), "U0BOT") == typed


@given(st.text("<>|@#!&;:/^ab`*\n\u201c\u2014 ", max_size=40))
def test_no_markup_makes_it_fail(text: str) -> None:
    assert "<@U0BOT>" not in plain(f"<@U0BOT>{text}", "U0BOT") or "&lt;@U0BOT" in text


# --- the log within -----------------------------------------------------------------------


@each(
    ("text", "sentence", "log"),
    [
        ("is gpu-12 healthy?", "is gpu-12 healthy?", ""),
        ("hi\nhow are you\nfine", "hi\nhow are you\nfine", ""),
        (XID, "", XID),
        (f"what does this mean: {XID}", f"what does this mean: {XID}", ""),
        (f"what is this?\n{XID}\n{NVLINK}", "what is this?", f"{XID}\n{NVLINK}"),
        (f"{XID}\n{NVLINK}\n这是什么问题？", "这是什么问题？", f"{XID}\n{NVLINK}"),
        (f"看看这个日志\n\n{XID}", "看看这个日志", XID),
        (f"our job died on gpu-12\n{XID}", "our job died on gpu-12", f"our job died on gpu-12\n{XID}"),
        (f"{TRACE}\nplease help", "please help", f"{TRACE}\nplease help"),
        (TRACE, "", TRACE),
        (f"```{XID}```", "", XID),
        (f"```\n{XID}\n{NVLINK}\n```", "", f"{XID}\n{NVLINK}"),
        (f"why? ```log\n{XID}\n{NVLINK}```", "why?", f"{XID}\n{NVLINK}"),
        (f"why? ```{XID}\nwhat else``` 请看", "why? 请看", f"{XID}\nwhat else"),
        (f"why ```{XID}```", f"why ```{XID}```", ""),
        (f"what does ```{NVLINK}``` mean?", f"what does ```{NVLINK}``` mean?", ""),
        (f"```{XID}\n{XID}```\n{NVLINK}", "", f"{XID}\n{XID}\n{NVLINK}"),
        ("run ```check gpu-12```", "run check gpu-12", ""),
        ("```check gpu-12```", "check gpu-12", ""),
        ("```\nthe first line\nthe second```", "", "the first line\nthe second"),
        (f"```{XID}\n{NVLINK}", "", f"{XID}\n{NVLINK}"),  # the closing fence was forgotten
        ("", "", ""),
        ("``````", "", ""),
    ],
)
def test_the_sentence_and_the_log(text: str, sentence: str, log: str) -> None:
    assert split(text) == (sentence, log)


@each("name", ["table-590-mig.txt", "hopper-590-sick.txt", "hopper-590-sick.xml", "topo.txt", "query-gpu.csv"])
@each(("ahead", "behind"), [("", ""), ("is this normal?", ""), ("", "正常吗？"), ("look at that please", "")])
def test_a_pasted_output_says_what_its_file_says(name: str, ahead: str, behind: str) -> None:
    shown = (CAPTURES / "smi" / name).read_text().strip("\n")
    sentence, log = split("\n".join(filter(None, (ahead, shown, behind))))
    assert sentence == " ".join(filter(None, (ahead, behind)))
    assert said(log) == said(shown)


def said(text: str) -> list[tuple[str, str, object]]:
    return [(o.fact, str(o.subject), o.value) for o in parse_text("input", text)]


LINES = st.sampled_from([
    XID, NVLINK, *TRACE.split("\n"), "step 1 loss 0.3", "", "   ", "why did it stop?", "our node died", "这是什么？", "Killed",
    "gpu-12: 8 GPUs", "please check", "| 0  H100 |", "> quoted", "what():  CUDA error: out of memory", "log", "x = 1 # why?", "```",
])  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(LINES, max_size=9))
@example(["```", XID, "```"])
@example(["log", XID, "why did it stop?", XID, "why did it stop?"])
def test_no_line_is_lost_and_no_known_one_leaves_the_log(lines: list[str]) -> None:
    text = "\n".join(lines)
    sentence, log = split(text)
    tags = ("```", "log")  # a fence, and the name of a language behind it
    for line in lines:
        if (bare := line.strip()) and bare not in tags:
            assert bare in sentence or line in log.split("\n") or bare in log
    if "```" not in lines and len(lines) > 1:
        assert xids(log) == xids(text)
    kept = [line for line in log.split("\n") if line.strip()]
    rest = iter(line for line in lines if line.strip())
    assert all(line in rest for line in kept), "in the order in which they were written"


def xids(text: str) -> list[object]:
    found: list[Observation] = parse_text("kmsg", f"{text}\n")
    return [o.value for o in found if o.fact == "xid" and o.status is Status.OK]


def test_long_texts_take_no_time() -> None:
    assert split("a " * 20_000)[1] == ""
    assert re.fullmatch(r"<+", plain("<" * 40_000))
    assert plain("`" * 39_999).count("`") == 39_999
