"""What vLLM, SGLang, Triton and TGI call what they measure: newest names first, older ones behind them.

Read in the sources and pages of the projects: vllm/v1/metrics/loggers.py and docs/usage/metrics.md (0.4 to 0.14; V1
renamed ``gpu_cache_usage_perc`` and ``time_per_output_token_seconds``), sglang/srt/metrics/collector.py and
docs/references/production_metrics.md (0.4, 0.5), Triton's docs/user_guide/metrics.md and the batch manager statistics in
tensorrtllm_backend's README (``nv_trt_llm_*``), TGI's docs/source/reference/metrics.md and router/src.

* vLLM registers counters without ``_total``; prometheus_client prints them with it.
* SGLang's ``num_retracted_reqs`` is a level of the last batch; only ``num_retracted_requests_total`` counts.
* TGI's ``mean_time_per_token`` is called inter-token latency there; it includes the prompt's share, so it is an upper bound.
* The router of vLLM's production stack (src/vllm_router/services/metrics_service) repeats numbers of the engines behind it
  under the same prefix, each with the engine's address as ``server`` and without ``model_name``: an engine's page has no
  such label. They are averages of its own sliding window, and no engine's.
* Triton's ``first_response_histogram`` is the time to the first response, for models that do not stream the whole
  request: it is not taken for a time to first token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from knowledge.lazy import lazy

ENGINES = ("vllm", "sglang", "triton", "tgi")
TITLES = {"vllm": "vLLM", "sglang": "SGLang", "triton": "Triton", "tgi": "TGI"}
# vllm:num_requests_running{engine="0",model_name="Qwen/Qwen2.5-7B-Instruct"} 37.0
_PREFIX = {"vllm": "vllm:", "sglang": "sglang:", "triton": "nv_", "tgi": "tgi_"}
_SERIES = lazy(
    r"^(?:vllm:|sglang:|tgi_(?:queue|batch|request)_|nv_(?:inference|trt_llm)_)[a-z0-9_]{3,80}(?:\{|[ \t])",
    re.MULTILINE,
)
_COMMENT = lazy(
    r"^# (?:HELP|TYPE) (?:vllm:|sglang:|tgi_(?:queue|batch|request)_|nv_(?:inference|trt_llm)_)", re.MULTILINE
)


class Level(NamedTuple):
    """A gauge of the page: its name, labels that it must have, and what it is multiplied with."""

    name: str
    labels: Mapping[str, str] = {}
    times: float = 1.0


class Count(NamedTuple):
    """A counter of the page, summed over its other labels."""

    name: str
    labels: Mapping[str, str] = {}


def _trt(kind: str) -> Level:
    return Level("nv_trt_llm_request_metrics", {"request_type": kind})


LEVELS: Mapping[str, Mapping[str, tuple[Level, ...]]] = {
    "serving.requests.running": {
        "vllm": (Level("vllm:num_requests_running"),),
        "sglang": (Level("sglang:num_running_reqs"),),
        "triton": (_trt("scheduled"),),
        "tgi": (Level("tgi_batch_current_size"),),
    },
    "serving.requests.waiting": {
        "vllm": (Level("vllm:num_requests_waiting"),),
        "sglang": (Level("sglang:num_queue_reqs"),),
        "triton": (_trt("waiting"), Level("nv_inference_pending_request_count")),
        "tgi": (Level("tgi_queue_size"),),
    },
    "serving.requests.limit": {"triton": (_trt("max"),)},
    "serving.kv_cache.used.share": {
        "vllm": (Level("vllm:kv_cache_usage_perc", times=100.0), Level("vllm:gpu_cache_usage_perc", times=100.0)),
        "sglang": (Level("sglang:token_usage", times=100.0),),
        "triton": (Level("nv_trt_llm_kv_cache_block_metrics", {"kv_cache_block_type": "fraction"}, 100.0),),
    },
    "serving.kv_cache.size": {"sglang": (Level("sglang:max_total_num_tokens"),)},
}

COUNTS: Mapping[str, Mapping[str, tuple[Count, ...]]] = {
    "serving.requests.failed": {
        "vllm": (Count("vllm:request_success_total", {"finished_reason": "error"}),),
        "triton": (
            Count("nv_inference_request_failure", {"reason": "BACKEND"}),
            Count("nv_inference_request_failure", {"reason": "OTHER"}),
            Count("nv_inference_request_failure", {"reason": ""}),  # before 24.01 none is told
        ),
        "tgi": (
            Count("tgi_request_failure", {"err": "generation"}),
            Count("tgi_request_failure", {"err": "incomplete"}),
            Count("tgi_request_failure", {"err": "incomplete_stream"}),
        ),
    },
    "serving.requests.aborted": {
        "vllm": (Count("vllm:request_success_total", {"finished_reason": "abort"}),),
        "sglang": (Count("sglang:num_aborted_requests_total"),),
        "triton": (Count("nv_inference_request_failure", {"reason": "CANCELED"}),),
        "tgi": (Count("tgi_request_failure", {"err": "dropped"}),),
    },
    "serving.requests.rejected": {
        "triton": (Count("nv_inference_request_failure", {"reason": "REJECTED"}),),
        "tgi": (Count("tgi_request_failure", {"err": "overloaded"}),),
    },
    "serving.preemptions": {
        "vllm": (Count("vllm:num_preemptions_total"),),
        "sglang": (Count("sglang:num_retracted_requests_total"), Count("sglang:num_retracted_reqs_total")),
    },
    "prompt": {
        "vllm": (Count("vllm:prompt_tokens_total"),),
        "sglang": (Count("sglang:prompt_tokens_total"),),
        "tgi": (Count("tgi_request_input_length_sum"),),
    },
    "output": {
        "vllm": (Count("vllm:generation_tokens_total"),),
        "sglang": (Count("sglang:generation_tokens_total"),),
        "tgi": (Count("tgi_request_generated_tokens_sum"),),
    },
    "looked up": {
        "vllm": (Count("vllm:prefix_cache_queries_total"), Count("vllm:gpu_prefix_cache_queries_total")),
        "sglang": (Count("sglang:prompt_tokens_total"),),
    },
    "hit": {
        "vllm": (Count("vllm:prefix_cache_hits_total"), Count("vllm:gpu_prefix_cache_hits_total")),
        "sglang": (Count("sglang:cached_tokens_total"),),
    },
    "inferences": {"triton": (Count("nv_inference_count"),)},
    "executions": {"triton": (Count("nv_inference_exec_count"),)},
    "request us": {"triton": (Count("nv_inference_request_duration_us"),)},
    "queue us": {"triton": (Count("nv_inference_queue_duration_us"),)},
}
# Counts that are told by label: all that is known of them is summed. Of others the first name that is there counts.
SUMMED = frozenset({"serving.requests.failed"})
# Requests that came to an end, as the sum of counters.
FINISHED: Mapping[str, tuple[str, ...]] = {
    "vllm": ("vllm:request_success_total",),
    "sglang": ("sglang:num_requests_total",),
    "triton": ("nv_inference_request_success", "nv_inference_request_failure"),
    "tgi": ("tgi_request_success", "tgi_request_failure"),
}

HISTOGRAMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ttft": {"vllm": ("vllm:time_to_first_token_seconds",), "sglang": ("sglang:time_to_first_token_seconds",)},
    "itl": {
        "vllm": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        "sglang": ("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
        "tgi": ("tgi_request_mean_time_per_token_duration",),
    },
    "e2e": {
        "vllm": ("vllm:e2e_request_latency_seconds",),
        "sglang": ("sglang:e2e_request_latency_seconds",),
        "tgi": ("tgi_request_duration",),
    },
    "queue_time": {
        "vllm": ("vllm:request_queue_time_seconds",),
        "sglang": ("sglang:queue_time_seconds",),
        "tgi": ("tgi_request_queue_duration",),
    },
    "prefill": {"vllm": ("vllm:request_prefill_time_seconds",)},
    "inference": {"vllm": ("vllm:request_inference_time_seconds",)},
    "batch": {"tgi": ("tgi_batch_next_size",)},
}
QUANTILES: Mapping[str, tuple[int, ...]] = {
    "ttft": (50, 95, 99),
    "itl": (50, 95, 99),
    "e2e": (50, 95),
    "queue_time": (50, 95),
}
# Triton tells quantiles itself where it was started with summary_latencies=true, in microseconds.
SUMMARIES = {"e2e": "nv_inference_request_summary_us", "queue_time": "nv_inference_queue_summary_us"}

RATES = (
    "serving.preemptions.rate",
    "serving.requests.rate",
    "serving.tokens.prompt.rate",
    "serving.tokens.output.rate",
)
# What a page of any server can tell.
FACTS = (
    "serving.engine", "serving.model", "serving.state", *LEVELS, "serving.requests.waiting.least",
    "serving.requests.running.most", "serving.requests.finished",
    *(name for name in COUNTS if name.startswith("serving.")),
    "serving.requests.failed.share", "serving.requests.aborted.share", "serving.requests.rejected.share",
    "serving.preemptions.share", *RATES, "serving.prefix_cache.enabled", "serving.prefix_cache.hit.share",
    *(f"serving.{name}.p{q}" for name, qs in QUANTILES.items() for q in qs),
    "serving.e2e.mean", "serving.queue_time.share", "serving.prefill.share", "serving.prompt.tokens.mean",
    "serving.output.tokens.mean", "serving.batch.mean",
)  # fmt: skip


# vllm:num_requests_running{server="http://10.0.3.7:8000"} 4.0      vllm:num_incoming_requests_total{model="m"} 812.0
_OF_ROUTER = ("vllm:num_incoming_requests", "vllm:routing_decisions")
ROUTED = "serving.router.servers"


def engine_of(name: str, labels: Mapping[str, str]) -> str:
    """The engine that a sample belongs to; empty for none of them, and for a router's."""
    if is_router(name, labels):
        return ""
    return next((engine for engine, prefix in _PREFIX.items() if name.startswith(prefix)), "")


def is_router(name: str, labels: Mapping[str, str]) -> bool:
    """Whether a sample is of the router in front of several vLLM engines."""
    if not name.startswith(_PREFIX["vllm"]) or labels.get("model_name"):
        return False
    return bool(labels.get("server")) or name.startswith(_OF_ROUTER)


def recognise(head: str) -> int:
    """100 on a series of such a server, 90 on its comments alone."""
    if _SERIES.search(head):
        return 100
    return 90 if _COMMENT.search(head) else 0
