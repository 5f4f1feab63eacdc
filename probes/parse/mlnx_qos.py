"""``mlnx_qos -i INTERFACE``: trust and priority flow control of an interface, as MLNX_OFED shows them.

    Priority trust state: dscp
    PFC configuration:
            priority    0   1   2   3   4   5   6   7
            enabled     0   0   0   1   0   0   0   0

Format: docs.nvidia.com/networking/display/mlnxenv23106161lts/quality-of-service-(qos). The tool does not print the interface.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Status, Subject
from probes.base import Context, DocumentFormat
from probes.parse._app_emit import Emitter, clean_lines
from probes.parse._whose import interface

NAME, REVISION = "mlnx-qos", 1
PROVIDES = ("nic.trust", "nic.pfc.priorities")
_TRUST = re.compile(r"\s{0,8}Priority trust state: (pcp|dscp|both)\s{0,8}", re.IGNORECASE)
_HEAD = re.compile(r"^\s{0,8}(?:Priority trust state: |PFC configuration:)", re.MULTILINE)
_ENABLED = re.compile(r"\s{1,16}enabled:?\s{1,12}((?:[01]\s{0,12}){8})")


def sniff(head: str) -> int:
    """90 when both headings are there."""
    return 90 if len(set(_HEAD.findall(head))) == 2 else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Settings of the interface."""
    emit = Emitter(NAME, REVISION, context)
    subject = Subject(Scope.NIC, interface(text, context), emit.node)
    for line in clean_lines(text):
        if found := _TRUST.fullmatch(line.text):
            emit.fact("nic.trust", subject, found[1].lower(), line.number, line.text)
        elif found := _ENABLED.fullmatch(line.text):
            on = tuple(str(i) for i, bit in enumerate(found[1].split()) if bit == "1")
            emit.fact("nic.pfc.priorities", subject, on, line.number, line.text)
    for fact in PROVIDES:
        if all(o.fact != fact for o in emit.out):
            emit.missing(fact, subject, Status.UNSUPPORTED, "it is not printed")
    return emit.out


FORMAT = DocumentFormat(NAME, "mlnx_qos", REVISION, PROVIDES, sniff, parse)
