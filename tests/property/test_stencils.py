"""Decisions that are filled in by stencils are those that intents make by themselves, byte for byte."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import hypothesis
import pytest
from hypothesis import strategies as st

from drachma import errors
from drachma.api import event, meta, pod, resourceclaim
from drachma.client import local, transactions
from drachma.runtime import events
from drachma.server import inprocess
from drachma.server.pipeline import intent, stencil
from drachma.testing import claim
from tests.unit.server import client

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
SETTINGS: Final = hypothesis.settings(
    max_examples=6,
    deadline=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)


class NoStencils(stencil.Stencils):
    """Lets every intent decide by itself."""

    def open(self) -> stencil.Stamping:
        return _Alone(self)


class _Alone(stencil.Stamping):
    def decide(self, each: intent.Intent, get: intent.Get) -> intent.Decision:
        return each.decide(get)


class Shape(NamedTuple):
    """A pod, its claim and the devices that it gets."""

    pod: str
    claim: str
    node: str
    device: str
    devices: int
    message: str
    label: str
    seconds: int
    """Time that passes before the pod is created."""


class Counting(stencil.Stencils):
    """Counts the decisions that were filled in."""

    def __init__(self) -> None:
        super().__init__()
        self.stamped = 0

    def open(self) -> stencil.Stamping:
        return _Counted(self)


class _Counted(stencil.Stamping):
    def decide(self, each: intent.Intent, get: intent.Get) -> intent.Decision:
        decision = super().decide(each, get)
        assert isinstance(self._stencils, Counting)
        self._stencils.stamped += isinstance(decision, intent.Stamped)
        return decision


class Twin:
    """A server with a client in its process."""

    def __init__(self, server: client.Client, stencils: stencil.Stencils) -> None:
        self.clock, self.store, self.stencils = server.clock, server.store, stencils
        server.app.dispatcher.services.committer._stencils = stencils
        self.client = local.LocalClient(inprocess.InProcess(server.app.dispatcher), manager="component")

    async def act(self, shapes: Sequence[Shape]) -> list[str]:
        """Write pods, claims, names, allocations, bindings and events in three commits. Return the refusals."""
        refusals: list[str] = []
        pods: list[tuple[Shape, pod.Pod]] = []
        for each in shapes:
            self.clock.now += dt.timedelta(seconds=each.seconds)
            await self._create_pod(each, pods, refusals)
        created = [shape for shape, _ in pods]
        owners = [owner for _, owner in pods]
        drafts = [_draft(each, owner) for each, owner in zip(created, owners, strict=True)]
        claims = [transactions.Create(each) for each in drafts]
        names = [
            transactions.StatusChange(
                owner,
                pod.PodStatus(
                    resource_claim_statuses=(pod.PodResourceClaimStatus(name="gpu", resource_claim_name=shape.claim),)
                ),
                fields=("resourceClaimStatuses",),
            )
            for shape, owner in zip(created, owners, strict=True)
        ]
        claims_written = await self._commit([*claims, *names], refusals)
        self.clock.now += dt.timedelta(seconds=1)
        if claims_written is None:
            return refusals
        stored, users = claims_written[: len(created)], claims_written[len(created) :]
        allocations = [
            transactions.StatusChange(each, _allocate(shape, user), (FINALIZER,))
            for shape, each, user in zip(created, stored, users, strict=True)
        ]
        bindings = [transactions.Bind(user, shape.node) for shape, user in zip(created, users, strict=True)]
        reports = [transactions.Create(self._report(shape, user)) for shape, user in zip(created, users, strict=True)]
        await self._commit([*allocations, *bindings, *reports], refusals)
        return refusals

    async def _create_pod(self, shape: Shape, pods: list[tuple[Shape, pod.Pod]], refusals: list[str]) -> None:
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**_name(shape.pod), "namespace": "default", "labels": {"x": shape.label}},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "resources": {"claims": [{"name": "gpu"}], "requests": {"cpu": "100m", "memory": "1"}},
                    }
                ],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            },
        }
        try:
            created = await self.client.create_document(pod.Pod, document)
        except errors.DrachmaError as error:
            refusals.append(str(error))
            return
        pods.append((shape, await self.client.get(pod.Pod, created["metadata"]["name"], namespace="default")))

    async def _commit(self, changes: list[Any], refusals: list[str]) -> list[Any] | None:
        try:
            return list(await self.client.commit(changes)) if changes else None
        except errors.CommitRefusedError as error:
            refusals.append(f"{error.position}: {error}")
            return None

    def _report(self, shape: Shape, user: pod.Pod) -> event.Event:
        now = self.clock.now.replace(microsecond=0)
        return event.Event(
            metadata=meta.ObjectMeta(name=f"{shape.pod}.17", namespace="default"),
            involved_object=events.reference_to(user),
            reason="Scheduled",
            message=shape.message,
            source=event.EventSource(component="scheduler"),
            first_timestamp=now,
            last_timestamp=now,
            count=1,
            type="Normal",
            reporting_component="scheduler",
        )

    def history(self) -> list[tuple[str, str, bytes]]:
        """Return every version of every object, as it is stored."""
        versions: list[tuple[str, str, bytes]] = []
        for resource in ("pods", "resource.k8s.io/resourceclaims", "events"):
            with self.store.watch(resource, after=self.store.compacted) as watch:
                versions += [(resource, each.change, each.record.data) for each in watch.ready()]
        return versions


def _name(name: str) -> dict[str, str]:
    """Return the metadata of a pod with a name, or with a generated one if the name ends with a plus."""
    return {"generateName": f"{name[:-1]}-"} if name.endswith("+") else {"name": name}


def _device_name(prefix: str, number: int) -> str:
    """Return the name of a device; without a prefix it is a letter."""
    return f"{prefix}{number}" if prefix else "abcdefgh"[number]


def _draft(shape: Shape, owner: pod.Pod) -> resourceclaim.ResourceClaim:
    reference = meta.OwnerReference(
        api_version="v1", kind="Pod", name=owner.metadata.name, uid=owner.metadata.uid, controller=True,
        block_owner_deletion=True,
    )  # fmt: skip
    metadata = meta.ObjectMeta(
        name=shape.claim,
        namespace="default",
        generate_name=f"{shape.pod}-gpu-",
        annotations={"resource.kubernetes.io/pod-claim-name": "gpu"},
        owner_references=(reference,),
    )
    builder = claim(shape.claim)
    for number in range(shape.devices):
        builder = builder.request(f"r{number}", device_class="gpu.example.com")
    return resourceclaim.ResourceClaim(metadata=metadata, spec=builder.build().spec)


def _allocate(shape: Shape, user: pod.Pod) -> resourceclaim.ResourceClaimStatus:
    builder = claim(shape.claim)
    for number in range(shape.devices):
        builder = builder.request(f"r{number}", device_class="gpu.example.com")
    devices = [
        (f"r{number}", "gpu.example.com", shape.node, _device_name(shape.device, number))
        for number in range(shape.devices)
    ]
    allocation = builder.allocated(*devices).build().status.allocation
    consumer = resourceclaim.ResourceClaimConsumerReference(
        resource="pods", name=user.metadata.name, uid=user.metadata.uid
    )
    return resourceclaim.ResourceClaimStatus(allocation=allocation, reserved_for=(consumer,))


async def _compare(batches: Sequence[Sequence[Shape]]) -> int:
    """Run the same batches with and without stencils. Return the number of decisions that were filled in."""
    counting = Counting()
    stamped, single = Twin(await client.start(), counting), Twin(await client.start(), NoStencils())
    for batch in batches:
        assert await stamped.act(batch) == await single.act(batch)
        assert stamped.history() == single.history()
    return counting.stamped


PLAIN: Final = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,3})?", fullmatch=True)
ODD: Final = st.sampled_from(
    ["name", "v1", "gpu", "default", "Not-A-Name", "a--b", "x" * 64, "a.b", "-a", "", "pods", "é", "set+", "set+"]
)
SHAPES: Final = st.builds(
    Shape,
    pod=PLAIN | ODD,
    claim=PLAIN | ODD,
    node=st.sampled_from(["node-1", "node-2.example.com", "v1", "gpu", "NODE"]),
    device=st.sampled_from(["gpu-", "gpu.", "v1", "G", ""]),
    devices=st.sampled_from([1, 1, 1, 2]),
    message=st.sampled_from(["assigned", 'with "quotes"', "", "v1", "é", "gpu"]),
    label=st.sampled_from(["1", "1", "2"]),
    seconds=st.sampled_from([0, 0, 0, 1]),
)


@SETTINGS
@hypothesis.given(st.lists(st.lists(SHAPES, min_size=1, max_size=6), min_size=1, max_size=3))
def test_a_batch_equals_single_writes(batches: list[list[Shape]]) -> None:
    asyncio.run(_compare(batches))


POLICY: Final = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "names"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["resource.k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE"],
                    "resources": ["resourceclaims"],
                }
            ]
        },
        "validations": [{"expression": "!object.metadata.name.endsWith('3')", "message": "no three"}],
    },
}
BINDING: Final = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "names"},
    "spec": {"policyName": "names", "validationActions": ["Deny"]},
}
QUOTA: Final = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "claims", "namespace": "default"},
    "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "12"}},
    "status": {
        "hard": {"count/resourceclaims.resource.k8s.io": "12"},
        "used": {"count/resourceclaims.resource.k8s.io": "9"},
    },
}


def _shapes(first: int, count: int) -> list[Shape]:
    return [
        Shape(f"pod-{n}", f"pod-{n}-gpu-x{n}", f"node-{n}", f"gpu{n}-", 1, f"assigned to {n}", "1", 0)
        for n in range(first, first + count)
    ]


@pytest.mark.parametrize(
    ("objects", "want_refusal"),
    [
        pytest.param([POLICY, BINDING], '3: resourceclaims.resource.k8s.io "pod-33-gpu-x33" is forbidden', id="policy"),
        pytest.param(
            [QUOTA], '3: resourceclaims.resource.k8s.io "pod-33-gpu-x33" is forbidden: exceeded quota', id="quota"
        ),
    ],
)
def test_names_and_numbers_count_once_a_policy_or_quota_exists(objects: list[Any], want_refusal: str) -> None:
    async def run() -> list[str]:
        server = await client.start()
        twin = Twin(server, Counting())
        assert await twin.act(_shapes(20, 9)) == []
        for each in objects:
            plural = {
                "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
                "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
                "ResourceQuota": "v1/namespaces/default/resourcequotas",
            }[each["kind"]]
            path = f"/api/{plural}" if plural.startswith("v1/") else f"/apis/{plural}"
            answer = await server.call("POST", path, each)
            assert answer.code == 201, answer
            if "status" in each:
                await server.call(
                    "PUT", f"{path}/{each['metadata']['name']}/status", {**answer.body, "status": each["status"]}
                )
        return await twin.act(_shapes(30, 9))

    (refusal,) = asyncio.run(run())
    assert want_refusal in refusal


@pytest.mark.parametrize("count", [pytest.param(1, id="one"), pytest.param(20, id="twenty")])
def test_objects_of_one_shape_are_filled_in(count: int) -> None:
    stamped = asyncio.run(_compare([_shapes(0, count)]))
    # Of each of the six kinds of changes, only the first is decided by itself.
    assert stamped == 6 * (count - 1)
