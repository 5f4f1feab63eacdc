"""The title of sysstat's tools, which names the machine: ``iostat``, ``mpstat``, ``sar``, ``pidstat``."""

from __future__ import annotations

from dataclasses import replace

from knowledge.lazy import lazy
from probes.base import Context

# Linux 5.15.0-91-generic (gpu-07) 	11/20/2025 	_x86_64_	(128 CPU)
_TITLE = lazy(r"(?m)^Linux \S{1,80} \((\S{1,255})\)\s{1,20}\S{6,12}\s{1,20}_\w{2,20}_")


def titled(text: str, context: Context) -> Context:
    """`context` with the host that the title names, unless it has one."""
    found = None if context.host else _TITLE.search(text)
    return replace(context, host=found[1]) if found else context
