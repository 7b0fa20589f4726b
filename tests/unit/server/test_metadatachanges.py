"""Changes of metadata that the server refuses or ignores: which code and which words, for every way to write.

All of it was compared with kube-apiserver 1.37's answers. What that has no Status for is a 500 without a reason.
"""

from typing import Any, Final, NamedTuple

import pytest

from tests.unit.server import client
from tests.unit.server.client import Answer, Client

OTHER_UID: Final = "11111111-2222-3333-4444-555555555555"
TIME: Final = "2001-02-03T04:05:06Z"
IGNORED: Final = None

POD_SPEC: Final = {"containers": [{"name": "main", "image": "registry.example/pause:3.10"}]}
TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}


class Kind(NamedTuple):
    """A kind to write, in the words of refusals; ``stored_as`` is how upstream's storage calls it."""

    api_version: str
    kind: str
    plural: str
    namespace: str
    content: dict[str, Any]
    stored_as: str = ""

    @property
    def collection(self) -> str:
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        return f"{root}/namespaces/{self.namespace}/{self.plural}" if self.namespace else f"{root}/{self.plural}"

    @property
    def words(self) -> dict[str, str]:
        group = self.api_version.rpartition("/")[0]
        suffix = f".{group}" if group else ""
        key = "/".join(filter(None, ("/registry", self.stored_as or self.plural, self.namespace, "o")))
        return {"kind": f"{self.kind}{suffix}", "plural": f"{self.plural}{suffix}", "key": key}


CONFIG_MAP: Final = Kind("v1", "ConfigMap", "configmaps", "default", {"data": {"a": "b"}})
DEVICES: Final = "resource.k8s.io/v1"
CLAIM: Final = Kind(DEVICES, "ResourceClaim", "resourceclaims", "default", {"spec": client.claim()["spec"]})
SLICE: Final = Kind(
    DEVICES,
    "ResourceSlice",
    "resourceslices",
    "",
    {
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        }
    },
)
POD: Final = Kind("v1", "Pod", "pods", "default", {"spec": POD_SPEC})
NODE: Final = Kind("v1", "Node", "nodes", "", {}, stored_as="minions")
DEPLOYMENT: Final = Kind(
    "apps/v1",
    "Deployment",
    "deployments",
    "default",
    {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}},
)
LEASE: Final = Kind("coordination.k8s.io/v1", "Lease", "leases", "default", {"spec": {"holderIdentity": "a"}})
EVENT: Final = Kind("v1", "Event", "events", "default", {"involvedObject": {"namespace": "default"}})
SECRET: Final = Kind("v1", "Secret", "secrets", "default", {})
ACCOUNT: Final = Kind("v1", "ServiceAccount", "serviceaccounts", "default", {})
NAMESPACE: Final = Kind("v1", "Namespace", "namespaces", "", {})
QUOTA: Final = Kind("v1", "ResourceQuota", "resourcequotas", "default", {"spec": {"hard": {"pods": "9"}}})
PRIORITY: Final = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "", {"value": 5})

