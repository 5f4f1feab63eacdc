"""The lines in which inference servers tell how they are: every few seconds, and when something gives way.

Read in the sources of the projects: vLLM (engine/metrics.py and core/scheduler.py of V0, v1/metrics/loggers.py, v1/engine/core.py and
exceptions.py), LMDeploy (metrics/loggers.py, which has vLLM's words), SGLang (srt/managers/scheduler.py and its metrics mixin),
TensorRT-LLM (_torch/pyexecutor/py_executor.py), TGI (router/src/server.rs: durations as Rust prints them, one line a request).
"""

from __future__ import annotations

import re

from knowledge.lazy import lazy
from knowledge.record import dataclass

MAX_TEXT = 3000  # characters looked at

# RE2, and nothing else; lines of which there is one every few seconds
#  Engine 000: Avg prompt throughput: 12.0 tokens/s, Avg generation throughput: 210.3 tokens/s, Running: 5 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.1%, Prefix cache hit rate: 12.3%
#  Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 33.2 tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 0.4%, CPU KV cache usage: 0.0%.
#  Decode batch. #running-req: 20, #token: 31234, token usage: 0.45, gen throughput (token/s): 1023.45, #queue-req: 0
#  [TRT-LLM] [I] iter = 1, global_rank = 0, rank = 0, num_scheduled_requests = 8, kv_cache_util = 0.125, currank_total_requests = 1/8, host_step_time = 7.4ms
LEVELS = (
    r"Avg generation throughput: [\d.]+ tokens/s, Running: \d",
    r"(?:Decode|Prefill) batch(?: \[\d+\])?[.,] #(?:running-req|new-seq): \d",
    r"\biter = \d+, .*num_scheduled_requests[ :=]{1,3}\d",
)
PREEMPTED = r"is preempted by (?:PreemptionMode\.)?\w+ mode because there is"
RETRACTED = r"#retracted_reqs: \d"
HANGS = r"No available shared memory broadcast block found in \d"
#  [2025-04-03 20:06:34 DP1 TP0] Watchdog timeout (self.watchdog_timeout=300)
#  [2026-03-27 20:52:54 TP3] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
WATCHDOG = r"[Ww]atchdog timeout \(self\.watchdog_timeout=\d"
STARTED = r"GPU KV cache size: [\d,]+ tokens|max_total_num_tokens=\d|Initializing (?:a V1|an) LLM engine \(v"
# What says that the engine is gone. The first two of them name it, the others are how its callers met it.
DIED = (
    r"EngineCore encountered a fatal error|EngineCore failed to start|Scheduler hit an exception"
    r"|WorkerProc (?:hit an exception|failed to start)|Engine background task failed|Engine core proc \w+ died unexpectedly"
    r"|Engine core initialization failed|Engine process failed to start|EngineDeadError: |Background loop has errored already"
    r"|EngineCore encountered an issue|Received sigquit from a child process|RPC call to \w{1,40} timed out"
)
#  E1130 08:00:10.000000 1 model_lifecycle.cc:638] failed to load 'llama' version 1: Internal: unexpected error when creating modelInstanceState: ...
#  | llama | 1       | UNAVAILABLE: Internal: unable to load plan file to auto complete config: /models/llama/1/model.plan |
#  error: creating server: Internal - failed to load all models
#  I1130 08:00:10.000000 1 model_lifecycle.cc:839] "successfully loaded 'llama'"
LOADED = r"successfully loaded '[^']{1,160}'"
TRITON = r"failed to load '[^']{1,160}' version \d|creating server: .*failed to load all models|\| *UNAVAILABLE: "

#  INFO generate{... total_time="1.2s" validation_time="686.2µs" queue_time="41.3ms" inference_time="1.1s" time_per_token="40.9ms" seed="None"}: text_generation_router::server: router/src/server.rs:291: Success
ANSWERED = r"total_time=.*queue_time=.[\d.]+\S{1,4}.*inference_time="

