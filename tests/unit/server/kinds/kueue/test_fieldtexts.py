"""What the fields of Kueue's kinds mean: all that can be explained is, and nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest

from drachma.server.kinds.kueue import fieldtexts, queueschemas, schemanotation, workloadschemas

_NEWER = (queueschemas.SHARED, queueschemas.V1BETA2, workloadschemas.V1BETA2)
_OLDER = (*_NEWER, queueschemas.V1BETA1, workloadschemas.V1BETA1)
_KINDS = (
    "AdmissionCheck",
    "ClusterQueue",
    "Cohort",
    "LocalQueue",
    "ResourceFlavor",
    "Workload",
    "WorkloadPriorityClass",
)
_ELSEWHERE = {"PodTemplate": {"type": "object"}, "LabelSelector": {"type": "object"}}


def _schemas(*texts: str) -> schemanotation.Schemas:
    marked = {key: f"{key[0]}.{key[1]}" for key in fieldtexts.texts()}
    return schemanotation.Schemas(*texts, known=_ELSEWHERE, meanings=marked)


def _fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str | None]]:
    for name, field in schema.get("properties", {}).items():
        if "." in path or name not in ("apiVersion", "kind", "metadata"):
            yield f"{path}.{name}", field.get("description")
        yield from _fields(field, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from _fields(schema["items"], path)


@pytest.mark.parametrize("texts", [pytest.param(_OLDER, id="v1beta1"), pytest.param(_NEWER, id="v1beta2")])
def test_every_field_is_explained(texts: tuple[str, ...]) -> None:
    schemas = _schemas(*texts)
    assert all(schemas.kind(kind).get("description") for kind in _KINDS)
    fields = [each for kind in _KINDS for each in _fields(schemas.kind(kind), kind)]
    assert [path for path, text in fields if text is None] == []


def test_every_text_is_about_a_field() -> None:
    shown = {kind + "." for kind in _KINDS}
    for texts in (_OLDER, _NEWER):
        shown |= {text or "" for kind in _KINDS for _, text in _fields(_schemas(*texts).kind(kind), kind)}
    assert {f"{owner}.{field}" for owner, field in fieldtexts.texts()} - shown == set()
