"""Which advice a sentence asks for: by a way to ask and the things that it is about, or by a variable of the environment.

Such a question is about no machine: "RoCE or InfiniBand?", "can I reset GPU 3 while others run jobs?", "should I set NCCL_IB_DISABLE=1?".
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from assistant.intent.grammar import words_of
from assistant.intent.tasks import named, worries
from assistant.intent.things import MODEL
from knowledge.advice import Advice, When, advice
from knowledge.lazy import lazy

_LONG = 300  # characters: who asks for advice says little else
# NCCL_IB_DISABLE=1 | nccl_ib_disable
_VARIABLE = lazy(r"(?<![A-Za-z0-9_])[A-Za-z]{3,10}(?:_[A-Za-z0-9]{1,16}){1,5}(?![A-Za-z0-9_])")
# two jobs | three grad students | 2 small models | 多个小模型 | 三个人 | 两个微调任务
_SEVERAL = lazy(
    r"(?<![a-z0-9])(?:two|three|four|five|six|several|multiple|[2-9])\s+(?:[a-z<>-]+\s+){0,2}?(?:jobs|runs|trainings|models|process(?:es)?|programs|people|persons|users|students|colleagues|researchers|teams|pods|containers|experiments|notebooks|workloads|servers|services|tasks|instances of|copies|inferences|fine-?tunes|finetunings|kernels)(?![a-z])"
    r"|(?<![a-z])(?:an?other|a second|more than one|second)\s+(?:[a-z-]+\s+)?(?:job|run|training|model|process|program|person|user|pod|container|experiment|notebook|workload|server|service|task)s?(?![a-z])"
    r"|(?:[两三四五几多]|[2-9]|好几|另一|第二)\s*个\s*(?:[^，。；？?!！\s<>卡节机个]{0,4}\s*)?(?:任务|作业|训练|模型|进程|人|用户|同学|同事|实验|容器|pod|服务|程序|实例)|[两俩三四五多几]\s*(?:人|任务|作业|训练|模型|进程|用户)",
    re.IGNORECASE,
)
# cards of games by their number alone
_CARD = lazy(
    r"(?<![0-9a-z.])(?:20[678]0|30[6789]0|40[6789]0|50[789]0)(?:\s?(?:ti|super))?(?![0-9a-z.%]|\s*(?:mhz|w|mi?b))",
    re.IGNORECASE,
)
_SERVER = "model-server"
_REPORTS = frozenset(("slow", "low", "often", "held-down"))
_ASKS_OF_FAULT = frozenset(("how", "slow", "when", "meaning"))
_ALONE = lazy(r"\s*[A-Za-z]{3,10}(?:_[A-Za-z0-9]{1,16}){1,5}(?:\s*=\s*[\w:,.]+)?\s*[?？]?\s*")
# does NCCL_P2P_DISABLE=1 make training slower | NCCL_IB_DISABLE=1 会变慢吗
_EFFECT = lazy(
    r"(?<![a-z])(?:does|do|will|would|can|could) (?:setting |using )?[A-Za-z]{3,10}(?:_[A-Za-z0-9]{1,16}){1,5}(?![A-Za-z0-9_])"
    r"|[A-Za-z]{3,10}(?:_[A-Za-z0-9]{1,16}){1,5}(?:\s*=\s*[\w:,.]+)?\s*(?:会|是否|能不能|对)",
    re.IGNORECASE,
)
_ASKS_OF_VARIABLE = ("should", "may", "choose", "meaning", "affect", "safe")


class Asked(NamedTuple):
    """The advice that a sentence asks for."""

    id: str = ""  # empty where it asks for none
    reports: bool = False  # whether it only says that something is slow or fails: where a machine can be looked at, that comes first


def asked(said: str, marked: str, *, troubled: bool = False) -> Asked:
    """The advice that a sentence asks for. `marked`: it with its slots marked.

    `troubled`: a fault is reported, so that a mere "how" is after that.
    """
    if len(said) > _LONG or worries(said):
        return Asked()
    marked = marked.replace("'s ", "s ")  # someone else's
    words = words_of(_SEVERAL.sub(" <several> ", _CARD.sub(" <model> ", MODEL.sub(" <model> ", marked))))
    asks = named("ask", words)
    if troubled:
        asks = {name: many for name, many in asks.items() if name not in _ASKS_OF_FAULT}
    of_variable = _of_variable(said)
    asked_of_it = not asks.keys().isdisjoint(_ASKS_OF_VARIABLE) or _ALONE.fullmatch(said) or _EFFECT.search(said)
    if of_variable and asked_of_it:
        return Asked(of_variable)
    about = named("verb", words) | named("thing", words)
    if served := named("thing", words_of(said)).get(_SERVER):  # a server by its name is marked as a process
        about[_SERVER] = served
    fitting = [
        (len(w.about), sum(about[t] for t in w.about), a.id, asks.keys() & set(w.asks) <= _REPORTS)
        for a in advice().values()
        for w in a.when
        if _fits(w, asks, about)
    ]
    return Asked(*max(fitting)[2:]) if fitting else Asked()


def of_reports(name: str) -> bool:
    """Whether an advice is asked for by a sentence that only reports ("the first steps are slow")."""
    entry = advice().get(name)
    return entry is not None and (entry.reports or any(set(w.asks) & _REPORTS for w in entry.when))


def _fits(when: When, asks: dict[str, int], about: dict[str, int]) -> bool:
    if not about.keys().isdisjoint(when.without):
        return False
    return not asks.keys().isdisjoint(when.asks) and about.keys() >= set(when.about)


def _of_variable(said: str) -> str:
    found = (m[0].upper() for m in _VARIABLE.finditer(said))
    return next((by[name].id for name in found if name in (by := _variables())), "")


@cache
def _variables() -> dict[str, Advice]:
    return {name: a for a in advice().values() for name in a.variables}
