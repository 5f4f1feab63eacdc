"""A diagnosis in the format that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.changes import Changes
    from assistant.config import Output
    from assistant.diagnosis import Diagnosis


def show(
    diagnosis: Diagnosis,
    output: Output,
    tells: Callable[[str], str] = lambda _: "",
    *,
    verbose: bool = False,
    timing: Mapping[str, float] | None = None,
    changes: Changes | None = None,
) -> str:
    """The whole answer. `tells` names the inputs that would give a missing fact; `timing` (s) goes into JSON.

    `changes` since the last check stand under the answer.
    """
    if output.format == "json":
        from assistant.render import json_

        return json_.render(diagnosis, output.lang, tells, timing, changes, verbose)
    from assistant.render.view import view

    page = view(diagnosis, output.lang, tells, verbose, output.now)
    if output.format == "markdown":
        from assistant.render import markdown

        return markdown.render(page) + _under(changes, "markdown", output.lang, verbose)
    if output.format == "html":
        from assistant.render import html

        return html.render(page, _under(changes, "html", output.lang, verbose))
    from assistant.render import text
    from assistant.render.cells import paint_for, terminal_width

    columns, paint = terminal_width(), paint_for(output.color)
    answer = text.render(page, columns, paint, verbose)
    if changes is None:
        return answer
    from assistant.render import changes as below

    return answer + "\n" + below.text(changes, output.lang, columns, paint, verbose)


def _under(changes: Changes | None, shape: str, lang: str, verbose: bool) -> str:
    if changes is None:
        return ""
    from assistant.render import changes as below

    return "\n" + below.markdown(changes, lang, verbose) if shape == "markdown" else below.html(changes, lang, verbose)
