"""What kernels are, and how they are called, by their names."""
