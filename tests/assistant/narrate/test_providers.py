"""Providers of litellm that speak in other ways than OpenAI's: the same one request, the same fence, the same reasons."""

from __future__ import annotations

import pytest

from assistant.narrate.completion import Model
from assistant.narrate.hosts import place
from assistant.narrate.reasons import NarrationError, Reason
from assistant.narrate.worker import Worker
from tests.llm_lab import FINE, llm_python, loaded, serving

ASK = [{"role": "user", "content": "Answer in JSON."}]


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "path", "told"),
    [("ollama_chat/qwen3", "/api/chat", "format"), ("anthropic/claude-3-5-haiku-latest", "/v1/messages", "messages")],
)
def test_a_provider_with_words_of_its_own(name: str, path: str, told: str) -> None:
    with serving() as server, serving() as other:
        worker = loaded(Worker(Model(llm_python(), place(server.base.removesuffix("/v1"), ""), name, "sk-x"), 60.0))
        try:
            got = worker.complete(ASK, 50)
            assert (got.text, got.prompt_tokens, got.completion_tokens) == (FINE, 100, 20)
            (sent,) = [g for g in server.requests if g.path == path]  # litellm also asks Ollama what a model can do
            assert told in sent.body
            assert not {"tools", "functions", "tool_choice"} & set(sent.body)
            server.to = f"{other.base}/chat/completions"
            for mode, reason in (
                ("error", Reason.DOWN),
                ("refuse", Reason.REFUSED),
                ("redirect", Reason.REFUSED),
                ("html", Reason.MALFORMED),
            ):
                server.requests.clear()
                server.mode = mode
                with pytest.raises(NarrationError) as caught:
                    worker.complete(ASK, 50)
                assert caught.value.reason is reason, caught.value
                assert [g.path for g in server.requests].count(path) == 1  # no retry
                assert not [
                    g for g in server.requests if g.path != path and "messages" in g.body
                ]  # Ollama is asked what a model can
            assert other.requests == []
        finally:
            worker.close()
