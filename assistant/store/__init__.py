"""The history: what earlier checks saw, kept in SQLite or PostgreSQL.

Four functions are all that a command needs; none of them raises for trouble with the file or the server. A file is
read and written with the standard library; SQLAlchemy and sqlmodel set its tables up, and talk to a server.

* `earlier`: samples from before that continue what was read now, for rules over time.
* `since_last`: what is different from the last check.
* `remember`: keep this check; call it after the answer is shown.
* `Recorder`: the same for many checks of one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.store.location import OFF as NO_HISTORY
from assistant.store.location import StoreError, parse
from knowledge.errors import ConfigError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.changes import Changes, Now
    from assistant.diagnosis import Diagnosis
    from assistant.store.read import Reader
    from assistant.store.write import Batch, Writer
    from knowledge.observation import Observation
    from probes.runner import ProbeResult
    from rules.model import Rule


OFF = Text("the history is off (history_url)", "历史功能已关闭（history_url）")
NO_TIME = Text(
    "this check is not in the history: nothing in its inputs tells the time in UTC",
    "本次检查未写入历史：输入中没有可用的 UTC 时间",
)
NO_HOST = Text(
    "this check is not in the history: its inputs do not name the node; --host does",
    "本次检查未写入历史：输入中没有节点名，可用 --host 指定",
)


def earlier(
    store_url: str, host: str, observations: Sequence[Observation], rules: Iterable[Rule], *, as_of: int | None = None,
    boot_id: str = "",
) -> tuple[list[Observation], Text | None]:  # fmt: skip
    """Samples from before that continue `observations`, as far back as `rules` and windows of work look; and why not, if not.

    The result is to be added to `observations` before `diagnose`. `as_of` defaults to their newest time.
    """
    if store_url.strip() == NO_HISTORY:
        return [], None
    from assistant.store.codec import GAUGE_EVERY
    from assistant.store.read import Wanted, beside, over_time
    from knowledge.derive.working import BEFORE, OVER_TIME
    from knowledge.identity import resolve
    from knowledge.observation import Clock, Status
    from rules.model import looking_back

    wanted = over_time(c for r in looking_back(rules) for c in (r.when, *r.confirms, *r.excludes))
    for name, gauge in OVER_TIME.items():
        known = wanted.get(name, Wanted(0, every=GAUGE_EVERY))
        wanted[name] = Wanted(max(known.window, BEFORE), known.each or gauge, known.every if gauge else 0)
    batch = [o for o in observations if o.at is not None and o.clock is Clock.REALTIME]
    when = as_of if as_of is not None else max((o.at or 0 for o in batch), default=None)
    if when is None:
        return [], None
    reader, why = _reader(store_url)
    if reader is None:
        return [], None if why is OFF else why  # somebody wanted it off
    resolved = resolve(observations)  # the history knows each GPU by its one name
    uuids = {o.subject: str(o.value) for o in resolved if o.fact == "gpu.uuid" and o.status is Status.OK}
    try:
        with reader:
            found = reader.history_observations(host, when, wanted, boot_id, uuids)
    except StoreError as error:
        return [], error.said
    return beside(found, resolved), None


def since_last(
    store_url: str, diagnosis: Diagnosis, host: str, *, boot_id: str = "", good: bool = False
) -> Changes | Text:
    """What is different from the node's last check before this one, or why that cannot be said. With `good` the last
    one counts that found nothing wrong."""
    from assistant.changes import Before, compare
    from assistant.store.read import FOREVER

    reader, why = _reader(store_url)
    never = Text(
        f"no earlier check of {host or 'this node'} is in the history; this one begins it",
        f"历史中没有 {host or '本节点'} 更早的检查；从本次开始记录",
    )
    if good:
        never = Text(
            f"no earlier check of {host or 'this node'} that found nothing wrong is in the history",
            f"历史中没有 {host or '本节点'} 此前一切正常的检查",
        )
    if reader is None:
        return why or never
    try:
        with reader:
            last = reader.last_run(host, diagnosis.as_of if diagnosis.as_of is not None else FOREVER, good=good)
            if last is None:
                return never
            newest = last == reader.last_run(host)  # it is not, when an old bundle is compared
            findings = reader.open_findings(host) if newest else reader.findings_of(last)
            before = Before(last, tuple(findings), reader.latest(host, last.as_of))
    except StoreError as error:
        return error.said
    return replace(compare(before, _now(diagnosis, host, boot_id)), good=good)


def remember(
    store_url: str, host: str, diagnosis: Diagnosis, results: Iterable[ProbeResult] = (), origin: str = "live", *,
    days: int = 30, boot_id: str = "", rules: Iterable[Rule] = (), lang: str = "en", told: bool = False,
) -> str | None:  # fmt: skip
    """Keep a check. None when it is kept (or the history is off), else the line that says why not.

    `origin` is live, bundle or watch; `rules` are those in force: facts that they ask about over time are kept
    at every change. `told`: that the history cannot be used was said already, and is not said again.
    """
    try:
        recorder = Recorder(store_url, days=days, rules=rules, lang=lang)
    except ConfigError as error:  # the answer is shown already: this is no reason for another exit code
        return None if told else f"{error.message}; {error.hint}"
    recorder.told = told
    try:
        return recorder.remember(host, diagnosis, results, origin, boot_id=boot_id)
    finally:
        recorder.close()


class Recorder:
    """Remembers many checks; the file or server stays prepared between them."""

    def __init__(self, store_url: str, *, days: int = 30, rules: Iterable[Rule] = (), lang: str = "en") -> None:
        from assistant.store.read import over_time
        from rules.model import looking_back

        self.location = parse(store_url)
        self.days, self.lang = days, lang
        self.watched = frozenset(over_time(c for r in looking_back(rules) for c in (r.when, *r.confirms, *r.excludes)))
        self.told = False  # why checks are not kept is said by somebody else
        self._writer: Writer | None = None

    def close(self) -> None:
        """Let go of the file or server."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def remember(
        self,
        host: str,
        diagnosis: Diagnosis,
        results: Iterable[ProbeResult] = (),
        origin: str = "live",
        *,
        boot_id: str = "",
    ) -> str | None:
        """As `assistant.store.remember`."""
        if self.location is None:
            return None
        if diagnosis.as_of is None or not host:
            return (NO_HOST if diagnosis.as_of is not None else NO_TIME).in_(self.lang)
        from assistant.store.trouble import not_kept
        from assistant.store.write import Writer

        writer = self._writer = self._writer or Writer(self.location, self.days, diagnosis.facts.vocabulary)
        said = []
        try:
            self._write(writer, self._batch(host, diagnosis, results, origin, boot_id))
        except StoreError as error:
            said = [] if self.told else [not_kept(self.location.shown, error.said)]
        said = [*writer.complaints, *said]
        writer.complaints.clear()
        return "; ".join(t.in_(self.lang) for t in said) or None

    def _write(self, writer: Writer, batch: Batch) -> None:
        """Write; to a server only for so long, and not at all when it failed a moment ago."""
        if writer.location.path is not None:
            writer.write(batch)
            return
        from assistant.store.patience import AFTER, Hurry, answered, failed, failure
        from assistant.store.server import UNREACHED
        from assistant.store.trouble import reason

        url = writer.location.url
        if why := failure(url):
            raise StoreError(why)
        hurry = Hurry(AFTER)
        try:
            hurry(lambda: writer.write(batch))
        except StoreError as error:
            if hurry.late:
                failed(url, error.said)
                self._writer = None  # its thread may still be at it
            raise
        except UNREACHED as error:
            raise StoreError(reason(error)) from error
        finally:
            hurry.close()
        answered(url)

    def _batch(
        self, host: str, diagnosis: Diagnosis, results: Iterable[ProbeResult], origin: str, boot_id: str
    ) -> Batch:
        from assistant.changes import not_looked_at
        from assistant.store.codec import collect
        from assistant.store.read import PastFinding
        from assistant.store.write import Batch

        def gone(past: PastFinding, boot: str) -> bool:
            rebooted = boot != boot_id if boot and boot_id else None
            return not not_looked_at(past, diagnosis.facts, diagnosis.undecided, rebooted)

        probes: Mapping[str, Sequence[str]] = {r.probe: (str(r.status), r.detail[:200]) for r in results}
        assert diagnosis.as_of is not None
        return Batch(
            host, diagnosis.as_of, origin, boot_id, diagnosis.ruleset, str(diagnosis.verdict.state),
            str(diagnosis.verdict.usable), diagnosis.verdict.text, int(diagnosis.exit), probes,
            collect(k.inner for k in diagnosis.facts.observations), diagnosis.events, diagnosis.findings, self.watched, gone,
        )  # fmt: skip


def _now(diagnosis: Diagnosis, host: str, boot_id: str) -> Now:
    from assistant.changes import Now

    return Now(
        host, diagnosis.as_of, diagnosis.ruleset, str(diagnosis.verdict.state), str(diagnosis.verdict.usable),
        diagnosis.findings, diagnosis.undecided, diagnosis.facts, boot_id,
    )  # fmt: skip


def _reader(store_url: str) -> tuple[Reader | None, Text | None]:
    """A reader; or None, and why when there is more to say than that nothing was written yet."""
    from assistant.store.patience import BEFORE, failure
    from assistant.store.read import open_reader
    from assistant.store.trouble import not_read

    try:
        location = parse(store_url)
    except ConfigError as error:
        return None, Text(f"{error.message}; {error.hint}")
    if location is None:
        return None, OFF
    if why := failure(location.url):
        return None, not_read(location.shown, why)
    try:
        return open_reader(location, patience=BEFORE), None
    except StoreError as error:
        return None, error.said
