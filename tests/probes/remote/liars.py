"""Far sides of our own that do not do what they should: programs that get what the real one gets."""

from __future__ import annotations

import sys

# What every one of them can use: the mark that was asked for, frames, a hello, questions as they come.
COMMON = r"""
import json, os, re, struct, sys, time, zlib
b = sys.stdin.buffer
source = zlib.decompress(b.read(int(b.readline()))).decode()
mark = re.search(r'"mark": "([0-9a-f]+)"', source).group(1).encode() + b"\n"
def raw(data):
    while data:
        data = data[os.write(1, data):]
def frame(header, body=b""):
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    raw(struct.pack(">II", len(head), len(body)) + head + body)
HELLO = {"hello": 1, "time": time.time_ns(), "host": "h", "python": [3, 11, 7], "uid": 0, "user": "root", "container": "", "boot": "b"}
def begin(**more):
    raw(mark)
    frame({**HELLO, **more})
def questions():
    while True:
        line = b.readline()
        if not line:
            return
        ask = json.loads(line)
        ask["body"] = b.read(ask.get("size", 0))
        if ask["op"] == "clock":
            frame({"id": ask["id"], "end": True, "time": time.time_ns()})
        elif ask["op"] not in ("keep", "cancel", "bye"):
            yield ask
def good(ask, data=b"fine", **more):
    frame({"id": ask["id"], "part": "out"}, data)
    frame({"id": ask["id"], "end": True, "exit": 0, "lost": 0, "head": len(data), "timed_out": False, "stuck": None,
           "said": {"ok": True, "lost": 0, "head": len(data)}, **more})
"""


def liar(body: str) -> list[str]:
    """The command of a far side that does `body`."""
    return [sys.executable, "-I", "-S", "-c", COMMON + body]
