"""The command line of a driver: ``driver.main(Gpus)`` at the end of its module makes a program of the class.

``run`` (the default) serves the node that it is on, ``controller`` publishes what belongs to no node, ``webhook``
checks parameters, ``manifests`` prints what a cluster needs for all of them. Options have defaults from the environment
that a DaemonSet gives by the downward API.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from drachma import errors
from drachma.driver.driver import Driver

_ROOT: Final = "/var/lib/kubelet"
_CDI: Final = "/var/run/cdi"
_CERTIFICATES: Final = pathlib.Path("/etc/webhook")
_FAILED: Final = 1


def main(driver: type[Driver], arguments: Sequence[str] | None = None) -> None:
    """Runs a driver as a program, until SIGTERM or Ctrl-C; exits with 1 and a line of text where it cannot."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help")):
        argv.insert(0, "run")
    options = _parser(driver, os.environ).parse_args(argv)
    try:
        _carry_out(driver, options)
    except errors.DrachmaError as error:
        sys.stderr.write(f"{driver.name}: {error}\n")
        raise SystemExit(_FAILED) from None


def _carry_out(driver: type[Driver], options: argparse.Namespace) -> None:
    # Imported here: code that describes devices or tests a driver needs neither gRPC nor HTTP.
    from drachma.api import manifest
    from drachma.driver import hosting, instance, manifests
    from drachma.driver.webhook import server, webhookmanifests
    from drachma.runtime import lease

    if options.command == "manifests":
        settings = manifests.Settings(image=options.image, namespace=options.namespace)
        if options.webhook or options.webhook_url:
            webhook = webhookmanifests.Settings(
                image=options.image, namespace=options.namespace, url=options.webhook_url
            )
            content = webhookmanifests.documents(driver, webhook, now=dt.datetime.now(dt.UTC))
            sys.stdout.write(manifest.write_yaml(content))
            return
        sys.stdout.write(manifests.render(driver, settings))
        return
    if options.command == "webhook":
        server.run(
            driver,
            server.Options(
                certificates=options.cert_dir,
                port=options.port,
                log_level=options.log_level,
                logs_json=options.log_format == "json",
            ),
        )
        return
    hosted = hosting.Options(
        kubeconfig=options.kubeconfig,
        http_port=options.http_port,
        log_level=options.log_level,
        logs_json=options.log_format == "json",
    )
    if options.command == "controller":
        hosting.run_controller(driver, hosted, election=lease.LeaseName(options.namespace, driver.name))
        return
    if not options.node_name:
        raise errors.DriverError("no node name: set NODE_NAME by the downward API, or --node-name")
    place = instance.Place(
        node=options.node_name,
        plugins=(options.plugins_dir or options.root_dir / "plugins") / driver.name,
        registry=options.registry_dir or options.root_dir / "plugins_registry",
        cdi=options.cdi_dir,
        pod_uid=options.pod_uid,
    )
    hosting.run_on_node(driver, place, hosted)


def _parser(driver: type[Driver], environment: Mapping[str, str]) -> argparse.ArgumentParser:
    def add(parser: argparse.ArgumentParser, flag: str, description: str, **settings: object) -> None:
        """Add an option whose default may be the environment variable named first."""
        variable, _, fallback = str(settings.pop("variable", "")).partition("=")
        if variable:
            settings["default"] = environment.get(variable, fallback)
            description = f"{description} [{variable}]"
        parser.add_argument(flag, help=description, **settings)  # type: ignore[arg-type]

    parser = argparse.ArgumentParser(description=f"The DRA driver {driver.name}.")
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="serve the node that this is on (the default)")
    controller = commands.add_parser("controller", help="publish the pools that belong to no node")
    webhook = commands.add_parser("webhook", help="check parameters in claims and classes for the API server")
    printing = commands.add_parser("manifests", help="print what a cluster needs to run this driver")
    for each in (run_parser, controller):
        add(each, "--kubeconfig", "how to reach the API server; by default the pod's account", type=pathlib.Path)
        add(each, "--http-port", "serve /healthz, /readyz and /metrics on this port; 0 takes any", type=int)
    for each in (run_parser, controller, webhook):
        add(each, "--log-format", "how logs are written", choices=("text", "json"), variable="LOG_FORMAT=text")
        levels = ("debug", "info", "warning", "error")
        add(each, "--log-level", "how much is logged", choices=levels, variable="LOG_LEVEL=info")
    add(run_parser, "--node-name", "the node that this is on", variable="NODE_NAME")
    add(run_parser, "--pod-uid", "switches on updates without a gap; the pod's uid", variable="POD_UID")
    add(run_parser, "--root-dir", "the kubelet's directory", type=pathlib.Path, variable=f"KUBELET_ROOT={_ROOT}")
    add(run_parser, "--plugins-dir", "where drivers have directories; ROOT/plugins", type=pathlib.Path)
    add(run_parser, "--registry-dir", "where kubelets look for drivers; ROOT/plugins_registry", type=pathlib.Path)
    add(run_parser, "--cdi-dir", "where runtimes look for CDI files", type=pathlib.Path, variable=f"CDI_ROOT={_CDI}")
    add(controller, "--namespace", "where its lease is", variable="POD_NAMESPACE=kube-system")
    add(webhook, "--port", "port to serve on", type=int, default=8443)
    add(webhook, "--cert-dir", "folder with tls.crt and tls.key", type=pathlib.Path, default=_CERTIFICATES)
    add(printing, "--namespace", "where it runs", default="kube-system")
    add(printing, "--webhook", "print the webhook's manifests, with a new certificate", action="store_true")
    add(printing, "--webhook-url", "the same for a webhook outside of the cluster, https://HOST:PORT", default="")
    add(printing, "--image", "the image that it is in", default=f"{driver.name}:latest")
    return parser
