"""``drachma controllers``: the controllers on their own, on any Kubernetes API server."""

import pathlib
from typing import Annotated

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import options
from drachma.client import http
from drachma.controllers import descriptors
from drachma.process import accountcredentials, components, logs, standalone
from drachma.runtime import Surroundings, lease


def controllers(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    which: Annotated[
        str,
        typer.Option("--controllers", help="Which to run: * for all, a name for one, -name for all but this one."),
    ] = "*",
    feature_gates: options.FeatureGates = "",
    root_ca_file: Annotated[
        pathlib.Path | None,
        typer.Option(help="The authority of the API server that pods get to know; the kubeconfig's by default."),
    ] = None,
    service_account_private_key_file: Annotated[
        pathlib.Path | None,
        typer.Option(help="The key that signs tokens for secrets; without it, secrets are not filled with tokens."),
    ] = None,
    cluster_signing_cert_file: Annotated[
        pathlib.Path | None,
        typer.Option(help="The authority that signs certificates; without it, requests for them are not signed."),
    ] = None,
    cluster_signing_key_file: Annotated[pathlib.Path | None, typer.Option(help="Its key.")] = None,
    leader_elect: options.LeaderElect = True,
    lease_name: options.LeaseName = "kube-controller-manager",
    lease_namespace: options.LeaseNamespace = "kube-system",
    metrics_port: options.MetricsPort = 0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more about what is done.")] = False,
) -> None:
    """Run controllers: claims from templates, garbage collection, namespaces, nodes, taints, jobs.

    By default they wait for the lease that kube-controller-manager holds, so that nothing is done twice.
    """
    logs.to_stderr("drachma.controllers", verbose=verbose)
    # Other API servers have these kinds only if they are told to, and who watches what is not served waits for ever.
    enabled = gates.Gates.parse(f"{gates.Gate.RESOURCE_POOL_STATUS.value}=false,{feature_gates}")
    chosen = descriptors.chosen(which, gates=enabled)
    if not chosen:
        raise errors.InvalidValueError(f"controllers {which!r}: that is none")

    if (cluster_signing_cert_file is None) != (cluster_signing_key_file is None):
        raise errors.InvalidValueError("--cluster-signing-cert-file and --cluster-signing-key-file go together")
    signing = None
    if cluster_signing_cert_file is not None and cluster_signing_key_file is not None:
        signing = cluster_signing_cert_file, cluster_signing_key_file

    def build(surroundings: Surroundings) -> components.Run:
        # As upstream: who waits for the lease watches nothing.
        return lambda: components.controllers(surroundings, chosen)()

    access = http.find_access(kubeconfig, context=context)
    standalone.run(
        build,
        standalone.Options(
            access=access,
            credentials=accountcredentials.load(
                access, authority_file=root_ca_file, key_file=service_account_private_key_file, signing=signing
            ),
            manager="drachma-controllers",
            gates=enabled,
            lease_name=lease.LeaseName(lease_namespace, lease_name) if leader_elect else None,
            metrics_port=metrics_port,
        ),
    )
