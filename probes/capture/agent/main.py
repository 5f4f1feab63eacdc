"""The agent from its begin to its end, in a thread of its own.

Phases: starting, pilot, waiting, capturing, stopping, writing, done; or failed, with a code. Whatever happens, hooks come
off, the profiler ends, and nothing is raised into the target.
"""

# ruff: noqa: BLE001 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from probes.capture.agent.budget import FIRST, SPARE, Budget, account, measure, second
from probes.capture.agent.forks import at_fork
from probes.capture.agent.memory import read_memory
from probes.capture.agent.report import Refused, Report, Stopped, clocks
from probes.capture.agent.session import Session, check, loaded_torch, ranks
from probes.capture.agent.steps import Steps

MARK = "_gpudiag_capture"  # in `sys`, while an agent is there: two at once are refused
FIRST_STEPS = 300_000_000  # ns in which two ends of iterations are waited for, before the pilot
BETWEEN = 50_000_000  # ns at least between stop, save and release, each of which holds the interpreter's lock
OVER = 4  # a window of iterations is ended at this multiple of what the pilot foretold
EXIT = 3.0  # seconds that the end of the target waits for the agent


def run(folder: str, enabled: bool) -> None:
    """Everything. `enabled`: whether the main thread is being profiled by the job."""
    try:
        report = Report(folder)
    except (OSError, ValueError):
        return  # withdrawn before it began
    mine = [os.getpid()]
    held = sys.__dict__.setdefault(MARK, mine)
    if held is not mine:
        if held == mine:
            report.tell("failed", "busy")
            return
        sys.__dict__[MARK] = mine  # forked in the middle of a capture: the mark is the parent's
    finished = threading.Event()

    def leave() -> None:
        report.leaving.set()
        finished.wait(EXIT)

    agent: Agent | None = None

    def clean() -> None:  # in a process that is forked in the middle of it
        atexit.unregister(leave)
        sys.__dict__.pop(MARK, None)
        if agent is not None:
            agent.forked()

    last = ("done", "", "")
    try:
        at_fork(clean)
        atexit.register(leave)
        report.tell("starting")
        agent = Agent(report, enabled)
        agent.go()
    except Refused as e:
        last = _ended(agent, e.code, e.words)
    except Stopped as e:
        last = _ended(agent, "gone" if report.orphaned else "stopped" if e.abandon else "stopped-early", "")
    except Exception as e:
        last = _ended(agent, "internal", repr(e))
    atexit.unregister(leave)
    sys.__dict__.pop(MARK, None)
    report.tell(*last)  # when nothing is left in the target
    finished.set()
    report.linger()


def _ended(agent: Any, code: str, words: str) -> tuple[str, str, str]:
    """Out of the target, and what to say."""
    try:
        if agent is not None:
            agent.close()
    except Exception as e:
        words += " " + repr(e)
    return "failed", code, words


