"""Whose output it is, for tools that do not print the name of the interface they were asked about.

In order: the command in the text or in the name of the source (``# ethtool -m eth0``, ``mlxlink -d mlx5_0 -m -c``), then a
name of the usual shapes in the name of the file (``node7-mlxlink-mlx5_3.json``).
"""

from __future__ import annotations

import re

from knowledge.text import clean
from probes.base import Context

UNNAMED = "unknown:?"  # what the renderer calls "one port", "one network interface"
_COMMAND = re.compile(r"\b(?:ethtool|mlxlink|mlnx_qos)(?:\.py)?((?:[ \t]{1,4}[\w./:@-]{1,60}){1,8})")
_FLAGGED = re.compile(r"(?:^|\s)(?:-d|--device|-i|--interface)\s{1,4}([\w.:/@-]{1,60})")
_PORT = re.compile(r"\s(?:-p|--port)\s{1,4}(\d{1,3})\b")
_WORD = re.compile(
    r"(?<![a-z0-9])((?:mlx[45]|bnxt_re|irdma|rocep|ibp|rdma)[\w]{0,20}?\d{1,4}(?:_\d)?|(?:eth|en|eno|ens|enp|ib)[a-z0-9]{0,14}\d[a-z0-9]{0,8})(?![a-z0-9])"
)


def interface(text: str, context: Context) -> str:
    """Name of the interface or device; `UNNAMED` when nothing tells."""
    for where in (context.source, clean(text[:4000])):
        for found in _COMMAND.finditer(where):
            words = found[1].split()
            flagged = _FLAGGED.search(found[1])
            if flagged:
                return flagged[1].rsplit("/", 1)[-1]
            if words and not words[-1].startswith("-") and "." not in words[-1]:
                return words[-1]
    file = context.source.rsplit("/", 1)[-1].rpartition(".")[0] or context.source.rsplit("/", 1)[-1]
    named = _WORD.search(clean(file).lower())
    return named[1] if named else UNNAMED


def port_number(text: str, context: Context) -> str:
    """The port that the tool was asked about; ``1`` when nothing tells."""
    for where in (context.source, clean(text[:4000])):
        for found in _COMMAND.finditer(where):
            if port := _PORT.search(found[1]):
                return port[1]
    return "1"
