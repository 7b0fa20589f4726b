"""``drachma queueing``: queues and quota as a process of their own, on any API server with Kueue's definitions."""

from __future__ import annotations

import datetime as dt
import functools
import pathlib
import urllib.parse
from typing import Annotated, Any, Final, TypeAlias

import typer

from drachma import errors
from drachma.cli import options

_CERTIFICATES: Final = pathlib.Path("kueue-webhook-certificates")
_VISIBILITY_CERTIFICATES: Final = pathlib.Path("kueue-visibility-certificates")

_Webhooks: TypeAlias = Annotated[str, typer.Option(help="host:port that serves Kueue's webhooks.")]
_Certificates: TypeAlias = Annotated[
    pathlib.Path, typer.Option(help="Folder of the serving certificate, which is created if there is none.")
]
_Url: TypeAlias = Annotated[
    str, typer.Option(help="URL at which API servers reach the webhooks; by default that host and port.")
]
_PrintWebhooks: TypeAlias = Annotated[
    bool, typer.Option("--print-webhooks", help="Print the webhook configurations for the API server, and exit.")
]
_PrintConversion: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--print-conversion",
        help="Print the conversion of Kueue's definitions, for kubectl apply --server-side, and exit.",
    ),
]
_Visibility: TypeAlias = Annotated[str, typer.Option(help="host:port that serves visibility.kueue.x-k8s.io.")]
_Host: TypeAlias = Annotated[
    str, typer.Option(help="Host at which API servers reach visibility.kueue.x-k8s.io; by default that host.")
]
_PrintVisibility: TypeAlias = Annotated[
    bool, typer.Option("--print-visibility", help="Print the APIServices and Services for the API server, and exit.")
]


def queueing(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    queueing_config: options.QueueingConfig = None,
    leader_elect: options.LeaderElect = True,
    lease_name: options.LeaseName = "c1f6bfd2.kueue.x-k8s.io",
    lease_namespace: options.LeaseNamespace = "kueue-system",
    metrics_port: options.MetricsPort = 0,
    secure_address: options.SecureAddress = "",
    webhooks: _Webhooks = "",
    webhook_certificates: _Certificates = _CERTIFICATES,
    webhook_url: _Url = "",
    print_webhooks: _PrintWebhooks = False,
    print_conversion: _PrintConversion = False,
    visibility: _Visibility = "",
    visibility_certificates: _Certificates = _VISIBILITY_CERTIFICATES,
    visibility_host: _Host = "",
    print_visibility: _PrintVisibility = False,
    verbose: options.Verbose = False,
) -> None:
    """Admit jobs by queues and quota, devices included, as Kueue does.

    Kueue's definitions must be installed in the cluster, without its manager. By default the process waits for the
    lease that Kueue's manager holds, so that no workload is admitted twice. The configuration is that of
    --queueing-config, or of the ConfigMap kueue-manager-config in kueue-system; changes take effect at once.

    With --webhooks it defaults and validates objects as Kueue's webhooks do, and converts them between v1beta1 and
    v1beta2; --print-webhooks and --print-conversion print the manifests. Definitions that serve both versions without
    conversion lose admission checks, and are refused.
    With --visibility it serves the pending workloads of queues; --print-visibility prints the manifests.
    """
    from drachma.api import manifest
    from drachma.client import http
    from drachma.listening import addresses
    from drachma.process import (
        configurationfile,
        conversionwebhook,
        logs,
        standalone,
        visibilityendpoint,
        webhookendpoint,
    )
    from drachma.process.queueing import component
    from drachma.queueing.component import ActiveConfiguration
    from drachma.runtime import lease
    from drachma.server.access import certificates

    logs.to_stderr("drachma.queueing", verbose=verbose)
    configuration = ActiveConfiguration()
    if queueing_config is not None:
        configurationfile.load(queueing_config, configuration)
    for option, prints, listen in (
        ("webhooks", print_webhooks, ("webhooks", webhooks)),
        ("conversion", print_conversion, ("webhooks", webhooks)),
        ("visibility", print_visibility, ("visibility", visibility)),
    ):
        if prints and not listen[1]:
            raise errors.InvalidValueError(f"--print-{option}: goes with --{listen[0]} host:port")
    is_printing = print_webhooks or print_conversion or print_visibility
    now = dt.datetime.now(dt.UTC)
    webhook_endpoint: webhookendpoint.WebhookEndpoint | None = None
    visibility_endpoint: visibilityendpoint.VisibilityEndpoint | None = None
    manifests: list[dict[str, Any]] = []
    if webhooks:
        address = addresses.Address.parse(webhooks)
        files = certificates.ensure(webhook_certificates, hosts=(*address.hosts, *_host(webhook_url)), now=now)
        authority = files.authority.read_bytes()
        if print_webhooks:
            frameworks = configuration.jobs.management.frameworks
            manifests += webhookendpoint.manifests(webhook_url or address.url, authority, frameworks)
        if print_conversion:
            manifests += conversionwebhook.manifests(webhook_url or address.url, authority)
        if not is_printing:
            webhook_endpoint = webhookendpoint.WebhookEndpoint(address, files)
    if visibility:
        address = addresses.Address.parse(visibility)
        files = certificates.ensure(visibility_certificates, hosts=(*visibilityendpoint.HOSTS, *address.hosts), now=now)
        if print_visibility:
            host = visibility_host or urllib.parse.urlsplit(address.url).hostname or ""
            manifests += visibilityendpoint.manifests(host, address.port, files.authority.read_bytes())
        elif not is_printing:
            visibility_endpoint = visibilityendpoint.VisibilityEndpoint(address, files)
    if manifests:
        typer.echo(manifest.write_yaml(manifests), nl=False)
        return
    standalone.run(
        functools.partial(
            component,
            configured=configuration,
            configuration_file=queueing_config,
            endpoint=webhook_endpoint,
            visibility=visibility_endpoint,
            role="leader" if leader_elect else "standalone",
        ),
        standalone.Options(
            access=http.find_access(kubeconfig, context=context),
            manager="kueue",
            lease_name=lease.LeaseName(lease_namespace, lease_name) if leader_elect else None,
            metrics_port=metrics_port,
            secure_address=options.secure_address(secure_address),
        ),
    )


def _host(url: str) -> tuple[str, ...]:
    """Return the host of a URL, if there is one. Raises errors.InvalidValueError unless the URL is of HTTPS."""
    if not url:
        return ()
    host = urllib.parse.urlsplit(url).hostname
    if not url.startswith("https://") or not host:
        raise errors.InvalidValueError(f"--webhook-url {url}: expected https://host:port")
    return (host,)
