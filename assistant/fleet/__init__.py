"""Many machines at once: traces of many ranks read where they lie."""
