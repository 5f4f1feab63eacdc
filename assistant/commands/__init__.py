"""One module a command; the folder is the list (see `assistant.cli`)."""
