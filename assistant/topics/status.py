"""NV_STATUS: the numbers with which NVIDIA's driver says why something failed, also the three of RmInitAdapter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assistant.render.sheet import Fields, Paragraph, Part, Sheet
from assistant.topics._common import sources
from knowledge.catalog.nv_status import SOURCE, InitFailure, NvStatus, all_statuses, init_failure, nv_status
from knowledge.errors import UnknownNameError
from knowledge.language import Text

KIND = "status"
HELP = "a status of NVIDIA's driver by number (0x65) or name (NV_ERR_TIMEOUT), or the three of RmInitAdapter (0x62:0x65:1860)"
_GRAVE = Text("It speaks of a sick GPU, board or fabric.", "它指向 GPU、板卡或互联的故障。")
_PLAIN = Text(
    "By itself it is no sign of sick hardware: a request was refused, or something is not there yet.",
    "单凭它不能说明硬件故障：可能是请求被拒绝，或某项尚未就绪。",
)


def names() -> Iterable[str]:
    """The names of all."""
    return (s.name for s in all_statuses())


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of a status, or of the three numbers of a failed start."""
    word = " ".join(words).strip("()[] ,")
    if (start := init_failure(f"({word})")) is not None:
        return _start(start, word, lang)
    found = next((s for s in all_statuses() if word.upper() in (s.name, s.name.removeprefix("NV_ERR_"))), None)
    if found is None:
        try:
            found = nv_status(int(word, 0))
        except ValueError:
            found = None
    if found is None:
        raise UnknownNameError(KIND, word, names())
    return _page(found, lang)


def _page(s: NvStatus, lang: str) -> Sheet:
    title = s.title.in_(lang)
    return Sheet(
        f"{s.name} (0x{s.code:02x}): {title}",
        (Paragraph((_GRAVE if s.grave else _PLAIN).in_(lang)), *sources((SOURCE,), lang)),
        {"kind": KIND, "code": s.code, "name": s.name, "title": title, "grave": s.grave},
    )


def _start(f: InitFailure, word: str, lang: str) -> Sheet:
    rows = [
        (
            Text("stage", "阶段").in_(lang),
            f"0x{f.stage:02x}: {f.said.in_(lang) or Text('not listed', '未列出').in_(lang)}",
        )
    ]
    if f.status is not None:
        rows.append((Text("status", "状态").in_(lang), f"{f.status.name}: {f.status.title.in_(lang)}"))
    said = Text("The third number is a line of the driver's source.", "第三个数是驱动源码的行号。").in_(lang)
    parts: list[Part] = [Fields(tuple(rows)), Paragraph(said), *sources((SOURCE,), lang)]
    data = {"kind": KIND, "stage": f.stage, "status": f.status.name if f.status is not None else None}
    return Sheet(f"RmInitAdapter ({word}): {f.reason.in_(lang)}", tuple(parts), data)
