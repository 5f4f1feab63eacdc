"""``gpudiag trace``: one module a subcommand, each with ``run(args) -> int``."""
