"""The terminal screens, over the same session as every other surface."""
