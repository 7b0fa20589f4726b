"""One stored object read as v1, v1beta2 and v1beta1, as recorded from a real API server, in every direction."""

from typing import Any

import pytest

from drachma import errors
from drachma.api import codec
from tests.conformance import vectors

VERSIONS = ("v1", "v1beta2", "v1beta1")
CASES = vectors.lines("conversion.jsonl")


def _served(case: dict[str, Any], version: str) -> bool:
    return "kind" in case[version] and "code" not in case[version]


@pytest.mark.parametrize("target", VERSIONS)
@pytest.mark.parametrize("source", VERSIONS)
@pytest.mark.parametrize("case", [pytest.param(case, id=case["v1"]["metadata"]["name"]) for case in CASES])
def test_every_direction(case: dict[str, Any], source: str, target: str) -> None:
    if not _served(case, source):
        document = {**case["v1"], "apiVersion": f"resource.k8s.io/{source}"}
        with pytest.raises(errors.DecodeError, match="does not exist in"):
            codec.decode(document)
        return
    stored = codec.decode(case[source])
    if not _served(case, target):
        with pytest.raises(errors.DecodeError, match="does not exist in"):
            codec.encode(stored, api_version=f"resource.k8s.io/{target}")
        return
    assert codec.encode(stored, api_version=f"resource.k8s.io/{target}") == case[target]


def test_all_cases_are_there() -> None:
    assert len(CASES) >= 96
