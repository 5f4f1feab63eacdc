"""Observations and files that several tests of the assistant use."""

from __future__ import annotations

from pathlib import Path

DBE = """\
[ 430954.509105] NVRM: Xid (PCI:0000:3b:00): 48, pid=8821, name=python, DBE (double bit error) ECC Error in HBM
[ 430954.609105] NVRM: Xid (PCI:0000:3b:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate.
[ 430954.809105] NVRM: Xid (PCI:0000:3b:00): 94, pid=8821, name=python, Contained: CE User Channel (0x9). RST: No, D-RST: No
[ 430955.009105] NVRM: Xid (PCI:0000:3b:00): 45, pid=8821, name=python, Ch 00000010
[ 430955.009205] NVRM: Xid (PCI:0000:3b:00): 45, pid=8821, name=python, Ch 00000011
"""
QUIET = """\
[    0.000000] Linux version 6.8.0 (build@example) #1 SMP
[   12.480021] nvidia 0000:3b:00.0: enabling device (0140 -> 0142)
[   13.100000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build
[  900.000000] usb 1-1: new high-speed USB device number 2 using xhci_hcd
"""
# One line of each hostile kind: escapes, markup of every format, controls, a bidi override.
HOSTILE = (
    "[  100.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=\x1b[31m<script>alert(1)</script>`rm -rf`|*x*[a](http://e.example)"
    "\u202e\u200b&amp;@here, GPU has fallen off the bus.\n"
)


def write(folder: Path, name: str, text: str) -> str:
    """A file under `folder`; its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)
