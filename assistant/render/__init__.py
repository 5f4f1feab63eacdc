"""Answers in every shape: terminal text, Markdown, one HTML page, JSON, one line for Nagios."""
