"""What the journal takes: plain JSON, safe to show, and without secrets.

Everybody who may read the journal reads it for ever, so a token in a command line must not get into it. A list of words is
taken for a command line; in prose only what is written as ``name=value`` or looks like a credential is masked, because
"the key is worn" is no secret.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from assistant.store.codec import storable
from knowledge.text import clean
from probes.collectors import processes as masking

LONG = 10_000  # characters of a text: a page of a log
NAME = 200  # of a name, a kind, a subject
DEEP = 12  # levels of data
WIDE = 2_000  # items of a list or an object
PROSE = frozenset({"text", "note", "why", "what", "title", "reason", "consent"})  # fields that people write
_PLAIN = frozenset({"key", "keys"})  # names of fields that only sound like a secret


def cleaned(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` as it is kept."""
    found = _value("", data, DEEP)
    assert isinstance(found, dict)
    return found


def name(text: str) -> str:
    """A kind, a subject, a person: one clean line."""
    return storable(" ".join(clean(text).split()))[:NAME]


def _value(key: str, value: Any, deep: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else str(value)[:NAME] if value.bit_length() < 4000 else "..."
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if not deep:
        return "..."
    if isinstance(value, Mapping):
        return {
            name(str(k)): masking.MASK if v and isinstance(v, str) and _secret(str(k)) else _value(str(k), v, deep - 1)
            for k, v in list(value.items())[:WIDE]
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else list(value)
        if items and all(isinstance(item, str) for item in items):
            return [_words(item) for item in masking.masked_arguments([clean(item) for item in items[:WIDE]])]
        return [_value(key, item, deep - 1) for item in items[:WIDE]]
    text = clean(str(value))[: 4 * LONG]
    return _words(masking.masked_prose(text) if key in PROSE else masking.masked(text))


def _words(text: str) -> str:
    return storable(clean(text))[:LONG]


def _secret(key: str) -> bool:
    return key.lower() not in _PLAIN and masking.secret_name(key)
