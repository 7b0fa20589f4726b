"""The command line: one module a command; this package only wires them together."""

from drachma.cli.root import main

__all__ = ["main"]
