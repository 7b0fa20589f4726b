"""``drachma apiserver``: the Kubernetes API on a data directory, for kubectl and everything else that speaks it."""

from drachma.cli import hostingoptions, limitoptions, options
from drachma.process import hosting, logs


def apiserver(
    data: options.Data = None,
    listen: options.Listen = options.DEFAULT_LISTEN,
    kubeconfig_out: options.KubeconfigOut = None,
    feature_gates: options.FeatureGates = "",
    enable_first_alpha: options.EnableFirstAlpha = False,
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
) -> None:
    """Serve the Kubernetes API.

    TLS certificates and the admin's token are made on the first start and kept in the data directory.
    """
    logs.to_stderr()
    hosting.run(
        hostingoptions.build(
            data=data,
            listen=listen,
            kubeconfig_out=kubeconfig_out,
            feature_gates=feature_gates,
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
        )
    )
