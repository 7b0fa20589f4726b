"""``drachma queueing``: queues and quota on their own, on any Kubernetes API server that has Kueue's definitions."""

import datetime as dt
import functools
import pathlib
import urllib.parse
from typing import Annotated, Final

import typer

from drachma import errors
from drachma.api import manifest
from drachma.cli import options
from drachma.client import http
from drachma.process import configurationfile, logs, standalone, webhookendpoint
from drachma.process.queueing import component
from drachma.queueing.component import ActiveConfiguration
from drachma.runtime import lease
from drachma.server.access import certificates
from drachma.server.wire import serving

_CERTIFICATES: Final = pathlib.Path("kueue-webhook-certificates")

_Webhooks = Annotated[str, typer.Option(help="host:port at which to answer API servers that ask about writes.")]
_Certificates = Annotated[pathlib.Path, typer.Option(help="Where its certificate is, and is made if it is not.")]
_Url = Annotated[str, typer.Option(help="How API servers reach it, if not by that host and port.")]
_Manifests = Annotated[
    bool, typer.Option("--print-webhooks", help="Write the configurations that have an API server ask, and end.")
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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more about what is done.")] = False,
) -> None:
    """Admit jobs by queues and quota, devices included, as Kueue does.

    The kinds are those of the cluster: Kueue's definitions must be installed, without its manager. By default it waits
    for the lease that Kueue's manager holds, so that nothing is admitted twice. The configuration is that of
    --queueing-config, or of the ConfigMap kueue-controller-manager-config in kueue-system; changes take effect at once.
    With --webhooks it completes and refuses objects as Kueue's webhooks do; --print-webhooks writes manifests for that.
    """
    logs.to_stderr("drachma.queueing", verbose=verbose)
    active = ActiveConfiguration()
    if queueing_config is not None:
        configurationfile.load(queueing_config, active)
    if print_webhooks and not webhooks:
        raise errors.InvalidValueError("--print-webhooks: goes with --webhooks host:port")
    endpoint = None
    if webhooks:
        address = serving.Address.parse(webhooks)
        hosts = (*address.hosts, *_host(webhook_url))
        files = certificates.ensure(webhook_certificates, hosts=hosts, now=dt.datetime.now(dt.UTC))
        if print_webhooks:
            authority = files.authority.read_bytes()
            frameworks = active.jobs.management.frameworks
            made = webhookendpoint.manifests(webhook_url or address.url, authority, frameworks)
            typer.echo(manifest.write_yaml(made), nl=False)
            return
        endpoint = webhookendpoint.WebhookEndpoint(address, files)
    standalone.run(
        functools.partial(component, configured=active, configuration_file=queueing_config, endpoint=endpoint),
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
