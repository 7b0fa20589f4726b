"""Queueing in a process: its component, and for an API server its kinds, and its webhooks as functions."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import pathlib
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Any, Final

from drachma.client import http, kubeconfig, protocol
from drachma.process import components, configurationfile, conversionwebhook, placement
from drachma.process.queueingchoice import QueueingChoice
from drachma.process.visibilityendpoint import VisibilityEndpoint
from drachma.process.webhookendpoint import WebhookEndpoint
from drachma.queueing.component import ActiveConfiguration, Connect, PendingView, QueueingComponent, Reviews
from drachma.queueing.configuration import configuration, frameworks
from drachma.queueing.kinds import admissioncheck, decoding, workload
from drachma.queueing.rules import jobwebhooks, webhooks
from drachma.queueing.rules.webhooks import Webhook
from drachma.runtime import Surroundings, clock, controller
from drachma.server.admission import hooks
from drachma.server.kinds.kueue import queuekinds, visibilitykinds
from drachma.server.pipeline import services
from drachma.server.wire import app
from drachma.store import record
from drachma.values import fieldtext

ACCOUNT: Final = "system:serviceaccount:kueue-system:kueue-controller-manager"
"""Kueue's own account, to which its manifests bind their roles."""

_LOCAL_QUEUES: Final = f"{queuekinds.GROUP}/localqueues"
_CLUSTER_QUEUES: Final = f"{queuekinds.GROUP}/clusterqueues"
_CHECKS: Final = f"{queuekinds.GROUP}/admissionchecks"
_WORKLOADS: Final = f"{queuekinds.GROUP}/workloads"
_CLUSTER_KINDS: Final = frozenset({"ClusterTrainingRuntime"})
_PRIORITIES: Final = f"{queuekinds.GROUP}/workloadpriorityclasses"
_PLURALS: Final = {
    ("apps/v1", "ReplicaSet"): "apps/replicasets",
    ("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime"): "trainer.kubeflow.org/clustertrainingruntimes",
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): "trainer.kubeflow.org/trainingruntimes",
    **{
        (each.api_version, each.kind): f"{each.group}/{each.kind.lower()}s".removeprefix("/")
        for each in frameworks.KINDS.values()
    },
}

_ROLES: Final = """\
role kueue-manager-role
    read core: configmaps limitranges namespaces nodes pods
    create,patch core: configmaps
    delete,patch,update core: pods
    patch,update core: pods/finalizers pods/status
    read node.k8s.io: runtimeclasses
    read scheduling.k8s.io: priorityclasses
    read apiextensions.k8s.io: customresourcedefinitions
    read resource.k8s.io: deviceclasses resourceclaimparameters resourceclaims resourceclaimtemplates resourceclasses
    read resource.k8s.io: resourceclassparameters resourceslices
    read apps: deployments replicasets statefulsets
    get,list,patch,update,watch,delete batch: jobs
    patch,update batch: jobs/finalizers jobs/status
    get,list,patch,update,watch jobset.x-k8s.io: jobsets
    patch,update jobset.x-k8s.io: jobsets/finalizers jobsets/status
    get,list,patch,update,watch kubeflow.org: jaxjobs mpijobs paddlejobs pytorchjobs tfjobs xgboostjobs
    create,delete,get,list,patch,update,watch core: podtemplates
    create,delete,get,list,patch,update,watch autoscaling.x-k8s.io: provisioningrequests
    read kueue.x-k8s.io: multikueueconfigs provisioningrequestconfigs
    get,list,patch,update,watch kueue.x-k8s.io: multikueueclusters
    patch,update kueue.x-k8s.io: multikueueclusters/status
    read leaderworkerset.x-k8s.io: leaderworkersets
    get,list,patch,update,watch ray.io: rayclusters rayjobs rayservices
    get,list,patch,update,watch trainer.kubeflow.org: trainjobs
    read trainer.kubeflow.org: clustertrainingruntimes trainingruntimes
    get,list,patch,update,watch workload.codeflare.dev: appwrappers
    get,list,patch,update,watch kueue.x-k8s.io: admissionchecks clusterqueues cohorts localqueues resourceflavors
    get,list,patch,update,watch kueue.x-k8s.io: topologies
    read kueue.x-k8s.io: workloadpriorityclasses
    create,delete,get,list,patch,update,watch kueue.x-k8s.io: workloads
    patch,update kueue.x-k8s.io: admissionchecks/status clusterqueues/status cohorts/status localqueues/status
    patch,update kueue.x-k8s.io: workloads/status
    update kueue.x-k8s.io: clusterqueues/finalizers resourceflavors/finalizers
    update kueue.x-k8s.io: topologies/finalizers workloads/finalizers
    create,patch,update core,events.k8s.io: events
role kueue-batch-admin-role in admin
    create,delete,get,list,patch,update,watch kueue.x-k8s.io: localqueues workloads
    read kueue.x-k8s.io: localqueues/status workloads/status
    read visibility.kueue.x-k8s.io: clusterqueues/pendingworkloads localqueues/pendingworkloads
role kueue-batch-user-role in view
    read kueue.x-k8s.io: localqueues localqueues/status workloads workloads/status
    read visibility.kueue.x-k8s.io: localqueues/pendingworkloads
role kueue-system/kueue-manager-secrets
    get core: secrets
binding kueue-system/kueue-manager-secrets to account:kueue-system/kueue-controller-manager
binding kueue-manager-rolebinding of kueue-manager-role to account:kueue-system/kueue-controller-manager
"""
"""Roles of the component and of users in their namespaces, under Kueue's names."""

