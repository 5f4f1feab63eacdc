"""What the kernel knows of threads that do not run (perf, bpftrace): asked for by name only."""
