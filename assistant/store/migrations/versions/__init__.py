"""One module a revision, ``vNNNN_what.py``; numbers only grow and are never reused."""
