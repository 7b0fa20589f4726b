"""``drachma up``: a whole control plane in one process: API server, controllers and scheduler."""

import functools

import typer

from drachma.api import gates
from drachma.cli import options
from drachma.node import hardware
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.process import accessfiles, auditfiles, embedded, hosting, logs
from drachma.server.kinds.metrics import nodemetrics
from drachma.server.wire import app as asgi
from drachma.server.wire import serving


def up(
    data: options.Data = None,
    listen: options.Listen = options.DEFAULT_LISTEN,
    kubeconfig_out: options.KubeconfigOut = None,
    bootstrap_kubeconfig_out: options.BootstrapKubeconfigOut = None,
    feature_gates: options.FeatureGates = "",
    token_auth_file: options.TokenAuthFile = None,
    client_ca_file: options.ClientCaFile = None,
    service_account_key_file: options.ServiceAccountKeyFile = None,
    service_account_signing_key_file: options.ServiceAccountSigningKeyFile = None,
    service_account_issuer: options.ServiceAccountIssuer = None,
    api_audiences: options.ApiAudiences = "",
    enable_bootstrap_token_auth: options.EnableBootstrapTokenAuth = False,
    disable_admission_plugins: options.DisableAdmissionPlugins = "",
    authorization_mode: options.AuthorizationMode = options.DEFAULT_AUTHORIZATION_MODE,
    event_ttl: options.EventTtl = options.DEFAULT_EVENT_TTL,
    audit_policy_file: options.AuditPolicyFile = None,
    audit_log_path: options.AuditLogPath = None,
    nodes: options.Nodes = 0,
    profile: options.Profile = "gpu-server",
    plugin_dir: options.PluginDirectory = None,
    runtime: options.ContainerRuntime = RuntimeName.SIMULATED,
) -> None:
    """Run a control plane: API server, controllers and scheduler, until Ctrl-C or SIGTERM.

    With --nodes there are simulated machines too: pods run on them as their annotations say, without any process. With
    --runtime process their containers are processes of this machine, without any isolation, with podman real ones.
    With --plugin-dir their drivers are real ones, which register in DIR/NODE/plugins_registry.
    Nodes that somebody else creates are objects only.
    """
    logs.to_stderr()
    simulated = hardware.build(profile, nodes) if nodes else None
    hosted = hosting.Options(
        data=data,
        address=serving.Address.parse(listen),
        kubeconfig_out=kubeconfig_out,
        bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
        gates=gates.Gates.parse(feature_gates, base=gates.SERVED),
        access=accessfiles.AccessOptions(
            token_auth_file=token_auth_file,
            client_ca_file=client_ca_file,
            service_account_key_files=tuple(service_account_key_file or ()),
            service_account_signing_key_file=service_account_signing_key_file,
            service_account_issuers=tuple(service_account_issuer or ()),
            api_audiences=tuple(filter(None, api_audiences.split(","))),
            is_open_to_bootstrap_tokens=enable_bootstrap_token_auth or bootstrap_kubeconfig_out is not None,
            authorization_modes=accessfiles.authorization_modes(authorization_mode),
        ),
        event_ttl=options.seconds(event_ttl, name="--event-ttl"),
        disabled_plugins=options.plugins(disable_admission_plugins),
        audit=auditfiles.AuditOptions(policy_file=audit_policy_file, log_path=audit_log_path),
        additions=asgi.Additions(kinds=nodemetrics.KINDS),
        announce=typer.echo,
    )
    hosting.run(
        hosted,
        functools.partial(
            embedded.beside, gates=hosted.gates, simulated=simulated, plugin_directory=plugin_dir, runtime=runtime
        ),
    )
