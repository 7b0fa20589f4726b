"""``drachma controllers``: the controllers as a process of their own, on any Kubernetes API server."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.process import components
    from drachma.runtime import Surroundings


def controllers(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    which: Annotated[
        str,
        typer.Option(
            "--controllers", help="Comma-separated controllers to run: * for all, NAME for one, -NAME to leave one out."
        ),
    ] = "*",
    feature_gates: options.FeatureGates = "",
    root_ca_file: Annotated[
        pathlib.Path | None,
        typer.Option(help="Authority of the API server, published to pods; the kubeconfig's by default."),
    ] = None,
    service_account_private_key_file: Annotated[
        pathlib.Path | None,
        typer.Option(help="Key that signs the tokens of secrets; without it, secrets get no tokens."),
    ] = None,
    cluster_signing_cert_file: Annotated[
        pathlib.Path | None,
        typer.Option(help="Authority that signs certificates; without it, certificate requests are not signed."),
    ] = None,
    cluster_signing_key_file: Annotated[
        pathlib.Path | None, typer.Option(help="Key of the authority that signs certificates.")
    ] = None,
    leader_elect: options.LeaderElect = True,
    lease_name: options.LeaseName = "kube-controller-manager",
    lease_namespace: options.LeaseNamespace = "kube-system",
    metrics_port: options.MetricsPort = 0,
    secure_address: options.SecureAddress = "",
    verbose: options.Verbose = False,
) -> None:
    """Run controllers: claims from templates, garbage collection, namespaces, nodes, taints, jobs.

    By default they wait for the lease that kube-controller-manager holds, so that no work is done twice.
    """
    from drachma.client import http
    from drachma.controllers import descriptors
    from drachma.process import accountcredentials, logs, standalone
    from drachma.process import components as running
    from drachma.runtime import lease

    logs.to_stderr("drachma.controllers", verbose=verbose)
    # Other API servers serve ResourcePoolStatusRequest only if configured to, and informers of a kind that is not
    # served would never synchronise.
    enabled = gates.Gates.parse(f"{gates.Gate.RESOURCE_POOL_STATUS.value}=false,{feature_gates}")
    selected = descriptors.chosen(which, gates=enabled)
    if not selected:
        raise errors.InvalidValueError(f"controllers {which!r}: selects no controller")

    if (cluster_signing_cert_file is None) != (cluster_signing_key_file is None):
        raise errors.InvalidValueError("--cluster-signing-cert-file and --cluster-signing-key-file go together")
    signing = None
    if cluster_signing_cert_file is not None and cluster_signing_key_file is not None:
        signing = cluster_signing_cert_file, cluster_signing_key_file

    def build(surroundings: Surroundings) -> components.Run:
        # As upstream: a process that waits for the lease watches nothing.
        return lambda: running.controllers(surroundings, selected)()

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
            secure_address=options.secure_address(secure_address),
        ),
    )
