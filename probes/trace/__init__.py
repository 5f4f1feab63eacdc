"""Profiler traces: read in bounded memory, exact to the nanosecond, and said what bounds the job."""
