"""Pod Security admission of a server: pods, workloads, namespaces, and the audit log."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from drachma.server import status
from drachma.server.access import authorization
from drachma.server.admission import pluginnames
from drachma.server.admission.podsecurity import configuration
from drachma.server.admission.podsecurity.policies import LATEST, Level, LevelVersion, Policy
from drachma.server.calls.call import Call, Origin
from drachma.server.user import User
from drachma.store import memory
from tests.unit.server import client
from tests.unit.server.client import Answer, Client

MERGE = "application/merge-patch+json"
NAMESPACES = "/api/v1/namespaces"
STRICT = {
    "containers": [
        {
            "name": "c",
            "image": "x",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
}
PRIVILEGED = {"containers": [{"name": "c", "image": "x", "securityContext": {"privileged": True}}]}
VIOLATION = 'privileged (container "c" must not set securityContext.privileged=true)'


def labels(**values: str) -> dict[str, str]:
    return {f"pod-security.kubernetes.io/{name.replace('_', '-')}": value for name, value in values.items()}


async def namespace(server: Client, name: str = "n", **values: str) -> Answer:
    return await server.call("POST", NAMESPACES, {"metadata": {"name": name, "labels": labels(**values)}})


async def label(server: Client, name: str = "n", **values: str | None) -> Answer:
    changes = {f"pod-security.kubernetes.io/{each.replace('_', '-')}": value for each, value in values.items()}
    body = {"metadata": {"labels": changes}}
    return await server.call("PATCH", f"{NAMESPACES}/{name}", body, content_type=MERGE)


async def create(server: Client, spec: Mapping[str, Any], name: str = "p", place: str = "n") -> Answer:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    return await server.call("POST", f"{NAMESPACES}/{place}/pods", body)


def warnings(answer: Answer) -> list[str]:
    texts = [value for key, value in answer.headers if key.lower() == "warning"]
    return [text.removeprefix('299 - "').removesuffix('"').replace('\\"', '"') for text in texts]


class TestPods:
    async def test_a_violation_is_refused(self, server: Client) -> None:
        await namespace(server, enforce="baseline")
        answer = await create(server, PRIVILEGED)
        assert answer.code == 403
        assert answer.body["reason"] == "Forbidden"
        assert answer.body["details"] == {"name": "p", "kind": "pods"}
        message = f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {VIOLATION}'
        assert answer.body["message"] == message
        assert warnings(answer) == []

    async def test_the_generated_name_is_told(self, server: Client) -> None:
        await namespace(server, enforce="baseline")
        body = {"metadata": {"generateName": "p-"}, "spec": PRIVILEGED}
        answer = await server.call("POST", f"{NAMESPACES}/n/pods", body)
        assert answer.body["message"].startswith('pods "p-')
        assert not answer.body["message"].startswith('pods "p-"')

    async def test_what_mutation_adds_counts(self) -> None:
        """The volume that ServiceAccount adds is one of the types that the restricted level allows."""
        server = await client.start(disabled_plugins=())
        await namespace(server, enforce="restricted")
        account = {"metadata": {"name": "default"}}
        await server.call("POST", f"{NAMESPACES}/n/serviceaccounts", account)
        answer = await create(server, STRICT)
        assert (answer.code, warnings(answer)) == (201, [])
        assert answer.body["spec"]["volumes"]

    async def test_an_older_version_is_less_strict(self, server: Client) -> None:
        await namespace(server, enforce="restricted", enforce_version="v1.7", warn="privileged")
        spec = {"containers": [{"name": "c", "image": "x"}], "securityContext": {"runAsNonRoot": True}}
        answer = await create(server, spec)
        assert (answer.code, warnings(answer)) == (201, [])

    async def test_warnings_do_not_refuse(self, server: Client) -> None:
        await namespace(server, enforce="privileged", warn="baseline", warn_version="v1.30")
        answer = await create(server, PRIVILEGED)
        assert answer.code == 201
        assert warnings(answer) == [f'would violate PodSecurity "baseline:v1.30": {VIOLATION}']

    async def test_namespaces_without_labels_enforce_nothing(self, server: Client) -> None:
        await namespace(server)
        answer = await create(server, PRIVILEGED)
        assert (answer.code, warnings(answer)) == (201, [])

    async def test_bad_labels_of_old_enforce_the_restricted_level(self) -> None:
        """A namespace may have had its labels before the plugin was enabled."""
        store = memory.MemoryStore()
        before = await client.start(store=store, disabled_plugins=(*pluginnames.PLUGINS, pluginnames.POD_SECURITY))
        await namespace(before, enforce="super")
        server = await client.start(store=store)
        answer = await create(server, {"containers": [{"name": "c", "image": "x"}]})
        assert answer.code == 403
        assert 'violates PodSecurity "restricted:latest"' in answer.body["message"]

    async def test_the_plugin_can_be_disabled(self) -> None:
        server = await client.start(disabled_plugins=(*pluginnames.PLUGINS, pluginnames.POD_SECURITY))
        await namespace(server, enforce="baseline")
        assert (await create(server, PRIVILEGED)).code == 201


class TestPodUpdates:
    async def start(self, server: Client) -> None:
        await namespace(server)
        initial = {**PRIVILEGED, "initContainers": [{"name": "i", "image": "x"}]}
        assert (await create(server, initial)).code == 201
        await label(server, enforce="baseline")

    async def patch(self, server: Client, body: Mapping[str, Any], below: str = "") -> Answer:
        strategic = "application/strategic-merge-patch+json"
        return await server.call("PATCH", f"{NAMESPACES}/n/pods/p{below}", body, content_type=strategic)

    @pytest.mark.parametrize(
        ("body", "below", "code"),
        [
            pytest.param({"metadata": {"labels": {"a": "b"}}}, "", 200, id="labels"),
            pytest.param({"spec": {"activeDeadlineSeconds": 60}}, "", 200, id="deadline"),
            pytest.param({"status": {"phase": "Running"}}, "/status", 200, id="status"),
            pytest.param({"spec": {"containers": [{"name": "c", "image": "y"}]}}, "", 403, id="image"),
            pytest.param({"spec": {"initContainers": [{"name": "i", "image": "y"}]}}, "", 403, id="init-image"),
            pytest.param(
                {"spec": {"ephemeralContainers": [{"name": "e", "image": "y"}]}},
                "/ephemeralcontainers",
                403,
                id="ephemeral-container",
            ),
        ],
    )
    async def test_changes_of_images_count(
        self, server: Client, body: Mapping[str, Any], below: str, code: int
    ) -> None:
        await self.start(server)
        answer = await self.patch(server, body, below)
        assert answer.code == code, answer.body

    async def test_finalizers_can_be_removed(self, server: Client) -> None:
        await self.start(server)
        assert (await self.patch(server, {"metadata": {"finalizers": ["example.com/x"]}})).code == 200
        assert (
            await self.patch(server, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/x"]}})
        ).code == 200

    async def test_an_ephemeral_container_that_is_there_does_not_count_again(self, server: Client) -> None:
        await namespace(server)
        await create(server, STRICT)
        body = {"spec": {"ephemeralContainers": [{"name": "e", "image": "y"}]}}
        assert (await self.patch(server, body, "/ephemeralcontainers")).code == 200
        await label(server, enforce="restricted")
        assert (await self.patch(server, {"metadata": {"labels": {"a": "b"}}})).code == 200


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Always", **PRIVILEGED}}
ONCE = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", **PRIVILEGED}}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


@pytest.mark.parametrize(
    ("collection", "fields"),
    [
        pytest.param("/apis/apps/v1/namespaces/n/deployments", {"spec": SELECTED}, id="deployment"),
        pytest.param("/apis/apps/v1/namespaces/n/replicasets", {"spec": SELECTED}, id="replicaset"),
        pytest.param("/apis/apps/v1/namespaces/n/daemonsets", {"spec": SELECTED}, id="daemonset"),
        pytest.param(
            "/apis/apps/v1/namespaces/n/statefulsets", {"spec": {**SELECTED, "serviceName": "s"}}, id="statefulset"
        ),
        pytest.param("/apis/batch/v1/namespaces/n/jobs", {"spec": {"template": ONCE}}, id="job"),
        pytest.param(
            "/apis/batch/v1/namespaces/n/cronjobs",
            {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": ONCE}}}},
            id="cronjob",
        ),
        pytest.param("/api/v1/namespaces/n/podtemplates", {"template": TEMPLATE}, id="podtemplate"),
        pytest.param(
            "/api/v1/namespaces/n/replicationcontrollers",
            {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
            id="replicationcontroller",
        ),
    ],
)
async def test_templates_of_workloads_are_warned_of(server: Client, collection: str, fields: Any) -> None:
    """An enforced level warns, too; templates are never refused."""
    await namespace(server, enforce="baseline")
    answer = await server.call("POST", collection, {"metadata": {"name": "w"}, **fields})
    assert answer.code == 201, answer.body
    assert warnings(answer) == [f'would violate PodSecurity "baseline:latest": {VIOLATION}']
    body = {"metadata": {"annotations": {"a": "b"}}}
    again = await server.call("PATCH", f"{collection}/w", body, content_type=MERGE)
    assert (again.code, warnings(again)) == (200, warnings(answer))


class TestNamespaces:
    @pytest.mark.parametrize("method", ["POST", "PATCH"])
    async def test_bad_labels_are_refused(self, server: Client, method: str) -> None:
        await namespace(server)
        bad = {"enforce": "super", "warn_version": "1.25"}
        answer = await (namespace(server, "m", **bad) if method == "POST" else label(server, **bad))
        assert answer.code == 422
        assert [cause["field"] for cause in answer.body["details"]["causes"]] == [
            "metadata.labels[pod-security.kubernetes.io/enforce]",
            "metadata.labels[pod-security.kubernetes.io/warn-version]",
        ]

    async def test_bad_labels_of_old_may_stay_as_they_are(self) -> None:
        store = memory.MemoryStore()
        before = await client.start(store=store, disabled_plugins=(*pluginnames.PLUGINS, pluginnames.POD_SECURITY))
        await namespace(before, enforce="super")
        server = await client.start(store=store)
        body = {"metadata": {"labels": {"a": "b"}}}
        assert (await server.call("PATCH", f"{NAMESPACES}/n", body, content_type=MERGE)).code == 200
        assert (await label(server, audit="super")).code == 422

    async def test_pods_that_violate_a_stricter_level_are_warned_of(self, server: Client) -> None:
        await namespace(server)
        await create(server, PRIVILEGED, "b")
        await create(server, PRIVILEGED, "a")
        await create(server, STRICT, "c")
        answer = await label(server, enforce="baseline", enforce_version="v1.30")
        assert answer.code == 200
        assert warnings(answer) == [
            'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:v1.30"',
            "a (and 1 other pod): privileged",
        ]

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            pytest.param({"enforce": "restricted"}, {"enforce": "baseline"}, id="relaxed"),
            pytest.param({"enforce": "baseline"}, {"warn": "restricted"}, id="other-mode"),
            pytest.param(
                {"enforce": "baseline"}, {"enforce": "privileged", "enforce_version": "v1.1"}, id="privileged"
            ),
        ],
    )
    async def test_other_changes_do_not_look_at_pods(
        self, server: Client, before: dict[str, str], after: dict[str, str]
    ) -> None:
        await namespace(server)
        await create(server, PRIVILEGED)
        assert warnings(await label(server, **before))
        answer = await label(server, **after)
        assert (answer.code, warnings(answer)) == (200, [])

    async def test_another_version_does_look_at_pods(self, server: Client) -> None:
        await namespace(server)
        await create(server, PRIVILEGED)
        await label(server, enforce="restricted")
        assert warnings(await label(server, enforce="baseline", enforce_version="v1.20"))


class Notes:
    """Auditor that keeps the annotations of calls that write."""

    def __init__(self) -> None:
        self.annotations: dict[str, str] = {}

    def call(self, call: Call) -> Callable[[Any], None]:
        def finish(_: object) -> None:
            self.annotations = {
                key.removeprefix("pod-security.kubernetes.io/"): text
                for key, text in call.annotations.items()
                if key.startswith("pod-security.kubernetes.io/")
            }

        return finish

    async def flush(self) -> None:
        """Return at once: notes are kept in memory."""

    def request(
        self,
        attributes: authorization.Attributes,
        end: int | status.StatusError,
        *,
        origin: Origin,
        user_agent: str,
        annotations: Mapping[str, str],
    ) -> None:
        pass


class TestAuditLog:
    async def test_annotations(self) -> None:
        notes = Notes()
        server = await client.start(audit=lambda _: notes)
        await namespace(server, "free")
        await create(server, PRIVILEGED, place="free")
        assert notes.annotations == {"enforce-policy": "privileged:latest"}
        await namespace(server, enforce="baseline", audit="restricted", audit_version="v1.7")
        await create(server, STRICT)
        assert notes.annotations == {"enforce-policy": "baseline:latest"}
        await create(server, {**STRICT, "hostPID": True})
        violation = "host namespaces (hostPID=true)"
        assert notes.annotations == {
            "enforce-policy": "baseline:latest",
            "audit-violations": f'would violate PodSecurity "restricted:v1.7": {violation}',
        }
        body = {"metadata": {"name": "t"}, "template": {"spec": {**STRICT, "hostPID": True}}}
        await server.call("POST", f"{NAMESPACES}/n/podtemplates", body)
        assert notes.annotations == {"audit-violations": f'would violate PodSecurity "restricted:v1.7": {violation}'}


class TestExemptions:
    async def start(self, notes: Notes | None = None) -> Client:
        exempt = configuration.Exemptions(
            usernames=frozenset({"robot"}),
            namespaces=frozenset({"exempt"}),
            runtime_classes=frozenset({"sandbox"}),
        )
        baseline = LevelVersion(Level.BASELINE, LATEST)
        server = await client.start(
            pod_security=configuration.Configuration(defaults=Policy(enforce=baseline), exemptions=exempt),
            users={"robot-token": User(name="robot", groups=("system:masters",))},
            audit=None if notes is None else lambda _: notes,
        )
        await namespace(server)
        await server.call(
            "POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "sandbox"}, "handler": "sandbox"}
        )
        return server

    async def test_defaults_count_without_labels(self) -> None:
        server = await self.start()
        assert (await create(server, PRIVILEGED)).code == 403

    async def test_a_namespace(self) -> None:
        notes = Notes()
        server = await self.start(notes)
        answer = await namespace(server, "exempt", enforce="restricted", warn_version="v1.30")
        assert warnings(answer) == [
            (
                'namespace "exempt" is exempt from Pod Security, and the policy '
                "(enforce=restricted:latest, warn=restricted:v1.30) will be ignored"
            )
        ]
        assert (await create(server, PRIVILEGED, place="exempt")).code == 201
        assert notes.annotations == {"exempt": "namespace"}
        assert warnings(await label(server, "exempt", enforce_version="v1.20")) == [
            (
                'namespace "exempt" is exempt from Pod Security, and the policy '
                "(enforce=restricted:v1.20, warn=restricted:v1.30) will be ignored"
            )
        ]

    async def test_a_namespace_without_labels_is_not_warned_of(self) -> None:
        assert warnings(await namespace(await self.start(), "exempt")) == []

    async def test_a_user(self) -> None:
        notes = Notes()
        server = await self.start(notes)
        body = {"metadata": {"name": "p"}, "spec": PRIVILEGED}
        headers = {"authorization": "Bearer robot-token"}
        answer = await server.call("POST", f"{NAMESPACES}/n/pods", body, headers=headers)
        assert answer.code == 201, answer.body
        assert notes.annotations == {"exempt": "user"}

    async def test_a_runtime_class(self) -> None:
        notes = Notes()
        server = await self.start(notes)
        answer = await create(server, {**PRIVILEGED, "runtimeClassName": "sandbox"})
        assert answer.code == 201, answer.body
        assert notes.annotations == {"exempt": "runtimeClass"}


async def test_annotations_for_apparmor_count_as_fields(server: Client) -> None:
    """The server copies the annotation to the field before it is checked, and says that it is deprecated."""
    await namespace(server, enforce="baseline")
    key = "container.apparmor.security.beta.kubernetes.io/c"
    metadata = {"name": "p", "annotations": {key: "unconfined"}}
    body = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    answer = await server.call("POST", f"{NAMESPACES}/n/pods", body)
    assert answer.body["message"] == (
        'pods "p" is forbidden: violates PodSecurity "baseline:latest": forbidden AppArmor profiles (container "c" and '
        f'annotation must not set AppArmor profile type to "Unconfined", "{key}="unconfined"")'
    )
    assert warnings(answer) == [
        f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    ]
