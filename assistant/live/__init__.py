"""GPUs from moment to moment: readings as they come, recordings of them, and what was known when."""
