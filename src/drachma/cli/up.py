"""``drachma up``: a whole control plane in one process: API server, controllers and scheduler."""

import functools
import pathlib
from typing import Annotated

import typer

from drachma import errors
from drachma.cli import clusters, hostingoptions, limitoptions, options
from drachma.node import hardware
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.process import components, embedded, hosting, logs, nodeagents, queueingchoice
from drachma.server.kinds.metrics import nodemetrics
from drachma.simulate import NodeGroup, nodegroup
from drachma.simulate.autoscaler import Settings

_ROUND_SECONDS = 2.0
"""Between two looks at a cluster of simulated machines, which come at once."""


def up(
    data: options.Data = None,
    listen: options.Listen = options.DEFAULT_LISTEN,
    kubeconfig_out: options.KubeconfigOut = None,
    bootstrap_kubeconfig_out: options.BootstrapKubeconfigOut = None,
    feature_gates: options.FeatureGates = "",
    enable_first_alpha: options.EnableFirstAlpha = False,
    gangs: options.Gangs = False,
    policy: options.Policy = "first-fit",
    filter_timeout: options.FilterTimeout = options.DEFAULT_FILTER_TIMEOUT,
    token_auth_file: options.TokenAuthFile = None,
    client_ca_file: options.ClientCaFile = None,
    service_account_key_file: options.ServiceAccountKeyFile = None,
    service_account_signing_key_file: options.ServiceAccountSigningKeyFile = None,
    service_account_issuer: options.ServiceAccountIssuer = None,
    api_audiences: options.ApiAudiences = "",
    enable_bootstrap_token_auth: options.EnableBootstrapTokenAuth = False,
    disable_admission_plugins: options.DisableAdmissionPlugins = "",
    admission_control_config_file: options.AdmissionControlConfigFile = None,
    authorization_mode: options.AuthorizationMode = options.DEFAULT_AUTHORIZATION_MODE,
    event_ttl: options.EventTtl = options.DEFAULT_EVENT_TTL,
    audit_policy_file: options.AuditPolicyFile = None,
    audit_log_path: options.AuditLogPath = None,
    kubelet_certificate_authority: options.KubeletCertificateAuthority = None,
    allow_loopback_nodes: options.AllowLoopbackNodes = False,
    cache_bytes: options.CacheBytes = options.DEFAULT_CACHE_BYTES,
    encryption_provider_config: options.EncryptionProviderConfig = None,
    store_reserve: options.StoreReserve = options.DEFAULT_STORE_RESERVE,
    backup_dir: options.BackupDir = None,
    backup_every: options.BackupEvery = options.DEFAULT_BACKUP_EVERY,
    backup_keep: options.BackupKeep = options.DEFAULT_BACKUP_KEEP,
    request_timeout: limitoptions.RequestTimeout = limitoptions.DEFAULT_REQUEST_TIMEOUT,
    max_requests_inflight: limitoptions.MaxRequestsInflight = limitoptions.DEFAULT_REQUESTS,
    max_mutating_requests_inflight: limitoptions.MaxMutatingRequestsInflight = limitoptions.DEFAULT_MUTATING_REQUESTS,
    max_watches: limitoptions.MaxWatches = limitoptions.DEFAULT_WATCHES,
    max_watches_per_user: limitoptions.MaxWatchesPerUser = limitoptions.DEFAULT_USER_WATCHES,
    max_connections: limitoptions.MaxConnections = limitoptions.DEFAULT_CONNECTIONS,
    peer_connections_percent: limitoptions.PeerConnectionsPercent = limitoptions.DEFAULT_PEER_PERCENT,
    loopback_connections_percent: limitoptions.LoopbackConnectionsPercent = limitoptions.DEFAULT_LOOPBACK_PERCENT,
    body_timeout: limitoptions.BodyTimeout = limitoptions.DEFAULT_BODY_TIMEOUT,
    unread_timeout: limitoptions.UnreadTimeout = limitoptions.DEFAULT_UNREAD_TIMEOUT,
    nodes: options.Nodes = 0,
    profile: options.Profile = "gpu-server",
    pretend_nodes: options.PretendNodes = False,
    plugin_dir: options.PluginDirectory = None,
    runtime: options.ContainerRuntime = RuntimeName.SIMULATED,
    allow_unenforced_security: options.AllowUnenforcedSecurity = False,
    autoscale: Annotated[
        bool, typer.Option("--autoscale", help="Have more and fewer simulated machines as pods need.")
    ] = False,
    node_groups: Annotated[
        list[str] | None, typer.Option(help="Files with the node groups that grow and shrink; else one of --profile.")
    ] = None,
    unneeded: options.Unneeded = options.DEFAULT_UNNEEDED,
    cooldown: options.Cooldown = options.DEFAULT_COOLDOWN,
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
    With --autoscale machines come when pods wait for want of them, and go when nobody needs them any more.
    With --queueing jobs of queues wait for quota, devices included. The configuration is that of --queueing-config, or
    of the ConfigMap kueue-controller-manager-config in kueue-system; changes take effect at once.
    """
    logs.to_stderr()
    simulated = options.machines(profile, nodes)
    if node_groups and not autoscale:
        raise errors.InvalidValueError("--node-groups: goes with --autoscale only")
    scaling = None
    if autoscale and node_groups:
        scaling = _scaling(clusters.groups(node_groups), unneeded, cooldown)
    elif autoscale:
        one = options.machines(profile, 1)
        assert one is not None, "one is not none"
        simulated = simulated or hardware.Hardware((), one.classes, one.slices)
        scaling = _scaling((_group(profile, one.machines[0]),), unneeded, cooldown)
    queues = queueingchoice.chosen(queueing_config, is_on=with_queueing)
    hosted = hostingoptions.build(
        data=data,
        listen=listen,
        kubeconfig_out=kubeconfig_out,
        bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
        feature_gates=options.with_gangs(feature_gates, gangs),
        enable_first_alpha=enable_first_alpha,
        token_auth_file=token_auth_file,
        client_ca_file=client_ca_file,
        service_account_key_file=service_account_key_file,
        service_account_signing_key_file=service_account_signing_key_file,
        service_account_issuer=service_account_issuer,
        api_audiences=api_audiences,
        disable_admission_plugins=disable_admission_plugins,
        admission_control_config_file=admission_control_config_file,
        authorization_mode=authorization_mode,
        enable_bootstrap_token_auth=enable_bootstrap_token_auth,
        event_ttl=event_ttl,
        audit_policy_file=audit_policy_file,
        audit_log_path=audit_log_path,
        kubelet_certificate_authority=kubelet_certificate_authority,
        allow_loopback_nodes=allow_loopback_nodes,
        cache_bytes=cache_bytes,
        keeping=hostingoptions.keeping(
            data,
            encryption_provider_config=encryption_provider_config,
            store_reserve=store_reserve,
            backup_dir=backup_dir,
            backup_every=backup_every,
            backup_keep=backup_keep,
        ),
        limits=limitoptions.build(
            request_timeout=request_timeout,
            max_requests_inflight=max_requests_inflight,
            max_mutating_requests_inflight=max_mutating_requests_inflight,
            max_watches=max_watches,
            max_watches_per_user=max_watches_per_user,
            max_connections=max_connections,
            peer_connections_percent=peer_connections_percent,
            loopback_connections_percent=loopback_connections_percent,
            body_timeout=body_timeout,
            unread_timeout=unread_timeout,
        ),
        additions=queues.additions.with_kinds(*nodemetrics.KINDS),
    )
    hosting.run(
        hosted,
        functools.partial(
            embedded.beside,
            policy=options.policy(policy),
            filter_seconds=filter_timeout,
            gates=hosted.gates,
            simulated=simulated,
            pretends_nodes=pretend_nodes,
            plugin_directory=plugin_dir,
            runtime=runtime,
            allows_unenforced_security=allow_unenforced_security,
            scaling=scaling,
            recording_to=components.RecordingTo.of(record, mebibytes=record_size),
            more=queues.components,
        ),
    )


def _scaling(groups: tuple[NodeGroup, ...], unneeded: float, cooldown: float) -> nodeagents.Scaling:
    chosen = Settings(interval=_ROUND_SECONDS, unneeded=unneeded, cooldown=cooldown)
    return nodeagents.Scaling(groups=groups, settings=chosen)


def _group(profile: str, machine: hardware.Machine) -> NodeGroup:
    """The machines of a profile as a group without limits."""
    return nodegroup.read(
        {
            "apiVersion": nodegroup.API_VERSION,
            "kind": nodegroup.KIND,
            "metadata": {"name": pathlib.Path(profile).stem},
            "spec": {"template": {"objects": [machine.node, *machine.slices]}},
        }
    )
