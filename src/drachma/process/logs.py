"""Logging of long-running commands: one line per record, on standard error."""

import logging


def to_stderr(package: str = "drachma", *, verbose: bool = False) -> None:
    """Set up logging; with ``verbose``, log debug messages of one package."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger(package).setLevel(logging.DEBUG if verbose else logging.INFO)