METHODS: Final = {
    "put": "application/json",
    "json-patch": "application/json-patch+json",
    "merge-patch": "application/merge-patch+json",
    "strategic-merge-patch": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
PATCHES: Final = tuple(method for method in METHODS if method != "put")


class Refusal(NamedTuple):
    """A Status: code, reason, and the message, in which the words of the object stand in braces."""

    code: int
    reason: str
    message: str


def _invalid(problem: str) -> Refusal:
    return Refusal(422, "Invalid", '{kind} "o" is invalid: ' + problem)


PRECONDITION: Final = Refusal(
    409,
    "Conflict",
    'Operation cannot be fulfilled on {plural} "o": StorageError: invalid object, Code: 4, Key: {key}, '
    "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
    f"UID in precondition: {OTHER_UID}, UID in object meta: {{uid}}",
)
MODIFIED: Final = Refusal(
    409,
    "Conflict",
    'Operation cannot be fulfilled on {plural} "o": the object has been modified; please apply your changes to the '
    "latest version and try again",
)
OTHER_NAME: Final = Refusal(400, "BadRequest", "the name of the object (other) does not match the name on the URL (o)")
NO_NAME: Final = Refusal(
    400, "BadRequest", "the name of the object (o based on URL) was undeterminable: name must be provided"
)
OTHER_NAMESPACE: Final = Refusal(
    400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"
)
IMMUTABLE_UID: Final = _invalid(f'metadata.uid: Invalid value: "{OTHER_UID}": field is immutable')


async def _made(server: Client, kind: Kind, **metadata: Any) -> dict[str, Any]:
    own = {"name": "o", "labels": {"app": "x"}, **metadata}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": own, **kind.content}
    answer = await server.call("POST", kind.collection, body)
    assert answer.code == 201, answer.body
    made: dict[str, Any] = answer.body
    return made


async def _write(
    server: Client, kind: Kind, stored: dict[str, Any], fields: dict[str, Any], *, method: str, below: str = ""
) -> Answer:
    """Changes the fields of the stored object's metadata by the method, through the subresource if one is named."""
    path = "/".join(filter(None, (f"{kind.collection}/o", below)))
    body: Any
    match method:
        case "put":
            body = {**stored, "metadata": {**stored["metadata"], **fields}}
        case "json-patch":
            body = [{"op": "add", "path": f"/metadata/{field}", "value": value} for field, value in fields.items()]
        case "apply":
            path += "?fieldManager=m&force=true"
            names = {field: stored["metadata"][field] for field in ("name", "namespace") if field in stored["metadata"]}
            body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": names | fields}
        case _:
            body = {"metadata": fields}
    return await server.call("PUT" if method == "put" else "PATCH", path, body, content_type=METHODS[method])


def _check(answer: Answer, want: Refusal | None, *, kind: Kind, stored: dict[str, Any]) -> None:
    if want is None:
        assert (answer.code, answer.body["metadata"]) == (200, stored["metadata"])
        return
    words = {**kind.words, "uid": stored["metadata"]["uid"]}
    message = want.message.format(**words)
    got = (answer.code, answer.body.get("reason", ""), answer.body["message"])
    assert got == (want.code, want.reason, message)


TARGETS: Final = [
    pytest.param(CONFIG_MAP, "", id="configmaps"),
    pytest.param(CLAIM, "", id="resourceclaims"),
    pytest.param(CLAIM, "status", id="resourceclaims-status"),
    pytest.param(SLICE, "", id="resourceslices"),
    pytest.param(POD, "", id="pods"),
    pytest.param(POD, "status", id="pods-status"),
    pytest.param(NODE, "", id="nodes"),
    pytest.param(NODE, "status", id="nodes-status"),
    pytest.param(DEPLOYMENT, "", id="deployments"),
    pytest.param(DEPLOYMENT, "status", id="deployments-status"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("kind", "below"), TARGETS)
async def test_another_uid(server: Client, kind: Kind, below: str, method: str) -> None:
    stored = await _made(server, kind)
    answer = await _write(server, kind, stored, {"uid": OTHER_UID}, method=method, below=below)
    _check(answer, PRECONDITION if method == "put" else IMMUTABLE_UID, kind=kind, stored=stored)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("kind", "below"), TARGETS)
async def test_another_name(server: Client, kind: Kind, below: str, method: str) -> None:
    stored = await _made(server, kind)
    answer = await _write(server, kind, stored, {"name": "other", "uid": OTHER_UID}, method=method, below=below)
    _check(answer, OTHER_NAME, kind=kind, stored=stored)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("kind", "below"), TARGETS)
async def test_another_namespace(server: Client, kind: Kind, below: str, method: str) -> None:
    """Objects of cluster scope have none, whatever a client says."""
    stored = await _made(server, kind)
    answer = await _write(server, kind, stored, {"namespace": "elsewhere"}, method=method, below=below)
    _check(answer, OTHER_NAMESPACE if kind.namespace else IGNORED, kind=kind, stored=stored)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("kind", "below"), TARGETS)
