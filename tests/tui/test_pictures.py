"""The pictures of the documentation are what the app shows."""

from __future__ import annotations

import re

import pytest

from tests.tui import pictures

_IDS = re.compile(r"terminal-\d+")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(pictures.SCENES))
async def test_a_picture_is_what_is_drawn(name: str) -> None:
    """Draw them again with ``python -m tests.tui.pictures``, and look at them."""
    kept = (pictures.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert _IDS.sub("terminal", await pictures.drawn(name)) == _IDS.sub("terminal", kept)


def test_pictures_fetch_nothing() -> None:
    for path in pictures.FOLDER.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org)", text.replace("https://www.textualize.io", "")), path.name
