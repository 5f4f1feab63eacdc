"""Profiler traces: read in bounded memory, exact to the nanosecond, and said what bounds the job.

Here stand the types that all rooms share: `columns` (tables), `model` (results), `intervals`, `nesting`, `groups`,
`links` (which call launched which kernel), `windows`. Each folder is one room; its docstring says which.
"""
