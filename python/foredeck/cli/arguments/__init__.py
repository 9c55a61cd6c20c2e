"""The arguments of each command and its help: all that `--help` needs, and quick to import."""
