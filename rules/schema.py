"""Shape of a rule file and of a site file. Conditions are checked by `rules.condition.Builder`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from knowledge.observation import Scope
from knowledge.schema import Strict
from knowledge.units import parse_duration
from rules.model import Bucket, Cure, Effect, Risk, RuleStatus, Severity, Usable


class Words(Strict):
    """Both languages; lint asks for the Chinese, so that a site pack may leave it out."""

    en: str
    zh: str = ""


class ParamFile(Strict):
    """A parameter and its bounds."""

    type: Literal["duration", "int", "float"]
    default: int | float | str
    min: int | float | str | None = None
    max: int | float | str | None = None
    unit: str = ""


class ExplainsFile(Strict):
    """An effect of this rule's finding."""

    rule: str = ""
    by: Literal["", "xid_catalogue"] = ""
    on: Literal["self", "node"] = "self"
    via: list[Scope] = Field(default=[], strict=False)
    same: list[str] = []
    within: str = "3m"
    late: str = "2s"
    effect: Effect | None = Field(default=None, strict=False)
    because: Words | None = None

    @field_validator("within", "late")
    @classmethod
    def _duration(cls, text: str) -> str:
        parse_duration(text)
        return text

    @field_validator("via", mode="before")
    @classmethod
    def _scopes(cls, raw: Any) -> Any:
        return [Scope(word) for word in raw] if isinstance(raw, list) else raw


class ActionFile(Strict):
    """A bucket, or resolvers with a bucket to fall back to."""

    bucket: Bucket | None = Field(default=None, strict=False)
    resolve: list[Literal["recovery154", "decoded", "workflow", "catalogue", "kept", "unlisted", "dcgm", "cuda"]] = []
    text: Words | None = None
    command: str = ""
    risk: Risk | None = Field(default=None, strict=False)
    runbook: str = ""
    then: list[Words] = []
    confirm: Words | None = None
    again: Words | None = None
    again_bucket: Bucket | None = Field(default=None, strict=False)
    impairs: str = ""
    usable: Usable | None = Field(default=None, strict=False)
    until: Words | None = None


class ImpactFile(Strict):
    """What share of the time a finding explains, in percent, the seconds that it is a share of, and the GPU-hours that a day
    like this loses: facts of its subject."""

    share: str
    window: str = ""
    of: Words
    hours: str = ""


class TestFile(Strict):
    """One case: what is given, what is expected."""

    name: str
    given: dict[str, Any]
    expect: Literal["matched", "not_matched", "unknown"]
    grade: Literal["", "confirmed", "probable", "possible", "ruled_out"] = ""
    bucket: str = ""
    count: int | None = None


class RuleFile(Strict):
    """One rule."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    revision: int = Field(ge=1)
    title: Words
    status: RuleStatus = Field(strict=False)
    severity: Severity = Field(strict=False)
    severity_from: str = ""
    scope: Scope = Field(strict=False)
    symptoms: list[str] = []
    applies: dict[str, Any] = {}
    params: dict[str, ParamFile] = {}
    when: dict[str, Any]
    confirms: list[dict[str, Any]] = []
    excludes: list[dict[str, Any]] = []
    explains: list[ExplainsFile] = []
    impact: ImpactFile | None = None
    names: Words | None = None
    leads: Words | None = None
    shows: list[str] = []
    split_by: str = ""
    leaves_open: bool = False
    consequence: bool = False
    xid: int | None = None
    cured_by: list[Cure] | None = Field(default=None, strict=False)
    uncured: Words | None = None
    action: ActionFile
    why: Words
    false_positives: Words | None = None
    references: list[str] = []
    tests: list[TestFile] = []

    @field_validator("cured_by", mode="before")
    @classmethod
    def _cures(cls, raw: Any) -> Any:
        return [Cure(word) for word in raw] if isinstance(raw, list) else raw


class SiteEntry(Strict):
    """What a site changes about one rule, and who answers for it."""

    rule: str
    params: dict[str, Any] = {}
    severity: Severity | None = Field(default=None, strict=False)
    disable: bool = False
    suppress_hosts: list[str] = []
    reason: str = Field(min_length=3)
    owner: str = Field(min_length=1)
    expires: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
