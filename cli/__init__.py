"""What the entry points share: command line, start of the process, loading a trained run, standard input."""
