"""``gpudiag test``: active tests of this node, with consent and on idle GPUs only."""
