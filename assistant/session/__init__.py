"""The conversation: state, steps and events, and the driver that runs them for every surface."""
