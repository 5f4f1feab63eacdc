"""Looking at this machine or at another one: which probes, with what patience, and what becomes of their answers.

`check`, `collect` and `watch` share it. The machine is always read through a recording, so that
what was concluded can be kept and concluded again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, NoReturn

from assistant.config import state_folder
from knowledge.errors import InputError
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Observation, Source, Status, node
from knowledge.observation_json import UnknownFactError, restored
from knowledge.record import dataclass
from probes.host import Host, Recording, RecordingHost, Reply
from probes.runner import ProbeResult, Progress, run, select

if TYPE_CHECKING:
    from assistant.config import Settings
    from probes.bug_report_host import BugReportHost
    from probes.bundle import BundleHost
    from probes.hang_memory import HangMemory
    from probes.live import ProbeSpec
    from probes.remote.reach import Reach
    from probes.remote.remote_host import RemoteHost
    from rules.model import Rule

HISTORY = "history.jsonl"  # in a bundle: samples of earlier checks that the answer was given with
BUDGET = 30.0  # seconds for all probes, unless told otherwise
GRACE = 2.0  # seconds that a connection outlives its looks by: what was read is on its way still
JOBS = 16  # probes side by side: they wait for children, they do not compute
# A probe without an answer is worth a line, unless the thing it asks for is not there.
_SILENT = frozenset({Status.OK, Status.UNSUPPORTED, Status.NOT_APPLICABLE, Status.NONE_SEEN})


@dataclass(frozen=True, slots=True)
class Wish:
    """Which probes, and how long they may take together (seconds)."""

    only: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    budget: float = BUDGET
    again: bool = False  # also what hung, or took the machine down, before


@dataclass(frozen=True, slots=True)
class Look:
    """What a machine told."""

    host: str
    results: tuple[ProbeResult, ...]
    replies: tuple[Reply, ...]
    as_of: int | None  # ns UTC
    recording: Recording | None  # None for a bundle that was put together by hand
    earlier: tuple[Observation, ...] = ()  # samples of earlier checks, for rules over time
    unknown_facts: tuple[str, ...] = ()  # facts of such samples in a recording that this version does not know
    remarks: tuple[
        str, ...
    ] = ()  # what there is to say about the way to it: that the connection broke, who we are there
    broken: str = ""  # why the connection to it ended before all was read, as observations say it
    ended: Text = NO_TEXT  # the same for people
    reached: bool = True  # False: there was none, and nothing was read

    @property
    def observations(self) -> list[Observation]:
        """Everything that the probes saw, in order of their names."""
        return [o for r in self.results for o in r.observations]

    @property
    def boot_id(self) -> str:
        """Which boot of the machine this was; empty when nothing told."""
        found = (str(o.value) for o in self.observations if o.fact == "node.boot_id" and o.status is Status.OK)
        return next(found, "")

    @property
    def notes(self) -> list[str]:
        """A line for each probe that ought to have told something and did not; for each of them when none did."""
        answered = any(r.status.answered for r in self.results)
        quiet = _SILENT if answered else frozenset({Status.OK})
        told = [
            f"{r.probe}: {r.detail or r.status}" for r in self.results if r.status not in quiet and not self._cut_off(r)
        ]
        return [*self.remarks, *told]

    def _cut_off(self, result: ProbeResult) -> bool:
        """Whether a probe told nothing for the one reason that stands among the remarks."""
        return bool(self.broken) and self.broken in result.detail

    @property
    def whole(self) -> bool:
        """Whether the machine was asked what its health rests on, rather than some outputs of it kept."""
        return self.recording is not None and not {"kernel-log", "nvml"}.isdisjoint(self.recording.probes)


def here(
    settings: Settings, wish: Wish, on_progress: Callable[[Progress], None] | None = None,
    options: Mapping[str, Mapping[str, str]] | None = None,
) -> Look:  # fmt: skip
    """This machine, read now. UsageError for a probe that does not exist.

    `options` are told to probes by name, as `ProbeRequest.options`; a recording holds them.
    """
    from probes.live_host import LiveHost

    told = options or {}
    specs = _all_told(select(wish.only, wish.extra, wish.without), told)
    memory = _memory(settings, wish.again)
    with _interruptible(), LiveHost(settings.machine.name, root=settings.machine.root, memory=memory) as live:
        return _looked(live, specs, wish, told, on_progress)


def there(
    settings: Settings, reach: Reach, wish: Wish, on_progress: Callable[[Progress], None] | None = None,
    options: Mapping[str, Mapping[str, str]] | None = None,
) -> Look:  # fmt: skip
    """Another machine, read now over a connection of its own. ConnectError when it cannot be reached, UsageError for a
    probe that does not exist.

    A connection that breaks leaves a look at what came until then, and `Look.broken`.
    """
    with line(settings, reach, wish.budget, wish.again) as far:
        return over(far, wish, on_progress, options, settings.output.lang)


@contextmanager
def line(settings: Settings, reach: Reach, budget: float, again: bool = False) -> Iterator[RemoteHost]:
    """A connection to another machine, for looks of together `budget` seconds. ConnectError when there is none.

    `again`: what hung there before is tried again.
    """
    from probes.hang_memory import HangMemory
    from probes.remote.remote_host import RemoteHost

    memory = HangMemory(state_folder(settings) / f"hangs-{reach.name}.json", "")  # it learns of which boot when there
    if again:
        memory.forget()
    with RemoteHost(reach, budget=budget + GRACE, memory=memory) as far:
        yield far


def over(
    far: RemoteHost, wish: Wish, on_progress: Callable[[Progress], None] | None = None,
    options: Mapping[str, Mapping[str, str]] | None = None, lang: str = "en",
) -> Look:  # fmt: skip
    """One look over a connection that stands. `lang`: of the remarks."""
    from assistant.inventory.remarks import remarks

    told = options or {}
    specs = _all_told(select(wish.only, wish.extra, wish.without), told)
    with _interruptible():
        look = _looked(far, specs, wish, told, on_progress)
    look = replace(look, broken=far.broken, ended=far.broken_text)
    return replace(look, remarks=tuple(r.in_(lang) for r in remarks(far, look)))


def unreached(name: str, wish: Wish, reason: Text, lang: str = "en") -> Look:
    """A look at a machine that cannot be reached: every probe failed for the one reason. There is nothing to record."""
    from assistant.diagnosis import UNREACHED

    source, failed, why = UNREACHED, Status.FAILED, reason.in_(lang)
    results = tuple(
        ProbeResult(
            spec.name, tuple(Observation(f, node(name), None, failed, Source(source), detail=why) for f in spec.main),
            failed, why,
        )
        for spec in select(wish.only, wish.extra, wish.without)
    )  # fmt: skip
    return Look(name, results, (), None, None, broken=why, ended=reason, reached=False)


def _looked(
    machine: Host, specs: Sequence[ProbeSpec], wish: Wish, told: Mapping[str, Mapping[str, str]],
    on_progress: Callable[[Progress], None] | None,
) -> Look:  # fmt: skip
    """What the probes `specs` see of `machine`, and the recording of it."""
    host = RecordingHost(machine)
    results = run(host, specs, budget=wish.budget, on_progress=on_progress, timing=True, jobs=JOBS)
    # Of the probes that stand in for others, a replay finds out by itself which are needed.
    names = tuple(s.name for s in specs)
    unasked = tuple(r.probe for r in results if r.unasked)
    recording = Recording(names, unasked, {n: dict(told[n]) for n in names if told.get(n)})
    return Look(host.name, tuple(results), host.replies, host.as_of, recording)


def _all_told(specs: Iterable[ProbeSpec], options: Mapping[str, Mapping[str, str]]) -> list[ProbeSpec]:
    """`specs`, each told what `options` hold under its name."""
    return [_told(s, options[s.name]) if s.name in options else s for s in specs]


def _told(spec: ProbeSpec, options: Mapping[str, str]) -> ProbeSpec:
    """`spec`, told `options` whenever it is run."""
    return replace(spec, collect=lambda request, host: spec.collect(replace(request, options=options), host))


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and SIGHUP end what is done here as SIGINT does: the children, in sessions of their own, end with it."""
    import signal

    def end(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    taken = []
    if current_thread() is main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # a watch has its own ways, and nohup its reasons
                signal.signal(number, end)
                taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def recorded(host: Host, recording: Recording | None, replies: Sequence[Reply] = ()) -> Look:
    """A recorded machine: the probes that recorded it, or all that a bundle made by hand may serve."""
    from probes.live import probes

    known = {spec.name for spec in probes()}
    if recording is None:
        results = [r for r in run(host, probes()) if not _nothing_recorded(r)]
    else:
        specs = _all_told(select([n for n in recording.probes if n in known]), recording.options)
        results = run(host, specs, unasked=recording.unasked)
    return Look(host.name, tuple(results), tuple(replies), host.as_of, recording)


def not_recorded(look: Look) -> list[str]:
    """Default probes of which a bundle that was put together by hand holds nothing."""
    told = {r.probe for r in look.results}
    return [spec.name for spec in select() if spec.name not in told] if look.recording is None else []


def unknown_probes(recording: Recording | None) -> list[str]:
    """Probes of a recording that this version does not have."""
    from probes.live import probes

    known = {spec.name for spec in probes()}
    return [n for n in recording.probes if n not in known] if recording else []


def bundle(path: str) -> tuple[BundleHost | BugReportHost, Look]:
    """A bundle, or NVIDIA's bug report, and what it tells. InputError when it cannot be read."""
    from probes.bug_report_host import opened_bundle

    host = opened_bundle(path)
    return host, Recorded(path, host).remembered(recorded(host, host.recording))


@dataclass(frozen=True, slots=True)
class Recorded:
    """An opened recording of a machine, of which parts are looked at one after the other."""

    path: str
    host: BundleHost | BugReportHost

    @property
    def offers(self) -> tuple[str, ...]:
        """Probes that were recorded; all that may find something when it was put together by hand."""
        from probes.live import probes

        recording = self.host.recording
        return tuple(s.name for s in probes() if recording is None or s.name in recording.probes)

    def look(self, names: Collection[str]) -> Look:
        """What the probes called `names` tell."""
        recording = self.host.recording
        specs = _all_told(select(names), recording.options if recording else {})
        results = run(self.host, specs, unasked=recording.unasked if recording else ()) if names else []
        told = [r for r in results if recording is not None or not _nothing_recorded(r)]
        return Look(self.host.name, tuple(told), (), self.host.as_of, recording)

    def remembered(self, look: Look) -> Look:
        """`look` with the samples of earlier checks that the recording holds."""
        earlier, unknown = _earlier(self.host, self.path)
        return replace(look, earlier=earlier, unknown_facts=unknown)


def opened(path: str) -> Recorded:
    """The recording at `path`. InputError when it cannot be read."""
    from probes.bug_report_host import opened_bundle

    return Recorded(path, opened_bundle(path))


def remarks(path: str, host: BundleHost | BugReportHost, look: Look, lang: str) -> list[str]:
    """What there is to say about a recording itself: what it lacks, and what this version does not know."""
    from assistant.render.labels import label
    from knowledge.text import excerpt

    said = []
    if not (look.recording.probes if look.recording else look.results):
        said.append(label("bundle_empty", lang))
    elif absent := not_recorded(look):
        said.append(label("not_recorded", lang).format(names=", ".join(absent)))
    if host.skipped:
        said.append(label("newer_entries", lang).format(n=host.skipped))
    if unknown := unknown_probes(look.recording):
        said.append(label("newer_probes", lang).format(names=", ".join(excerpt(n, 60) for n in unknown[:8])))
    if look.unknown_facts:
        said.append(label("newer_facts", lang).format(names=", ".join(excerpt(n, 60) for n in look.unknown_facts[:8])))
    return [f"{path}: {text}" for text in said]


def _earlier(host: BundleHost | BugReportHost, path: str) -> tuple[tuple[Observation, ...], tuple[str, ...]]:
    """The samples of earlier checks in a recording; and the facts of those that this version does not know."""
    from probes.bundle import BundleHost

    data = host.extra(HISTORY) if isinstance(host, BundleHost) else None
    out, unknown = [], dict[str, None]()
    for number, line in enumerate((data or b"").splitlines(), 1):
        try:
            sample = restored(json.loads(line))
            if not sample.source.call.startswith("history:"):
                raise ValueError("it is no sample of an earlier check")
            out.append(sample)
        except UnknownFactError as error:
            unknown.setdefault(error.fact)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path}: {HISTORY}:{number}: {error}", hint="record it again with `gpudiag collect`"
            ) from None
    return tuple(out), tuple(unknown)


def remembering(settings: Settings, look: Look, rules: Iterable[Rule]) -> tuple[Look, str]:
    """`look` with the samples of earlier checks that `rules` over time ask about; and why not, for people."""
    from assistant.store import earlier

    found, why = earlier(
        settings.history.url, look.host, look.observations, rules, as_of=look.as_of, boot_id=look.boot_id
    )
    return replace(look, earlier=tuple(found)), why.in_(settings.output.lang) if why else ""


def _nothing_recorded(result: ProbeResult) -> bool:
    return all(o.status is Status.NOT_ASKED for o in result.observations)


def _memory(settings: Settings, again: bool) -> HangMemory | None:
    from probes.hang_memory import HangMemory
    from probes.live_host import boot_id

    boot = boot_id()
    if not boot:
        return None
    memory = HangMemory(state_folder(settings) / "hangs.json", boot)
    if again:
        memory.forget()
    return memory
