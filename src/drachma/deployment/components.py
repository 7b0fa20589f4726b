"""Components that run on a cluster: their arguments, their permissions and their ports.

Permissions are the cluster's own roles for the same work where there are some (``system:kube-scheduler``,
``system:controller:*``), so that they grow with Kubernetes. Rules of our own are for work that Kubernetes has no role
for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from drachma.client import target
from drachma.controllers import descriptors
from drachma.queueing.configuration import frameworks
from drachma.simulate import clusterstate

PORT: Final = 10443
"""Port of the status page of every component."""

DASHBOARD_PORT: Final = 8443
WEBHOOK_PORT: Final = 9443
AGENT_PORT: Final = 10250
BOOTSTRAP_SECRET: Final = "drachma-node-bootstrap"
"""Secret with the kubeconfig by which agents request the identity of their nodes."""

SIMULATED_TAINT: Final = "drachma.dev/simulated:NoSchedule"

_READ: Final = ("get", "list", "watch")
_KUEUE: Final = "kueue.x-k8s.io"
_ALL_VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a role."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...] = _READ


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """A port that a component serves HTTPS on, and the Service in front of it."""

    name: str
    number: int
    keeps_clients: bool = False
    """True if the Service sends all requests of a client to the same pod."""


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A Secret or a ConfigMap that a container sees as a read-only folder."""

    name: str
    path: str
    secret: str = ""
    config_map: str = ""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Environment variables, shared folders and driver of a component that runs on every machine."""

    variables: tuple[tuple[str, str], ...]
    """Names of environment variables, and the field of the pod or the text that each has."""
    folders: tuple[tuple[str, str], ...]
    """Names of folders that the containers of a pod share, and their paths."""
    driver_image: str = ""
    """Image of a driver made with the SDK, which runs in a container of the same pod."""


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One Deployment, or one DaemonSet if it has an ``agent``."""

    name: str
    arguments: tuple[str, ...]
    lease: str
    """Name of the lease by which one of its replicas leads; empty for a component that runs once."""
    lease_namespace: str = ""
    """Namespace of that lease if it is not the one of the component."""
    roles: tuple[str, ...] = ()
    """ClusterRoles of the cluster that it is bound to."""
    rules: tuple[Rule, ...] = ()
    """Permissions beyond these roles."""
    port: Port | None = None
    """Port for other programs than probes and Prometheus."""
    has_status_page: bool = True
    """False for a component whose own port answers probes, and which has no metrics."""
    mounts: tuple[Mount, ...] = ()
    documents: tuple[dict[str, Any], ...] = ()
    """Objects beyond those that every component has."""
    is_critical: bool = True
    """True if pods of the cluster depend on it, so that it goes before them."""
    agent: Agent | None = None
    """Needs of a component that runs on every machine."""


def scheduler(name: str, *, has_neighbours: bool = False) -> Component:
    """Return a scheduler for the pods with a ``schedulerName``.

    With ``has_neighbours`` it undoes the later of two allocations if another scheduler uses the same devices.
    """
    neighbours = ("--neighbours",) if has_neighbours else ()
    return Component(
        name="scheduler",
        arguments=("scheduler", f"--scheduler-name={name}", *neighbours),
        lease=name,
        roles=("system:kube-scheduler", "system:volume-scheduler"),
    )


def controllers(names: str) -> Component:
    """Return a process of some controllers, each of which must be off in kube-controller-manager.

    Raises:
        errors.InvalidValueError: a name is not one of a controller.
    """
    accounts = {each.account or each.name for each in descriptors.chosen(names)}
    roles = tuple(f"system:controller:{account}" for account in sorted(accounts) if not account.startswith("system:"))
    return Component(
        name="controllers",
        arguments=("controllers", f"--controllers={names}"),
        lease="drachma-controllers",
        roles=("system:kube-controller-manager", *roles),
    )


def exporter() -> Component:
    """Return the exporter of metrics about the cluster, which reads and writes nothing."""
    kinds = ("deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices")
    return Component(
        name="exporter",
        arguments=("exporter",),
        lease="",
        rules=(
            Rule(groups=("resource.k8s.io",), resources=kinds),
            Rule(groups=("",), resources=("pods",)),
            Rule(groups=(_KUEUE,), resources=("clusterqueues",)),
        ),
    )


