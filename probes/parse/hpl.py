"""HPL and NVIDIA's HPL (xhpl): how many systems of equations were solved, and of how many the residual is too large.

Source of the lines: HPL_pdtest.c and HPL_pdinfo.c of HPL 2.3, which NVIDIA's binary prints as well:

    ||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   0.0032310 ...... PASSED
                  1 tests completed and passed residual checks,
                  0 tests completed and failed residual checks,
"""

from __future__ import annotations

import re

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat
from probes.parse import _app_bench
from probes.parse._app_emit import Emitter, clean_lines, whole

NAME, REVISION = "hpl", 1
PROVIDES = (*_app_bench.COMMON, "benchmark.residual.failed")
_HEAD = re.compile(r"T/V\s{1,20}N\s{1,12}NB\s{1,12}P\s{1,12}Q\s{1,40}Time\s{1,40}Gflops\b.{0,60}")
_CHECK = re.compile(r"\|\|Ax-b\|\|_oo/.{1,80}=\s{1,20}\S{1,24}\s{1,4}\.{2,12}\s(PASSED|FAILED)\s{0,8}")
_COUNT = re.compile(r"\s{0,30}(\d{1,9}) tests completed and (passed|failed) residual checks[,.]?\s{0,8}")
_ERROR = re.compile(r"HPL ERROR from process .{1,200}")


def sniff(head: str) -> int:
    """95 for the heading of results, a residual check or the summary; 0 otherwise."""
    lines = (line.text.strip()[:300] for line in clean_lines(head)[:2000])
    return 95 if any(_HEAD.fullmatch(line) or _CHECK.fullmatch(line) or _COUNT.fullmatch(line) for line in lines) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Whether it came to its end, and how many checks failed: by the summary, before that by the checks so far."""
    emit = Emitter(NAME, REVISION, context)
    lines = clean_lines(text)
    checks = [(line, found[1]) for line in lines if (found := _CHECK.fullmatch(line.text.strip()[:300]))]
    failed = [line for line, word in checks if word == "FAILED"]
    counts = {found[2]: (line, whole(found[1])) for line in lines if (found := _COUNT.fullmatch(line.text[:200]))}
    first = next((line for line in lines if _HEAD.fullmatch(line.text.strip()[:300])), None)
    _app_bench.named(emit, NAME, first)
    _app_bench.completed(emit, "failed" in counts, counts["failed"][0] if "failed" in counts else None)
    if "failed" in counts:
        line, count = counts["failed"]
        emit.fact("benchmark.residual.failed", emit.document, count or 0, line.number, line.text.strip())
    elif checks:
        line = failed[0] if failed else checks[-1][0]
        emit.fact("benchmark.residual.failed", emit.document, len(failed), line.number, line.text.strip())
    if error := next((line for line in lines if _ERROR.search(line.text[:400])), None):
        _app_bench.failed(emit, error)
    return emit.out


FORMAT = DocumentFormat(NAME, "HPL", REVISION, PROVIDES, sniff, parse)
