"""The phases: what is in which, and that a write that is refused in any of them leaves nothing behind."""

from typing import Any, NamedTuple

import msgspec
import pytest

from drachma import errors
from drachma.client import local
from drachma.server import inprocess, status
from drachma.server.access.authorization import ALLOWED, NO_RULES, Attributes, Decision, Opinion, Rules
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.calls.call import Call
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.pipeline.phases import COPIES_NAMES, Finish, Operation, Phase, Phases, RemovalStep, Step
from drachma.server.surface import verbs
from drachma.server.user import User
from tests.unit.server import client
from tests.unit.server.client import CLAIMS, PODS, Client

JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
NO_OPTIONS: local.Query = {}
PHASES = ("identity", "ownership", "mutate", "prepare", "validate", "check", "quota")


PRINTED = """
authorise  alwaysallow
identity   namespace                    create, update, status, upsert
           name                         update, status, upsert
           owner references             create, update, status, upsert
           preconditions                update, status, finalizers
           absence                      upsert
           nothing there                upsert
           system fields                create, upsert
ownership  readable managed fields      create, update, status, upsert
           owner of all                 create, upsert
           owner of changes             update, status, finalizers
mutate     NamespaceLifecycle           create, upsert
           NamespaceLifecycle           delete of namespaces
           LimitRanger                  create, status, upsert of pods
           default account              create, upsert of pods
           NodeRestriction              create, update, status, upsert, bind, finalizers of coordination.k8s.io/leases, nodes, persistentvolumeclaims, pods, resource.k8s.io/noderesourceslices, resource.k8s.io/resourceslices, storage.k8s.io/csinodes
           NodeRestriction              delete of coordination.k8s.io/leases, nodes, persistentvolumeclaims, pods, resource.k8s.io/noderesourceslices, resource.k8s.io/resourceslices, storage.k8s.io/csinodes
           Priority                     create, upsert of pods
           Priority                     create, upsert of scheduling.k8s.io/compositepodgroups, scheduling.k8s.io/podgroups
           Priority                     update of pods
           DefaultTolerationSeconds     create, update, upsert of pods
           DefaultStorageClass          create, upsert of persistentvolumeclaims
           RuntimeClass                 create, upsert of pods
           MutationChain                create, update, status, upsert, bind, finalizers
           MutatingAdmissionWebhook     delete
           escalation                   create, update, upsert of rbac.authorization.k8s.io/clusterroles, rbac.authorization.k8s.io/roles
           escalation                   create, update, upsert of rbac.authorization.k8s.io/clusterrolebindings, rbac.authorization.k8s.io/rolebindings
           times of owners              update, status
prepare    generated name               create
           uid and time                 create, upsert
           carry over                   update, status
validate   kind                         create, upsert
           kind                         update
           kind                         status
           leave to read parameters     create, update, upsert of admissionregistration.k8s.io/mutatingadmissionpolicies, admissionregistration.k8s.io/validatingadmissionpolicies
           leave to read parameters     create, update, upsert of admissionregistration.k8s.io/mutatingadmissionpolicybindings, admissionregistration.k8s.io/validatingadmissionpolicybindings
check      preconditions                delete
           leave to create              upsert
           LimitRanger                  create, status, upsert of pods
           LimitRanger                  create, update, upsert of persistentvolumeclaims
           PodSecurity                  create, update, status, upsert of pods
           PodSecurity                  create, update, upsert of apps/daemonsets, apps/deployments, apps/replicasets, apps/statefulsets, batch/cronjobs, batch/jobs, podtemplates, replicationcontrollers
           PodSecurity                  create, update, upsert of namespaces
           Priority                     create, update, upsert of scheduling.k8s.io/priorityclasses
           Priority                     delete of scheduling.k8s.io/priorityclasses
           CertificateApproval          status of certificates.k8s.io/certificatesigningrequests
           CertificateSigning           status of certificates.k8s.io/certificatesigningrequests
           CertificateSubjectRestriction create, upsert of certificates.k8s.io/certificatesigningrequests
           RuntimeClass                 create, upsert of pods
           NodeDeclaredFeatureValidator create, update, upsert of resource.k8s.io/resourceslices
           NodeDeclaredFeatureValidator update, status of pods
           ValidatingAdmissionPolicy    create, update, status, upsert, bind, finalizers
           ValidatingAdmissionPolicy    delete
           ValidatingAdmissionWebhook   create, update, status, upsert, bind, finalizers
           ValidatingAdmissionWebhook   delete
quota      addresses                    create, update, upsert of services
           ResourceQuota                create, upsert
           ResourceQuota                update, status of persistentvolumeclaims, pods, resource.k8s.io/resourceclaims, services
audit      -
"""  # noqa: E501 - as it is printed


