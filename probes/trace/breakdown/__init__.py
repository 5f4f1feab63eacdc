"""Where the time of one rank went: busy, idle and why, launches, kernels, operators, the timeline."""
