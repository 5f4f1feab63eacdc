"""What is told around a machine and can be no state of it: precision, models, versions, hours, batch sizes, prices, commands.

"fp16 training with pytorch 2.4" beside a temperature is no doubt of it. Only words of closed lists are passed over: whatever else
a clause holds may be a bad state, and is kept as not understood.
"""

from __future__ import annotations

import re

from knowledge.lazy import lazy

_I = re.IGNORECASE
_N = r"[0-9]+(?:[.,][0-9]+)*"
# fp16 | int4 | bf16-mixed
_PRECISION = r"(?:fp|bf|tf|int|w|a)(?:4|8|16|32|64)(?:a(?:8|16))?(?:[-_ ]mixed)?|nvfp4|mxfp[48]|e[45]m[23]|awq|gptq|gguf|amp|mixed[- ]precision|half[- ]precision"
# TP8 | 2xTP4 | tp=4 | zero3 | world size 64 | nnodes=4
_SHAPE = rf"(?:{_N}\s?x\s?)?(?:tp|pp|dp|ep|cp|sp|fsdp|zero)[- ]?(?:stage[- ]?)?=?\s?[0-9]{{1,4}}|zero[- ]?stage[- ]?[0-3]|(?:world[_ ]size|nnodes|nproc[_ ]per[_ ]node|tensor[_ ]parallel(?:[_ ]size)?|pipeline[_ ]parallel(?:[_ ]size)?)\s*[=:]?\s*[0-9]{{1,5}}"
# batch 32 | bs=16 | seq len 8k | lr 3e-4 | num_workers=16 | 4 epochs | step 12000
_TUNED = rf"(?:(?:micro|global|mini)[-_ ]?)?(?:batch(?:[-_ ]?size)?|bs|mbs|gbs)\s*(?:of|is|[=:])?\s*{_N}k?|(?:seq(?:uence)?|context|ctx)[-_ ]?(?:len(?:gth)?|window)?\s*(?:of|is|[=:])?\s*{_N}k?|(?:lr|learning[-_ ]rate)\s*(?:of|is|[=:])?\s*[0-9.]+(?:e-?[0-9]+)?|(?:num[-_ ])?workers\s*[=:]\s*[0-9]+|[0-9]{{1,3}}\s?(?:data ?loader )?workers|(?:step|steps|iteration|iter|epoch|epochs)\s*#?{_N}k?|{_N}k?\s*(?:steps|iterations|epochs)|(?:max[-_](?:model[-_]len|num[-_]seqs|num[-_]batched[-_]tokens|running[-_]requests|batch[-_]size|input[-_]len)|mem[-_]fraction[-_]static|chunked[-_]prefill[-_]size|swap[-_]space|block[-_]size|context[-_]length|gpu[-_]memory[-_]utilization|pin[-_]memory|grad(?:ient)?[-_]accum\w*)\s*[=:]?\s*(?:{_N}|true|false)"
# llama-3.1-70b | mixtral 8x7b | 13B model | resnet50
_MODEL = rf"(?:code)?(?:llama|mi[sx]tral|qwen|deepseek|gemma|falcon|phi|gpt|opt|bloom|bert|roberta|t5|yi|command[- ]r|dbrx|grok|vit|clip|resnet|sdxl|stable[- ]diffusion|flux|whisper|nemotron|glm|chatglm|baichuan|internlm|kimi)(?:[-_ ]?v?[0-9.]{{1,6}}[a-z]?)?(?:[-_ ](?:v?[0-9.]{{1,6}}[a-z]?|[0-9]{{1,2}}x[0-9]{{1,3}}b|neox|moe|instruct|chat|coder|large|base|small|xl|max))*(?![a-z0-9])|{_N}\s?b(?:[- ](?:params?|parameters?|models?))?(?![a-z/])|[0-9]+x[0-9]+b"
# pytorch 2.4 | cuda 12.4 | torch==2.1.2+cu121 | driver 550.54.15 | v0.4.1
_VERSION = r"(?:pytorch|torch|cuda|cudnn|nccl|python|ubuntu|rhel|rocky|debian|linux|vllm|sglang|tensorrt(?:[- ]llm)?|trt(?:[- ]llm)?|triton|tensorflow|tf|jax|megatron(?:[- ]lm)?|deepspeed|nemo|transformers|accelerate|lightning|ray|slurm|k8s|kubernetes|docker|fabric ?manager|dcgm|ofed|ucx|openmpi|flash[- ]?attn|flash[- ]?attention|xformers)(?:\s*(?:==|=|version|ver\.?|v)?\s*v?[0-9]+(?:\.[0-9]+)*(?:[-+.][a-z0-9]+)*)?(?![a-z])|v[0-9]+(?:\.[0-9]+)+(?:[-.]?[a-z0-9]+)?|cu1[0-9]{2}"
# at 3am | 14:20 utc | 2026-11-30 | since march | every night
_HOUR = r"[0-9]{1,2}(?::[0-9]{2}){0,2}\s?(?:am|pm|utc|cet|cest|pst|est|gmt)(?![a-z])|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?|[0-9]{4}-[0-9]{2}-[0-9]{2}|(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?s?(?![a-z])|(?:jan(?:uary)?|feb(?:ruary)?|march|april|june|july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![a-z])(?:\s[0-9]{1,2}(?![0-9]))?|(?:today|tonight|yesterday|tomorrow|weekend|morning|evening|afternoon|night|noon|midnight|week|month)s?(?![a-z])"
# $2.4/hr | 3 usd per gpu hour
_MONEY = rf"[$€£¥]\s?{_N}k?(?:\s?(?:/|per|an?)\s?(?:gpu[- ]?)?(?:h(?:ou)?rs?|h|day|month|year))*|{_N}\s?(?:usd|eur|dollars?|euros?|cents)(?:\s?(?:/|per|an?)\s?(?:gpu[- ]?)?(?:h(?:ou)?rs?|h|day|month|year))*"
# python train.py --bs 64 | torchrun --nproc_per_node=8 main.py | /data/ckpt | config.yaml
_COMMAND = r"(?:python3?|torchrun|srun|sbatch|mpirun|accelerate launch|deepspeed|bash|docker run|vllm serve)(?:\s+(?:-{1,2}[a-z][\w-]*(?:[= ][\w./:-]+)?|[\w./-]+\.(?:py|sh|ya?ml|json|sbatch)))*|--[a-z][\w-]*(?:[= ][\w./:-]+)?|(?<![\w.])(?:~?/[\w.-]+)+/?|[\w-]+\.(?:py|sh|ya?ml|json|toml|cfg|ini|ipynb|pt|bin|safetensors|sbatch|slurm)(?![a-z])"
# port 29500 open | 4 nodes | 2x: how many GPUs there are may be too few, and is kept
_AMOUNT = r"(?:master_)?port\s*[=:]?\s*[0-9]{4,5}(?:\s+(?:is\s+)?(?:open|ok|reachable))?|[0-9]{1,5}\s?x?\s*(?:nodes?|hosts?|machines?|ranks?)(?![a-z])|(?:[0-9]{1,3}\s?x\s*)?<model>|(?<![0-9])[0-9]{1,3}\s?x(?![a-z0-9])"
_TOLD = lazy(
    rf"(?<![\w.])(?:{'|'.join((_COMMAND, _MONEY, _TUNED, _SHAPE, _VERSION, _MODEL, _PRECISION, _HOUR, _AMOUNT))})", _I
)
_OF_WORK = lazy(rf"(?<![\w.])(?:{'|'.join((_SHAPE, _MODEL, _PRECISION))})(?![a-z0-9])", _I)
# what joins them, and names the work: none of these is a state
_JOINS = lazy(
    r"(?<![a-z])(?:a|an|the|my|our|their|one|two|some|of|on|in|at|by|for|from|with|w|w/|via|using|uses?|used|under|over|per|and|or|vs|versus|to|per|as|is|are|it|its|this|that|every|each|last|since|also|same"
    r"|training|trains?|trained|train|pre-?training|fine-?tun(?:e|ed|ing)|inference|serving|decode|decoding|prefill|eval(?:uation)?|lora|qlora|sft|rlhf|grpo|ddp|fsdp|jobs?|runs?|running|models?|llms?|moe|model|workloads?|scripts?|code|command|dataset|data ?loaders?|params?|parameters?"
    r"|nodes?|gpus?|cards?|machines?|hosts?|servers?|box|cluster|cloud|aws|gcp|azure|on-?prem|docker|containers?|images?|pods?|jupyter|notebooks?|conda|venv|sxm[0-9]?|pcie|nvl|dgx|hgx|ai|ml)(?![a-z])",
    _I,
)
_LEFT = lazy(r"[a-z0-9%\u4e00-\u9fff]", _I)


def only(clause: str) -> bool:
    """Whether a clause tells nothing but what is run, with which versions, when and at what price: no state of a machine."""
    from assistant.intent.things import MODEL  # names of GPUs

    rest = MODEL.sub(" ", _TOLD.sub(" ", clause))
    return _LEFT.search(_JOINS.sub(" ", rest)) is None


def blanked(text: str) -> str:
    """`text`, as long as it was, without the numbers of models, precisions, splits and options: none of them is a reading."""
    return _OPTIONS.sub(lambda m: _DIGITS.sub("n", m[0]), text)


_OPTIONS = lazy(rf"(?<![\w.])(?:{'|'.join((_TUNED, _SHAPE, _MODEL, _PRECISION))})(?![a-z0-9])", _I)
_DIGITS = lazy("[0-9]")


def of_work(text: str) -> bool:
    """Whether a sentence names a model, a precision or how a model is split: work that takes GPUs."""
    return _OF_WORK.search(text) is not None


def without(clauses: tuple[str, ...]) -> tuple[str, ...]:
    """The clauses that tell more."""
    return tuple(c for c in clauses if not only(c))
