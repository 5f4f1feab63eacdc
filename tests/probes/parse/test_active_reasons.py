"""Reasons of the active tests' collector: each code it can give is put in words, in both languages, with its data."""

from __future__ import annotations

import re
from string import Formatter

from hypothesis import given
from hypothesis import strategies as st

from probes.live_host import COLLECTORS
from probes.parse._active_reasons import LONGEST, REASONS, spoken
from tests.cases import each

SOURCE = (COLLECTORS / "active.py").read_text(encoding="utf-8")
AT_HOME = {"exit", "exit-said"}  # drawn from what the tool printed


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_the_collectors_codes_are_those_that_have_words() -> None:
    given_ = set(
        re.findall(r'"code": "([a-z-]+)"|Blind\("([a-z-]+)"|set\("[a-z]+", "([a-z-]+)"|code="([a-z-]+)"', SOURCE)
    )
    codes = {code for row in given_ for code in row if code} | {"no-test"}  # of a choice between two
    assert codes == set(REASONS) - AT_HOME


@each("code", sorted(REASONS))
def test_a_reason_in_both_languages(code: str) -> None:
    text = REASONS[code]
    assert names(text.en) == names(text.zh)
    assert re.search("[一-鿿]{2}", text.zh)
    data = {name: f"<{name}>" for name in names(text.en)}
    said = spoken({"code": code, **data})
    assert all(value in said.en and value in said.zh for value in data.values())
    assert "?" in spoken({"code": code}).en or not data


def test_reasons_within_reasons_and_what_is_no_reason() -> None:
    inner = {"code": "smi-late", "seconds": "20"}
    assert spoken({"code": "gone-blind", "because": inner}).zh == "无法再查看 GPU：nvidia-smi 在 20 秒内没有应答"
    assert spoken("an older sentence").in_("zh") == "an older sentence"
    assert not spoken("")
    assert not spoken({})
    assert not spoken(None)
    assert "not understood" in spoken({"code": "from-the-future"}).en
    deep: dict[str, object] = {"code": "late"}
    for _ in range(50):
        deep = {"code": "gone-blind", "because": deep}
    assert len(spoken(deep).en) < 1000


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=40), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["code", "because", "gpu", "pid", "name", "said"]) | st.text(max_size=5), inner, max_size=4), max_leaves=8)  # fmt: skip


@given(JSON, st.sampled_from([*REASONS, "x"]))
def test_whatever_a_machine_says(said: object, code: str) -> None:
    for reason in (said, {"code": code, "because": said, "name": said, "gpu": said}):
        text = spoken(reason)
        assert len(text.en) <= 8 * LONGEST
        assert not any(c in text.en + text.zh for c in "\x1b\n\x00")