async def test_what_the_server_says_itself_is_ignored(server: Client, kind: Kind, below: str, method: str) -> None:
    stored = await _made(server, kind)
    revision = server.store.revision
    fields = {"creationTimestamp": TIME, "generation": 99, "selfLink": "/x"}
    answer = await _write(server, kind, stored, fields, method=method, below=below)
    _check(answer, IGNORED, kind=kind, stored=stored)
    assert server.store.revision == revision


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"uid": ""}, IGNORED, id="no-uid"),
        pytest.param({"name": ""}, NO_NAME, id="no-name"),
        pytest.param({"name": None}, NO_NAME, id="null-for-the-name"),
        pytest.param({"name": "other", "namespace": "elsewhere"}, OTHER_NAMESPACE, id="another-name-and-namespace"),
        pytest.param({"namespace": ""}, IGNORED, id="no-namespace"),
        pytest.param({"creationTimestamp": None}, IGNORED, id="null-for-a-time"),
        pytest.param({"resourceVersion": "1"}, MODIFIED, id="an-old-version"),
        pytest.param({"resourceVersion": "9" * 9}, MODIFIED, id="a-version-to-come"),
        pytest.param({"resourceVersion": ""}, IGNORED, id="no-version"),
        pytest.param({"resourceVersion": "0"}, IGNORED, id="version-zero"),
        pytest.param(
            {"resourceVersion": "x"},
            Refusal(500, "", 'strconv.ParseUint: parsing "x": invalid syntax'),
            id="no-number-for-the-version",
        ),
        pytest.param(
            {"resourceVersion": "-1"},
            Refusal(500, "", 'strconv.ParseUint: parsing "-1": invalid syntax'),
            id="a-negative-version",
        ),
        pytest.param(
            {"resourceVersion": "9" * 20},
            Refusal(500, "", f'strconv.ParseUint: parsing "{"9" * 20}": value out of range'),
            id="a-version-beyond-64-bits",
        ),
        pytest.param({"generation": -1}, IGNORED, id="a-negative-generation"),
        pytest.param(
            {"deletionTimestamp": TIME},
            _invalid(f'metadata.deletionTimestamp: Invalid value: "{TIME}": field is immutable'),
            id="a-time-of-deletion",
        ),
        pytest.param(
            {"deletionGracePeriodSeconds": 77},
            _invalid("metadata.deletionGracePeriodSeconds: Invalid value: 77: field is immutable"),
            id="a-grace-period",
        ),
    ],
)
async def test_changes_of_a_claim(server: Client, fields: dict[str, Any], want: Refusal | None, method: str) -> None:
    stored = await _made(server, CLAIM)
    answer = await _write(server, CLAIM, stored, fields, method=method)
    _check(answer, want, kind=CLAIM, stored=stored)


@pytest.mark.parametrize("method", METHODS)
async def test_a_uid_is_a_precondition_of_a_put_only(server: Client, method: str) -> None:
    """Patches are made of the object that is there, so of theirs the version is looked at first."""
    stored = await _made(server, CLAIM)
    answer = await _write(server, CLAIM, stored, {"uid": OTHER_UID, "resourceVersion": "1"}, method=method)
    _check(answer, PRECONDITION if method == "put" else MODIFIED, kind=CLAIM, stored=stored)


