"""``gpudiag profile``: what a running job does, captured from outside and, with consent, from within."""
