"""How much work the kernels did: FLOP, bytes, the roofline, model FLOP utilisation."""
