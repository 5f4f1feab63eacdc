"""What can be seen: hosts, probes and the pure parsers of their raw output."""