_MANAGER: Final = "kueue"


def configure_in_server(configuration_file: pathlib.Path | None) -> QueueingChoice:
    """Return queueing for the process of an API server, configured by a file or by the ConfigMap.

    Raises:
        errors.InvalidValueError: the configuration is refused.
    """
    active = ActiveConfiguration()
    if configuration_file is not None:
        configurationfile.load(configuration_file, active)
    view = PendingView()
    run = functools.partial(component, configured=active, configuration_file=configuration_file, view=view)
    return QueueingChoice(is_on=True, additions=additions(active, view), components=(run,))


def component(
    surroundings: Surroundings,
    configured: ActiveConfiguration,
    configuration_file: pathlib.Path | None = None,
    *,
    view: PendingView | None = None,
    connect: Connect | None = None,
) -> components.Run:
    """Return the function that runs queueing in the process of an API server.

    Its configuration follows the file, or else the ConfigMap. ``view`` gets the pending workloads. ``connect`` reaches
    other clusters.
    """
    built = replica(surroundings, configured, configuration_file, view=view, connect=connect)

    async def run() -> None:
        await controller.together(built.lead(), built.serve())

    return run


def replica(
    surroundings: Surroundings,
    configured: ActiveConfiguration,
    configuration_file: pathlib.Path | None = None,
    *,
    view: PendingView | None = None,
    endpoint: WebhookEndpoint | None = None,
    visibility: VisibilityEndpoint | None = None,
    connect: Connect | None = None,
    role: str = "standalone",
) -> components.Replica:
    """Return queueing as a process of its own, of which several may run.

    All replicas follow the configuration and answer webhooks at ``endpoint``. The leader admits, and serves pending
    workloads at ``visibility``, because only the leader keeps queues. ``connect`` reaches other clusters. ``role`` is
    the role of the process in metrics.
    """
    own = surroundings.acting_as(ACCOUNT)
    view = view or PendingView()
    built = QueueingComponent(
        own,
        configured,
        is_fixed=configuration_file is not None,
        placement=placement.SimulatedPlacement(own),
        view=view,
        connect=connect or _connect,
        role=role,
    )

    async def lead() -> None:
        parts = [_work(built, own)]
        if visibility is not None:
            parts.append(_show(visibility, view, own))
        await controller.together(*parts)

    async def serve() -> None:
        parts: list[Coroutine[Any, Any, Any]] = [asyncio.Event().wait()]
        if configuration_file is not None:
            parts.append(configurationfile.follow(configuration_file, configured, own.client, time=surroundings.clock))
        if endpoint is not None:
            parts.append(_answer(endpoint, built.reviews, own))
        await controller.together(*parts)

    return components.Replica(lead, serve)


async def _work(built: QueueingComponent, surroundings: Surroundings) -> None:
    """Run queueing, unless it would admit jobs past checks that the API server loses."""
    await conversionwebhook.check_definitions(surroundings)
    await built.run()


async def _answer(endpoint: WebhookEndpoint, reviews: Reviews, surroundings: Surroundings) -> None:
    """Serve webhooks once the informers have synchronised."""
    await surroundings.informers.wait_synced()
    await endpoint.serve(reviews, clock=surroundings.clock)


async def _show(endpoint: VisibilityEndpoint, view: PendingView, surroundings: Surroundings) -> None:
    await surroundings.informers.wait_synced()
    await endpoint.serve(visible(view), surroundings)


