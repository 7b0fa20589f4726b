"""``drachma up``: a whole control plane in one process: API server, controllers and scheduler."""

import functools

from drachma.cli import hostingoptions, options
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.process import components, embedded, hosting, logs, queueing
from drachma.server.kinds.metrics import nodemetrics


def up(
    data: options.Data = None,
    listen: options.Listen = options.DEFAULT_LISTEN,
    kubeconfig_out: options.KubeconfigOut = None,
    bootstrap_kubeconfig_out: options.BootstrapKubeconfigOut = None,
    feature_gates: options.FeatureGates = "",
    gangs: options.Gangs = False,
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
    pretend_nodes: options.PretendNodes = False,
    plugin_dir: options.PluginDirectory = None,
    runtime: options.ContainerRuntime = RuntimeName.SIMULATED,
    record: options.Record = None,
    record_size: options.RecordSize = options.DEFAULT_RECORD_SIZE,
    with_queueing: options.Queueing = False,
    queueing_config: options.QueueingConfig = None,
) -> None:
    """Run a control plane: API server, controllers and scheduler, until Ctrl-C or SIGTERM.

    With --nodes there are simulated machines too: pods run on them as their annotations say, without any process. With
    --runtime process their containers are processes of this machine, without any isolation, with podman real ones.
    With --plugin-dir their drivers are real ones, which register in DIR/NODE/plugins_registry.
    Nodes that somebody else creates are objects only, and those copied from another cluster soon count as dead; with
    --pretend-nodes they are looked after as simulated machines are.
    With --queueing jobs of queues wait for quota, devices included. The configuration is that of --queueing-config, or
    of the ConfigMap kueue-controller-manager-config in kueue-system; changes take effect at once.
    """
    logs.to_stderr()
    simulated = options.machines(profile, nodes)
    queues = queueing.chosen(queueing_config, is_on=with_queueing)
    hosted = hostingoptions.build(
        data=data,
        listen=listen,
        kubeconfig_out=kubeconfig_out,
        bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
        feature_gates=options.with_gangs(feature_gates, gangs),
        token_auth_file=token_auth_file,
        client_ca_file=client_ca_file,
        service_account_key_file=service_account_key_file,
        service_account_signing_key_file=service_account_signing_key_file,
        service_account_issuer=service_account_issuer,
        api_audiences=api_audiences,
        disable_admission_plugins=disable_admission_plugins,
        authorization_mode=authorization_mode,
        enable_bootstrap_token_auth=enable_bootstrap_token_auth,
        event_ttl=event_ttl,
        audit_policy_file=audit_policy_file,
        audit_log_path=audit_log_path,
        additions=queues.additions.with_kinds(*nodemetrics.KINDS),
    )
    hosting.run(
        hosted,
        functools.partial(
            embedded.beside,
            gates=hosted.gates,
            simulated=simulated,
            pretends_nodes=pretend_nodes,
            plugin_directory=plugin_dir,
            runtime=runtime,
            recording_to=components.RecordingTo.of(record, mebibytes=record_size),
            more=queues.components,
        ),
    )
