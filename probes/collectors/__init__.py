"""Collectors: small programs that read one kind of thing and print it raw, as JSON.

Each is one file that needs Python 3.8 and the standard library only (`nvml` also
pynvml), because the same file is sent to machines where nothing is
installed. `LiveHost.snapshot` runs it in a child process of its own: what it asks may hang in
the driver or in a dead file system. A collector is given ``--deadline SECONDS`` and prints what it
has before that; it concludes nothing. The conclusions are a parser's, in `probes/parse`.
"""
