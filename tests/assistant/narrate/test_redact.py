"""The final payload holds no name and no secret, whatever its producers did; what is no secret comes back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.narrate.redact import Pseudonyms

NAMES = {"node": ["oak-h100-042", "leda"], "work": ["team-blue/train-0", "bert-large"], "user": ["alice.w"]}
SECRETS = {
    "token=hunter2hunter2": "hunter2hunter2", '{"api_key": "abcdef123456"}': "abcdef123456", "--password s3cr3t!x": "s3cr3t!x",
    "https://bob:pa55word@git.example/x": "pa55word", "Authorization: Bearer abc.def-123": "abc.def-123", "hf_ABCDEFGHIJKLMNOPQRST": "hf_ABCDEFGHIJKLMNOPQRST",
    "AWS_SECRET_ACCESS_KEY=zzzTOPzzz": "zzzTOPzzz", "xoxb-1234567890-abcdef": "xoxb-1234567890-abcdef",
}  # fmt: skip
PLANTED = (
    "oak-h100-042", "leda", "train-0", "bert-large", "alice.w", "10.4.7.19", "02:42:ac:11:00:02", "f3b1c2d4-0000-4a5b-8c6d-123456789abc",
    "GPU-5f0d2c11-7a61-4be0-9d27-aa0e5c1d9a01", "bob@site.example", "carol", "1651422000417", "filer7", "fe80::1:2:3:4",
)  # fmt: skip
TEXT = (
    "Jan  3 12:00:01 oak-h100-042 kernel: x\nnode leda, pod team-blue/train-0 of bert-large, user alice.w, 10.4.7.19 02:42:ac:11:00:02 "
    "f3b1c2d4-0000-4a5b-8c6d-123456789abc GPU-5f0d2c11-7a61-4be0-9d27-aa0e5c1d9a01 bob@site.example /home/carol/run.py "
    "Serial Number: 1651422000417 device filer7:/export on /data fe80::1:2:3:4"
)


def payload(text: str, names: dict[str, list[str]] | None = NAMES) -> str:
    done = Pseudonyms(names).redact([{"role": "user", "content": text}])
    return done.messages[0]["content"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_nothing_planted_is_in_the_payload(wrapped: bool) -> None:
    sent = payload(json.dumps({"log": [TEXT]}) if wrapped else TEXT)
    assert [name for name in PLANTED if name in sent] == []


@pytest.mark.parametrize("text", SECRETS, ids=range(len(SECRETS)))
def test_secrets_are_masked_and_never_come_back(text: str) -> None:
    done = Pseudonyms(NAMES).redact([{"role": "user", "content": f"it ran {text} on leda"}])
    sent = done.messages[0]["content"]
    assert SECRETS[text] not in sent
    assert SECRETS[text] not in done.restore(sent)
    assert SECRETS[text] not in json.dumps(done.table)


def test_names_come_back_and_keep_their_pseudonym() -> None:
    talk = Pseudonyms(NAMES)
    first = talk.redact([{"role": "user", "content": "leda and oak-h100-042"}])
    again = talk.redact([{"role": "user", "content": "oak-h100-042, then leda, then node-a7 that somebody typed"}])
    one, two = first.messages[0]["content"], again.messages[0]["content"]
    assert one.split(" and ") == [two.split(",")[1].split()[-1], two.split(",")[0]]
    assert again.restore(two) == "oak-h100-042, then leda, then node-a7 that somebody typed"


PIECES = st.sampled_from(
    [*PLANTED, "node-a1", "name-a12", " ", ", ", "\n", ": ", "/", "x", "7", "GPU 0000:3b:00.0", "host ", "user "]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=12))
def test_restoring_gives_back_what_was_no_secret(pieces: list[str]) -> None:
    from assistant.narrate.redact import without_secrets

    text = " ".join(pieces)
    done = Pseudonyms(NAMES).redact([{"role": "user", "content": text}])
    assert done.restore(done.messages[0]["content"]) == without_secrets(text)
