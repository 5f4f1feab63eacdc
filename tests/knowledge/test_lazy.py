"""A pattern made of its compiled form is the one that `re` compiles; `re` itself compares flags, text and numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from knowledge import lazy, parts


@pytest.fixture
def forms() -> Mapping[str, Any]:
    """Those of every pattern that a module loaded so far declares."""
    import assistant.intent.parse  # noqa: F401 - declares them

    return parts.Parts(lazy.compiled())


def test_each_pattern_is_as_if_it_had_been_compiled(forms: Mapping[str, Any]) -> None:
    every = [pattern.source for pattern in lazy.declared]
    assert len(every) > 500
    for source, flags in every:
        made = lazy.made(source, flags, forms)
        plain = re.compile(source, flags)
        assert made == plain, source
        assert dict(made.groupindex) == dict(plain.groupindex), source
