"""The session: a pure function from a state and an event to the next state and what is to be done.

It does no I/O and reads no clock: whoever drives it (`assistant.session.driver`) runs the probes, reads the
history and writes the files that it asks for. Command line, terminal and Slack run this same session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.intent.of_files import of_given
from assistant.intent.query import BY_PHRASE, Intent, Query, Slots, of_process
from assistant.render.labels import UNSAID
from assistant.reply import Reply
from assistant.session import phrases
from assistant.session.concluding import concluded, earlier_capture, planned, rooted
from assistant.session.looking import fresh, granted, not_again, not_into, other_recording, replaced, unasked, wanted
from assistant.session.naming import known, meant, options
from assistant.session.processes import title_of
from assistant.session.state import Frame, Origin, Pending, Seen, State
from assistant.session.steps import (
    Answered,
    Ask,
    Cancelled,
    Collect,
    Collected,
    Conclude,
    Confirm,
    Confirmed,
    Event,
    Recall,
    Recalled,
    Said,
    Step,
    Write,
    Written,
)
from assistant.session.whereabouts import about, about_elsewhere, answered, cut_off, elsewhere, machine_of, tells
from knowledge.language import Text
from knowledge.observation import Observation, Source, Status, Value
from knowledge.observation import Origin as Who
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.planner import Plan
    from assistant.session.inventory import Inventory
    from probes.live import ProbeSpec
    from rules.loader import RuleSet

Result = tuple[State, tuple[Step, ...]]
ROUNDS = 8  # of looking for one question
SAID = "what was said"
BUS = "pci"  # the probe that tells whether a machine has a GPU, at no cost
FIRST = "system"  # the probe that another machine is reached with, when none is asked for
_AT_ONCE = frozenset({Intent.EXPLAIN, Intent.FIX, Intent.RUNBOOK, Intent.COST, Intent.HELP, Intent.UNKNOWN})
_MAY_ANSWER = frozenset({Intent.UNKNOWN, Intent.CONFIRM, Intent.DENY})
_LOOKED = frozenset({Intent.DIAGNOSE, Intent.VERDICT, Intent.PROBE})
# Follow-ups that files which are given can answer at once: what was concluded from them, or not.
_OF_FINDINGS = BY_PHRASE | {
    Intent.WHY, Intent.EVIDENCE, Intent.WHYNOT, Intent.WHATIF, Intent.NEXT, Intent.ALTERNATIVES, Intent.CONFIDENCE
}  # fmt: skip


# Of files these are asked of the counters in them, where they are about what GPUs do: no book answers who wastes "these GPUs".
_OF_COUNTERS = frozenset(
    {Intent.EXPLAIN, Intent.FIX, Intent.COST, Intent.UNKNOWN, Intent.PROBE, Intent.VERDICT, Intent.NEXT, Intent.HELP}
)


# Of the log of a training these are asked of its steps.
_OF_STEPS = frozenset({Intent.DIAGNOSE, Intent.VERDICT, Intent.PROBE, Intent.EVENTS})
_OF_MEMORY = _OF_STEPS | {Intent.WHICH}


@dataclass(frozen=True, slots=True)
class Session:
    """The knowledge that every turn rests on; it never changes."""

    ruleset: RuleSet
    inventory: Inventory
    lang: str = "en"
    budget: float = 30.0  # seconds of probing for one question
    without: frozenset[str] = frozenset()  # probes that are not to be run
    absent: Callable[[], frozenset[str]] = frozenset  # those that need a tool that is not installed here
    agreed: bool = False  # to every look that takes seconds and leaves alone what it looks at

    @property
    def probes(self) -> tuple[ProbeSpec, ...]:
        """What can be asked of a machine. Many answers need none of it, and loading it is half of their time."""
        from probes.live import probes

        return probes()

    def step(self, state: State, event: Event) -> Result:
        """The next state, and what is to be done: steps to carry out, or the answer."""
        match event:
            case Said():
                return self._said(state, event)
            case Collected(seen):
                return self._collected(state, seen)
            case Recalled(rows, note):
                return self._recalled(state, rows, note)
            case Written():
                return self._written(state, event)
            case Answered(value):
                return self._told(state, value) if state.frame.pending else (state, ())
            case Confirmed(yes):
                return self._consented(state, yes) if state.frame.pending else (state, ())
            case Cancelled():
                return self._cancelled(state)

    def adopted(self, state: State, seen: Seen, origin: Origin) -> State:
        """The state after somebody asked whether the node is healthy, and `seen` was looked at for it."""
        from assistant.intent.parse import understand

        lang = state.lang or self.lang
        query = understand(phrases.HEALTHY.in_(lang), lang=lang, hosts=self.inventory.words)
        state, number = state.looked(seen)
        headline = concluded(self, state, (number,), ()).verdict.text.in_(lang)
        return state.pushed(Frame(query, origin, (number,), headline=headline))

    # --- sentences ------------------------------------------------------------------------

    def _said(self, state: State, event: Said) -> Result:
        from assistant.intent.parse import understand

        hosts, talk = self.inventory.words, state.frame
        elsewhere = not event.origin.live and talk.query is not None and talk.origin != event.origin
        asked = talk.pending is not None and not elsewhere
        query = event.query or understand(event.text, lang=state.lang or self.lang, pending=asked, hosts=hosts)
        state = replace(state, lang=query.lang, said=query)
        if asked and (answered := self._answered(state, query)) is not None:
            return answered
        if not elsewhere or query.intent is Intent.UNDO:
            return self._turned(state, query, event)
        if query.intent is Intent.RERUN and talk.query is not None:
            return self._begin(state, replace(talk.query, lang=query.lang), event)
        # What was said before is about something else: this sentence has nothing before it.
        nothing = Frame(origin=event.origin)
        after, steps = self._turned(replace(state, frames=(*state.frames, nothing)), query, event)
        return replace(after, frames=tuple(f for f in after.frames if f is not nothing)), steps

    def _turned(self, state: State, query: Query, event: Said) -> Result:
        """The turn of an understood sentence that answers no question of ours."""
        if (
            query.intent is Intent.HISTORY
            and not event.origin.live
            and query.slots.node in ((), (self._host(state, state.frame),))
        ):
            query = replace(query, intent=Intent.EVENTS)  # what was given has its own past
        elif query.intent is Intent.SUMMARY and query.slots.since and event.origin.live and state.frame.query is None:
            query = replace(query, intent=Intent.HISTORY)  # "summarise the last 24 hours"
        elif (
            query.intent is Intent.EVENTS
            and event.origin.live
            and (state.frame.query is None or state.frame.origin.live)
        ):
            query = replace(query, intent=Intent.HISTORY)
        if (same := self._of_same(state, query, event)) is not None:
            return self._reply(state, replace(state.frame, last=same), same)
        of_files = not event.origin.live or query.slots.file
        if of_files:
            query = replace(of_given(query), also=tuple(map(of_given, query.also)))
        begins = query.intent in _OF_COUNTERS or (query.intent is Intent.CONFIDENCE and state.frame.query is None)
        of_trace = query.intent is Intent.EXPLAIN and query.page.startswith("advice ") and named_causes(query.text)
        if of_files and (of_trace or (begins and _of_counters(query))):
            return self._begin(state, replace(query, intent=Intent.DIAGNOSE), event)
        if query.intent in _LOOKED or (query.intent is Intent.UNKNOWN and query.slots.file):
            return self._begin(state, query, event)
        if query.intent is Intent.UNKNOWN and phrases.is_no_answer(query):
            return self._said_only(state, phrases.nothing_pending(query.lang))
        if query.intent in _AT_ONCE:
            return self._reply(state, replace(state.frame, last=query), query)
        match query.intent:
            case Intent.HISTORY:
                host = self._host(state, state.frame)
                return state.pushed(replace(state.frame, last=query, pending=None)), (Recall(query, host),)
            case Intent.CANCEL:
                return self._cancelled(state)
            case Intent.UNDO:
                return self._undone(state)
            case Intent.CONFIRM | Intent.DENY:
                waiting = state.frame.pending is not None
                said = phrases.no_answer(query.lang) if waiting else phrases.nothing_pending(query.lang)
                return self._said_only(state, said)
        return self._follow_up(state, query, event)

    def _answered(self, state: State, query: Query) -> Result | None:
        """What the sentence means as an answer to what is waited for; None when it is something else."""
        from assistant.planner import DONT_KNOW, answer_value, only_answer

        pending = state.frame.pending
        assert pending is not None
        if pending.fact:
            if not only_answer(query.text) and (query.intent not in _MAY_ANSWER or "?" in query.text):
                return None  # "what if the width were 16" is no answer, whatever number stands in it
            value = answer_value(phrases.question(pending), query.text, query.lang)
            if value is DONT_KNOW:
                return self._told(state, None)
            return self._told(state, value) if value is not None else None
        if query.intent in (Intent.CONFIRM, Intent.DENY):
            return self._consented(state, query.intent is Intent.CONFIRM)
        return None

    def _begin(self, state: State, query: Query, event: Said) -> Result:
        """A new question, about what is given or about what the talk is about."""
        frame = state.frame
        query, back = self._carried(frame, query) if event.origin.live else (query, False)
        named = query.slots.file
        given = event.origin
        origin = given
        if given.live:
            there = machine_of(self.inventory, state, query, event)
            origin = Origin(inputs=named, folder=given.folder) if named else there
            if origin.live and origin.host:
                query = about(query, origin.host)
                state = replace(state, said=query)
        if back or (
            origin.live and self._recorded_here(state, frame, query)
        ):  # what "it" means may be a recording; any other question is about this machine
            origin = frame.origin
        seen = frame.seen if frame.origin == origin and fresh(state, frame, event.at) else ()
        told = self._placed(query.observations, query, origin)
        keeps = told if told or not query.observations else ()
        inherited = frame.told if frame.origin == origin and not query.observations and seen else ()
        begun = Frame(query, origin, seen, told=(*inherited, *keeps), declined=frame.declined if seen else ())
        state = state.pushed(begun)
        if (refused := elsewhere(self.inventory, query, origin)) is not None:
            if not (tells(query) or query.symptoms):
                return self._conclude(state, begun, refused)
            return self._apart(state, begun, query, refused)
        return self._advance(state)

    def _recorded_here(self, state: State, frame: Frame, query: Query) -> bool:
        """Whether the one node that is named is the one whose recording the talk is about."""
        return not frame.origin.live and query.slots.node == (self._host(state, frame),)

    def _of_same(self, state: State, query: Query, event: Said) -> Query | None:
        """ "Is it the GIL?", "why not the data loader?", after a process was looked into: answered from that look, as long
        as nobody says "again". The query with the process filled in; None for any other."""
        frame = state.frame
        base = frame.query
        if base is None or not of_process(base) or frame.origin.live != event.origin.live or not frame.seen:
            return None
        if query.intent not in (*_LOOKED, Intent.WHYNOT, Intent.WHATIF) or any(query.slots._replace(rank=())):
            return None
        if query.intent in _LOOKED and not (named_causes(query.text) or query.slots.rank):
            return None
        if not any(o.fact.startswith("capture.") for n in frame.seen for o in state.seen[n].observations):
            return None
        return replace(query, slots=base.slots._replace(rank=query.slots.rank))

    def _carried(self, frame: Frame, query: Query) -> tuple[Query, bool]:
        """ "Can I keep using it?" is about what the talk is about; so is "is it the GIL?", where that is a process. The query
        with that filled in, and whether it was."""
        base = frame.query
        if not frame.origin.live and phrases.this_machine(query.text):
            return query, False  # "is this node ok?" is about the machine that it is typed on
        if base is not None and query.intent is Intent.DIAGNOSE and not any(query.slots) and named_causes(query.text):
            return (replace(query, slots=base.slots), True) if of_process(base) else (query, False)
        if base is None or query.intent is not Intent.VERDICT or any(query.slots) or query.symptoms:
            return query, False
        return replace(query, slots=base.slots), True

    def _placed(self, observations: Sequence[Observation], query: Query, origin: Origin) -> tuple[Observation, ...]:
        """What was said about no named node is about the node that is looked at."""
        here = origin.host or (self.inventory.here if origin.live else "")
        host = here if not query.slots.node or (origin.live and origin.host) else query.slots.node[0]
        return tuple(o.about(rooted(o.subject, host)) for o in observations)

    # --- looking --------------------------------------------------------------------------

    def _advance(self, state: State) -> Result:
        """Look on while something that can be looked at could change the answer; else answer."""
        frame = state.frame
        query = frame.query
        assert query is not None
        if not frame.seen and not frame.origin.live:
            return state, (Collect(frame.origin, (), self.budget),)
        if missing := not_again(self, state, frame):
            return state, (Collect(frame.origin, missing, self.budget),)
        if frame.origin.live and not (frame.origin.host or frame.seen or query.slots.pid) and _elsewhere_meant(query):
            return self._apart(state, frame, query)
        if not frame.seen and BUS not in self.without and tells(query) and about_elsewhere(frame.origin, query):
            return state, (Collect(frame.origin, (BUS,), self.budget),)  # whose it is that was told depends on it
        there = elsewhere(self.inventory, query, frame.origin) or cut_off(state, frame, query.lang)
        diagnosis = concluded(self, state, frame.seen, frame.told)
        if there is None and about_elsewhere(frame.origin, query) and _no_gpu_here(diagnosis):
            return self._apart(state, frame, query)
        plan = planned(self, state, frame, diagnosis) if there is None else None
        if plan is not None and plan.batch and len(frame.seen) < ROUNDS:
            spent = (
                sum(state.seen[n].seconds for n in frame.seen) if frame.origin.live else 0.0
            )  # what was recorded is read whole
            left = self.budget - spent
            if left > 0:
                return state, (Collect(frame.origin, plan.batch, left, options(query, diagnosis.facts)),)
        if plan is not None and frame.origin.live and frame.origin.host and not frame.seen:
            # nobody is asked to agree to anything on a machine of which it is not known what can run there
            return state, (Collect(frame.origin, (FIRST,), self.budget),)
        if there is None and frame.origin.live and (which := meant(query, diagnosis.facts).which):
            titles = [title_of(diagnosis.facts, s) for s in which]
            return self._conclude(state, frame, phrases.which_process(titles, query.lang))
        looked = "capture.window.seconds" in diagnosis.facts.facts
        if there is None and frame.origin.live and _runs_elsewhere(query, diagnosis):
            return self._apart(state, frame, query)
        if plan is not None and of_process(query) and (looked or not known(query, diagnosis.facts)):
            plan = replace(
                plan, questions=()
            )  # of what is not there nobody can tell more, of the rest the look tells it
        if plan is not None and (agreed := granted(self, state, frame, plan, diagnosis.facts)):
            return state, (Collect(frame.origin, agreed, None, options(query, diagnosis.facts)),)
        gone = replaced(state, frame)
        asked = replace(query, intent=Intent.RERUN) if frame.before and not gone else query
        reply = self._answer(state, frame, asked, diagnosis, plan)
        if there is not None:
            reply = phrases.beside(reply, there)
        if of_process(query) and not_into(state, frame):
            reply = phrases.noted(reply, phrases.job_there(frame.origin.host, query.lang))
        if gone:
            reply = phrases.noted(reply, phrases.another_node(gone, self._host(state, frame), query.lang))
        return self._conclude(state, frame, reply, plan)

    def _apart(self, state: State, frame: Frame, query: Query, away: Reply | None = None) -> Result:
        """A sentence about GPUs, where this machine has none, or is another one: answered from what is said alone.

        `away`: why the machine that is named cannot be looked at, and how it could be.
        """
        told = tuple(o.about(rooted(o.subject, next(iter(query.slots.node), UNSAID))) for o in query.observations)
        apart = replace(frame, seen=(), told=told)
        if away is None and not (told or query.symptoms or query.unread or query.fine or query.page):
            nearest = query.topics[0] if query.topics and query.intent is Intent.DIAGNOSE else None
            if (
                nearest is not None and nearest.kind == "symptom"
            ):  # no phrase of it was said, and nothing else comes as close
                kin = replace(query, symptoms=(nearest.id.partition(" ")[2],))
                return self._conclude(
                    state, apart, self._answer(state, apart, kin, concluded(self, state, (), ()), None)
                )
            if query.pasted and query.topics:  # a message that is known, and nothing else: its page is the answer
                page = replace(query, intent=Intent.EXPLAIN)
                return self._conclude(
                    state, apart, self._answer(state, apart, page, concluded(self, state, (), ()), None)
                )
            if phrases.in_general(query) and (state.said is None or state.said.intent not in BY_PHRASE):
                from assistant.dialogue import _pages

                return self._said_only(state, _pages.unknown(query, query.topics, query.lang, "explain"))
            from assistant.dialogue._pages import close_page

            if query.intent is Intent.DIAGNOSE and (
                known := close_page(query)
            ):  # whether "this card" can be used no page tells
                page = replace(query, intent=Intent.EXPLAIN, page=known)
                reply = self._answer(state, apart, page, concluded(self, state, (), ()), None)
                return self._conclude(state, apart, replace(reply, settled=False))
            return self._conclude(state, apart, phrases.nothing_said(self.inventory.here, query.text, query.lang))
        reply = self._answer(state, apart, query, concluded(self, state, (), told), None)
        if away is not None:
            return self._conclude(state, apart, phrases.beside(reply, away))
        lang = query.lang
        why = (
            phrases.not_meant(lang)
            if phrases.another_machine(query.text)
            else phrases.not_this_machine(self.inventory.here, lang)
        )
        return self._conclude(state, apart, phrases.noted(reply, why))

    def _collected(self, state: State, seen: Seen) -> Result:
        frame = state.frame
        if not frame.origin.live and any(other_recording(state.seen[n], seen) for n in frame.seen):
            frame, state = replace(frame, seen=()), state.put(replace(frame, seen=()))
            if seen.probes:  # another recording has taken its place: all of it is read anew
                return self._advance(state)
        if seen.lost and not seen.observations:
            return self._unreached(state, frame, seen)
        state, number = state.looked(seen)
        return self._advance(state.put(replace(frame, seen=(*frame.seen, number))))

    def _unreached(self, state: State, frame: Frame, seen: Seen) -> Result:
        """A machine that cannot be looked at now: that is the answer, beside what is known from what was said."""
        assert frame.query is not None
        refused = phrases.unreached(seen.host, seen.lost.in_(frame.query.lang), frame.query.lang)
        if not frame.seen and not frame.told:
            return self._conclude(state, frame, refused)
        diagnosis = concluded(self, state, frame.seen, frame.told)
        return self._conclude(
            state, frame, phrases.beside(self._answer(state, frame, frame.query, diagnosis, None), refused)
        )

    # --- answers --------------------------------------------------------------------------

    def _answer(
        self, state: State, frame: Frame, query: Query, diagnosis: Diagnosis | None, plan: Plan | None,
        recalled: Sequence[object] = (),
    ) -> Reply:  # fmt: skip
        from assistant.dialogue import Turn, _became, _host_memory, _steps, answerer
        from assistant.dialogue._scope import by_bus

        query = by_bus(query, diagnosis.facts) if diagnosis is not None else query
        before = (
            concluded(self, state, frame.before, frame.told)
            if frame.before
            else earlier_capture(self, state, frame.seen)
        )
        turn = Turn(
            query, query.lang, self.ruleset, diagnosis, frame.query, frame.focus, plan, self._host(state, frame),
            recalled, before, frame.pending, frame.origin.host if frame.origin.live else "",
        )  # fmt: skip
        of_steps = _steps.answer(turn) if query.intent in _OF_STEPS and not frame.origin.live else None
        of_memory = _host_memory.answer(turn) if query.intent in _OF_MEMORY and not frame.origin.live else None
        of_life = _became.answer(turn) if query.intent is Intent.VERDICT and not frame.origin.live else None
        reply = of_life or of_steps or of_memory or answerer(query.intent).answer(turn)
        if query.also:
            from assistant.dialogue import _also

            reply = _also.beside(reply, turn)
        # What the answer rests on goes with it, for those that read the data.
        return reply if reply.diagnosis is not None or diagnosis is None else replace(reply, diagnosis=diagnosis)

    def _reply(self, state: State, frame: Frame, query: Query) -> Result:
        """An answer from knowledge and from what is known already: nothing is looked at."""
        known = concluded(self, state, frame.seen, frame.told) if answered(frame) else None
        plan = planned(self, state, frame, known) if known is not None and frame.query is not None else None
        reply = self._answer(state, frame, query, known, plan)
        focus = reply.focus or frame.focus
        waits = frame.pending if frame.pending is not None and frame.pending.fact else None  # a question stays open
        frame = replace(frame, focus=focus, last=query, pending=waits, headline=reply.headline)
        return state.pushed(frame), (Conclude(reply),)

    def _said_only(self, state: State, reply: Reply) -> Result:
        """A word in between: the talk stands where it stood, and what was asked is asked still."""
        return state, (Conclude(reply), *_still_asked(state.frame))

    def _conclude(self, state: State, frame: Frame, reply: Reply, plan: Plan | None = None) -> Result:
        facts = concluded(self, state, frame.seen, frame.told).facts if plan is not None else None
        pending = (
            wanted(self, frame, plan, facts, answered=bool(reply.focus))
            if plan is not None and facts is not None
            else None
        )
        whole = reply.shown or reply.diagnosis
        headline = reply.headline or (whole.verdict.text.in_(reply.lang) if whole is not None else "")
        kept = replace(frame, focus=reply.focus or frame.focus, pending=pending, headline=headline)
        steps: list[Step] = [Conclude(reply)]
        if pending is not None:
            steps.append(Ask(pending) if pending.fact else Confirm(pending))
        return state.put(kept), tuple(steps)

    # --- follow-ups -----------------------------------------------------------------------

    def _follow_up(self, state: State, query: Query, event: Said) -> Result:
        frame = state.frame
        if frame.query is None or not answered(frame):
            if query.intent is Intent.RERUN and frame.query is not None and frame.origin.live and frame.origin.host:
                event = replace(event, origin=frame.origin)  # it could not be reached before
                return self._begin(state, replace(frame.query, lang=query.lang), event)
            given_first = query.intent is Intent.RERUN and not event.origin.live  # "is it ok", "check it" of files
            if query.intent is Intent.RETARGET or given_first:  # "and on gpu-13?" with nothing before: its own question
                return self._begin(state, replace(query, intent=Intent.VERDICT), event)
            if not event.origin.live and query.intent in _OF_FINDINGS:  # of files that were given nothing was asked yet
                return self._begin(state, query, event)
            if query.intent is Intent.WHICH:  # of a machine at which nobody has looked
                return self._begin(state, replace(query, intent=Intent.DIAGNOSE), event)
            return self._said_only(state, phrases.nothing_yet(query.lang))
        if query.intent in _OF_FINDINGS and not (event.origin.live or frame.told) and _asked_nothing(frame.query):
            return self._begin(state, query if any(query.slots) else replace(query, slots=frame.query.slots), event)
        if query.intent is Intent.RERUN:
            return self._again(state, query)
        if query.intent is Intent.RETARGET:
            return self._retargeted(state, query, event)
        if query.intent is Intent.EXPORT:
            return self._export(state, query)
        if query.intent is Intent.WHY and frame.pending is not None and phrases.about_asking(query.text):
            return state.pushed(frame), (Conclude(phrases.why_asked(frame.pending, query.lang)), *_still_asked(frame))
        if query.intent is Intent.EVENTS:
            frame = replace(frame, pending=None)  # a question about the past drops what was asked
        return self._reply(state, frame, query)

    def _again(self, state: State, query: Query) -> Result:
        """The same probes once more; the answer says what changed."""
        frame = state.frame
        base = replace(frame.query, lang=query.lang) if frame.query else None
        again = replace(frame, query=base, seen=(), before=frame.seen, last=query, pending=None)
        if not frame.origin.live:
            return self._advance(state.pushed(again))
        told = options(frame.query) if frame.query is not None else {}
        return state.pushed(again), (Collect(frame.origin, unasked(self, state, frame), self.budget, told),)

    def _retargeted(self, state: State, query: Query, event: Said) -> Result:
        from assistant.intent.echo import echo

        frame = state.frame
        base = frame.query
        assert base is not None
        slots = query.slots
        if not slots.node and not slots.file and event.origin.live:  # "and gpu 5?": of the same recording
            event = replace(event, origin=frame.origin)
        if not any(slots):  # "on the other node"
            found = phrases.other_target(
                query.text, self.inventory, base, frame.origin.host if frame.origin.live else ""
            )
            if isinstance(found, Reply):
                return self._said_only(state, found)
            slots = Slots(node=(found,))
        merged = base.slots._replace(**dict(slots.named()))
        intent = base.intent if base.intent in _LOOKED else Intent.VERDICT
        asked = echo(replace(
            base, text=query.text, lang=query.lang, slots=merged, intent=intent, observations=query.observations
        ))  # fmt: skip
        return self._begin(replace(state, said=asked), asked, event)

    def _export(self, state: State, query: Query) -> Result:
        frame = state.frame
        assert frame.query is not None
        diagnosis = concluded(self, state, frame.seen, frame.told)
        plan = planned(self, state, frame, diagnosis)
        reply = self._answer(state, frame, replace(frame.query, lang=query.lang), diagnosis, plan)
        path = next(iter(query.slots.file), "")
        step = Write(reply, path, phrases.format_named(query.text))
        return state.pushed(replace(frame, last=query, pending=None)), (step,)

    def _written(self, state: State, event: Written) -> Result:
        frame = state.frame
        lang = frame.last.lang if frame.last else self.lang
        if event.exists:
            pending = Pending(path=event.path, text=phrases.overwrite(event.path))
            kept = state.put(replace(frame, pending=pending))
            return kept, (Conclude(phrases.exists(event.path, lang)), Confirm(pending))
        reply = phrases.written(event.path, event.trouble, lang)
        return state.put(replace(frame, headline=reply.headline)), (Conclude(reply),)

    def _recalled(self, state: State, rows: Sequence[object], note: Text | None) -> Result:
        frame = state.frame
        query = frame.last
        assert query is not None
        reply = self._answer(state, frame, query, None, None, rows)
        if note is not None:
            reply = phrases.noted(reply, note.in_(query.lang))
        return state.put(replace(frame, headline=reply.headline)), (Conclude(reply),)

    # --- answers to us --------------------------------------------------------------------

    def _told(self, state: State, value: Value) -> Result:
        """What a person said about a fact, or (None) that it is not known."""
        frame = state.frame
        pending = frame.pending
        assert pending is not None
        if value is None or pending.subject is None:
            return self._advance(state.pushed(replace(frame, pending=None, declined=(*frame.declined, pending.fact))))
        said = Observation(pending.fact, pending.subject, value, Status.OK, Source("told", SAID), origin=Who.TOLD)
        return self._advance(state.pushed(replace(frame, pending=None, told=(*frame.told, said))))

    def _consented(self, state: State, yes: bool) -> Result:
        frame = state.frame
        pending = frame.pending
        assert pending is not None
        state = state.pushed(replace(frame, pending=None, declined=(*frame.declined, *(() if yes else pending.probes))))
        if pending.path:
            if not yes:
                return state, (Conclude(phrases.kept(pending.path, state.lang or self.lang)),)
            query = frame.query
            assert query is not None
            diagnosis = concluded(self, state, frame.seen, frame.told)
            reply = self._answer(state, frame, query, diagnosis, planned(self, state, frame, diagnosis))
            named = phrases.format_named(frame.last.text) if frame.last is not None else ""
            return state, (Write(reply, pending.path, named, replace=True),)
        if not yes:
            return self._advance(state)
        assert frame.query is not None
        facts = concluded(self, state, frame.seen, frame.told).facts
        return state, (Collect(frame.origin, pending.probes, None, options(frame.query, facts)),)

    def _cancelled(self, state: State) -> Result:
        lang = state.lang or self.lang
        if state.frame.pending is None:
            return state, (Conclude(phrases.cancelled(False, lang)),)
        return state.pushed(replace(state.frame, pending=None)), (Conclude(phrases.cancelled(True, lang)),)

    def _undone(self, state: State) -> Result:
        lang = state.lang or self.lang
        if not state.frames:
            return state, (Conclude(phrases.nothing_to_undo(lang)),)
        state = state.popped()
        return state, (Conclude(phrases.undone(state.frame, lang)), *_still_asked(state.frame))

    def _host(self, state: State, frame: Frame) -> str:
        """The node that the talk is about: of a recording the one that was recorded."""
        seen = (state.seen[n].host for n in frame.seen)
        return frame.origin.host or (self.inventory.here if frame.origin.live else next((h for h in seen if h), ""))


def named_causes(text: str) -> bool:
    """Whether a sentence names what can bound a job ("the GIL", "the data loader", "which function")."""
    from knowledge.bottlenecks import asked_about

    return bool(asked_about(text))


def _no_gpu_here(diagnosis: Diagnosis) -> bool:
    from assistant.diagnosis import no_gpu

    return no_gpu(diagnosis.facts)


def _elsewhere_meant(query: Query) -> bool:
    """Whether it is asked of a machine that is not this one what is wrong, or how something is."""
    return query.intent in (Intent.DIAGNOSE, Intent.VERDICT, Intent.PROBE) and phrases.another_machine(query.text)


def _runs_elsewhere(query: Query, diagnosis: Diagnosis) -> bool:
    """Whether a program is meant that needs a GPU and does not run here, where there is none."""
    named = of_process(query) and bool(query.slots.process) and not query.slots.pid
    return named and not known(query, diagnosis.facts) and _no_gpu_here(diagnosis)


def _still_asked(frame: Frame) -> tuple[Step, ...]:
    """What is waited for, asked once more: no "yes" counts for a question that does not stand right above it."""
    pending = frame.pending
    if pending is None:
        return ()
    return (Ask(pending) if pending.fact else Confirm(pending),)


def _asked_nothing(query: Query) -> bool:
    """Whether a value was asked for that is none: nothing was looked for that a follow-up could be about."""
    from assistant.planner.asked import asked_facts

    return query.intent is Intent.PROBE and not asked_facts(query)


def _of_counters(query: Query) -> bool:
    """Whether a sentence asks, of files that are given, what the GPUs in them do."""
    from assistant.dialogue._work import asked

    task = query.intent is Intent.FIX and any(t.kind == "howto" for t in query.topics[:1])
    return not (query.pasted or query.slots.xid or task) and bool(asked(query))