class Act(NamedTuple):
    """One call; ``place`` is in the default namespace unless it says otherwise."""

    verb: str
    place: dict[str, str]
    body: dict[str, Any] | None = None
    media_type: str = JSON
    query: local.Query = NO_OPTIONS

    async def carry_out(self, dispatcher: Dispatcher) -> local.Stored:
        place = local.Place(**{"version": "v1", "namespace": "default", **self.place})
        body = msgspec.json.encode(self.body) if self.body is not None else b""
        backend = inprocess.InProcess(dispatcher)
        return await backend.write(local.Write(self.verb, place, body, self.query, self.media_type))


def claims(name: str = "") -> dict[str, str]:
    return {"group": "resource.k8s.io", "plural": "resourceclaims", "name": name}


def pods(name: str, subresource: str) -> dict[str, str]:
    return {"group": "", "plural": "pods", "name": name, "subresource": subresource}


def deployment() -> dict[str, Any]:
    labels = {"app": "d"}
    container = {"name": "main", "image": "registry.example/pause:3.10"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


LABELS = {"metadata": {"labels": {"a": "b"}}}
LEASE = {"group": "coordination.k8s.io", "plural": "leases", "name": "l"}
SCALE = {"group": "apps", "plural": "deployments", "name": "d", "subresource": "scale"}
FINALIZE = {"group": "", "plural": "namespaces", "namespace": "", "name": "n", "subresource": "finalize"}
BINDING = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
FORCED = {"fieldManager": ("m",), "force": ("true",)}
WRITES = [
    pytest.param(Act(verbs.CREATE, claims(), client.claim("new")), id="create"),
    pytest.param(Act(verbs.UPDATE, claims("c"), client.claim("c", labels={"a": "b"})), id="update"),
    pytest.param(Act(verbs.PATCH, claims("c"), LABELS, MERGE), id="patch"),
    pytest.param(Act(verbs.PATCH, claims("c"), client.claim("c", labels={"a": "b"}), APPLY, FORCED), id="apply"),
    pytest.param(Act(verbs.PATCH, claims("new"), client.claim("new"), APPLY, FORCED), id="apply-of-nothing"),
    pytest.param(Act(verbs.UPDATE, LEASE, {"metadata": {"name": "l"}}), id="update-of-nothing"),
    pytest.param(Act(verbs.PATCH, pods("p", "status"), {"status": {"message": "m"}}, MERGE), id="status"),
    pytest.param(Act(verbs.PATCH, SCALE, {"spec": {"replicas": 7}}, MERGE), id="scale"),
    pytest.param(Act(verbs.UPDATE, FINALIZE, {"metadata": {"name": "n"}, "spec": {"finalizers": []}}), id="finalize"),
    pytest.param(Act(verbs.CREATE, pods("p", "binding"), BINDING), id="bind"),
    pytest.param(Act(verbs.CREATE, pods("p", "eviction"), EVICTION), id="evict"),
    pytest.param(Act(verbs.DELETE, claims("c")), id="delete"),
    pytest.param(Act(verbs.DELETE, claims("held")), id="delete-with-finalizers"),
    pytest.param(Act(verbs.PATCH, claims("going"), {"metadata": {"finalizers": None}}, MERGE), id="last-finalizer"),
    pytest.param(Act(verbs.DELETE_COLLECTION, claims()), id="deletecollection"),
]


async def populate(server: Client) -> None:
    """Makes what the writes are about."""
    held = {"finalizers": ["example.com/a"]}
    for path, body in (
        (CLAIMS, client.claim("c")),
        (CLAIMS, client.claim("held", **held)),
        (CLAIMS, client.claim("going", **held)),
        (PODS, client.pod("p")),
        (DEPLOYMENTS, deployment()),
        ("/api/v1/namespaces", {"metadata": {"name": "n"}}),
    ):
        assert (await server.call("POST", path, body)).code == 201
    assert (await server.call("DELETE", f"{CLAIMS}/going")).code == 200


def with_phases(server: Client, changed: Phases) -> Dispatcher:
    """Return the same API with other phases."""
    standard = server.app.dispatcher
    return Dispatcher(msgspec.structs.replace(standard.services, phases=changed), standard.surface)


def refuse(_: Proposal | Removal | Call) -> None:
    raise status.failure(403, "Forbidden", "not today")


class Refusing:
    """Refuses every action."""

    name = "refusing"

    def authorise(self, attributes: Attributes) -> Opinion:
        return Opinion(Decision.DENIED, "not today")

    def rules(self, user: User, namespace: str) -> Rules:
        return NO_RULES


def refusing_in(standard: Phases, name: str) -> Phases:
    """Return the phases with a step that refuses everything at the end of one phase."""
    refusal = (Step("refuse", refuse, on=frozenset(Operation)), RemovalStep("refuse", refuse))
    return Phases(
        [phase._replace(steps=(*phase.steps, *refusal)) if phase.name == name else phase for phase in standard.phases],
        authoriser=standard.authoriser,
    )


def test_they_can_be_printed(server: Client) -> None:
    standard = server.app.dispatcher.services.phases
    assert tuple(phase.name for phase in standard.phases) == PHASES
    assert str(standard) == PRINTED.strip("\n")


@pytest.mark.parametrize("act", WRITES)
async def test_what_is_not_refused_is_written(server: Client, act: Act) -> None:
    await populate(server)
    before = server.store.revision
    await act.carry_out(server.app.dispatcher)
    assert server.store.revision > before


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("act", WRITES)
async def test_a_refusal_leaves_nothing_behind(server: Client, act: Act, phase: str) -> None:
    await populate(server)
    before = server.store.revision
    refusing = with_phases(server, refusing_in(server.app.dispatcher.services.phases, phase))
    with pytest.raises(errors.ForbiddenError, match="not today"):
        await act.carry_out(refusing)
    assert server.store.revision == before


@pytest.mark.parametrize("act", WRITES)
async def test_who_is_not_authorised_writes_nothing(server: Client, act: Act) -> None:
    await populate(server)
    before = server.store.revision
    standard = server.app.dispatcher.services.phases
    with pytest.raises(errors.ForbiddenError, match=r'User "kubernetes-admin" cannot .*: not today'):
        await act.carry_out(with_phases(server, Phases(standard.phases, authoriser=Refusing())))
    assert server.store.revision == before


class Counting:
    """Allows everything and records every question."""

    name = "counting"

    def __init__(self) -> None:
        self.questions: list[tuple[str, str]] = []

    def authorise(self, attributes: Attributes) -> Opinion:
        self.questions.append((attributes.verb, attributes.name))
        return ALLOWED

    def rules(self, user: User, namespace: str) -> Rules:
        return NO_RULES


async def test_a_write_over_http_is_authorised_once() -> None:
    authoriser = Counting()
    server = await client.start(authoriser=authoriser)
    authoriser.questions.clear()
    assert (await server.call("POST", CLAIMS, client.claim("c"))).code == 201
    assert (await server.call("DELETE", f"{CLAIMS}/c")).code == 200
    assert authoriser.questions == [("create", ""), ("delete", "c")]


class _Notebook:
    """An auditor that notes the codes of calls, 0 where they begin."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, int]] = []

    def call(self, call: Call) -> Finish:
        self.lines.append((call.user.name, call.verb, 0))
        return lambda end: self.lines.append((call.user.name, call.verb, end.code))

    async def flush(self) -> None:
        """Return at once: notes are kept in memory."""

    def request(self, *_: object, **facts: object) -> None:
        raise AssertionError(f"there is no other door: {facts}")


async def test_an_audit_hears_of_answers_and_refusals(server: Client) -> None:
    notebook = _Notebook()
    standard = server.app.dispatcher.services.phases
    audited = with_phases(server, Phases(standard.phases, authoriser=standard.authoriser, audit=(notebook,)))
    create = Act(verbs.CREATE, claims(), client.claim())
    await create.carry_out(audited)
    with pytest.raises(errors.ObjectExistsError):
        await create.carry_out(audited)
    assert notebook.lines == [("kubernetes-admin", "create", code) for code in (0, 201, 0, 409)]


COPYING = {
    "namespace", "name", "owner references", "preconditions", "absence", "nothing there", "system fields",
    "readable managed fields", "owner of all", "owner of changes", "NamespaceLifecycle", "default account",
    "Priority", "DefaultTolerationSeconds", "RuntimeClass", "times of owners", "generated name", "uid and time",
    "carry over", "kind", "PodSecurity",
}  # fmt: skip
"""Steps that were read, and found to copy names and check their form only. Read a step before it is added here."""


@pytest.mark.parametrize("act", WRITES)
async def test_a_step_that_says_nothing_about_names_reads_them(server: Client, act: Act) -> None:
    """Objects that differ in names share decisions unless a step reads names, so none must be forgotten."""
    seen: list[bool] = []

    def read_name(proposal: Proposal) -> None:
        seen.extend(made.reads_names(operation, proposal.write) for operation in step.on)

    standard = server.app.dispatcher.services.phases
    step = Step("new", read_name)
    made = Phases((*standard.phases, Phase("new", (step,))), authoriser=standard.authoriser)
    await populate(server)
    await act.carry_out(with_phases(server, made))
    assert all(seen)


def test_steps_that_only_copy_names_are_those_that_were_read(server: Client) -> None:
    steps = [step for phase in server.app.dispatcher.services.phases.phases for step in phase.steps]
    copying = {step.name for step in steps if isinstance(step, Step) and step.reads_names is COPIES_NAMES}
    assert copying == COPYING
