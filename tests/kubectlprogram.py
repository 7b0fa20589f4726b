"""kubectl 1.37 for tests that are run by it."""

import importlib.util
import os
import pathlib
from typing import Any

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[1]


def script() -> Any:
    """The module of scripts/fetch_kubectl.py."""
    spec = importlib.util.spec_from_file_location("fetch_kubectl", PROJECT / "scripts" / "fetch_kubectl.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find() -> pathlib.Path:
    """kubectl 1.37: ``$DRACHMA_KUBECTL``, or what scripts/fetch_kubectl.py fetches into .cache."""
    configured = os.environ.get("DRACHMA_KUBECTL")
    if configured:
        return pathlib.Path(configured)
    try:
        binary: pathlib.Path = script().fetch()
    except OSError as error:
        pytest.skip(f"kubectl 1.37 is absent and could not be fetched: {error} (set DRACHMA_KUBECTL)")
    return binary
