"""The command line on generated traces, in this process: what the tests of ``gpudiag trace`` share."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

from assistant.cli import main
from tests.conftest import Answer

ONE_TRACE = ("summary", "kernels", "ops", "iterations", "flame", "timeline", "report")  # what one trace is enough for
FORMATS = ("text", "json", "markdown", "html")


def trace(*words: str | Path, lang: str = "en") -> Answer:
    """``gpudiag trace ...``: the real command line, without a process of its own."""
    raw, err = BytesIO(), StringIO()
    out = TextIOWrapper(raw, encoding="utf-8", write_through=True)
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["trace", *map(str, words), "--lang", lang])
    return Answer(int(code), raw.getvalue().decode(), err.getvalue())


def said(answer: Answer) -> str:
    """All that was said, on one line; never a traceback, never a bug."""
    assert "Traceback" not in answer.err
    assert "this is a bug" not in answer.err, answer.err
    return " ".join((answer.out + answer.err).split())
