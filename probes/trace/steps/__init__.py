"""Iterations: where they begin and end, what each spent its time on, pipeline bubbles."""
