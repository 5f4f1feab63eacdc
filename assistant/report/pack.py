"""Columns of numbers in a page: the narrowest type, one deflated blob, base64."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probes.trace.breakdown.levels import Level
    from probes.trace.breakdown.timeline import Timeline

_WIDTHS = ((1 << 8, "u1"), (1 << 16, "u2"), (1 << 32, "u4"))
_ALIGN = 8  # a typed array begins at a multiple of its width


class Pack:
    """Collects columns; `header` says where each lies in `blob`."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.header: dict[str, list[Any]] = {}  # name -> [type, offset, length]

    def add(self, name: str, values: Any) -> str:
        """A column of whole numbers from 0 to 2**53, in the narrowest type that holds them (floats: f8). Its name."""
        import numpy as np

        column = np.asarray(values)
        kind = "f8"
        if column.dtype.kind != "f" and (not len(column) or int(column.min()) >= 0):
            top = int(column.max()) if len(column) else 0
            kind = next((k for limit, k in _WIDTHS if top < limit), "f8")
        raw = column.astype(f"<{kind}").tobytes()
        self.header[name] = [kind, self._size, len(column)]
        self._parts += [raw, bytes(-len(raw) % _ALIGN)]
        self._size += len(raw) + -len(raw) % _ALIGN
        return name

    @property
    def blob(self) -> str:
        """All columns, deflated, as base64."""
        return deflated(b"".join(self._parts))


def deflated(data: bytes) -> str:
    """zlib (RFC 1950), as a browser's DecompressionStream("deflate") reads it; base64."""
    return base64.b64encode(zlib.compress(data, 7)).decode("ascii")


def level(pack: Pack, name: str, lv: Level, origin: int) -> dict[str, Any]:
    """One level of detail: starts as steps from the segment before in the row, so that they are small."""
    import numpy as np

    step = np.diff(lv.start, prepend=origin)
    heads = lv.offsets[:-1][np.diff(lv.offsets) > 0]
    step[heads] = lv.start[heads] - origin
    length = lv.end - lv.start
    for column, values in (("rows", lv.offsets), ("step", step), ("length", length), ("free", length - lv.busy),
                           ("count", lv.count), ("name", lv.name), ("tint", lv.tint)):  # fmt: skip
        pack.add(f"{name}.{column}", values)
    return {"key": name, "resolution": lv.resolution_ns, "start": lv.start_ns - origin, "end": lv.end_ns - origin}


def timeline(pack: Pack, line: Timeline) -> dict[str, Any]:
    """What the page's timeline needs; times are ns since its start."""
    return {
        "span": line.end_ns - line.start_ns,
        "view": [line.view_ns[0] - line.start_ns, line.view_ns[1] - line.start_ns],
        "lanes": [
            {"kind": a.kind, "device": a.device, "stream": a.stream, "process": a.process, "thread": a.thread,
             "row": a.row, "rows": a.rows, "events": a.events, "busy": a.busy_ns} for a in line.lanes
        ],
        "levels": [level(pack, f"l{i}", lv, line.start_ns) for i, lv in enumerate(line.levels)],
        "details": [level(pack, f"d{i}", lv, line.start_ns) for i, lv in enumerate(line.details)],
        "names": list(line.names),
    }  # fmt: skip
