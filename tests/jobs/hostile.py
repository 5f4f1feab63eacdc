# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, PTH118, PTH123, UP031
"""A job whose threads, functions, files and source lines are called so that a terminal or a page would obey them."""

import ctypes
import os
import threading

from counters import Counters, burn, ready

BAD = "\x1b[31mred\x1b]0;title\x07\u202egnp\u2066\x9b31m\r\n\u2028|`*_[x](javascript:alert(1))<script>alert(1)</script>&\"'"


def called(path, name, line):
    """A function of that name out of that file, whose only line of code is `line`."""
    text = "def work(burn):\n    while True: burn(0.01)  # %s\n" % line
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    space = {}
    exec(compile(text, path, "exec"), space)
    code = space["work"].__code__
    words = {"co_name": name}
    if hasattr(code, "co_qualname"):
        words["co_qualname"] = name
    return type(called)(code.replace(**words), {})


def named(function):
    ctypes.CDLL(None).prctl(15, b"\x1b[7m<b>\xe2\x80\xae\n\xff", 0, 0, 0)
    function(burn)


def main():
    folder = os.environ["TMPDIR"]
    bad = BAD.replace("/", "")
    path = os.path.join(folder, bad.replace("\n", "").replace("\r", "")[:60] + "<img src=x onerror=alert(1)>.py")
    function = called(path, BAD, BAD.replace("\n", " ").replace("\r", " ").replace("\u2028", " ") + "x" * 100000)
    long = called(os.path.join(folder, "x" * 200 + ".py"), "y" * 1000000, "z")
    threading.Thread(target=named, args=(function,), name=BAD, daemon=True).start()
    threading.Thread(target=named, args=(long,), name="n" * 1000000, daemon=True).start()
    counters, number = Counters(), 0
    ready()
    while True:
        number += 1
        burn(0.005)
        counters.tick()


if __name__ == "__main__":
    main()
