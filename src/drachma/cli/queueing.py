"""``drachma queueing``: queues and quota on their own, on any Kubernetes API server that has Kueue's definitions."""

import datetime as dt
import functools
import pathlib
import urllib.parse
from typing import Annotated, Any, Final

import typer

from drachma import errors
from drachma.api import manifest
from drachma.cli import options
from drachma.client import http
from drachma.process import configurationfile, logs, standalone, visibilityendpoint, webhookendpoint
from drachma.process.queueing import component
from drachma.queueing.component import ActiveConfiguration
from drachma.runtime import lease
from drachma.server.access import certificates
from drachma.server.wire import serving

_CERTIFICATES: Final = pathlib.Path("kueue-webhook-certificates")
_VISIBILITY_CERTIFICATES: Final = pathlib.Path("kueue-visibility-certificates")

_Webhooks = Annotated[str, typer.Option(help="host:port at which to answer API servers that ask about writes.")]
_Certificates = Annotated[pathlib.Path, typer.Option(help="Where its certificate is, and is made if it is not.")]
_Url = Annotated[str, typer.Option(help="How API servers reach it, if not by that host and port.")]
_Manifests = Annotated[
    bool, typer.Option("--print-webhooks", help="Write the configurations that have an API server ask, and end.")
]
_Visibility = Annotated[str, typer.Option(help="host:port at which to serve visibility.kueue.x-k8s.io.")]
_Host = Annotated[str, typer.Option(help="The name by which API servers reach it, if not that host.")]
_Registrations = Annotated[
    bool, typer.Option("--print-visibility", help="Write what has an API server pass requests on to it, and end.")
]


def queueing(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    queueing_config: options.QueueingConfig = None,
    leader_elect: options.LeaderElect = True,
    lease_name: options.LeaseName = "c1f6bfd2.kueue.x-k8s.io",
    lease_namespace: options.LeaseNamespace = "kueue-system",
    metrics_port: options.MetricsPort = 0,
    webhooks: _Webhooks = "",
    webhook_certificates: _Certificates = _CERTIFICATES,
    webhook_url: _Url = "",
    print_webhooks: _Manifests = False,
    visibility: _Visibility = "",
    visibility_certificates: _Certificates = _VISIBILITY_CERTIFICATES,
    visibility_host: _Host = "",
    print_visibility: _Registrations = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more about what is done.")] = False,
) -> None:
    """Admit jobs by queues and quota, devices included, as Kueue does.

    The kinds are those of the cluster: Kueue's definitions must be installed, without its manager. By default it waits
    for the lease that Kueue's manager holds, so that nothing is admitted twice. The configuration is that of
    --queueing-config, or of the ConfigMap kueue-controller-manager-config in kueue-system; changes take effect at once.
    With --webhooks it completes and refuses objects as Kueue's webhooks do; --print-webhooks writes manifests for that.
    With --visibility it says who waits for queues, in which place; --print-visibility writes APIServices for that.
    """
    logs.to_stderr("drachma.queueing", verbose=verbose)
    active = ActiveConfiguration()
    if queueing_config is not None:
        configurationfile.load(queueing_config, active)
    for option, prints, address in (
        ("webhooks", print_webhooks, webhooks),
        ("visibility", print_visibility, visibility),
    ):
        if prints and not address:
            raise errors.InvalidValueError(f"--print-{option}: goes with --{option} host:port")
    now = dt.datetime.now(dt.UTC)
    endpoint: webhookendpoint.WebhookEndpoint | None = None
    shown: visibilityendpoint.VisibilityEndpoint | None = None
    made: list[dict[str, Any]] = []
    if webhooks:
        place = serving.Address.parse(webhooks)
        files = certificates.ensure(webhook_certificates, hosts=(*place.hosts, *_host(webhook_url)), now=now)
        if print_webhooks:
            authority = files.authority.read_bytes()
            frameworks = active.jobs.management.frameworks
            made += webhookendpoint.manifests(webhook_url or place.url, authority, frameworks)
        elif not print_visibility:
            endpoint = webhookendpoint.WebhookEndpoint(place, files)
    if visibility:
        place = serving.Address.parse(visibility)
        files = certificates.ensure(visibility_certificates, hosts=(*visibilityendpoint.HOSTS, *place.hosts), now=now)
        if print_visibility:
            host = visibility_host or urllib.parse.urlsplit(place.url).hostname or ""
            made += visibilityendpoint.manifests(host, place.port, files.authority.read_bytes())
        elif not print_webhooks:
            shown = visibilityendpoint.VisibilityEndpoint(place, files)
    if made:
        typer.echo(manifest.write_yaml(made), nl=False)
        return
    standalone.run(
        functools.partial(
            component,
            configured=active,
            configuration_file=queueing_config,
            endpoint=endpoint,
            visibility=shown,
            role="leader" if leader_elect else "standalone",
        ),
        standalone.Options(
            access=http.find_access(kubeconfig, context=context),
            manager="kueue",
            lease_name=lease.LeaseName(lease_namespace, lease_name) if leader_elect else None,
            metrics_port=metrics_port,
        ),
    )


def _host(url: str) -> tuple[str, ...]:
    """The host of an URL, if there is one; InvalidValueError for one that cannot be asked by HTTPS."""
    if not url:
        return ()
    host = urllib.parse.urlsplit(url).hostname
    if not url.startswith("https://") or not host:
        raise errors.InvalidValueError(f"--webhook-url {url}: expected https://host:port")
    return (host,)
