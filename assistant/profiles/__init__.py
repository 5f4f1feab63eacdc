"""Continuous profiles: what a process did over days, from stacks that ``watch --profile NAME`` samples at a low rate."""
