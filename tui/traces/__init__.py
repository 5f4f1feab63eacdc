"""What the trace screen is made of: what is open, and the ways to look at it."""