def visible(view: PendingView) -> app.Additions:
    """Return the kinds of pending workloads, observed by a view."""
    return app.Additions(kinds=visibilitykinds.kinds(), observers=_observers(view))


def additions(configured: ActiveConfiguration, view: PendingView) -> app.Additions:
    """Return the kinds, hooks and roles of queueing for an application; ``view`` has the pending workloads."""
    visibility = visible(view)
    return app.Additions(
        kinds=(*queuekinds.kinds(), *visibility.kinds),
        functions=tuple(_hook(each, configured) for each in webhooks.ALL),
        observers=visibility.observers,
        namespaces=(configuration.DEFAULT_NAMESPACE,),
        roles=_ROLES,
    )


def _observers(view: PendingView) -> services.Observers:
    def cluster_queue(_: str, name: str, query: Mapping[str, Sequence[str]]) -> Sequence[Mapping[str, Any]] | None:
        return view.cluster_queue(name, query)

    path = f"{visibilitykinds.GROUP}/{{}}/{visibilitykinds.PENDING}".format
    return {path("clusterqueues"): cluster_queue, path("localqueues"): view.local_queue}


def _hook(webhook: Webhook, configured: ActiveConfiguration) -> hooks.Hook:
    """Return a webhook as a function in the server's process."""

    def circumstances(review: hooks.Review) -> webhooks.Circumstances:
        place = functools.partial(_place, review)
        return webhooks.Circumstances(configured.gates, configured.jobs, place, subresource=review.subresource)

    def mutate_object(review: hooks.Review) -> dict[str, Any] | None:
        return webhook.complete(review.document, circumstances(review))

    def verdict(review: hooks.Review) -> hooks.Verdict:
        problems = webhook.check(review.document, review.old, circumstances(review))
        return hooks.Verdict(fieldtext.together(map(str, problems))) if problems else hooks.Verdict()

    key = f"{webhook.kind.group}/{webhook.plural}".removeprefix("/")
    mutate = mutate_object if webhook.completed is not None else None
    return hooks.Hook(
        f"v{webhook.singular}.kb.io",
        frozenset({key}),
        mutate=mutate,
        validate=verdict,
        mutates_updates=webhook.mutates_updates,
        reads_names=webhook.reads_names,
        read_version=None if webhook.reads_names else lambda: configured.version,
    )


def _place(review: hooks.Review) -> jobwebhooks.Place:
    store, namespace = review.store, review.namespace
    place = store.get(record.Key("namespaces", "", namespace))
    labels = place.value["metadata"].get("labels") or {} if place is not None else {}

    def owner(api_version: str, kind: str, name: str) -> Mapping[str, Any] | None:
        plural = _PLURALS.get((api_version, kind))
        scope = "" if kind in _CLUSTER_KINDS else namespace
        stored_owner = store.get(record.Key(plural, scope, name)) if plural is not None else None
        return None if stored_owner is None else stored_owner.value

    def dispatches(queue: str) -> bool:
        stored_queue = store.get(record.Key(_LOCAL_QUEUES, namespace, queue))
        name = "" if stored_queue is None else stored_queue.value["spec"].get("clusterQueue", "")
        cluster_queue = store.get(record.Key(_CLUSTER_QUEUES, "", name)) if name else None
        strategy = None if cluster_queue is None else cluster_queue.value["spec"].get("admissionChecksStrategy")
        checks = (
            store.get(record.Key(_CHECKS, "", each["name"])) for each in (strategy or {}).get("admissionChecks") or ()
        )
        return any(
            check is not None and check.value["spec"].get("controllerName") == admissioncheck.MULTI_KUEUE
            for check in checks
        )

    def find_workload(name: str) -> workload.Workload | None:
        stored_workload = store.get(record.Key(_WORKLOADS, namespace, name))
        return None if stored_workload is None else decoding.decode(stored_workload.value, workload.Workload)

    return jobwebhooks.Place(
        labels=labels,
        has_default_queue=store.get(record.Key(_LOCAL_QUEUES, namespace, jobwebhooks.DEFAULT_QUEUE)) is not None,
        has_default_priority=store.get(record.Key(_PRIORITIES, "", "default")) is not None,
        owner=owner,
        workload=find_workload,
        dispatches=dispatches,
    )


@contextlib.asynccontextmanager
async def _connect(content: bytes, name: str) -> AsyncIterator[protocol.Client]:
    """Yield a client for the current context of a kubeconfig. Raises errors.AccessError."""
    access = kubeconfig.load_content(content, name=name)
    async with http.HttpClient(access, clock=clock.SystemClock(), manager=_MANAGER) as client:
        yield client
