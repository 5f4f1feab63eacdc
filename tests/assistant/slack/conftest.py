"""A Slack with people in it, for the tests of the whole bot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.slack_lab import Slack


@pytest.fixture
def slack() -> Iterator[Slack]:
    """U1 and U2 are on call, U9 leads; U3 speaks Chinese, U4 is a guest, both in group S1. The bot is in C1 and C9."""
    pytest.importorskip("aiohttp")
    from tests.slack_lab import Slack

    with Slack() as slack:
        for user in ("U1", "U2", "U9"):
            slack.add_user(user, name=user.lower())
        slack.add_user("U3", locale="zh-CN")
        slack.add_user("U4", guest=True)
        slack.add_group("S1", ["U3", "U4"])
        slack.add_channel("C1")
        slack.add_channel("C9")
        yield slack
