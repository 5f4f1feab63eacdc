"""A pattern made of its compiled form is the one that `re` compiles; `re` itself compares flags, text and numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from knowledge import lazy


@pytest.fixture
def forms(tmp_path: Path) -> lazy.Forms:
    """Those of every pattern that a module loaded so far declares, through a file."""
    import assistant.intent.parse  # noqa: F401 - declares them

    (tmp_path / lazy.FORMS).write_bytes(lazy.compiled())
    return lazy.forms(tmp_path)


def test_each_pattern_is_as_if_it_had_been_compiled(forms: lazy.Forms) -> None:
    every = [pattern.source for pattern in lazy.declared]
    assert len(every) > 500
    for source, flags in every:
        made = lazy.made(source, flags, forms)
        plain = re.compile(source, flags)
        assert made == plain, source
        assert dict(made.groupindex) == dict(plain.groupindex), source
