"""``drachma dashboard``: serve the dashboard for any Kubernetes cluster."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated, Final

import typer

from drachma import errors
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.web import Settings

DEFAULT_LISTEN: Final = "127.0.0.1:8001"


def dashboard(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    listen: options.Listen = DEFAULT_LISTEN,
    sign_in: Annotated[
        bool,
        typer.Option("--sign-in", help="Print no address with a key: every user signs in with a token or kubeconfig."),
    ] = False,
    public_url: Annotated[str, typer.Option(help="URL that browsers use, if a proxy is in front.")] = "",
    certificates: Annotated[
        pathlib.Path | None,
        typer.Option(help="Serve HTTPS with tls.crt and tls.key of this folder; if it has none, they are created."),
    ] = None,
    proxy_user_header: Annotated[
        str,
        typer.Option(help="Header in which a proxy names the user; the dashboard impersonates that user."),
    ] = "",
    proxy_groups_header: Annotated[str, typer.Option(help="Header with the user's groups, comma-separated.")] = "",
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="Network of the proxy, such as 10.0.0.0/8; may be repeated.")
    ] = None,
    log_format: options.LogFormat = options.LogLines.TEXT,
    verbose: options.Verbose = False,
) -> None:
    """Serve the dashboard of a cluster: devices, pods, claims, queues, and why pods are pending.

    On a loopback address, the printed address signs a browser in as the user of the kubeconfig. Elsewhere, and with
    --sign-in, users sign in with a token or a kubeconfig of their own. Every user sees what the API server lets that
    user read.
    """
    import asyncio
    import datetime as dt
    import secrets
    import signal
    import urllib.parse

    from drachma.client import http
    from drachma.listening import addresses
    from drachma.process import eventloop, logs
    from drachma.server.access import certificates as certificatefiles
    from drachma.web import ProxyTrust, Settings, application, serving
    from drachma.web import settings as websettings

    logs.to_stderr("drachma.web", verbose=verbose, is_json=log_format.is_json)
    proxy = None
    if bool(proxy_user_header) != bool(trusted_proxy):
        raise errors.InvalidValueError("--proxy-user-header and --trusted-proxy: go together")
    if proxy_user_header:
        networks = websettings.parse_networks(trusted_proxy or [])
        proxy = ProxyTrust(user_header=proxy_user_header, groups_header=proxy_groups_header, networks=networks)
    if public_url and not public_url.startswith(("http://", "https://")):
        raise errors.InvalidValueError(f"--public-url {public_url!r}: expected a URL with http:// or https://")
    address = addresses.Address.parse(listen)
    certificate = None
    if certificates is not None:
        public_host = urllib.parse.urlsplit(public_url).hostname
        hosts = (*address.hosts, *((public_host,) if public_host else ()))
        certificate = certificatefiles.ensure(certificates, hosts=hosts, now=dt.datetime.now(dt.UTC))
    has_key = not sign_in and proxy is None and address.host in ("127.0.0.1", "::1", "localhost")
    settings = Settings(
        access=http.find_access(kubeconfig, context=context),
        address=address,
        public_url=public_url,
        certificate=certificate,
        proxy=proxy,
        start_key=secrets.token_urlsafe(24) if has_key else "",
    )

    async def serve(settings: Settings) -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        async with serving.running(settings, application.Dashboard) as bound:
            typer.echo(f"dashboard: {serving.address(bound)}")
            await stopped.wait()

    with eventloop.runner() as runner:
        runner.run(serve(settings))