@pytest.mark.parametrize("method", PATCHES)
async def test_another_uid_is_told_with_what_else_is_wrong(server: Client, method: str) -> None:
    stored = await _made(server, CONFIG_MAP)
    fields = {"uid": OTHER_UID, "annotations": {"-": "-"}}
    answer = await _write(server, CONFIG_MAP, stored, fields, method=method)
    causes = [cause["field"] for cause in answer.body["details"]["causes"]]
    assert (answer.code, causes) == (422, ["metadata.annotations", "metadata.uid"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"deletionTimestamp": TIME}, id="a-time-of-deletion"),
        pytest.param({"labels": {"-": "-"}}, id="labels"),
    ],
)
async def test_the_status_of_a_claim_takes_no_metadata(server: Client, fields: dict[str, Any], method: str) -> None:
    stored = await _made(server, CLAIM)
    answer = await _write(server, CLAIM, stored, fields, method=method, below="status")
    _check(answer, IGNORED, kind=CLAIM, stored=stored)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        pytest.param(POD, {"deletionTimestamp": TIME}, id="pods-deletion"),
        pytest.param(DEPLOYMENT, {"labels": {"x": "y"}}, id="deployments-labels"),
        pytest.param(DEPLOYMENT, {"labels": {"-": "-"}}, id="deployments-bad-labels"),
    ],
)
async def test_metadata_that_a_status_keeps(server: Client, kind: Kind, fields: dict[str, Any], method: str) -> None:
    stored = await _made(server, kind)
    answer = await _write(server, kind, stored, fields, method=method, below="status")
    _check(answer, IGNORED, kind=kind, stored=stored)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(CONFIG_MAP, id="configmaps"),
        pytest.param(SECRET, id="secrets"),
        pytest.param(ACCOUNT, id="serviceaccounts"),
        pytest.param(NODE, id="nodes"),
        pytest.param(NAMESPACE, id="namespaces"),
        pytest.param(POD, id="pods"),
        pytest.param(CLAIM, id="resourceclaims"),
    ],
)
async def test_kinds_that_look_at_generate_name_again(server: Client, kind: Kind, method: str) -> None:
    stored = await _made(server, kind)
    answer = await _write(server, kind, stored, {"generateName": "A_B"}, method=method)
    assert answer.code == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == ["metadata.generateName"]


@pytest.mark.parametrize(
    ("kind", "below"),
    [
        pytest.param(SLICE, "", id="resourceslices"),
        pytest.param(DEPLOYMENT, "", id="deployments"),
        pytest.param(LEASE, "", id="leases"),
        pytest.param(QUOTA, "", id="resourcequotas"),
        pytest.param(PRIORITY, "", id="priorityclasses"),
        pytest.param(NODE, "status", id="nodes-status"),
        pytest.param(CLAIM, "status", id="resourceclaims-status"),
    ],
)
async def test_others_take_any_generate_name(server: Client, kind: Kind, below: str) -> None:
    stored = await _made(server, kind)
    answer = await _write(server, kind, stored, {"generateName": "A_B"}, method="merge-patch", below=below)
    assert (answer.code, answer.body["metadata"].get("generateName")) == (200, "A_B")


UNQUALIFIED: Final = _invalid(
    'metadata.finalizers[0]: Invalid value: "plain": '
    "name is neither a standard finalizer name nor is it fully qualified"
)


@pytest.mark.parametrize(
    ("kind", "below", "want"),
    [
        pytest.param(CONFIG_MAP, "", UNQUALIFIED, id="configmaps"),
        pytest.param(PRIORITY, "", UNQUALIFIED, id="priorityclasses"),
        pytest.param(DEPLOYMENT, "", UNQUALIFIED, id="deployments"),
        pytest.param(DEPLOYMENT, "status", UNQUALIFIED, id="deployments-status"),
        pytest.param(NAMESPACE, "status", UNQUALIFIED, id="namespaces-status"),
        pytest.param(POD, "status", UNQUALIFIED, id="pods-status"),
        pytest.param(SLICE, "", UNQUALIFIED, id="resourceslices"),
        pytest.param(CLAIM, "status", IGNORED, id="resourceclaims-status"),
    ],
)
async def test_finalizers_without_a_domain(server: Client, kind: Kind, below: str, want: Refusal | None) -> None:
    stored = await _made(server, kind)
    answer = await _write(server, kind, stored, {"finalizers": ["plain"]}, method="merge-patch", below=below)
    _check(answer, want, kind=kind, stored=stored)


@pytest.mark.parametrize("kind", [pytest.param(LEASE, id="leases"), pytest.param(EVENT, id="events")])
async def test_kinds_that_take_any_finalizers(server: Client, kind: Kind) -> None:
    stored = await _made(server, kind, finalizers=["plain"])
    answer = await _write(server, kind, stored, {"finalizers": ["plain", "other"]}, method="merge-patch")
    assert (answer.code, answer.body["metadata"]["finalizers"]) == (200, ["plain", "other"])


