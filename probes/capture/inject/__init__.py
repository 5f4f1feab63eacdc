"""One Python statement run in a process that runs already, without harm to it."""