class Agent:
    """One capture."""

    def __init__(self, report: Report, enabled: bool) -> None:
        self._report, self._orders, self._enabled = report, report.orders, enabled
        self._torch: Any = None
        self._steps: Steps | None = None
        self._session: Session | None = None
        self._notes: list[str] = []
        self._result: dict[str, Any] = {"notes": self._notes}
        self._over = threading.Event()  # the window ended, in the loop's thread
        self._wish, self._left = 0, 0
        self._failure = ""

    def go(self) -> None:
        """Refused or Stopped, or the result is written."""
        orders = self._orders
        self._load()
        self._steps = Steps(
            self._torch, orders["anchor"], orders["loss"], orders["gradnorm"], bool(orders["iterations"])
        )
        self._steps.arm()
        budget = Budget(orders)
        if orders["profile"]:
            self._pilot(budget)
        self._report.tell("waiting")
        if orders["start_at"] > time.monotonic_ns():
            self._report.wait(orders["start_at"])
        elif orders["start_at"]:
            self._notes.append("late")
        self._report.tell("capturing")
        try:
            self._window(budget)
        except Stopped as e:
            if e.abandon:
                raise
            self._notes.append("stopped-early")
        self._report.finishing = True
        self._report.tell("stopping")
        self._stop()
        if self._failure:
            raise Refused("internal", self._failure)
        self._report.tell("writing")
        self._write(budget)

    def close(self) -> None:
        """Take everything out of the target. May be called twice."""
        if self._steps is not None:
            self._steps.remove()
        if self._session is not None:
            self._end_session(self._session)
            self._session.forget()

    def forked(self) -> None:
        """Take everything out of a process that was just forked, in which nothing else runs yet."""
        if self._session is not None:
            self._session.forked()
        if self._steps is not None:
            self._steps.remove()

    def _load(self) -> None:
        orders = self._orders
        if orders["profile"] or orders["memory"]:
            self._torch = loaded_torch()
        else:
            self._torch = sys.modules.get("torch")
            if not hasattr(self._torch, "autograd"):
                self._torch = None
        if orders["profile"]:
            self._kernels = bool(orders["kernels"]) and self._torch.cuda.is_initialized()
            if orders["kernels"] and not self._kernels:
                self._notes.append("no-cuda")
            check(self._torch, self._enabled, self._kernels, orders["force"])
        if self._torch is not None:
            self._result["torch"] = {"version": str(self._torch.__version__), "cuda": str(self._torch.version.cuda or ""),
                                     "initialized": bool(self._torch.cuda.is_initialized())}  # fmt: skip

    def _new_session(self) -> Session:
        orders = self._orders
        self._session = Session(
            self._torch, kernels=self._kernels, shapes=orders["shapes"], everywhere=orders["everywhere"]
        )
        return self._session

    def _pilot(self, budget: Budget) -> None:
        steps = self._steps
        assert steps is not None
        self._report.tell("pilot")
        until = time.monotonic_ns() + FIRST_STEPS
        if self._orders["start_at"]:  # half of the time that there is
            until = min(until, (time.monotonic_ns() + int(self._orders["start_at"])) // 2)
        while time.monotonic_ns() < until and len(steps.ends) < 3:
            self._report.wait(min(until, time.monotonic_ns() + 20_000_000))
        session = self._new_session()
        if not session.everywhere:
            self._pilot_at_steps(budget, session)
            return
        measure(self._report, session, budget, FIRST, steps)
        more = second(budget, steps)
        if self._orders["start_at"]:
            more = min(more, int(self._orders["start_at"]) - time.monotonic_ns() - 2 * FIRST)
        if more > 0 and not session.gave_way:
            session = self._new_session()
            measure(self._report, session, budget, more, steps)
        if session.gave_way:
            raise Refused("profiler-active", "the job began to profile itself")

    def _pilot_at_steps(self, budget: Budget, session: Session) -> None:
        """One iteration, begun and ended by the loop's own thread."""
        assert self._steps is not None
        self._arrange(session, 0, 1)
        self._wait_for_steps(self._orders["patience_ns"])
        if session.gave_way:
            raise Refused("profiler-active", "the job began to profile itself")
        account(self._report, session, budget, self._steps)
        session.forget()

    def _arrange(self, session: Session | None, skip: int, count: int) -> None:
        """From now on the loop's thread begins a window after `skip` iterations and ends it after `count` more."""
        assert self._steps is not None
        self._over.clear()
        state = {"skip": skip, "count": count, "open": 0, "at": 0}

        def ended(now: int) -> None:
            if self._over.is_set():
                return
            if not state["open"]:
                if state["skip"] > 0:
                    state["skip"] -= 1
                    return
                state["open"] = 1
                self._began = now
                if session is not None:
                    self._try(session.start)
                return
            state["count"] -= 1
            self._report.iterations += 1
            self._ended = now
            if state["count"] <= 0:
                if session is not None:
                    self._try(self._drain)
                    session.stop(wait=False)
                self._over.set()

        self._began = self._ended = 0
        self._report.iterations = 0
        self._steps.at_end = ended

    def _try(self, what: Callable[[], None]) -> None:
        """In the loop's thread, where nothing may be raised: the window ends instead."""
        try:
            what()
        except Exception as e:
            self._failure = repr(e)
            self._over.set()

    def _drain(self) -> None:
        """Kernels of the last iteration end before the profiler does, as torch.profiler has it."""
        if self._kernels and not self._torch.cuda.is_current_stream_capturing():
            self._torch.cuda.synchronize()

    def _wait_for_steps(self, patience: int, window: int = 0) -> None:
        """Until the window of iterations is over. Refused when no iteration comes; `window`: ns that it may last."""
        assert self._steps is not None
        until = time.monotonic_ns() + patience
        while not self._over.is_set():
            self._report.wait(min(until, time.monotonic_ns() + 20_000_000), self._over)
            now = time.monotonic_ns()
            if window and self._began and now > self._began + window and self._everywhere:
                self._notes.append("cut-in-iteration")
                return
            if now >= until:
                if self._began:
                    self._notes.append("patience")
                    return
                raise Refused("no-anchor" if not self._steps.ends else "patience")

    @property
    def _everywhere(self) -> bool:
        return self._session is None or self._session.everywhere

    def _window(self, budget: Budget) -> None:
        orders, steps = self._orders, self._steps
        assert steps is not None
        session = self._new_session() if orders["profile"] else None
        self._began = self._ended = 0
        if orders["iterations"]:
            asked = int(orders["iterations"])
            count = budget.iterations(asked) if session is not None else asked
            if count < asked:
                self._notes.append("cut")
            self._wish = asked
            self._left = count
            self._arrange(session, int(orders["skip"]), count)
            limit = max(int(budget.longest * SPARE * OVER), 8 * steps.period) if session is not None else 0
            self._wait_for_steps(orders["patience_ns"], limit)
            return
        wish = int(orders["duration_ns"])
        self._wish = wish
        length = min(wish, budget.longest) if session is not None else wish
        if length < wish:
            self._notes.append("cut")
        if session is None or session.everywhere:
            self._timed(session, length, wish)
        else:
            self._timed_at_steps(session, length)

    def _timed(self, session: Session | None, length: int, wish: int) -> None:
        began = time.monotonic_ns()
        if session is not None:
            session.start()
            session.describe(json.dumps(ranks()) if ranks() else "")
            began = session.began
        self._began = began
        try:
            self._report.wait(began + length)
        finally:
            if session is not None:
                self._end_session(session)
        self._ended = session.ended if session is not None else time.monotonic_ns()
        self._report.wait(began + wish)  # iterations are counted over the whole window

    def _timed_at_steps(self, session: Session, length: int) -> None:
        """Begun and ended at iterations, by the loop's own thread."""
        assert self._steps is not None
        self._arrange(session, 0, max(1, int(length // max(self._steps.period, 1_000_000))))
        self._wait_for_steps(self._orders["patience_ns"])

    def _end_session(self, session: Session) -> None:
        """Stop it, on the thread on which that must happen."""
        if not session.running:
            return
        if session.everywhere or session.thread == threading.get_ident():
            session.stop()
            return
        # Another thread than the one that began must not end it: that one does, at its next iteration.
        over, steps = threading.Event(), self._steps
        assert steps is not None

        def ended(_now: int) -> None:
            if threading.get_ident() == session.thread and session.running:
                session.stop()
                over.set()

        steps.at_end = ended
        over.wait(self._orders["patience_ns"] / 1e9)
        if session.running:
            raise Refused("profiler-left-on", "the loop does not go on; its thread alone can end the profiler")

    def _stop(self) -> None:
        session, steps = self._session, self._steps
        assert steps is not None
        steps.at_end = None
        if session is not None:
            self._end_session(session)
            if session.gave_way:
                raise Refused("profiler-active", "the job began to profile itself")
            self._pause()

    def _pause(self) -> None:
        """An iteration or so, so that no two stalls fall into one."""
        period = self._steps.period if self._steps is not None else 0
        self._report.wait(time.monotonic_ns() + min(max(int(period * 1.5), BETWEEN), 1_000_000_000))

    def _write(self, budget: Budget) -> None:
        session, steps, result = self._session, self._steps, self._result
        assert steps is not None
        if session is not None:
            save = session.save(self._report.path("trace.json"))
            self._pause()
            session.forget()
            self._pause()
            result["trace"] = {"began": session.began, "ended": session.ended, "stop_ns": session.stop_ns, "save_ns": save,
                               "everywhere": session.everywhere, "budget": budget.document()}  # fmt: skip
        if self._orders["memory"]:
            try:
                result["memory"] = read_memory(self._torch, self._report, self._orders["snapshot"])
            except Refused as e:
                result["memory"] = {"refused": e.code}
        self._report.wait(time.monotonic_ns() + int(self._orders["after_ns"]))  # how fast it is when all is over
        steps.remove()
        result["iterations"] = steps.document()
        result["window"] = {"began": self._began, "ended": self._ended, "wish": self._wish, "captured": self._left}
        result["clock"] = clocks()
        self._report.write("result.json", json.dumps(result))
