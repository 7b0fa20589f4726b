"""Logging of commands that run until they are told to stop: to standard error, a line each."""

import logging


def to_stderr(package: str = "drachma", *, verbose: bool = False) -> None:
    """Sets up logging; of one package more is said on demand."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger(package).setLevel(logging.DEBUG if verbose else logging.INFO)
