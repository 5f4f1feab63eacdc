"""A whole answer as a file to attach: what a message had no room for, or what somebody wants to keep."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import TYPE_CHECKING

from assistant.session.export import SUFFIXES, usual_name
from knowledge.errors import UnknownNameError

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.session.driver import Answer


def whole(answer: Answer, settings: Settings, format: str) -> tuple[str, bytes]:
    """Name and content: ``html``, ``markdown``, ``json`` or ``text``, everything in it, no colour, UTF-8.

    The name is ``gpudiag-NODE-YYYY-MM-DD-HHMMSSZ``: the time that the answer is about, else now. UnknownNameError for another format.
    """
    from assistant.render import reply as shapes
    from assistant.sources import tells

    if format not in SUFFIXES:
        raise UnknownNameError("format", format, SUFFIXES)
    reply = answer.reply
    output = settings.output._replace(format=format, color="never", lang=reply.lang)
    text = shapes.show(reply, output, tells, question=answer.question, query=answer.query, verbose=True)
    as_of = reply.diagnosis.as_of if reply.diagnosis is not None else None
    at = time.gmtime((as_of if as_of is not None else time.time_ns()) // 10**9)
    usual = PurePath(usual_name(reply, format, settings))
    name = f"{usual.stem}{time.strftime('-%H%M%SZ', at)}{usual.suffix}"
    return name, text.encode("utf-8", "replace")
