"""The allocator's memory, from [memory] events and from snapshots."""