@pytest.mark.parametrize("method", [method for method in METHODS if method != "apply"])
@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"deletionTimestamp": None}, IGNORED, id="no-time"),
        pytest.param({"deletionGracePeriodSeconds": None}, IGNORED, id="no-grace-period"),
        pytest.param(
            {"deletionGracePeriodSeconds": 77},
            _invalid("metadata.deletionGracePeriodSeconds: Invalid value: 77: field is immutable"),
            id="another-grace-period",
        ),
    ],
)
async def test_a_deletion_stays(server: Client, fields: dict[str, Any], want: Refusal | None, method: str) -> None:
    await _made(server, CONFIG_MAP, finalizers=["example.com/keep"])
    deleted = await server.call("DELETE", f"{CONFIG_MAP.collection}/o")
    answer = await _write(server, CONFIG_MAP, deleted.body, fields, method=method)
    _check(answer, want, kind=CONFIG_MAP, stored=deleted.body)


@pytest.mark.parametrize(
    ("method", "kind", "fields", "want"),
    [
        pytest.param(
            "put",
            LEASE,
            {"uid": OTHER_UID, "resourceVersion": "5"},
            Refusal(409, "Conflict", PRECONDITION.message.replace("{uid}", "")),
            id="put-uid",
        ),
        pytest.param(
            "apply",
            LEASE,
            {"uid": OTHER_UID},
            Refusal(
                409,
                "Conflict",
                'Operation cannot be fulfilled on {plural} "o": uid mismatch: the provided object specified uid '
                f"{OTHER_UID}, and no existing object was found",
            ),
            id="apply-uid",
        ),
        pytest.param(
            "put", CONFIG_MAP, {"uid": OTHER_UID}, Refusal(404, "NotFound", '{plural} "o" not found'), id="404"
        ),
        pytest.param(
            "put",
            LEASE,
            {"resourceVersion": "x"},
            Refusal(500, "", 'strconv.ParseUint: parsing "x": invalid syntax'),
            id="put-no-number-for-the-version",
        ),
        pytest.param(
            "apply",
            CONFIG_MAP,
            {"resourceVersion": "x"},
            Refusal(500, "", 'strconv.ParseUint: parsing "x": invalid syntax'),
            id="apply-no-number-for-the-version",
        ),
    ],
)
async def test_writes_of_what_is_not_there(
    server: Client, method: str, kind: Kind, fields: dict[str, Any], want: Refusal
) -> None:
    absent = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "o", "uid": ""}, **kind.content}
    answer = await _write(server, kind, absent, fields, method=method)
    _check(answer, want, kind=kind, stored=absent)


async def test_put_makes_a_lease_whatever_its_version(server: Client) -> None:
    absent = {"metadata": {"name": "o"}, **LEASE.content}
    answer = await _write(server, LEASE, absent, {"resourceVersion": "5", "creationTimestamp": TIME}, method="put")
    assert answer.code == 201
    assert answer.body["metadata"]["creationTimestamp"] != TIME


CONVERSION: Final = (
    "failed to convert new object (default/o; /v1, Kind=ConfigMap) to proper version: unable to convert unstructured "
    "object to /v1, Kind=ConfigMap: "
)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            {"creationTimestamp": "yesterday"},
            f'{CONVERSION}parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
            id="no-time",
        ),
        pytest.param(
            {"deletionTimestamp": 5},
            f"{CONVERSION}json: cannot unmarshal number into Go value of type string",
            id="number-for-a-time",
        ),
        pytest.param(
            {"name": 5},
            "failed to create typed patch object (default/; /v1, Kind=ConfigMap): .metadata.name: expected string, got "
            "&value.valueUnstructured{Value:5}",
            id="number-for-the-name",
        ),
        pytest.param(
            {"uid": 5},
            "failed to create typed patch object (default/o; /v1, Kind=ConfigMap): .metadata.uid: expected string, got "
            "&value.valueUnstructured{Value:5}",
            id="number-for-the-uid",
        ),
    ],
)
async def test_applied_metadata_of_a_wrong_type(server: Client, fields: dict[str, Any], message: str) -> None:
    stored = await _made(server, CONFIG_MAP)
    answer = await _write(server, CONFIG_MAP, stored, fields, method="apply")
    assert (answer.code, answer.body.get("reason"), answer.body["message"]) == (500, None, message)
