"""Which task a sentence asks how to do: by a verb and the things that it is done to, however they are put together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from assistant.intent.grammar import words_of
from assistant.intent.phrases import Runs
from knowledge.howto import Howto, howtos, spoken
from knowledge.lazy import lazy

# how do I | what is the command to | steps to | where do I look for | 怎么查 | 用什么命令
_HOW = lazy(
    r"(?<![a-z])how (?:do|can|could|should|would|might) (?:i|we|you|one|somebody)(?![a-z])|(?<![a-z])how to(?![a-z])|(?<![a-z])(?:steps|procedure|way|commands?|cmd|instructions?) (?:to|for)(?![a-z])|(?<![a-z])(?:which|what(?:'s| is| are)?(?: the)?) (?:commands?|cmd|tool|steps?|way)(?![a-z])|(?<![a-z])where (?:do|can|should) (?:i|we|you)(?![a-z])|(?<![a-z])(?:show|tell|teach) me how(?![a-z])"
    r"|怎么(?!办|回事|样|了|会|这|又|老|总|一直|突然)|如何|怎样|咋(?!办|回事|了|样)|用什么|什么命令|哪个命令|哪条命令|啥命令|命令是|有没有命令|步骤",
    re.IGNORECASE,
)
# set up MIG on it, exact commands pls | 给出具体命令
_COMMANDS = lazy(
    r"(?<![a-z])(?:commands?|cmds?)(?=\W*(?:pls|plz|please|thanks|thx)?\W*$)|命令(?=\W*$)",
    re.IGNORECASE,
)
# Asked of this machine where it can tell; elsewhere it is a task.
_WHO = lazy(
    r"(?<![a-z])(?:who|whose|(?:which|what) (?:process|processes|program|pid|job|user))(?![a-z])|谁|(?:哪个|哪些|什么)(?:进程|程序|任务|作业|用户)",
    re.IGNORECASE,
)
_WORRIES = lazy(
    r"(?<![a-z])(?:why|how come|because)(?![a-z])|为什么|为何|为啥|怎么会", re.IGNORECASE
)  # asks for the reason of something
_LONG = 300  # characters: who asks for a task says little else


def asked_how(said: str, marked: str) -> str:
    """The id of the task that a sentence asks how to do; empty where it asks for none. `marked`: it with its slots marked."""
    return _best(marked) if len(said) <= _LONG and asks_how(said) else ""


def asks_how(said: str) -> bool:
    """Whether a sentence asks how something is done or found out, and not why it is so."""
    return (_HOW.search(said) is not None or wants_commands(said)) and not worries(said)


def wants_commands(said: str) -> bool:
    """Whether a sentence asks for the commands by which something is done, which no page about it answers."""
    return _COMMANDS.search(said) is not None


def asked_who(said: str, marked: str) -> str:
    """The id of the task by which it is found out who uses something, where that is asked; empty for any other question."""
    return _best(marked) if len(said) <= _LONG and _WHO.search(said) and not worries(said) else ""


def done_to(identifier: str, marked: str) -> bool:
    """Whether a sentence says, right behind how, the verb of a task, and next to that a thing of it: "how to cordon a k8s node
    with a bad gpu", ECC 怎么开."""
    how = _HOW.search(marked)
    ahead = words_of(marked[: how.start()]) if how is not None else []
    words = words_of(marked[how.end() :] if how is not None else marked)
    things = sorted((start, name) for name, runs in _runs("thing").items() for start, _, _ in runs.find(words))
    if words and words[0] in _AHEAD:  # 怎么把 ECC 关掉: what it is done to stands ahead of the verb
        about = {name for start, name in things if start < _NEAR_AHEAD}
        done = named("verb", words[:_NEAR_AHEAD])
        return any(about >= set(d.things) and not done.keys().isdisjoint(d.verbs) for d in howtos()[identifier].does)
    before = {name for name, runs in _runs("thing").items() for _, end, _ in runs.find(ahead) if end == len(ahead)}
    return any(
        not before.isdisjoint(does.things) or not _next(things, end).isdisjoint(does.things)
        for does in howtos()[identifier].does
        for verb in does.verbs
        for begin, end, _ in _runs("verb")[verb].find(words)
        if sum(_WEIGHT[w.isascii()] for w in words[:begin]) < _NEAR
    )


def _next(things: Sequence[tuple[int, str]], end: int) -> set[str]:
    """The thing that stands next behind `end`, and the next that is not merely where it is: 怎么看 GPU 有没有降频."""
    behind = [(start, name) for start, name in things if start >= end]
    if not behind or behind[0][1] not in _PLACES:
        return {name for _, name in behind[:1]}
    at = min((start for start, name in behind if name not in _PLACES), default=-1)
    return {behind[0][1], *(name for start, name in behind if start == at)}


_PLACES = frozenset(("gpu", "one-gpu"))
_NEAR = 2  # words between how and the verb: "how do I safely ..."
_AHEAD, _NEAR_AHEAD = frozenset("把给将"), 12
_WEIGHT = {True: 1.0, False: 0.5}  # a Han character is half a word: 怎么查是谁占了 GPU


def worries(said: str) -> bool:
    """Whether a sentence asks for the reason of something."""
    return _WORRIES.search(said) is not None


def _best(marked: str) -> str:
    """The task with one of its verbs and all of its things in the words; of several the one whose things say most."""
    words = words_of(marked)
    verbs, things = named("verb", words), named("thing", words)
    fitting = [
        (sum(things[t] for t in d.things), len(d.things), h)
        for h in howtos().values()
        for d in h.does
        if not verbs.keys().isdisjoint(d.verbs) and things.keys() >= set(d.things)
    ]
    return max(fitting, key=_rank)[2].id if fitting else ""


def _rank(one: tuple[int, int, Howto]) -> tuple[int, int, str]:
    said, things, howto = one
    return things, said, howto.id


def named(kind: str, words: Sequence[str]) -> dict[str, int]:
    """The verbs, things or ways to ask (`kind`: verb, thing, ask) that are named anywhere in the words, each with the words of its longest name."""
    found: dict[str, int] = {}
    runs = _runs(kind)
    for name, one in runs.items():
        for start, end, _ in one.find(words):
            found[name] = max(found.get(name, 0), end - start)
    return found


@cache
def _runs(kind: str) -> dict[str, Runs]:
    """The words of each verb or thing: one word may mean several ("look at", 查)."""
    by_id: dict[str, list[tuple[str, str]]] = {}
    for said, name in spoken(kind):
        by_id.setdefault(name, []).append((said, name))
    return {name: Runs(said) for name, said in by_id.items()}
