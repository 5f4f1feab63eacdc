"""Understanding a sentence without a language model: see `assistant.intent.parse`."""
