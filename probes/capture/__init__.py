"""Capture from running jobs: what they do, read without changing, restarting or harming them."""
