"""What the entry points share: command line, process start, standard input."""
