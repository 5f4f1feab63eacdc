"""From the samples of one inference server to facts about it: levels, counts, shares, rates and percentiles.

Shares and percentiles are taken between two pages where at least `ENOUGH` things happened there, else since the server
started: the quoted line says which. What a server does not tell is UNSUPPORTED, what has not happened yet NONE_SEEN.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from knowledge.observation import Status, Value
from knowledge.record import dataclass
from knowledge.text import clean
from probes.parse._prometheus import Sample
from probes.parse._serving_names import (
    COUNTS,
    FINISHED,
    HISTOGRAMS,
    LEVELS,
    QUANTILES,
    SUMMARIES,
    SUMMED,
    TITLES,
    Level,
)
from probes.parse._serving_read import Histogram, Labels, Server
from probes.parse._smi_values import Reading

ENOUGH = 20  # of fewer, the 95th percentile is one single request
START = "since the server started"
Emit = Callable[[str, "Reading | Value", Sample | None, str], None]  # fact, value, the line that it is from, a remark
_WHOLE = frozenset(
    {"serving.requests.running", "serving.requests.waiting", "serving.requests.limit", "serving.kv_cache.size"}
)


@dataclass(frozen=True, slots=True)
class Grown:
    """A counter: its value, what it grew by between two pages (None: there is no earlier one), a line to show."""

    value: float
    grown: float | None
    sample: Sample


@dataclass(frozen=True, slots=True)
class Told:
    """What one server tells: its last page, the one before if there is one, and the seconds between them if known."""

    engine: str
    last: Server
    emit: Emit
    first: Server | None = None
    seconds: float | None = None

    def all(self) -> None:
        """Every fact."""
        self._state()
        for fact, names in LEVELS.items():
            self._level(fact, names.get(self.engine, ()))
        self._held("serving.requests.waiting", "least", min)
        self._held("serving.requests.running", "most", max)
        self._cache_config()
        finished = self._finished()
        self._requests(finished)
        self._preemptions(finished)
        self._tokens(finished)
        self._prefixes()
        for name, quantiles in QUANTILES.items():
            self._quantiles(name, quantiles)
        self._parts()
        self._batch()

    # --- levels ----------------------------------------------------------------------------

    def _state(self) -> None:
        # vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="awake"} 1.0
        awake = self.last.gauge("vllm:engine_sleep_state", {"sleep_state": "awake"})
        asleep = awake is not None and awake.value == 0
        self.emit("serving.state", "asleep" if asleep else "answers", awake, "")

    def _level(self, fact: str, names: tuple[Level, ...]) -> None:
        if not names:
            return
        for level in names:
            sample = self.last.gauge(level.name, level.labels)
            if sample is None:
                continue
            value = sample.value * level.times
            if not math.isfinite(value) or value < 0:
                self.emit(fact, Reading(None, Status.FAILED, f"{sample.value:g} is no level"), sample, "")
            else:
                self.emit(fact, round(value) if fact in _WHOLE else round(value, 3), sample, "")
            return
        if fact == "serving.kv_cache.used.share" and self.engine == "triton":
            self._blocks(fact)
            return
        if self.engine == "triton" and names[0].name.startswith("nv_trt_llm_"):
            return  # only models of TensorRT-LLM have it
        self.emit(fact, self._lacks(names[0].name), None, "")

    def _held(self, fact: str, which: str, pick: Callable[[float, float], float]) -> None:
        """The least or most of a level in two readings; nothing where one of them does not tell it."""
        if self.first is None:
            return
        for level in LEVELS[fact].get(self.engine, ()):
            last, first = (page.gauge(level.name, level.labels) for page in (self.last, self.first))
            if last is not None and first is not None:
                if all(math.isfinite(s.value) and s.value >= 0 for s in (last, first)):
                    note = f"{first.value:g}, then {last.value:g}" + (
                        f" {self.seconds:.2f} s later" if self.seconds else ""
                    )
                    self.emit(f"{fact}.{which}", round(pick(first.value, last.value)), last, note)
                return

    def _blocks(self, fact: str) -> None:
        """Older TensorRT-LLM backends tell blocks and no fraction of them."""
        name = "nv_trt_llm_kv_cache_block_metrics"
        used, most = (self.last.gauge(name, {"kv_cache_block_type": kind}) for kind in ("used", "max"))
        if used is not None and most is not None and most.value > 0 and 0 <= used.value <= most.value:
            self.emit(fact, round(100.0 * used.value / most.value, 3), used, f"of {most.value:g} blocks")

    def _lacks(self, name: str) -> Reading:
        return Reading(None, Status.UNSUPPORTED, f"the page of {TITLES[self.engine]} has no {name}")

    def _cache_config(self) -> None:
        # vllm:cache_config_info{block_size="16",enable_prefix_caching="True",engine="0",num_gpu_blocks="2847"} 1.0
        sample = next(iter(self.last.samples("vllm:cache_config_info")), None)
        if sample is None:
            return
        size, blocks = (sample.labels.get(name, "") for name in ("block_size", "num_gpu_blocks"))
        if size.isascii() and size.isdigit() and blocks.isascii() and blocks.isdigit() and len(size + blocks) < 18:
            self.emit("serving.kv_cache.size", int(size) * int(blocks), sample, "")
        enabled = {"true": True, "false": False}.get(sample.labels.get("enable_prefix_caching", "").lower())
        if enabled is not None:
            self.emit("serving.prefix_cache.enabled", enabled, sample, "")

    # --- counters --------------------------------------------------------------------------

    def _count(self, name: str) -> Grown | None:
        counts = COUNTS[name].get(self.engine, ())
        found = [c for c in counts if self.last.total(c.name, c.labels) is not None]
        if name not in SUMMED:
            found = found[:1]
        parts = [self._grown(c.name, c.labels) for c in found]
        return _sum([p for p in parts if p is not None])

    def _grown(self, name: str, labels: Labels = {}) -> Grown | None:  # noqa: B006 - never written to
        now = self.last.total(name, labels)
        if now is None:
            return None
        before = self.first.total(name, labels) if self.first is not None else None
        grown = now[0] - before[0] if before is not None else None
        return Grown(now[0], grown if grown is None or grown >= 0 else None, now[1])

    def _finished(self) -> Grown | None:
        found = [g for name in FINISHED[self.engine] if (g := self._grown(name)) is not None]
        total = _sum(found)
        if total is None:
            self.emit("serving.requests.finished", self._lacks(FINISHED[self.engine][0]), None, "")
            return None
        self.emit("serving.requests.finished", round(total.value), total.sample, "")
        self._rate("serving.requests.rate", total)
        return total

    def _rate(self, fact: str, counted: Grown | None) -> None:
        if counted is not None and counted.grown is not None and self.seconds and self.seconds > 0:
            self.emit(fact, round(counted.grown / self.seconds, 3), counted.sample, self._span(True))

    def _span(self, between: bool) -> str:
        if not between:
            return START
        return f"between two readings {self.seconds:.2f} s apart" if self.seconds else "between two readings"

    def _share(self, fact: str, part: Grown | None, whole: Grown | None, times: float = 100.0) -> None:
        """`part` of `whole`, of what grew between the pages where that is enough, else of all."""
        if part is None or whole is None:
            return
        between = whole.grown is not None and part.grown is not None and whole.grown >= ENOUGH
        a, b = (part.grown or 0.0, whole.grown or 0.0) if between else (part.value, whole.value)
        if b > 0:
            self.emit(fact, round(times * a / b, 3), part.sample, f"{a:.6g} of {b:.6g} {self._span(between)}")
        else:
            self.emit(fact, Reading(None, Status.NONE_SEEN, f"nothing {START}"), whole.sample, "")

    def _requests(self, finished: Grown | None) -> None:
        for kind in ("failed", "aborted", "rejected"):
            fact = f"serving.requests.{kind}"
            found = self._count(fact)
            if found is None and self.engine == "tgi" and finished is not None and COUNTS[fact].get("tgi"):
                # TGI prints a failure of a kind once it has happened: of a page that counts requests that is none yet.
                found = Grown(0.0, None if self.first is None else 0.0, finished.sample)
            if found is not None:
                self.emit(fact, round(found.value), found.sample, "")
                self._share(f"{fact}.share", found, finished)

    def _preemptions(self, finished: Grown | None) -> None:
        found = self._count("serving.preemptions")
        if found is not None:
            self.emit("serving.preemptions", round(found.value), found.sample, "")
            self._share("serving.preemptions.share", found, finished)
            self._rate("serving.preemptions.rate", found)

    def _tokens(self, finished: Grown | None) -> None:
        for kind in ("prompt", "output"):
            found = self._count(kind)
            self._rate(f"serving.tokens.{kind}.rate", found)
            self._share(f"serving.{kind}.tokens.mean", found, finished, 1.0)

    def _prefixes(self) -> None:
        hit, looked_up = self._count("hit"), self._count("looked up")
        if hit is not None and looked_up is not None and looked_up.value > 0:
            self._share("serving.prefix_cache.hit.share", hit, looked_up)

    # --- histograms ------------------------------------------------------------------------

    def _histogram(self, name: str) -> tuple[Histogram, bool] | None:
        """A histogram, and whether it is of what happened between the pages."""
        for called in HISTOGRAMS[name].get(self.engine, ()):
            last = self.last.histogram(called)
            if last is None:
                continue
            first = self.first.histogram(called) if self.first is not None else None
            between = last.since(first) if first is not None else None
            if between is not None and between.total >= ENOUGH:
                return between, True
            return last, False
        return None

    def _quantiles(self, name: str, quantiles: tuple[int, ...]) -> None:
        found = self._histogram(name)
        if found is None:
            if self.engine == "triton" and name in SUMMARIES and self._summary(name, quantiles):
                return
            called = HISTOGRAMS[name].get(self.engine)
            why = (
                self._lacks(called[0])
                if called
                else Reading(None, Status.UNSUPPORTED, f"{TITLES[self.engine]} does not tell it")
            )
            for q in quantiles:
                self.emit(f"serving.{name}.p{q}", why, None, "")
            return
        histogram, between = found
        for q in quantiles:
            value = histogram.quantile(q / 100)
            if value is None:
                self.emit(
                    f"serving.{name}.p{q}",
                    Reading(None, Status.NONE_SEEN, f"nothing was timed {START}"),
                    histogram.sample,
                    "",
                )
                continue
            more = ", or more: it lies beyond the last bucket" if value[1] else ""
            note = f"{q} percent of {histogram.total:.6g} {self._span(between)}{more}"
            self.emit(f"serving.{name}.p{q}", round(value[0], 6), histogram.sample, note)
        if name == "e2e" and histogram.mean is not None:
            self.emit("serving.e2e.mean", round(histogram.mean, 6), histogram.sample, self._span(between))

    def _summary(self, name: str, quantiles: tuple[int, ...]) -> bool:
        # nv_inference_queue_summary_us{model="my_model",version="1",quantile="0.95"} 98
        told = False
        for q in quantiles:
            sample = self.last.gauge(SUMMARIES[name], {"quantile": f"{q / 100:g}"})
            if sample is not None and math.isfinite(sample.value) and sample.value >= 0:
                self.emit(f"serving.{name}.p{q}", round(sample.value / 1e6, 9), sample, "")
                told = True
        return told

    def _parts(self) -> None:
        """How the time of requests is spent."""
        if self.engine == "triton":
            whole, queue = self._count("request us"), self._count("queue us")
            served = self._grown("nv_inference_request_success")
            self._share("serving.queue_time.share", queue, whole)
            self._share("serving.e2e.mean", whole, served, 1e-6)
            return
        for fact, part, of in (("queue_time", "queue_time", "e2e"), ("prefill", "prefill", "inference")):
            a, b = self._histogram(part), self._histogram(of)
            if a is None or b is None or a[1] != b[1] or not a[0].sum or not b[0].sum or a[0].sum > b[0].sum:
                continue
            share = round(100.0 * a[0].sum / b[0].sum, 3)
            note = f"{a[0].sum:.6g} of {b[0].sum:.6g} s {self._span(a[1])}"
            self.emit(f"serving.{fact}.share", share, a[0].sample, note)

    def _batch(self) -> None:
        if self.engine == "triton":
            self._share("serving.batch.mean", self._count("inferences"), self._count("executions"), 1.0)
            return
        found = self._histogram("batch")
        if found is not None and found[0].mean is not None:
            self.emit("serving.batch.mean", round(found[0].mean, 3), found[0].sample, self._span(found[1]))


def _sum(parts: list[Grown]) -> Grown | None:
    if not parts:
        return None
    grown = None if any(p.grown is None for p in parts) else sum(p.grown or 0.0 for p in parts)
    return Grown(sum(p.value for p in parts), grown, max(parts, key=lambda p: p.value).sample)


def model_of(server: Server) -> str:
    """Its model's name, fit to be shown."""
    return clean(server.key.model).replace("\n", " ").strip()[:160]