def node(*, driver_image: str = "") -> Component:
    """Return agents of simulated nodes: one next to the kubelet of each machine, with a Node of its own.

    An agent has the identity of its Node, which it requests with the kubeconfig of a Secret. The taint keeps all pods
    away that do not tolerate it, because their containers would only be simulated. The driver of an image sees the
    agent's folder as that of a kubelet; its account may do what a driver has to.
    """
    rules = (
        Rule(groups=("resource.k8s.io",), resources=("resourceclaims",), verbs=("get",)),
        Rule(
            groups=("resource.k8s.io",),
            resources=("resourceslices",),
            verbs=("get", "list", "watch", "create", "update", "delete"),
        ),
        Rule(groups=("",), resources=("nodes",), verbs=("get",)),
    )
    return Component(
        name="node",
        arguments=(
            "node",
            "--name=$(NODE_NAME)",
            "--root=/state",
            "--kubeconfig=/state/kubeconfig",
            "--bootstrap-kubeconfig=/bootstrap/kubeconfig",
            "--cdi-dir=/cdi",
            f"--listen=0.0.0.0:{AGENT_PORT}",
            f"--register-with-taints={SIMULATED_TAINT}",
        ),
        lease="",
        rules=rules if driver_image else (),
        port=Port(name="agent", number=AGENT_PORT),
        has_status_page=False,
        mounts=(Mount(name="bootstrap", path="/bootstrap", secret=BOOTSTRAP_SECRET),),
        is_critical=False,
        agent=Agent(
            variables=(
                ("MACHINE", "spec.nodeName"),
                ("NODE_NAME", "drachma-$(MACHINE)"),
                ("KUBELET_ROOT", "/state"),
                ("CDI_ROOT", "/cdi"),
            ),
            folders=(("state", "/state"), ("cdi", "/cdi")),
            driver_image=driver_image,
        ),
    )


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy that names the users of the dashboard in a header, and the networks that it is believed from."""

    user_header: str
    groups_header: str = ""
    networks: tuple[str, ...]


def dashboard(*, public_url: str = "", certificate_secret: str = "", proxy: Proxy | None = None) -> Component:
    """Return the dashboard, whose account has no permissions: it reads with the tokens of its users.

    Its certificate is that of a Secret, or one of its own. Only with a ``proxy`` that names users may it impersonate
    them.
    """
    folder = "/certificates" if certificate_secret else "/tmp/certificates"
    arguments = ["dashboard", f"--listen=0.0.0.0:{DASHBOARD_PORT}", f"--certificates={folder}"]
    if public_url:
        arguments.append(f"--public-url={public_url}")
    if proxy is not None:
        arguments.append(f"--proxy-user-header={proxy.user_header}")
        if proxy.groups_header:
            arguments.append(f"--proxy-groups-header={proxy.groups_header}")
        arguments += [f"--trusted-proxy={network}" for network in proxy.networks]
    impersonation = Rule(groups=("",), resources=("groups", "users"), verbs=("impersonate",))
    mount = Mount(name="certificates", secret=certificate_secret, path=folder)
    return Component(
        name="dashboard",
        arguments=tuple(arguments),
        lease="",
        rules=(impersonation,) if proxy is not None else (),
        # Sessions are in the memory of a pod.
        port=Port(name="https", number=DASHBOARD_PORT, keeps_clients=True),
        has_status_page=False,
        mounts=(mount,) if certificate_secret else (),
        is_critical=False,
    )


def _rules_of_simulations() -> Iterator[Rule]:
    """Yield the rules to read everything that placing pods depends on."""
    resources = [target.of(kind) for kind in clusterstate.KINDS]
    for group in sorted({each.group for each in resources}):
        yield Rule(groups=(group,), resources=tuple(sorted(each.plural for each in resources if each.group == group)))


def autoscaler(*, command: str, node_groups: str = "", namespace: str = "drachma-system") -> Component:
    """Return the autoscaler, which runs a command to add and remove machines.

    Node groups are the text of a file. Without it, a ConfigMap ``drachma-autoscaler`` with ``groups.yaml`` must exist.
    """
    name = "drachma-autoscaler"
    documents = (
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
            "data": {"groups.yaml": node_groups},
        },
    )
    return Component(
        name="autoscaler",
        arguments=("autoscaler", "--node-groups=/node-groups/groups.yaml", f"--command={command}"),
        lease=name,
        mounts=(Mount(name="node-groups", path="/node-groups", config_map=name),),
        documents=documents if node_groups else (),
        rules=(
            *_rules_of_simulations(),
            Rule(groups=("",), resources=("nodes",), verbs=("patch",)),
            Rule(groups=("",), resources=("pods/eviction",), verbs=("create",)),
            Rule(groups=("",), resources=("pods/status",), verbs=("patch",)),
            Rule(groups=("autoscaling.x-k8s.io",), resources=("capacitybuffers", "provisioningrequests")),
            Rule(
                groups=("autoscaling.x-k8s.io",),
                resources=("capacitybuffers/status", "provisioningrequests/status"),
                verbs=("patch",),
            ),
            # Buffers and requests name the shape of their pods by these; other workloads are read above.
            Rule(groups=("",), resources=("podtemplates",), verbs=("get",)),
            Rule(groups=("apps",), resources=("deployments",), verbs=("get",)),
            Rule(groups=("batch",), resources=("jobs",), verbs=("get",)),
            Rule(groups=("", "events.k8s.io"), resources=("events",), verbs=("create", "patch", "update")),
        ),
    )


def _rules_of_jobs() -> Iterator[Rule]:
    """Yield the rules for kinds of jobs of other projects, which are watched as soon as they are installed."""
    names = (frameworks.JOB_SET, frameworks.LEADER_WORKER_SET, *frameworks.INSTALLED_JOBS)
    kinds = [frameworks.KINDS[name] for name in names]
    for group in sorted({kind.group for kind in kinds}):
        plurals = [f"{kind.kind.lower()}s" for kind in kinds if kind.group == group]
        yield Rule(groups=(group,), resources=tuple(plurals), verbs=("get", "list", "patch", "update", "watch"))
        parts = [f"{plural}/{part}" for plural in plurals for part in ("finalizers", "status")]
        yield Rule(groups=(group,), resources=tuple(parts), verbs=("get", "patch", "update"))


class Webhooks(msgspec.Struct, frozen=True, kw_only=True):
    """Kueue's webhooks: the Secret of their certificate, and the objects that have the API server call them."""

    secret: str
    """Secret with ``tls.crt``, ``tls.key`` and ``ca.crt``."""
    service: str
    """Service as the option ``--webhook-service`` names it."""
    documents: tuple[dict[str, Any], ...]


