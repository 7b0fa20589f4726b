"""Logging of long-running commands: one line per record, on standard error, as text or as JSON."""

import logging

from drachma.runtime import jsonlog


def to_stderr(package: str = "drachma", *, verbose: bool = False, is_json: bool = False) -> None:
    """Set up logging; with ``verbose``, log debug messages of one package."""
    logging.basicConfig(level=logging.INFO, handlers=[jsonlog.handler(is_json=is_json)])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger(package).setLevel(logging.DEBUG if verbose else logging.INFO)
