"""The two machines on which all tests of this folder run."""

from machines.two_nodes import machines, started_machines

__all__ = ["machines", "started_machines"]
