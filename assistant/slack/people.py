"""Who somebody is, as Slack knows them now: user groups, guest or not, of which organisation, in which language.

Ids are what rights hang on. Names are for people to read: anybody can give themselves another's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from assistant.rights.model import ID, Person
from assistant.slack.post import SlackError, called
from knowledge.text import excerpt

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

    from assistant.rights.policy import Policy

LASTS = 60.0  # seconds for which an answer of Slack counts where nothing is run: what is run asks anew
PATIENCE = 60.0  # seconds that a worker thread waits, 429 and the client's own tries included
MOST = 10_000  # people that are remembered
NAME = 80  # characters of a name
GONE = "account_inactive"
_NOBODY = frozenset({"user_not_found", "users_not_found", "user_not_visible", GONE})
_NO_GROUP = frozenset({"no_such_subteam", "subteam_not_found"})
T = TypeVar("T")


class Known(NamedTuple):
    """Somebody, and how to talk to them."""

    person: Person
    lang: str  # en or zh, by their locale
    name: str  # as it is shown; proves nothing
    zone: str  # time zone: "Asia/Shanghai"


class _Own(NamedTuple):
    """The workspace that the bot is in; `enterprise` is empty where it is no part of one."""

    team: str
    enterprise: str


class _Kept(Generic[T]):
    """Answers, for a while; who asks the same at the same time waits for one answer."""

    def __init__(self, lasts: float) -> None:
        self._lasts = lasts
        self._found: dict[str, tuple[float, asyncio.Future[T]]] = {}

    async def get(self, key: str, ask: Callable[[], Awaitable[T]], *, anew: bool) -> T:
        """The answer to `key`. `anew`: to a question that is put now."""
        at, found = self._found.get(key, (0.0, None))
        if anew or found is None or time.monotonic() > at + self._lasts:
            if len(self._found) >= MOST:
                self._found.clear()
            found = asyncio.ensure_future(ask())
            found.add_done_callback(lambda done: self._settle(key, done))
            self._found[key] = (time.monotonic(), found)
        return await asyncio.shield(found)

    def _settle(self, key: str, done: asyncio.Future[T]) -> None:
        """A refusal is not kept: the next one asks again."""
        if (done.cancelled() or done.exception() is not None) and self._found.get(key, (0.0, None))[1] is done:
            del self._found[key]


class People:
    """The workspace's people, for one policy. Made and used in one event loop; `now` is for its worker threads."""

    def __init__(self, client: AsyncWebClient, policy: Callable[[], Policy], lasts: float = LASTS) -> None:
        """`policy` reads the policy afresh: the groups that it names are asked for. `lasts`: s."""
        self._client, self._policy = client, policy
        self._loop = asyncio.get_running_loop()
        self._users: _Kept[Mapping[str, Any]] = _Kept(lasts)
        self._groups: _Kept[frozenset[str]] = _Kept(lasts)
        self._own: _Kept[_Own] = _Kept(float("inf"))  # a token is of one workspace

    async def known(self, user: str, *, anew: bool = False) -> Known:
        """Who `user` is. SlackError when Slack cannot tell, or says that there is nobody: then nothing is allowed.

        `anew`: what Slack says now, rather than up to a minute ago.
        """
        if not ID.fullmatch(user):
            raise SlackError("users.info", "user_not_found")
        own = await self._own.get("", self._team, anew=False)
        found = await self._users.get(user, lambda: self._user(user), anew=anew)
        named = sorted({g for role in self._policy().roles.values() for g in role.groups})
        members = await asyncio.gather(*(self._groups.get(g, lambda g=g: self._members(g), anew=anew) for g in named))  # type: ignore[misc]  # bound now
        groups = frozenset(g for g, ids in zip(named, members, strict=True) if user in ids)
        profile = found.get("profile")
        names = (
            profile.get("display_name") if isinstance(profile, Mapping) else "",
            found.get("real_name"),
            found.get("name"),
        )
        name = next((shown for n in names if isinstance(n, str) and (shown := excerpt(n, NAME))), user)
        lang = "zh" if str(found.get("locale") or "").lower().startswith("zh") else "en"
        return Known(_person(user, found, own, groups), lang, name, excerpt(str(found.get("tz") or ""), NAME))

    def now(self, user: str) -> Person | None:
        """Who `user` is at this moment, None for nobody. For worker threads. SlackError when Slack cannot tell."""
        future = asyncio.run_coroutine_threadsafe(self.known(user, anew=True), self._loop)
        try:
            return future.result(PATIENCE).person
        except TimeoutError:
            future.cancel()
            raise SlackError("users.info", f"no answer within {PATIENCE:.0f} s") from None
        except SlackError as error:
            if error.code in _NOBODY:
                return None
            raise

    # --- what Slack is asked --------------------------------------------------------------------

    async def _team(self) -> _Own:
        found = await called("auth.test", self._client.auth_test())
        return _Own(str(found.get("team_id") or ""), str(found.get("enterprise_id") or ""))

    async def _user(self, user: str) -> Mapping[str, Any]:
        answer = await called("users.info", self._client.users_info(user=user, include_locale=True))
        found = answer.get("user")
        if not isinstance(found, Mapping) or found.get("id") != user:
            raise SlackError("users.info", "user_not_found")
        if found.get("deleted"):
            raise SlackError("users.info", GONE)
        return found

    async def _members(self, group: str) -> frozenset[str]:
        """Ids of the people in a user group; nobody in one that there is not, or that was disabled."""
        try:
            answer = await called("usergroups.users.list", self._client.usergroups_users_list(usergroup=group))
        except SlackError as error:
            if error.code in _NO_GROUP:
                return frozenset()
            raise
        return frozenset(map(str, answer.get("users") or ()))


def _person(user: str, found: Mapping[str, Any], own: _Own, groups: frozenset[str]) -> Person:
    """What Slack does not say counts against the person. Of people of other organisations it does not say who is a guest."""
    external = _external(found, own)
    guest = bool(found.get("is_restricted", not external) or found.get("is_ultra_restricted"))
    bot = user == "USLACKBOT" or bool(found.get("is_bot") or found.get("is_workflow_bot"))
    return Person(user, groups, guest, external, bot)


def _external(found: Mapping[str, Any], own: _Own) -> bool:
    """Whether somebody is of another organisation: neither of this workspace nor of the enterprise that it belongs to."""
    if found.get("is_stranger"):
        return True
    team = found.get("team_id")
    if team and team in (own.team, own.enterprise):
        return False
    of = found.get("enterprise_user")
    return not (isinstance(of, Mapping) and own.enterprise and of.get("enterprise_id") == own.enterprise)
