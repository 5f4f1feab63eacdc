"""What files somebody wants to look at: a recording of a machine, or logs and captured outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from knowledge.errors import InputError, UsageError

if TYPE_CHECKING:
    from assistant.session.state import Origin


def origin_of(names: Sequence[str]) -> Origin:
    """The source that `names` are: one bundle or bug report, else files of any kind. UsageError when one is not there."""
    from assistant.session.state import Origin, folder

    names = [str(Path(n).expanduser()) for n in names]
    if not names:
        raise UsageError("no file was named", zh="未给出文件")
    for name in names:
        if not Path(name).exists():
            raise UsageError(f"{name}: there is no such file", zh=f"没有此文件：{name}")
    if len(names) == 1 and _is_bundle(names[0]):
        return Origin(bundle=names[0], folder=folder())
    return Origin(inputs=tuple(names), folder=folder())


def _is_bundle(name: str) -> bool:
    from probes.bug_report_host import opened_bundle

    try:
        opened_bundle(name)
    except (InputError, OSError):
        return False
    return True
