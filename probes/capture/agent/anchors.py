"""Being told when a function of the target returns: `sys.monitoring` on its code (Python 3.12 on), another `__code__` before.

Both see calls by any name under which the function was kept (vLLM binds its step at start, so replacing the method would
see nothing). Everything is put back by `remove`, also while the function runs.
"""

# ruff: noqa: BLE001, PTH119, PTH122, SIM105 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from probes.capture.agent.report import Refused

GENERATOR, COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x200  # co_flags


def find(name: str) -> FunctionType:
    """The function behind ``module:Class.function``, without its decorators. Refused when there is none."""
    module, _, path = name.partition(":")
    root = sys.modules.get(module) or _script(module)
    if root is None or not path:
        raise Refused("anchor-unknown", "module " + module + " is not loaded")
    found: Any = root
    for word in path.split("."):
        held = found.__dict__.get(word) if isinstance(found, type) else None
        found = held if held is not None else getattr(found, word, None)
        if found is None:
            raise Refused("anchor-unknown", module + " has no " + path)
    for _ in range(20):
        inner = getattr(found, "__func__", None) or getattr(found, "__wrapped__", None)
        if inner is None:
            inner = getattr(found, "func", None) if type(found).__name__ == "partial" else None
        if inner is None:
            break
        found = inner
    if not isinstance(found, FunctionType):
        called = type(found).__dict__.get("__call__")
        if not isinstance(called, FunctionType) or isinstance(found, type):
            raise Refused("anchor-native", path + " is no Python function")
        return called
    return found


def _script(module: str) -> Any:
    """The main module, when the script's file has that name."""
    main = sys.modules.get("__main__")
    file = str(getattr(main, "__file__", "") or "")
    return main if module == "__main__" or os.path.splitext(os.path.basename(file))[0] == module else None


def watch(functions: list[FunctionType], told: Callable[[Any, Any], None], *, start: bool = False) -> Watch:
    """`told` at each outermost return of one of them (`start`: at each call); each yield of a generator counts."""
    if hasattr(sys, "monitoring"):
        return MonitoringWatch(functions, told, start)
    for function in functions:
        if function.__code__.co_flags & (GENERATOR | COROUTINE | ASYNC_GENERATOR):
            raise Refused("anchor-generator", function.__qualname__ + " is a generator, which needs Python 3.12")
    return SwapWatch(functions, told)


class Watch:
    """Something that was put into the target, and can be taken out."""

    def remove(self) -> None:
        """As if it had never been there. May be called twice."""


class MonitoringWatch(Watch):
    """Local events on code objects. Refused when all tool numbers are taken."""

    _taken: int | None = None

    def __init__(self, functions: list[FunctionType], told: Callable[[Any, Any], None], start: bool) -> None:
        self._told, self._start = told, start
        self._monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - not there before 3.12
        self._codes = [f.__code__ for f in functions]
        self._pid = os.getpid()
        self._tool = self._take()
        events = self._monitoring.events
        try:
            for event in (events.PY_START,) if start else (events.PY_RETURN, events.PY_YIELD):
                self._monitoring.register_callback(self._tool, event, self._started if start else self._returned)
            for code in self._codes:
                wanted = events.PY_START if start else events.PY_RETURN
                if not start and code.co_flags & GENERATOR:
                    wanted = events.PY_YIELD
                self._monitoring.set_local_events(self._tool, code, wanted)
        except BaseException:
            self.remove()
            raise

    def _take(self) -> int:
        for tool in (4, 3):  # 0, 1, 2 and 5 belong to debuggers, coverage, profilers and optimizers
            if self._monitoring.get_tool(tool) is None:
                try:
                    self._monitoring.use_tool_id(tool, "gpudiag")
                except ValueError:
                    continue
                return tool
        raise Refused("monitoring-in-use", "sys.monitoring has no free tool number")

    def _started(self, _code: CodeType, _offset: int) -> None:
        self._tell(None, None)

    def _returned(self, code: CodeType, _offset: int, value: Any) -> None:
        frame = sys._getframe(1)
        outer = frame.f_back
        for _ in range(200):
            if outer is None:
                break
            if outer.f_code is code:
                return  # called by itself
            outer = outer.f_back
        self._tell(frame, value)

    def _tell(self, frame: Any, value: Any) -> None:
        if os.getpid() == self._pid:  # a forked child has our hooks and not our thread
            try:
                self._told(frame, value)
            except Exception:
                pass

    def remove(self) -> None:
        """See `Watch`."""
        tool, self._tool = self._tool, -1
        if tool < 0:
            return
        events = self._monitoring.events
        for code in self._codes:
            self._monitoring.set_local_events(tool, code, 0)
        for event in (events.PY_START, events.PY_RETURN, events.PY_YIELD):
            self._monitoring.register_callback(tool, event, None)
        self._monitoring.free_tool_id(tool)


class SwapWatch(Watch):
    """Another `__code__`, which calls the function as it was."""

    def __init__(self, functions: list[FunctionType], told: Callable[[Any, Any], None]) -> None:
        self._told, self._depth, self._pid = told, threading.local(), os.getpid()
        self._swapped: list[Any] = []
        try:
            for function in functions:
                old = function.__code__
                inner = FunctionType(
                    old, function.__globals__, function.__name__, function.__defaults__, function.__closure__
                )
                inner.__kwdefaults__ = function.__kwdefaults__
                inner.__qualname__ = function.__qualname__
                new = _calling(self._call, inner, len(old.co_freevars))
                self._swapped.append((function, old, new))
                function.__code__ = new
        except BaseException:
            self.remove()
            raise

    def _call(self, inner: FunctionType, args: Any, words: Any) -> Any:
        depth = self._depth
        depth.now = getattr(depth, "now", 0) + 1
        try:
            value = inner(*args, **words)
        finally:
            depth.now -= 1
        if depth.now == 0 and self._swapped and os.getpid() == self._pid:
            try:
                self._told(sys._getframe(2), value)
            except Exception:
                pass
        return value

    def remove(self) -> None:
        """See `Watch`."""
        swapped, self._swapped = self._swapped, []
        for function, old, new in swapped:
            if function.__code__ is new:
                function.__code__ = old


_TEMPLATE = """
def make({cells}):
    def watched(*args, **words):
        call = "call"
        if 0: {use}
        return call("inner", args, words)
    return watched
"""


def _calling(call: Any, inner: FunctionType, cells: int) -> CodeType:
    """Code with so many free variables (a function keeps its closure) that calls `call`: both stand in its constants."""
    names = ", ".join(f"cell{i}" for i in range(cells))
    space: Any = {}
    exec(compile(_TEMPLATE.format(cells=names, use=names or "pass"), "gpudiag", "exec"), space)
    code: CodeType = space["make"](*[None] * cells).__code__
    held = tuple(call if c == "call" else inner if c == "inner" else c for c in code.co_consts)
    return code.replace(co_consts=held, co_name=inner.__code__.co_name, co_filename=inner.__code__.co_filename)
