"""The page around the sections: one file, nothing fetched, only our own scripts and styles may run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final

from assistant.report.markup import data
from assistant.report.pack import Pack, deflated

SCRIPTS: Final = ("units.js", "tables.js", "charts.js", "timeline.js", "flame.js", "main.js")


def static(name: str) -> str:
    """A file of ``assistant/report/static``."""
    return (files("assistant.report") / "static" / name).read_text(encoding="utf-8")


@cache
def plotly() -> tuple[str, str]:
    """The library's script, as its wheel carries it: its fingerprint, and the script deflated (2 MB instead of 5)."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    script = str(get_plotlyjs())
    return fingerprint(script), deflated(script.encode("utf-8"))


def fingerprint(text: str) -> str:
    """How a Content-Security-Policy names an inline script or style."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") + "'"


def policy(scripts: list[str], styles: list[str]) -> str:
    """Nothing from anywhere; scripts and styles by their content; pictures that a script made itself.

    Plotly sets style attributes; those can neither run nor fetch (no source is allowed).
    """
    return (
        f"default-src 'none'; script-src {' '.join(scripts)}; style-src {' '.join(styles)}; "
        "style-src-attr 'unsafe-inline'; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


def document(title: str, body: str, values: Mapping[str, Any], pack: Pack, lang: str) -> str:
    """The whole page. `title` is plain text; `values` is what the script reads, `pack` the columns it draws."""
    code = "(() => {\n'use strict';\n" + "\n".join(static(name) for name in SCRIPTS) + "\n})();\n"
    style, drawn = static("page.css"), static("plotly.css")
    library = plotly() if values.get("charts") else None
    scripts = [fingerprint(code), *([library[0]] if library else [])]
    rules = policy(scripts, [fingerprint(style), fingerprint(drawn)])
    tag = {"zh": "zh-CN"}.get(lang, "en")
    blobs = f'<script type="application/octet-stream" id="columns">{pack.blob}</script>\n'
    if library:
        blobs += f'<script type="application/octet-stream" id="library">{library[1]}</script>\n'
    return (
        f'<!doctype html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n"
        f'<style id="plotly.js-style-global" class="no-inline-styles">{drawn}</style>\n</head>\n<body>\n{body}\n'
        f'<script type="application/json" id="values">{data({**values, "columns": pack.header})}</script>\n{blobs}'
        f"<script>{code}</script>\n</body>\n</html>\n"
    )
