"""Money: only the arithmetic of the figures given, never a price of our own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.dialogue.cost import figures
from assistant.intent.query import Intent
from assistant.reply import Reply
from tests.assistant.dialogue.talk import ask, query, said
from tests.cases import each


def cost(text: str, lang: str = "en") -> Reply:
    return ask(None, query(Intent.COST, text, lang))


@each(
    ("text", "hours", "total"),
    [
        ("64 GPUs idle for 12 hours at $2.5 per gpu hour", 768, 1920),
        ("64 h100s idle 12h at 2.50 usd/h", 768, 1920),
        ("what do 8 x A100 GPUs for 3 days cost at 1.5 EUR an hour", 576, 864),
        ("1,024 块 GPU 空闲 2 天，每 GPU 小时 15 元", 49152, 737280),
        ("100 gpus 30 minutes $4", 50, 200),
    ],
)
def test_figures_are_multiplied(text: str, hours: float, total: float) -> None:
    reply = cost(text, "zh" if "块" in text else "en")
    assert reply.data["gpu_hours"] == pytest.approx(hours)
    assert reply.data["total"] == pytest.approx(total)
    assert f"{total:,.0f}" in reply.headline
    assert reply.settled


def test_without_a_price_there_is_no_money() -> None:
    reply = cost("how much do 8 H100 for 3 days cost")
    assert reply.data["gpu_hours"] == 576
    assert "total" not in reply.data
    assert not reply.settled
    assert not re.search(r"[$€£¥]", reply.headline)


@each(
    ("text", "gpus"),
    [
        ("24 of our 64 GPUs had 0% util for 6 hours overnight, how much did we waste?", 24),
        ("12 out of 64 H100s sat idle for 10 hours, how many GPU-hours is that?", 12),
        ("64 GPUs, 12 of them idle for 10 hours", 12),
        ("of our 64 GPUs 12 sat idle for 10 hours", 12),
        ("eight of the 64 GPUs idle for a day", 8),
        ("64 张卡里有 24 张空闲 6 小时，浪费多少", 24),
        ("half of our 64 GPUs idle for 6 hours", 32),
        ("64 张卡一半空闲 6 小时", 32),
        ("most of our 64 GPUs idle for 6 hours", None),
        ("64 GPUs idle for 12 hours", 64),
        ("64 块 GPU 空闲 12 小时", 64),
    ],
)
def test_of_a_part_of_the_gpus_only_these_are_counted(text: str, gpus: float | None) -> None:
    reply = cost(text, "en" if text.isascii() else "zh")
    assert reply.data.get("gpus") == gpus
    if gpus is None:
        assert len(reply.data["missing"]) == 2
    else:
        assert reply.data["gpu_hours"] == pytest.approx(gpus * (24 if "a day" in text else reply.data["hours"]))


@each(
    ("text", "missing"),
    [
        ("what did this outage cost", 3),
        ("what do 64 idle GPUs cost", 2),
        ("cost of 8 nodes down 3h", 2),
        ("这次故障损失了多少钱", 3),
    ],
)
def test_what_is_missing_is_asked_for(text: str, missing: int) -> None:
    reply = cost(text, "zh" if "故障" in text else "en")
    assert len(reply.data["missing"]) == missing
    assert not reply.settled


def test_nodes_are_not_gpus() -> None:
    assert figures("8 nodes for 3 hours").gpus is None
    assert "how many GPUs in all" in said(cost("8 nodes for 3 hours"))


@given(st.integers(1, 99_999), st.integers(1, 9999), st.decimals(min_value="0.01", max_value=500, places=2))
def test_the_total_is_the_product(gpus: int, hours: int, price: object) -> None:
    reply = cost(f"{gpus} GPUs for {hours} hours at ${price} per GPU hour")
    assert reply.data["total"] == pytest.approx(gpus * hours * float(str(price)))


@given(st.text(max_size=200), st.sampled_from(["en", "zh"]))
def test_any_text_and_never_a_number_of_ours(text: str, lang: str) -> None:
    reply = cost(text, lang)
    assert reply.headline
    if reply.data.get("total") is not None:
        assert figures(text).price is not None


@given(st.integers(1, 9999), st.integers(1, 50), st.integers(1, 99))
def test_at_a_price_what_stands_idle_is_the_share_that_is_not_used(gpus: int, price: int, used: int) -> None:
    """An hour where no time was said; more use is never more waste."""
    data = cost(f"{gpus} gpus at ${price} per gpu hour with util {used}%, what do we waste").data
    assert (data["gpus"], data["price"], data["idle"]) == (gpus, price, 100 - used)
    assert "hours" not in data or data["hours"] is None


@each(
    ("text", "price", "hours"),
    [
        ("16张卡,每卡时15块,一个月多少钱", 15, 730),
        ("8 gpus at 3 dollars a gpu hour for a week", 3, 168),
        ("8块GPU,15块/卡时", 15, None),
        ("$2.5/hr for 64 h100s", 2.5, None),
    ],
)
def test_prices_and_times_are_read_as_people_write_them(text: str, price: float, hours: float | None) -> None:
    data = cost(text, "zh" if "卡" in text else "en").data
    assert data["price"] == price
    assert data["hours"] == hours
