"""Code that the entry points share: command line, process setup, standard input."""
