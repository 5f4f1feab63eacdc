"""A diagnosis in the format that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.config import Output
    from assistant.diagnosis import Diagnosis


def show(
    diagnosis: Diagnosis,
    output: Output,
    tells: Callable[[str], str] = lambda _: "",
    *,
    verbose: bool = False,
    timing: Mapping[str, float] | None = None,
) -> str:
    """The whole answer. `tells` names the inputs that would give a missing fact; `timing` (s) goes into JSON."""
    if output.format == "json":
        from assistant.render import json_

        return json_.render(diagnosis, output.lang, tells, timing)
    from assistant.render.view import view

    page = view(diagnosis, output.lang, tells, verbose)
    if output.format == "markdown":
        from assistant.render import markdown

        return markdown.render(page)
    if output.format == "html":
        from assistant.render import html

        return html.render(page)
    from assistant.render import text
    from assistant.render.cells import paint_for, terminal_width

    return text.render(page, terminal_width(), paint_for(output.color), verbose)
