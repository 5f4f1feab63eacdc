"""Call trees from Python down to the kernel: flame graphs, exports, imports, differences."""
