"""Recorded upstream behaviour, read from ``$DRACHMA_VECTORS`` or ``../shared/vectors``; never copied in here."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

_PROJECT = Path(__file__).resolve().parents[2]


def folder() -> Path:
    """Where the vectors are looked for, whether or not they are there."""
    configured = os.environ.get("DRACHMA_VECTORS")
    return Path(configured) if configured else _PROJECT.parent / "shared" / "vectors"


def lines(name: str) -> list[dict[str, Any]]:
    """All cases of one vector file; skips the calling test or module where the file is absent."""
    path = folder() / name
    if not path.is_file():
        pytest.skip(f"recorded vectors absent: {path} (set DRACHMA_VECTORS)", allow_module_level=True)
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
