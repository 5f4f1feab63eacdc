# mypy: ignore-errors
"""In litellm's place where litellm is not the subject: what child.py calls, OpenAI's way only, loaded in no time."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import httpx

client_session: httpx.Client | None = None  # child.py sets it, as it does for litellm


class Timeout(Exception):
    """No answer in time."""


class APIConnectionError(Exception):
    """No server, or it went away."""


class APIError(Exception):
    """An answer, and no completion."""


def get_model_info(model: str) -> dict[str, float]:
    """No model has a price."""
    raise Exception(f"{model} is not known")  # noqa: TRY002 - as litellm does


def completion_cost(answer: object) -> float:
    """No model has a price."""
    raise Exception("not known")  # noqa: TRY002 - as litellm does


def completion(
    *, model: str, api_base: str, api_key: str, timeout: float, max_retries: int, stream: bool, **asked: Any
) -> Any:
    """One request, once."""
    assert client_session is not None
    assert (max_retries, stream) == (0, False)
    body = json.dumps({"model": model.removeprefix("openai/"), **asked}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {api_key}"}
    try:
        answer = client_session.send(httpx.Request(f"{api_base}/chat/completions", headers, body, timeout))
    except httpx.ReadTimeout as error:
        raise Timeout(str(error)) from error
    except OSError as error:
        raise APIConnectionError(str(error)) from error
    if answer.status_code != 200:
        raise APIError(f"{answer.status_code}: {answer.content!r}")
    return json.loads(answer.content, object_hook=lambda fields: SimpleNamespace(**fields))
