"""Volumes and their mounts."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"volumes": [{"emptyDir": {}}]},
            ["spec.volumes[0].name: Required value"],
            id="volumes-0-name-required-value",
        ),
        pytest.param(
            {"volumes": [{"name": "V_", "emptyDir": {}}]},
            [
                (
                    'spec.volumes[0].name: Invalid value: "V_": a lowercase RFC 1123 label must consist of lower '
                    "case alphanumeric characters or '-', and must start and end with an alphanumeric character "
                    "(e.g. 'my-name',  or '123-abc', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                )
            ],
            id="volumes-0-name-invalid-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
            ['spec.volumes[1].name: Duplicate value: "v"'],
            id="volumes-1-name-duplicate-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
            id="volumes-0-host-path-forbidden",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "hostPath": {}}]},
            ["spec.volumes[0].hostPath.path: Required value"],
            id="volumes-0-host-path-path-required-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]},
            ["spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
            id="volumes-0-host-path-path-invalid-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "hostPath": {"path": "/a", "type": "Bogus"}}]},
            [
                (
                    'spec.volumes[0].hostPath.type: Unsupported value: "Bogus": supported values: "", '
                    '"BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", '
                    '"Socket"'
                )
            ],
            id="volumes-0-host-path-type-unsupported-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "configMap": {}}]},
            ["spec.volumes[0].configMap.name: Required value"],
            id="volumes-0-config-map-name-required-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "configMap": {"name": "x", "items": [{"key": "", "path": "../x"}]}}]},
            [
                "spec.volumes[0].configMap.items[0].key: Required value",
                "spec.volumes[0].configMap.items[0].path: Invalid value: \"../x\": must not contain '..'",
            ],
            id="volumes-0-config-map-items-0-key-required-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "secret": {}}]},
            ["spec.volumes[0].secret.secretName: Required value"],
            id="volumes-0-secret-secret-name-required-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "secret": {"secretName": "x", "defaultMode": 9999}}]},
            [
                (
                    "spec.volumes[0].secret.defaultMode: Invalid value: 9999: must be a number between 0 and "
                    "0777 (octal), both inclusive"
                )
            ],
            id="volumes-0-secret-default-mode-invalid-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
            id="volumes-0-persistent-volume-claim-claim-name-required-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "downwardAPI": {"items": [{"path": "x"}]}}]},
            ["spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"],
            id="volumes-0-downward-api-required-value",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "-1"}}]},
            ["spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
            id="volumes-0-empty-dir-size-limit-forbidden",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "nfs": {"server": "", "path": "x"}}]},
            [
                "spec.volumes[0].nfs.server: Required value",
                'spec.volumes[0].nfs.path: Invalid value: "x": must be an absolute path',
            ],
            id="volumes-0-nfs-server-required-value",
        ),
        pytest.param(
            {
                "containers": [{"name": "c", "image": "x", "volumeMounts": [{"name": "w", "mountPath": "/x"}]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
            ['spec.containers[0].volumeMounts[0].name: Not found: "w"'],
            id="containers-0-volume-mounts-0-name-not-found",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "volumeMounts": [{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}],
                    }
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
            ['spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique'],
            id="containers-0-volume-mounts-1-mount-path-invalid-value",
        ),
        pytest.param(
            {
                "containers": [{"name": "c", "image": "x", "volumeMounts": [{}]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
            [
                "spec.containers[0].volumeMounts[0].name: Required value",
                'spec.containers[0].volumeMounts[0].name: Not found: ""',
                "spec.containers[0].volumeMounts[0].mountPath: Required value",
            ],
            id="containers-0-volume-mounts-0-name-required-value",
        ),
        pytest.param(
            {
                "containers": [
                    {"name": "c", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "/abs"}]}
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
            ['spec.containers[0].volumeMounts.subPath: Invalid value: "/abs": must be a relative path'],
            id="containers-0-volume-mounts-sub-path-invalid-value",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "volumeMounts": [
                            {"name": "v", "mountPath": "/x", "subPath": "a/../b", "mountPropagation": "Bogus"}
                        ],
                    }
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
            [
                "spec.containers[0].volumeMounts.subPath: Invalid value: \"a/../b\": must not contain '..'",
                (
                    'spec.containers[0].volumeMounts.mountPropagation: Unsupported value: "Bogus": supported '
                    'values: "Bidirectional", "HostToContainer", "None"'
                ),
            ],
            id="containers-0-volume-mounts-sub-path-invalid-value-2",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]}]},
            ['spec.containers[0].volumeDevices[0].name: Not found: "v"'],
            id="containers-0-volume-devices-0-name-not-found",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
