"""Reports of Nsight Compute."""
