"""Updates of persistent volumes and their claims."""

from typing import Any

import pytest

from drachma.validation import storage
from drachma.validation.path import ROOT

SPEC: dict[str, Any] = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "2Gi"}},
    "volumeMode": "Filesystem",
}
IMMUTABLE = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims\n"
)


def _claim(phase: str, **fields: Any) -> dict[str, Any]:
    return {"spec": {**SPEC, **fields}, "status": {"phase": phase, "capacity": {"storage": "1Gi"}}}


def _sized(size: str) -> dict[str, Any]:
    return {"resources": {"requests": {"storage": size}}}


@pytest.mark.parametrize(
    ("phase", "old", "new", "want"),
    [
        pytest.param("Pending", {}, {"volumeName": "v"}, [], id="a-volume-once"),
        pytest.param("Pending", {}, {"storageClassName": "c"}, [], id="a-class-once"),
        pytest.param("Bound", {}, _sized("3Gi"), [], id="a-larger-bound-claim"),
        pytest.param("Bound", {}, {"volumeAttributesClassName": "fast"}, [], id="other-attributes"),
        pytest.param("Bound", {}, _sized("1500Mi"), [], id="back-from-a-failed-expansion"),
        pytest.param(
            "Bound",
            {},
            _sized("1Gi"),
            ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
            id="smaller-than-the-volume",
        ),
        pytest.param(
            "Pending",
            {},
            _sized("3Gi"),
            [
                IMMUTABLE + "@@ -6,7 +6,7 @@\n"
                '  "Resources": {\n'
                '   "Limits": null,\n'
                '   "Requests": {\n'
                '-   "storage": "2Gi"\n'
                '+   "storage": "3Gi"\n'
                "   }\n"
                "  },\n"
                '  "VolumeName": "",\n'
            ],
            id="a-larger-claim-that-waits",
        ),
        pytest.param(
            "Bound",
            {"storageClassName": "a"},
            {"storageClassName": "b"},
            [
                IMMUTABLE + "@@ -10,7 +10,7 @@\n"
                "   }\n"
                "  },\n"
                '  "VolumeName": "",\n'
                '- "StorageClassName": "a",\n'
                '+ "StorageClassName": "b",\n'
                '  "VolumeMode": "Filesystem",\n'
                '  "DataSource": null,\n'
                '  "DataSourceRef": null,\n'
            ],
            id="another-class",
        ),
    ],
)
def test_updates_of_claims(phase: str, old: dict[str, Any], new: dict[str, Any], want: list[str]) -> None:
    errors = storage.KINDS["PersistentVolumeClaim"].update(_claim(phase, **new), ROOT, _claim(phase, **old))
    assert [str(error) for error in errors] == want


def test_the_source_of_a_volume_is_immutable_and_its_change_is_shown() -> None:
    old, new = ({"spec": {"hostPath": {"path": path}, "volumeMode": mode}} for path, mode in (("/a", "A"), ("/b", "B")))
    source, mode = (str(error) for error in storage.KINDS["PersistentVolume"].update(new, ROOT, old))
    assert source.startswith(
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n@@ "
    )
    assert '-  "Path": "/a",\n+  "Path": "/b",\n' in source
    assert mode == 'volumeMode: Invalid value: "B": field is immutable'
