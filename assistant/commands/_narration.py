"""``--narrate``: the option, and the narration of a command that asks for it. Imports nothing of it before that."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.commands._narrated import Narration


WHAT = "below the answer, also in the words of the language model that is set (llm_model)"


def add_option(parser: argparse.ArgumentParser, default: str, what: str = WHAT) -> None:
    """``--narrate`` and ``--no-narrate``."""
    parser.add_argument("--narrate", action=argparse.BooleanOptionalAction, help=f"{what}; default: {default}")


@contextmanager
def narrating(args: argparse.Namespace) -> Iterator[Narration | None]:
    """The narration of one command; None where it was not asked for."""
    if not getattr(args, "narrate", None):
        yield None
        return
    from assistant.commands._narrated import Narration

    narration = Narration(args)
    try:
        yield narration
    finally:
        narration.close()
