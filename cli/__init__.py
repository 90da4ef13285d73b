"""What the entry points share: command line, process start, loading a run, standard input."""
