"""Settings: what wins over what, where each comes from, and what is wrong with a file, all at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from platformdirs import user_config_path

from assistant.config import OPTIONS, Option, Setting, load, system_language, user_file
from knowledge.errors import ConfigError
from knowledge.language import Text
from tests.cases import each
from tests.conftest import Gpudiag


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_flags_over_variables_over_user_over_system(tmp_path: Path) -> None:
    system = write(tmp_path / "system.toml", 'lang = "zh"\nformat = "html"\ncolor = "never"\nsite_file = "site.yaml"')
    user = write(tmp_path / "user.toml", 'format = "markdown"\ncolor = "always"')
    settings = load({"color": "auto", "lang": None}, {"GPUDIAG_FORMAT": "json"}, (system, user))
    assert (settings.output.lang, settings.output.format, settings.output.color) == ("zh", "json", "auto")
    assert settings.rules.site_file == tmp_path / "site.yaml"
    origins = {s.option.key: s.origin for s in settings.all}
    assert origins == dict.fromkeys((o.key for o in OPTIONS), "default") | {
        "lang": str(system), "format": "GPUDIAG_FORMAT", "color": "flag", "site_file": str(system),
    }  # fmt: skip


def test_every_fault_of_a_file_at_once(tmp_path: Path) -> None:
    bad = write(tmp_path / "config.toml", 'lnag = "zh"\nformat = "xml"\ncolor = 3\nrule_packs = [1]')
    with pytest.raises(ConfigError) as caught:
        load({}, {}, (bad,))
    message = caught.value.message
    assert "unknown key 'lnag' (did you mean lang" in message
    assert "format is 'xml', which is none of text, json, markdown, html" in message
    assert "color is a string, not 3" in message
    assert "rule_packs is a list of paths" in message
    assert message.count(str(bad)) == 4


@pytest.mark.parametrize("content", [b"lang = ", b"\xff\xfe", b"[[["])
def test_what_is_no_toml(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.toml is not TOML"):
        load({}, {}, (path,))


def test_unknown_variables_are_told_not_fatal() -> None:
    settings = load({}, {"GPUDIAG_LNAG": "zh", "GPUDIAG_DEBUG": "1", "GPUDIAG_REQUIRE": "cc"}, ())
    assert len(settings.warnings) == 1
    assert "GPUDIAG_LNAG" in settings.warnings[0]
    assert "GPUDIAG_LANG" in settings.warnings[0]


def test_a_bad_variable_names_itself() -> None:
    with pytest.raises(ConfigError, match="GPUDIAG_LANG: lang is 'fr'"):
        load({}, {"GPUDIAG_LANG": "fr"}, ())


def test_paths_of_packs() -> None:
    settings = load({}, {"GPUDIAG_RULE_PACKS": os.pathsep.join(["/a", "/b", ""])}, ())
    assert settings.rules.packs == (Path("/a"), Path("/b"))


def test_secrets_are_never_shown() -> None:
    option = Option("token", "choice", "", Text("A token."), secret=True)
    settings = load({}, {"GPUDIAG_TOKEN": "hunter2"}, (), (*OPTIONS, option))
    shown = {s.option.key: s.shown for s in settings.all}
    assert shown["token"] == "********"
    assert Setting(option, "", "default").shown == ""


def test_the_password_of_a_url_is_never_shown() -> None:
    url = "postgresql+psycopg://gpudiag:hunter2@db.example/history"
    settings = load({}, {"GPUDIAG_HISTORY_URL": url}, ())
    shown = {s.option.key: s.shown for s in settings.all}
    assert shown["history_url"] == "postgresql+psycopg://gpudiag:********@db.example/history"
    assert settings.history.url == url
    plain = "postgresql+psycopg://gpudiag@db.example/history"
    assert {s.option.key: s.shown for s in load({}, {"GPUDIAG_HISTORY_URL": plain}, ()).all}["history_url"] == plain


def test_numbers_of_days(tmp_path: Path) -> None:
    assert load({}, {}, ()).history.days == 30
    assert load({}, {}, (write(tmp_path / "a.toml", "history_days = 7"),)).history.days == 7
    assert load({}, {"GPUDIAG_HISTORY_DAYS": "90"}, ()).history.days == 90
    for bad in ("0", "-1", "soon", "1.5"):
        with pytest.raises(ConfigError, match="history_days is a whole number above 0"):
            load({}, {"GPUDIAG_HISTORY_DAYS": bad}, ())
    with pytest.raises(ConfigError, match="history_days is a number, not True"):
        load({}, {}, (write(tmp_path / "b.toml", "history_days = true"),))


def test_the_users_file_is_where_the_platform_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert user_file() == user_config_path("gpudiag") / "config.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_file() == user_config_path("gpudiag") / "config.toml"


@each(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW", "LC_ALL": "C"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_CN", "LANG": "en_US"}, "zh"),
    ],
)
def test_the_locale_chooses_the_language(environ: dict[str, str], language: str) -> None:
    assert system_language(environ) == language
    assert load({}, environ, ()).output.lang == language


def test_show(gpudiag: Gpudiag, tmp_path: Path) -> None:
    write(tmp_path / "config.toml", 'color = "never"')
    (tmp_path / "gpudiag").mkdir()
    (tmp_path / "config.toml").rename(tmp_path / "gpudiag" / "config.toml")
    answer = gpudiag("config", "show", "--format", "json", env={"XDG_CONFIG_HOME": str(tmp_path), "GPUDIAG_LANG": "zh"})
    assert answer.code == 0
    found = {s["key"]: (s["value"], s["origin"]) for s in json.loads(answer.out)["settings"]}
    assert set(found) == {o.key for o in OPTIONS}
    assert found["lang"] == ("zh", "GPUDIAG_LANG")
    assert found["format"] == ("json", "flag")
    assert found["color"] == ("never", str(tmp_path / "gpudiag" / "config.toml"))


def test_a_broken_file_stops_the_command(gpudiag: Gpudiag, tmp_path: Path) -> None:
    (tmp_path / "gpudiag").mkdir()
    write(tmp_path / "gpudiag" / "config.toml", 'speed = "fast"')
    answer = gpudiag("explain", "xid", "79", env={"XDG_CONFIG_HOME": str(tmp_path)})
    assert answer.code == 2
    assert "unknown key 'speed'" in answer.err
