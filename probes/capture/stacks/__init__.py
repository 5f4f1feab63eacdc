"""Python stacks from outside, and what they say a thread was doing."""
