"""``drachma node``: the agent of one node as a process of its own, on any Kubernetes API server."""

import functools
import pathlib
import random
import socket
import urllib.parse
from typing import Annotated

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import nodeoptions, options
from drachma.node.runtimes.runtimename import RuntimeName


def node(
    root: Annotated[
        pathlib.Path,
        typer.Option(help="Folder of the agent's state, and by default of the drivers' registration sockets."),
    ],
    name: Annotated[str, typer.Option(help="Name of the node; the hostname of this machine by default.")] = "",
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    bootstrap_kubeconfig: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Kubeconfig with a bootstrap token, to request a certificate if --kubeconfig has no valid one."
        ),
    ] = None,
    register_with_taints: Annotated[
        str, typer.Option(help="Comma-separated taints of a node that is new, such as KEY=VALUE:NoSchedule.")
    ] = "",
    registry_dir: Annotated[
        pathlib.Path | None, typer.Option(help="Folder where drivers register; ROOT/plugins_registry by default.")
    ] = None,
    plugins_dir: Annotated[
        pathlib.Path | None, typer.Option(help="Folder with a folder for each driver; ROOT/plugins by default.")
    ] = None,
    boot_id_file: Annotated[pathlib.Path, typer.Option(help="File with the boot ID of the machine.")] = pathlib.Path(
        "/proc/sys/kernel/random/boot_id"
    ),
    cdi_dir: Annotated[
        list[pathlib.Path] | None,
        typer.Option(help="Folder of CDI files, in addition to /etc/cdi and /var/run/cdi; may be repeated."),
    ] = None,
    runtime: nodeoptions.ContainerRuntime = RuntimeName.SIMULATED,
    simulate: nodeoptions.Simulate = None,
    allow_unenforced_security: nodeoptions.AllowUnenforcedSecurity = False,
    listen: Annotated[
        str,
        typer.Option(
            help="host:port where the API server reaches logs and commands; port 0 takes any. By default any port of "
            "the address by which this machine reaches the API server; 0.0.0.0:0 listens on all addresses."
        ),
    ] = "",
    client_ca_file: Annotated[
        pathlib.Path | None, typer.Option(help="Authorities of client certificates; the kubeconfig's by default.")
    ] = None,
    tls_cert_file: Annotated[
        pathlib.Path | None, typer.Option(help="Serving certificate; a self-signed one is created if there is none.")
    ] = None,
    tls_private_key_file: Annotated[
        pathlib.Path | None, typer.Option(help="Private key of the serving certificate.")
    ] = None,
    feature_gates: options.FeatureGates = "",
    metrics_port: options.MetricsPort = 0,
    secure_address: options.SecureAddress = "",
    log_format: options.LogFormat = options.LogLines.TEXT,
    verbose: options.Verbose = False,
) -> None:
    """Run a node agent: register the node, have drivers prepare claims, run the pods bound to the node.

    The user of the kubeconfig must be system:node:NAME in the group system:nodes, by certificate or token. With
    --bootstrap-kubeconfig the agent creates such a kubeconfig first, as a kubelet does, and renews its certificate.
    Drivers are real ones on unix sockets, as with a kubelet. Containers are simulated unless --runtime says otherwise.
    """
    from drachma.client import http
    from drachma.listening import addresses
    from drachma.node.directories import Directories
    from drachma.node.registration import addresses as node_addresses
    from drachma.node.registration.machine import describe_local, parse_taints
    from drachma.process import logs, nodeagents, nodeidentity, standalone
    from drachma.runtime import clock

    logs.to_stderr("drachma.node", verbose=verbose, is_json=log_format.is_json)
    if simulate and runtime is RuntimeName.SIMULATED:
        raise errors.InvalidValueError("--simulate: goes with --runtime process or podman only")
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise errors.InvalidValueError("--tls-cert-file: goes with --tls-private-key-file, and the other way round")
    serving_files = (
        (tls_cert_file, tls_private_key_file)
        if tls_cert_file is not None and tls_private_key_file is not None
        else None
    )
    time = clock.SystemClock()
    node_name = name or socket.gethostname().lower()
    directories = Directories.below(root.absolute(), registry=registry_dir, plugins=plugins_dir)
    directories.make()
    taints = parse_taints(register_with_taints)
    machine = describe_local(node_name, root=directories.root, boot_id_file=boot_id_file, taints=taints)
    if bootstrap_kubeconfig is not None:
        if kubeconfig is None:
            raise errors.InvalidValueError("--bootstrap-kubeconfig: needs --kubeconfig, the file to create")
        if not nodeidentity.is_usable(kubeconfig, now=time.utc()):
            nodeidentity.obtain(http.find_access(bootstrap_kubeconfig), node_name, file=kubeconfig)
    access = http.find_access(kubeconfig, context=context)
    renewal = None
    if bootstrap_kubeconfig is not None and kubeconfig is not None:
        renewal = nodeidentity.Renewal(access, node_name, file=kubeconfig, time=time, rng=random.Random())
    host, port = addresses.Address.parse(listen) if listen else ("", 0)
    apiserver_host = urllib.parse.urlsplit(access.server).hostname or ""
    authority = client_ca_file.read_bytes() if client_ca_file is not None else access.certificate_authority or b""
    standalone.run(
        functools.partial(
            nodeagents.machine,
            described=machine,
            directories=directories,
            places=node_addresses.machine_addresses(node_name, host, port, towards=apiserver_host),
            served=nodeagents.Served(
                client_authority=authority,
                apiserver=access.server,
                root=directories.root,
                runtime=runtime,
                simulated=nodeoptions.simulated_containers(simulate),
                serving_files=serving_files,
                cdi=tuple(cdi_dir or ()),
                allows_unenforced_security=allow_unenforced_security,
            ),
        ),
        standalone.Options(
            access=access,
            manager="kubelet",
            gates=gates.Gates.parse(feature_gates),
            metrics_port=metrics_port,
            secure_address=options.secure_address(secure_address),
            renewal=renewal,
        ),
    )