_ENGINES = {"Avg": "vllm", "Decode": "sglang", "Prefill": "sglang", "iter": "trtllm"}
_KIND = lazy(r"(Avg) generation throughput|(Decode|Prefill) batch|\b(iter) = \d")
_NUMBER = r"(\d[\d,]{0,14}(?:\.\d{0,6})?)"
_WORDS: dict[str, tuple[re.Pattern[str], ...]] = {
    "running": (lazy(rf"Running: {_NUMBER} reqs"), lazy(rf"#running-req: {_NUMBER}"), lazy(rf"num_scheduled_requests[ :=]{{1,3}}{_NUMBER}")),
    "waiting": (lazy(rf"(?:Waiting|Pending): {_NUMBER} reqs"), lazy(rf"#queue-req: {_NUMBER}")),
    "swapped": (lazy(rf"Swapped: {_NUMBER} reqs"),),
    "cache": (lazy(rf"GPU KV cache usage: {_NUMBER}%"),),
    "cache share": (lazy(rf"token usage: {_NUMBER}"), lazy(rf"kv_cache_util = {_NUMBER}")),
    "prompt": (lazy(rf"Avg prompt throughput: {_NUMBER}"), lazy(rf"input throughput \(token/s\): {_NUMBER}")),
    "output": (lazy(rf"Avg generation throughput: {_NUMBER}"), lazy(rf"gen throughput \(token/s\): {_NUMBER}")),
    "hits": (lazy(rf"Prefix cache hit rate: (?:GPU: )?{_NUMBER}%"),),
    "preempted": (lazy(rf"Preemptions: {_NUMBER}"),),
}  # fmt: skip
# Engine 001:       (EngineCore_DP1 pid=413)      [2026-01-20 10:00:00 DP1 TP0]
_WHICH = lazy(r"\bEngine (\d{1,4}): |\bDP(\d{1,4})\b")
# total_num_cumulative_preemption=51 in the source of V0, total_cumulative_preemption_cnt=1 in its documentation
_CUMULATED = lazy(r"total_(?:num_)?cumulative_preemption(?:_cnt)?=(\d{1,9})")
_GIVEN_BACK = lazy(r"#retracted_reqs: (\d{1,6})")
_QUEUED = lazy(r"\bqueue_time=\W?(\d{1,9}(?:\.\d{1,9})?)(ns|µs|ms|s)\b")
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_ROOM = lazy(r"GPU KV cache size: ([\d,]{1,20}) tokens|max_total_num_tokens=(\d{1,15})")
_WATCHDOG = lazy(r"[Ww]atchdog timeout \(self\.watchdog_timeout=(\d{1,9}(?:\.\d{0,6}[1-9])?)")
_MODEL = lazy(r"\bmodel(?:_path)?='([^'\s]{1,160})'")


@dataclass(frozen=True, slots=True)
class Levels:
    """How a server is; None for what the line does not tell."""

    engine: str
    which: str  # number of a data-parallel engine, or nothing
    running: int | None
    waiting: int | None
    cache: float | None  # % of the KV cache
    prompt: float | None  # tokens/s
    output: float | None
    hits: float | None  # %
    preempted: int  # since the line before
    decode: bool  # tells of the making of tokens


def levels(text: str, raw: str) -> Levels | None:
    """What a line of statistics tells; None where it is none."""
    text = text[:MAX_TEXT]
    kind = _KIND.search(text)
    if kind is None:
        return None
    told = {name: _first(words, text) for name, words in _WORDS.items()}
    cache = told["cache"] if told["cache"] is not None else _times(told["cache share"], 100.0)
    word = next(g for g in kind.groups() if g)
    which = _WHICH.search(raw[:300])
    waiting = told["waiting"]
    if waiting is not None and told["swapped"]:  # thrown out to the host's memory: they wait, too
        waiting += told["swapped"]
    return Levels(
        _ENGINES[word], next((g for g in which.groups() if g), "").lstrip("0") if which else "", _whole(told["running"]), _whole(waiting),
        cache, told["prompt"], told["output"], told["hits"], _whole(told["preempted"]) or 0, word != "Prefill",
    )  # fmt: skip


def preempted(text: str) -> tuple[int, bool] | None:
    """How many requests a line says were thrown out, and whether that is since the start."""
    if found := _CUMULATED.search(text):
        return int(found[1]), True
    found = _GIVEN_BACK.search(text)
    return (int(found[1]), False) if found else None


def queued(text: str) -> float | None:
    """Seconds that a request waited, where a line tells it of one that was answered."""
    found = _QUEUED.search(text[:MAX_TEXT])
    return float(found[1]) * _SECONDS[found[2]] if found else None


def room(text: str) -> int | None:
    """Tokens that the KV cache holds, where a line says it."""
    found = _ROOM.search(text)
    digits = next((g for g in found.groups() if g), "").replace(",", "") if found else ""
    return int(digits) if digits else None


def waited(text: str) -> float | None:
    """Seconds without progress after which SGLang's watchdog speaks, where this is its line."""
    found = _WATCHDOG.search(text[:MAX_TEXT])
    return None if found is None else int(found[1]) if found[1].isdigit() else float(found[1])


def model(text: str) -> str:
    """The model that a line of the start names."""
    found = _MODEL.search(text[:MAX_TEXT])
    return found[1] if found else ""


def _first(words: tuple[re.Pattern[str], ...], text: str) -> float | None:
    found = next((m for word in words if (m := word.search(text))), None)
    return float(found[1].replace(",", "").rstrip(".")) if found else None


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else round(value * factor, 3)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
