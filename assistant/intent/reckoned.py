"""What a sentence asks that a few figures decide: a CUDA release on a driver, the KV cache of a model, the price of a token, how a job scales.

Only reading; the formulas stand in `assistant.dialogue._reckoned`.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from knowledge.lazy import lazy

_I = re.IGNORECASE


class CudaOnDriver(NamedTuple):
    """Programs of a CUDA release on a driver."""

    cuda: tuple[int, int]
    driver: str  # as written: 535.183
    container: bool


class KvCache(NamedTuple):
    """The KV cache of a known model."""

    model: str
    tokens: float
    per_token: float  # bytes, in 16 bits
    bits: int  # of a value; 16 where nobody said
    requests: int  # at the same time
    shape: str  # what `per_token` was worked out from


class Load(NamedTuple):
    """What a server of a model has to hold beside its weights."""

    tokens: float  # of a request
    requests: int  # at the same time
    per_token: float  # bytes of KV cache, in 16 bits
    like: str  # the model whose shape that is


class TokenCost(NamedTuple):
    """What a million tokens cost."""

    gpus: int
    price: float  # of one GPU for an hour
    money: str
    tokens: float  # a second, of all of them


class Scaled(NamedTuple):
    """A job on more GPUs than before."""

    before: float
    after: float
    times: float  # as fast
    unit: str  # nodes, GPUs; empty where nobody said


# trouble that is reported, and has answers of its own
_TROUBLE = lazy(
    r"(?<![a-z])(?:hang\w*|hung|stuck|slow\w*|crash\w*|fail\w*|error\w*|xid|nan|oom|mismatch|segfault\w*|not (?:found|detected|visible)|can'?t (?:see|find)|couldn'?t)(?![a-z])|卡住|卡死|慢|崩|失败|报错|错误|找不到|不匹配",
    _I,
)

# --- CUDA on a driver ------------------------------------------------------------------------

# CUDA 12.1 | cuda12.4 | cu124 | cuda 12
_CUDA = lazy(
    r"(?<![a-z])cuda[ -]?(?:toolkit |runtime |version )?v?(?P<major>1[0-3])(?:\.(?P<minor>[0-9]))?(?:\.[0-9]+)?(?![0-9.]*\s?(?:gi?b|mi?b))"
    r"|(?<![a-z])cu(?P<wheel>1[0-3])(?P<of>[0-9])(?![0-9])",
    _I,
)
# driver 535.183.01 | 570 driver | nvidia driver r550 | 驱动 535
_DRIVER = lazy(
    r"(?:(?<![a-z])drivers?(?: version| branch)?(?: is| on|:|=)?|驱动(?:版本)?(?:是|为)?)\s*v?r?(?P<a>[3-6][0-9]{2}(?:\.[0-9]{1,3}){0,2})(?![0-9])"
    r"|(?<![0-9.a-z])r?(?P<b>[3-6][0-9]{2}(?:\.[0-9]{1,3}){0,2})(?:[.]?x+)?[ -]?(?:series |branch |的)?(?:nvidia )?(?:drivers?(?![a-z])|驱动)",
    _I,
)
_ASKS_FIT = lazy(
    r"(?<![a-z])(?:ok|okay|fine|work\w*|runs?|running|new enough|old enough|enough|need\w*|must|have to|support\w*|compatible|compatibility|upgrade|update|require[ds]?|minimum|possible|safe|break\w*|will it|can i|can we)(?![a-z])|[能行吗够]|支持|兼容|需要|要不要|可以|升级",
    _I,
)
_CONTAINER = lazy(r"(?<![a-z])(?:containers?|images?|docker|pods?|ngc)(?![a-z])|容器|镜像", _I)


def cuda_on_driver(text: str) -> CudaOnDriver | None:
    """The CUDA release and the driver of which it is asked if they go together; None where that is not asked."""
    cudas, drivers = [*_CUDA.finditer(text)], [*_DRIVER.finditer(text)]
    versions = {(int(m["major"] or m["wheel"]), int(m["minor"] or m["of"] or 0)) for m in cudas}
    called = {m["a"] or m["b"] for m in drivers}
    if len(versions) != 1 or len(called) != 1 or not _ASKS_FIT.search(text) or _TROUBLE.search(text):
        return None
    return CudaOnDriver(versions.pop(), called.pop(), _CONTAINER.search(text) is not None)


# --- KV cache --------------------------------------------------------------------------------

KV = lazy(r"(?<![a-z])kv[- _]?caches?(?![a-z])|KV\s?缓存", _I)
_CONTEXT = lazy(
    r"(?<![\w.])(?P<n>[0-9]+(?:\.[0-9]+)?)\s?(?P<k>k|m)?[- ]?(?:tokens?|ctx|context|seq\w*|个?\s?token|上下文|长度)|(?<![\w.])(?P<bare>[0-9]+)\s?k(?![a-z0-9])",
    _I,
)
_HOW_MUCH = lazy(
    r"(?<![a-z])(?:how (?:much|big|large|many)|size|take[sn]?|need\w*|fits?|calculate|estimate|compute|gi?b)(?![a-z])|多少|多大|估算|怎么算|计算|占",
    _I,
)
_EIGHT_BITS = lazy(r"(?<![a-z0-9])(?:fp8|int8|8[- ]?bit)(?![0-9])", _I)
_AT_ONCE = lazy(
    r"(?<![\w.])(?P<n>[1-9][0-9]{0,4})\s?(?:concurrent |parallel |simultaneous )?(?:users?|requests?|seqs?|sequences|streams?|sessions?|chats?|并发|个?用户|个?请求|路)(?![a-z])",
    _I,
)
# batch 16 | 并发 8
_BATCH = lazy(
    r"(?<![a-z])batch(?: ?size)?(?: of| =|=)?\s?(?P<n>[1-9][0-9]{0,4})(?![\w.])|并发(?:数|量)?(?:为|是)?\s?(?P<z>[1-9][0-9]{0,4})(?![\w.])",
    _I,
)
# What may stand beside cache, model, context and requests in a question of nothing else: "KV cache for llama 3 70b at 128k?"
_OF_KV = lazy(
    r"(?<![a-z])(?:for|of|at|with|an?|the|in|on|is|are|what|what's|whats|per|one|each|and|by|model|contexts?|ctx|length|window|long|sequences?|tokens?|batch|gpu|vram|memory|usage|footprint|requirements?|fp16|bf16|bit|instruct|chat|base|it|please)(?![a-z])"
    r"|请问|大小|上下文|长度|并发|请求|用户|模型|显存|[的在下一个长用时是为按和吗呢]|[0-9\s?？!！。,，:：()（）/=_.-]",
    _I,
)
# layers, KV heads, size of a head: config.json of each model
_SHAPES: tuple[tuple[str, str, tuple[int, int, int]], ...] = (
    ("Llama 3 405B", r"llama[- ]?3(?:\.[0-9])?[- ]?405b", (126, 8, 128)),
    ("Llama 3 70B", r"llama[- ]?3(?:\.[0-9])?[- ]?70b", (80, 8, 128)),
    ("Llama 3 8B", r"llama[- ]?3(?:\.[0-9])?[- ]?8b", (32, 8, 128)),
    ("Llama 2 70B", r"llama[- ]?2[- ]?70b", (80, 8, 128)),
    ("Llama 2 13B", r"llama[- ]?2[- ]?13b", (40, 40, 128)),
    ("Llama 2 7B", r"llama[- ]?2[- ]?7b", (32, 32, 128)),
    ("Qwen2.5 72B", r"qwen[- ]?2(?:\.5)?[- ]?72b", (80, 8, 128)),
    ("Qwen2.5 32B", r"qwen[- ]?2\.5[- ]?32b", (64, 8, 128)),
    ("Qwen2.5 14B", r"qwen[- ]?2\.5[- ]?14b", (48, 8, 128)),
    ("Qwen2.5 7B", r"qwen[- ]?2(?:\.5)?[- ]?7b", (28, 4, 128)),
    ("Qwen3 32B", r"qwen[- ]?3[- ]?32b", (64, 8, 128)),
    ("Qwen3 14B", r"qwen[- ]?3[- ]?14b", (40, 8, 128)),
    ("Qwen3 8B", r"qwen[- ]?3[- ]?8b", (36, 8, 128)),
    ("Mistral 7B", r"mistral[- ]?7b", (32, 8, 128)),
    ("Mixtral 8x7B", r"mixtral[- ]?8x7b", (32, 8, 128)),
    ("Mixtral 8x22B", r"mixtral[- ]?8x22b", (56, 8, 128)),
)
_MODELS = tuple((name, lazy(rf"(?<![a-z0-9]){pattern}(?![0-9a-z])", _I), shape) for name, pattern, shape in _SHAPES)


def kv_cache(text: str) -> KvCache | None:
    """The KV cache that is asked for, of a model whose shape is known; None else."""
    if not KV.search(text) or _TROUBLE.search(text):
        return None
    found = next(((name, pattern, shape) for name, pattern, shape in _MODELS if pattern.search(text)), None)
    context = next((m for m in _CONTEXT.finditer(text)), None)
    if found is None or context is None:
        return None
    name, pattern, (layers, heads, size) = found
    if not _HOW_MUCH.search(text):
        rest = text
        for known in (KV, pattern, _AT_ONCE, _CONTEXT, _EIGHT_BITS, _OF_KV):
            rest = known.sub(" ", rest)
        if rest.strip():
            return None
    bits = 8 if _EIGHT_BITS.search(text) else 16
    shape = f"2 x {layers} x {heads} x {size} x {bits // 8}"
    return KvCache(name, _tokens(context), 2.0 * layers * heads * size * 2, bits, _requests(text), shape)


def _tokens(context: re.Match[str]) -> float:
    scale = {"k": 1024.0, "m": 1024.0**2}.get((context["k"] or ("k" if context["bare"] else "")).casefold(), 1.0)
    return float(context["n"] or context["bare"]) * scale


def _requests(text: str) -> int:
    return next((int(next(filter(None, m.groups()))) for p in (_AT_ONCE, _BATCH) if (m := p.search(text))), 1)


# Where a model is named by its size alone: the layers of the Llama 3 or Qwen of that size, with 8 KV heads of 128.
_LIKE = ((8e9, "Llama 3 8B"), (14e9, "Qwen3 14B"), (32e9, "Qwen3 32B"), (70e9, "Llama 3 70B"), (405e9, "Llama 3 405B"))


def load_of(text: str, parameters: float) -> Load | None:
    """The context of a request and how many there are at the same time, for a model of so many parameters; None where no context is told."""
    context = next((m for m in _CONTEXT.finditer(text) if m["n"] or m["bare"]), None)
    if context is None or _tokens(context) < _LEAST_CONTEXT:
        return None
    named = next((name for name, pattern, _ in _MODELS if pattern.search(text)), "")
    like = named or min(_LIKE, key=lambda row: abs(math.log(row[0] / parameters)))[1]
    layers, heads, size = next(shape for name, _, shape in _MODELS if name == like)
    return Load(_tokens(context), _requests(text), 2.0 * layers * heads * size * 2, like)


_LEAST_CONTEXT = 512  # tokens: fewer are a rate, or a count of something else


# --- the price of a token ----------------------------------------------------------------------

_PER_TOKENS = lazy(
    r"(?:/|(?<![a-z])(?:per|for|each|a|1)\s?)\s*(?:one )?(?:1\s?)?(?:m(?:illion|io)?|mm)\s?-?(?:output |input )?tok(?:en)?s?(?![a-z])|(?<![a-z])cost (?:of|per) (?:a |one )?(?:token|request)s?(?![a-z])|每?百万\s?(?:个\s?)?token|每\s?1?m\s?token",
    _I,
)
_PRICE = lazy(
    r"(?P<m>[$€£¥])\s?(?P<n>[0-9]+(?:\.[0-9]+)?)\s*(?:/|per|an?|each)?\s*(?:gpu[- ]?)?(?:hours?|hrs?|h)?(?![a-z])"
    r"|(?<![\w.])(?P<n2>[0-9]+(?:\.[0-9]+)?)\s?(?P<m2>usd|eur|dollars?|bucks|euros?|美元|美金|元|欧元|块钱?)?\s?(?:/|per|an?|每)\s?(?:gpu[- ]?)?(?:hours?|hrs?|h|小时|卡时)(?![a-z])",
    _I,
)
_RATE = lazy(
    r"(?<![\w.,])(?P<n>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:\.[0-9]+)?)\s?(?P<k>k)?\s?(?:output |decode )?tok(?:en)?s?\s?(?:/|per|a)\s?s(?:ec(?:ond)?)?(?![a-z])|(?<![\w.,])(?P<t>[0-9]+(?:\.[0-9]+)?)\s?(?P<tk>k)?\s?tps(?![a-z])|每秒\s?(?P<z>[0-9]+)\s?(?:个\s?)?tok(?:en)?s?",
    _I,
)
_EACH_GPU = lazy(r"tok(?:en)?s?\s?(?:/|per|a)\s?s(?:ec(?:ond)?)?\s?(?:/|per|each|a)\s?(?:gpu|card)", _I)
_COUNT = lazy(
    r"(?<![\w.])(?P<n>[0-9]{1,5})\s?[x×]?\s?(?:(?:nvidia )?(?:gpus?|cards?)(?![a-z])|(?=(?:rtx\s?)?[abhlmv]i?[0-9]{2,3}[a-z]{0,2}(?![0-9]))|[张块]|卡)",
    _I,
)
_MONEY = {"usd": "$", "dollar": "$", "dollars": "$", "bucks": "$", "美元": "$", "美金": "$", "元": "¥", "块": "¥", "块钱": "¥", "eur": "€", "euro": "€", "euros": "€", "欧元": "€"}  # fmt: skip
_NODE_PRICE = lazy(r"(?:/|per|an?|each|每)\s?(?:node|server|machine|box|instance|台|节点)(?![a-z])", _I)


def token_cost(text: str) -> TokenCost | None:
    """Price, GPUs and rate of a serving whose tokens are to be priced; None where one of them is not told."""
    if not _PER_TOKENS.search(text):
        return None
    price, rate = _PRICE.search(text), _RATE.search(text)
    if price is None or rate is None:
        return None
    gpus = max((int(m["n"]) for m in _COUNT.finditer(text)), default=1)
    number = (rate["n"] or rate["t"] or rate["z"]).replace(",", "")
    tokens = float(number) * (1000 if rate["k"] or rate["tk"] else 1) * (gpus if _EACH_GPU.search(text) else 1)
    money = price["m"] or _MONEY.get((price["m2"] or "").casefold(), "$")
    whole = _NODE_PRICE.search(text) is not None  # the price is that of all of them
    return TokenCost(1 if whole else gpus, float(price["n"] or price["n2"]), money, tokens) if tokens else None


# --- how a job scales ----------------------------------------------------------------------------

# from 8 to 16 nodes gives only 1.6x | going 4 -> 8 gpus gets 1.5x | 8 卡到 16 卡只快了 1.6 倍
_FROM_TO = lazy(
    r"(?<![\w.])(?P<a>[0-9]{1,5})\s?(?P<ua>nodes?|gpus?|cards?|ranks?|台|卡|张|个?节点)?\s?(?:to|->|=>|→|up to|vs\.?|到|扩到|变成)\s?(?P<b>[0-9]{1,5})\s?(?P<ub>nodes?|gpus?|cards?|ranks?|servers?|machines?|台|卡|张|个?节点|[abhl][0-9]{2,3}s?)(?![a-z])",
    _I,
)
_TIMES = lazy(r"(?<![\w.])(?P<n>[0-9]{1,3}(?:\.[0-9]+)?)\s?(?:x|times|倍)(?![a-z0-9])(?! ?(?:[abhl][0-9]))", _I)
# 4 卡加速比只有 1.5 | 8 gpus speedup 5.2x: against one
_AGAINST_ONE = lazy(
    r"(?<![\w.])(?P<b>[0-9]{1,5})\s?(?P<ub>nodes?|gpus?|cards?|台|卡|张卡?|个?节点|机)[^0-9,.;，。；]{0,12}?(?:speed[- ]?up|加速比)[^0-9,.;，。；]{0,8}(?P<n>[0-9]{1,3}(?:\.[0-9]+)?)(?!\s?%|[0-9.])",
    _I,
)
_OF_SCALE = lazy(
    r"(?<![a-z])(?:scal\w+|speed[- ]?ups?|faster|as fast|throughput|only|just|gets?|gives?|gain\w*)(?![a-z])|扩展|加速比|只快|快了|提升|线性",
    _I,
)


def scaled(text: str) -> Scaled | None:
    """From how many to how many, and how much faster that was; None where one of them is not told."""
    span, times = _FROM_TO.search(text), _TIMES.search(text)
    if (one := _AGAINST_ONE.search(text)) is not None and span is None:
        after, speed, of_nodes = (
            float(one["b"]),
            float(one["n"]),
            one["ub"].startswith(("node", "台", "机", "个", "节")),
        )
        return Scaled(1.0, after, speed, "nodes" if of_nodes else "GPUs") if after > 1 and 1 <= speed <= after else None
    if span is None or times is None or not _OF_SCALE.search(text):
        return None
    before, after, speed = float(span["a"]), float(span["b"]), float(times["n"])
    unit = (span["ub"] or "").casefold()
    of_nodes = unit.startswith(("node", "server", "machine")) or unit in ("台", "节点", "个节点")
    return Scaled(before, after, speed, "nodes" if of_nodes else "GPUs") if 0 < before < after and speed >= 1 else None
