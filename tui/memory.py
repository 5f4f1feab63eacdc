"""What the app remembers between two times that it is opened: where one was, and how it looked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from assistant.config import state_folder
from knowledge.whole import private_folder, replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assistant.config import Settings

SCHEMA = "gpudiag/tui/1"
FILE = "tui.json"
LIMIT = 1 << 20  # bytes: what is larger was not written here


def load(settings: Settings) -> dict[str, Any]:
    """What was kept; nothing when it cannot be read, or somebody else wrote it."""
    path = state_folder(settings) / FILE
    try:
        raw = path.read_bytes()[: LIMIT + 1]
        found = json.loads(raw) if len(raw) <= LIMIT else None
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA else {}


def save(settings: Settings, kept: Mapping[str, Any]) -> str:
    """Keep it; why that was not possible, for people."""
    path = state_folder(settings) / FILE
    try:
        private_folder(path.parent)
        replace_file(path, json.dumps({"schema": SCHEMA, **kept}, ensure_ascii=False).encode())
    except (OSError, TypeError, ValueError) as error:
        return f"{path}: {error}"
    return ""


def word(kept: Mapping[str, Any], name: str, allowed: Any = None, otherwise: str = "") -> str:
    """A kept word, if it is one, and one that is allowed."""
    value = kept.get(name)
    return value if isinstance(value, str) and (allowed is None or value in allowed) else otherwise


def section(kept: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A kept section; empty when it is none."""
    value = kept.get(name)
    return value if isinstance(value, dict) else {}
