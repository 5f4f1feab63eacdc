"""Rows of the history in words, and as plain data for JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from assistant.render.labels import colon
from assistant.render.times import iso
from assistant.session.recall import Course, PastThing, Span
from knowledge.text import excerpt


def event_title(kind: str, code: int | None, lang: str) -> str:
    """An event in words: its code with the catalogue's title, else what the vocabulary says of its kind."""
    if code is not None and kind in ("xid", "xid_reported", "xid_exported"):
        from knowledge.catalog.xid import xid

        entry = xid(code)
        return f"XID {code}" + (f" ({entry.title.in_(lang)})" if entry else "")
    if code is not None and kind == "sxid":
        from knowledge.catalog.sxid import sxid

        found = sxid(code)
        return f"SXID {code}" + (f" ({found.title.in_(lang)})" if found else "")
    from knowledge.facts import vocabulary

    spec = vocabulary().get(kind)
    if spec is None:
        return excerpt(kind, 60)
    said = re.split("[;；]", spec.meaning.in_(lang))[0].rstrip(".。")  # what comes behind explains its fields
    return f"{kind}{colon(lang)}{said}"


def data_of(span: Span, things: Sequence[PastThing]) -> dict[str, Any]:
    """The key `history` of an answer's data."""
    return {
        "history": {
            "host": span.host,
            "since": iso(span.since) if span.since is not None else None,
            "begins": iso(span.begins) if span.begins is not None else None,
            "checks": span.checks,
            "checks_with_kernel_log": span.with_log,
            "rows": [_plain(t) for t in things[-200:]],
        }
    }


def _plain(t: PastThing) -> dict[str, Any]:
    return {
        "kind": t.kind, "code": t.code, "rule": t.rule or None, "subject": str(t.subject), "count": t.count,
        "first": iso(t.first), "last": iso(t.last), "state": (t.how or "open") if t.kind == "finding" else None,
        "line": excerpt(t.line, 300) or None,
    }  # fmt: skip


def plain_course(c: Course) -> dict[str, Any]:
    """How a value went."""
    return {
        "fact": c.fact, "subject": str(c.subject), "samples": c.samples, "first": [iso(c.first[0]), c.first[1]],
        "last": [iso(c.last[0]), c.last[1]], "changed": iso(c.changed) if c.changed is not None else None,
    }  # fmt: skip
