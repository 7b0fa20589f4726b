"""One stored object read as v1, v1beta2 and v1beta1, as recorded from a real API server, in every direction."""

import itertools

import pytest

from drachma import errors
from drachma.api import codec
from tests.conformance import vectors
from tests.conformance.vectors import Line

VERSIONS = ("v1", "v1beta2", "v1beta1")


@vectors.each("conversion")
def test_conversion(case: Line) -> None:
    for source, target in itertools.product(VERSIONS, repeat=2):
        if not _served(case, source):
            with pytest.raises(errors.DecodeError, match="does not exist in"):
                codec.decode({**case["v1"], "apiVersion": f"resource.k8s.io/{source}"})
            continue
        stored = codec.decode(case[source])
        if _served(case, target):
            assert codec.encode(stored, api_version=f"resource.k8s.io/{target}") == case[target], (source, target)
            continue
        with pytest.raises(errors.DecodeError, match="does not exist in"):
            codec.encode(stored, api_version=f"resource.k8s.io/{target}")


def _served(case: Line, version: str) -> bool:
    return "kind" in case[version] and "code" not in case[version]
