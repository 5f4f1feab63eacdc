"""From all of it to facts that rules conclude from."""
