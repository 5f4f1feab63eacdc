"""From files to tables: torch profiler, JAX and Nsight Systems, of any size in bounded memory."""
