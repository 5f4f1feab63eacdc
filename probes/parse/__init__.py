"""One pure module a format: text in, observations out."""
