"""Threads, groups, node and GPUs, read many times a second, in one time base."""
