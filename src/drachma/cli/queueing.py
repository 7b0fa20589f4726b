"""``drachma queueing``: queues and quota on their own, on any Kubernetes API server that has Kueue's definitions."""

import functools
from typing import Annotated

import typer

from drachma.cli import options
from drachma.client import http
from drachma.process import components, configurationfile, logs, standalone
from drachma.queueing.component import ActiveConfiguration
from drachma.runtime import lease


def queueing(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    queueing_config: options.QueueingConfig = None,
    leader_elect: options.LeaderElect = True,
    lease_name: options.LeaseName = "c1f6bfd2.kueue.x-k8s.io",
    lease_namespace: options.LeaseNamespace = "kueue-system",
    metrics_port: options.MetricsPort = 0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more about what is done.")] = False,
) -> None:
    """Admit jobs by queues and quota, devices included, as Kueue does.

    The kinds are those of the cluster: Kueue's definitions must be installed, without its manager. By default it waits
    for the lease that Kueue's manager holds, so that nothing is admitted twice. The configuration is that of
    --queueing-config, or of the ConfigMap kueue-controller-manager-config in kueue-system; changes take effect at once.
    """
    logs.to_stderr("drachma.queueing", verbose=verbose)
    active = ActiveConfiguration()
    if queueing_config is not None:
        configurationfile.load(queueing_config, active)
    standalone.run(
        functools.partial(components.queueing, configured=active, configuration_file=queueing_config),
        standalone.Options(
            access=http.find_access(kubeconfig, context=context),
            manager="kueue",
            lease_name=lease.LeaseName(lease_namespace, lease_name) if leader_elect else None,
            metrics_port=metrics_port,
        ),
    )