def queueing(webhooks: Webhooks | None = None) -> Component:
    """Return the queues, instead of Kueue's controller: they wait for its lease, so that only one of both admits.

    All replicas answer webhooks, also those that do not lead.
    """
    arguments: tuple[str, ...] = ("queueing",)
    if webhooks is not None:
        arguments = (
            *arguments,
            f"--webhooks=0.0.0.0:{WEBHOOK_PORT}",
            f"--webhook-service={webhooks.service}",
            "--webhook-certificates=/certificates",
        )
    return Component(
        name="queueing",
        arguments=arguments,
        port=Port(name="webhooks", number=WEBHOOK_PORT) if webhooks is not None else None,
        mounts=(Mount(name="certificates", path="/certificates", secret=webhooks.secret),) if webhooks else (),
        documents=webhooks.documents if webhooks is not None else (),
        lease="c1f6bfd2.kueue.x-k8s.io",
        lease_namespace="kueue-system",
        rules=(
            Rule(groups=(_KUEUE,), resources=("*",), verbs=_ALL_VERBS),
            Rule(groups=("batch",), resources=("jobs",), verbs=("get", "list", "patch", "update", "watch")),
            Rule(groups=("batch",), resources=("jobs/finalizers", "jobs/status"), verbs=("get", "patch", "update")),
            *_rules_of_jobs(),
            Rule(groups=("",), resources=("pods",), verbs=("delete", "get", "list", "patch", "update", "watch")),
            Rule(groups=("",), resources=("pods/finalizers", "pods/status"), verbs=("get", "patch", "update")),
            Rule(groups=("",), resources=("configmaps", "limitranges", "namespaces", "nodes")),
            Rule(groups=("",), resources=("podtemplates",), verbs=_ALL_VERBS),
            Rule(groups=("autoscaling.x-k8s.io",), resources=("provisioningrequests",), verbs=_ALL_VERBS),
            Rule(groups=("", "events.k8s.io"), resources=("events",), verbs=("create", "patch", "update")),
            Rule(groups=("apps",), resources=("deployments", "replicasets", "statefulsets")),
            Rule(groups=("node.k8s.io",), resources=("runtimeclasses",)),
            Rule(groups=("resource.k8s.io",), resources=("*",)),
            Rule(groups=("scheduling.k8s.io",), resources=("podgroups", "priorityclasses")),
            Rule(groups=("apiextensions.k8s.io",), resources=("customresourcedefinitions",)),
        ),
    )
