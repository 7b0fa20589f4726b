"""``drachma manifests``: the objects that run components on a Kubernetes cluster."""

from __future__ import annotations

import pathlib
from typing import Annotated

import typer

import drachma
from drachma import errors

_COMPONENTS = ("autoscaler", "controllers", "dashboard", "exporter", "node", "queueing", "scheduler")


def manifests(
    component: Annotated[list[str], typer.Argument(help=f"Components: {', '.join(_COMPONENTS)}.")],
    image: Annotated[str, typer.Option(help="Container image; see deploy/Containerfile.")] = (
        f"drachma:{drachma.__version__}"
    ),
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Namespace to run in.")] = "drachma-system",
    replicas: Annotated[int, typer.Option(min=1, help="Replicas of each component; one of them leads.")] = 2,
    scheduler_name: Annotated[
        str, typer.Option(help="schedulerName of the pods to schedule, next to kube-scheduler.")
    ] = "drachma-scheduler",
    neighbours: Annotated[
        bool, typer.Option(help="Let the scheduler undo the later of two allocations of one device; see its help.")
    ] = False,
    controllers: Annotated[
        str, typer.Option(help="Comma-separated controllers to run; turn them off in kube-controller-manager.")
    ] = "",
    webhooks: Annotated[
        bool, typer.Option("--webhooks", help="Serve Kueue's webhooks in queueing, with a certificate of cert-manager.")
    ] = False,
    webhook_authority: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Authority of a certificate of your own, in Secret drachma-queueing-webhooks, instead of cert-manager."
        ),
    ] = None,
    node_groups: Annotated[
        pathlib.Path | None, typer.Option(help="File with the node groups of the autoscaler, for its ConfigMap.")
    ] = None,
    command: Annotated[
        str, typer.Option(help="Program in the image that adds and removes the autoscaler's machines.")
    ] = "node-provider",
    driver_image: Annotated[
        str, typer.Option(help="Image of a driver made with the SDK, which runs next to each agent of component node.")
    ] = "",
    public_url: Annotated[
        str, typer.Option(help="URL that browsers use for the dashboard, if an Ingress or proxy is in front.")
    ] = "",
    certificate_secret: Annotated[
        str, typer.Option(help="Secret with tls.crt and tls.key of the dashboard; by default it makes its own.")
    ] = "",
    proxy_user_header: Annotated[
        str, typer.Option(help="Header in which a proxy names the user, whom the dashboard may then impersonate.")
    ] = "",
    proxy_groups_header: Annotated[str, typer.Option(help="Header with the user's groups, comma-separated.")] = "",
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="Network of that proxy, such as 10.0.0.0/8; may be repeated.")
    ] = None,
) -> None:
    """Print the objects that run components on a Kubernetes cluster, for kubectl apply.

    Each component has an account with the permissions that it needs, leader election, probes, a disruption budget and a
    network policy, and runs in a namespace with the restricted Pod Security level.
    """
    from drachma import deployment
    from drachma.api import manifest
    from drachma.deployment import components
    from drachma.process import webhookdeployment

    unknown = [each for each in component if each not in _COMPONENTS]
    if unknown:
        raise errors.InvalidValueError(f"component {unknown[0]!r}: expected {', '.join(_COMPONENTS)}")
    if "controllers" in component and not controllers:
        raise errors.InvalidValueError("component controllers: name the controllers to run with --controllers")
    if controllers and "controllers" not in component:
        raise errors.InvalidValueError("--controllers: goes with the component controllers")
    dashboard_options = (public_url, certificate_secret, proxy_user_header, proxy_groups_header, trusted_proxy)
    if any(dashboard_options) and "dashboard" not in component:
        raise errors.InvalidValueError(
            "--public-url, --certificate-secret, --proxy-* and --trusted-proxy: goes with the component dashboard"
        )
    if (webhooks or webhook_authority is not None) and "queueing" not in component:
        raise errors.InvalidValueError("--webhooks and --webhook-authority: go with the component queueing")
    if driver_image and "node" not in component:
        raise errors.InvalidValueError("--driver-image: goes with the component node")
    if node_groups is not None and "autoscaler" not in component:
        raise errors.InvalidValueError("--node-groups: goes with the component autoscaler")
    own_webhooks = None
    if webhooks or webhook_authority is not None:
        authority = webhook_authority.read_bytes() if webhook_authority is not None else b""
        own_webhooks = components.Webhooks(
            secret=webhookdeployment.SECRET,
            service=webhookdeployment.service(namespace).text,
            documents=webhookdeployment.documents(namespace, authority),
        )
    proxy = None
    if bool(proxy_user_header) != bool(trusted_proxy):
        raise errors.InvalidValueError("--proxy-user-header and --trusted-proxy: go together")
    if proxy_user_header:
        networks = tuple(trusted_proxy or ())
        proxy = components.Proxy(user_header=proxy_user_header, groups_header=proxy_groups_header, networks=networks)
    selected = []
    for name in dict.fromkeys(component):
        match name:
            case "autoscaler":
                text = node_groups.read_text(encoding="utf-8") if node_groups is not None else ""
                selected.append(components.autoscaler(command=command, node_groups=text, namespace=namespace))
            case "controllers":
                selected.append(components.controllers(controllers))
            case "dashboard":
                selected.append(
                    components.dashboard(public_url=public_url, certificate_secret=certificate_secret, proxy=proxy)
                )
            case "exporter":
                selected.append(components.exporter())
            case "node":
                selected.append(components.node(driver_image=driver_image))
            case "queueing":
                selected.append(components.queueing(own_webhooks))
            case _:
                selected.append(components.scheduler(scheduler_name, has_neighbours=neighbours))
    settings = deployment.Settings(image=image, namespace=namespace, replicas=replicas)
    typer.echo(manifest.write_yaml(deployment.documents(selected, settings)), nl=False)
