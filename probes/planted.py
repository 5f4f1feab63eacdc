"""Secrets that nobody has, planted into text to count how many a redaction leaves: 30 kinds, random values."""

from __future__ import annotations

import base64
import random
import string
from typing import NamedTuple

LETTERS = string.ascii_letters + string.digits


class Planted(NamedTuple):
    """A secret in the words that it stands in."""

    kind: str
    line: str
    secret: str


# {s}: letters and digits, {u}: upper case, {h}: hexadecimal, {n}: a name of a person or machine, {b}: Base64
KINDS = {
    "hugging face": ("download with hf_{s} failed", "hf_{s}"), "github": ("remote: ghp_{s} is not valid", "ghp_{s}"),
    "github fine": ("token github_pat_{s}", "github_pat_{s}"), "gitlab": ("clone as glpat-{s}", "glpat-{s}"),
    "aws id": ("credentials AKIA{u} used", "AKIA{u}"), "aws key": ("AWS_SECRET_ACCESS_KEY={b}", "{b}"),
    "slack": ("posting as xoxb-12345-{s}", "{s}"), "slack webhook": ("POST https://hooks.slack.com/services/T0/B0/{s} 500", "{s}"),
    "discord webhook": ("https://discord.com/api/webhooks/12/{s}", "{s}"), "bearer": ("Authorization: Bearer {s}", "{s}"),
    "basic": ("authorization: basic {b}", "{b}"), "jwt": ("got eyJhbGciOiJI.{s}.{s}", "{s}"), "openai": ("OpenAI key sk-proj-{s}", "sk-proj-{s}"),
    "nvidia": ("NGC login nvapi-{s}", "nvapi-{s}"), "google": ("key AIza{s}{s}", "AIza{s}"), "npm": ("npm_{s} expired", "npm_{s}"),
    "pypi": ("upload with pypi-{s}", "pypi-{s}"), "stripe": ("sk_live_{s}", "sk_live_{s}"), "vault": ("hvs.{s} revoked", "hvs.{s}"),
    "password option": ("train.py --password {s} --lr 0.1", "{s}"), "token option": ("serve --hf-token {s} --port 8000", "{s}"),
    "password": ("password={s}", "{s}"), "json key": ('{{"api_key": "{s}"}}', "{s}"), "url password": ("postgres://app:{s}@db:5432/x", "{s}"),
    "query": ("GET /blob?sv=2024&sig={h} HTTP/1.1", "{h}"), "cookie": ("Set-Cookie: session={s}; Path=/", "{s}"),
    "header": ("X-Api-Key: {s}", "{s}"), "private key": ("-----BEGIN OPENSSH PRIVATE KEY-----\n{b}\n{b}\n-----END OPENSSH PRIVATE KEY-----", "{b}"),
    "connection string": ("AccountName=x;AccountKey={b};EndpointSuffix=core", "{b}"), "wandb": ("WANDB_API_KEY: {h}", "{h}"),
    "host": ("cannot connect to {n}.corp.example", "{n}"), "home": ("open /home/{n}/run.sh", "{n}"), "scratch": ("write /scratch/{n}/ckpt.pt", "{n}"),
    "users": ("read /data/users/{n}/tokens.bin", "{n}"), "mail": ("mail to {n}@corp.example", "{n}"), "nccl": ("{n}:41:90 [0] NCCL INFO Bootstrap", "{n}"),
    "file server": ("{n}:/export/ml /mnt/ml nfs4 rw 0 0", "{n}"), "url host": ("fetch http://{n}:9090/api", "{n}"),
}  # fmt: skip


def planted(count: int, seed: int) -> list[Planted]:
    """`count` secrets, of each kind in turn."""
    source = random.Random(seed)

    def some(letters: str, length: int) -> str:
        return "".join(source.choice(letters) for _ in range(length))

    found = []
    for number in range(count):
        kind = list(KINDS)[number % len(KINDS)]
        line, secret = KINDS[kind]
        values = {
            "s": some(LETTERS, 32), "u": some(string.ascii_uppercase + string.digits, 16), "h": some("0123456789abcdef", 40),
            "n": some(string.ascii_lowercase, 4) + "-" + some(string.ascii_lowercase, 6),
            "b": base64.b64encode(source.randbytes(30)).decode(),
        }  # fmt: skip
        found.append(Planted(kind, line.format(**values), secret.format(**values)))
    return found
