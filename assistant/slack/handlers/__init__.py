"""What the bot does about what it heard: one module a kind of thing, found by folder scan.

A module exports ``handle`` and what it answers to: ``ACTIONS`` (kinds of buttons and forms), ``COMMANDS`` (first words of what was
said), ``HOME``. What no module names is a question (`ask`).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Protocol

from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket


class Handler(Protocol):
    """One module."""

    async def handle(self, bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
        """Do it. A GpudiagError is shown to whoever asked."""


@dataclass(frozen=True)
class Handlers:
    """All of them."""

    actions: Mapping[str, Handler]
    commands: Mapping[str, Handler]
    ask: Handler
    home: Handler | None


@cache
def handlers() -> Handlers:
    """The modules of this folder. ValueError when two answer to the same word."""
    actions: dict[str, Handler] = {}
    commands: dict[str, Handler] = {}
    home: Handler | None = None
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda i: i.name):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for table, words in ((actions, "ACTIONS"), (commands, "COMMANDS")):
            for word in getattr(module, words, ()):
                if word in table:
                    raise ValueError(f"two handlers answer to {word!r}: {module.__name__}")
                table[word] = module
        if getattr(module, "HOME", False):
            home = module
    ask: Handler = importlib.import_module(f"{__name__}.ask")
    return Handlers(actions, commands, ask, home)
