"""Facts computed from other facts: pure three-valued functions that run before the rules."""
