"""Pod: the fields that scheduling, claims and the node agent read. A partial view; never written back as a whole."""

from collections.abc import Mapping

import msgspec

from drachma.api import meta, nodeallocatable, nodeselector
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, Int32, Int64, Struct
from drachma.values import quantity

ResourceList = Mapping[str, quantity.Quantity]


class ContainerClaim(Struct, frozen=True, kw_only=True):
    """A container's use of one of the pod's claims, or of one request in it."""

    name: str = ZERO_TEXT
    request: str = ABSENT_TEXT


class ResourceRequirements(Struct, frozen=True, kw_only=True):
    """Resources that a container or a pod requests."""

    limits: ResourceList = ABSENT_MAP
    requests: ResourceList = ABSENT_MAP
    claims: tuple[ContainerClaim, ...] = ABSENT_TUPLE


class ContainerPort(Struct, frozen=True, kw_only=True):
    """A port; only host ports matter to scheduling."""

    name: str = ABSENT_TEXT
    host_port: Int32 = ABSENT_INT
    container_port: Int32 = ABSENT_INT
    protocol: str = ABSENT_TEXT
    host_ip: str = msgspec.field(default=ABSENT_TEXT, name="hostIP")


class EnvVar(Struct, frozen=True, kw_only=True):
    """An environment variable with a literal value."""

    name: str = ZERO_TEXT
    value: str = ABSENT_TEXT


class ContainerRestartRule(Struct, frozen=True, kw_only=True):
    """Action after certain exit codes of a container."""

    action: str = ABSENT_TEXT


class Container(Struct, frozen=True, kw_only=True):
    """A container or init container; an init container that always restarts is a sidecar."""

    name: str = ZERO_TEXT
    image: str = ABSENT_TEXT
    command: tuple[str, ...] = ABSENT_TUPLE
    args: tuple[str, ...] = ABSENT_TUPLE
    working_dir: str = ABSENT_TEXT
    ports: tuple[ContainerPort, ...] = ABSENT_TUPLE
    env: tuple[EnvVar, ...] = ABSENT_TUPLE
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ABSENT_TUPLE


class PodResourceClaim(Struct, frozen=True, kw_only=True):
    """A claim that the pod needs: an existing one, or one generated from a template."""

    name: str = ZERO_TEXT
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PreferredSchedulingTerm(Struct, frozen=True, kw_only=True):
    """A node preference and its weight."""

    weight: Int32 = ABSENT_INT
    preference: nodeselector.NodeSelectorTerm = nodeselector.NodeSelectorTerm()


class NodeAffinity(Struct, frozen=True, kw_only=True):
    """Required and preferred nodes of a pod."""

    required_during_scheduling_ignored_during_execution: nodeselector.NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ABSENT_TUPLE


class PodAffinityTerm(Struct, frozen=True, kw_only=True):
    """Pods to be near to, or apart from, within a topology."""

    label_selector: meta.LabelSelector | None = None
    namespaces: tuple[str, ...] = ABSENT_TUPLE
    topology_key: str = ABSENT_TEXT
    namespace_selector: meta.LabelSelector | None = None


class WeightedPodAffinityTerm(Struct, frozen=True, kw_only=True):
    """A pod affinity preference and its weight."""

    weight: Int32 = ABSENT_INT
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True, kw_only=True):
    """Pod affinity or anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ABSENT_TUPLE
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ABSENT_TUPLE


class Affinity(Struct, frozen=True, kw_only=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Struct, frozen=True, kw_only=True):
    """Node taints that the pod tolerates."""

    key: str = ABSENT_TEXT
    operator: str = ABSENT_TEXT
    value: str = ABSENT_TEXT
    effect: str = ABSENT_TEXT
    toleration_seconds: Int64 | None = None


class PodSchedulingGate(Struct, frozen=True, kw_only=True):
    """Gate that keeps the pod from being scheduled."""

    name: str = ZERO_TEXT


class TopologySpreadConstraint(Struct, frozen=True, kw_only=True):
    """Maximum skew of matching pods over a topology."""

    max_skew: Int32 = ABSENT_INT
    topology_key: str = ABSENT_TEXT
    when_unsatisfiable: str = ABSENT_TEXT
    label_selector: meta.LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ABSENT_TUPLE


class PersistentVolumeClaimVolume(Struct, frozen=True, kw_only=True):
    """Volume of a persistent volume claim."""

    claim_name: str = ABSENT_TEXT


class ImageVolume(Struct, frozen=True, kw_only=True):
    """Volume of an image."""

    reference: str = ABSENT_TEXT


class GCEDisk(Struct, frozen=True, kw_only=True):
    """Google Compute Engine disk."""

    pd_name: str = ZERO_TEXT
    read_only: bool = False


class EBSVolume(Struct, frozen=True, kw_only=True):
    """Amazon Elastic Block Store volume."""

    volume_id: str = msgspec.field(default=ZERO_TEXT, name="volumeID")


class ISCSIVolume(Struct, frozen=True, kw_only=True):
    """iSCSI disk."""

    iqn: str = ZERO_TEXT
    read_only: bool = False


class RBDVolume(Struct, frozen=True, kw_only=True):
    """Ceph block device image."""

    monitors: tuple[str, ...] = ABSENT_TUPLE
    image: str = ZERO_TEXT
    pool: str = ZERO_TEXT
    read_only: bool = False


class HostPathVolume(Struct, frozen=True, kw_only=True):
    """Volume of a file or folder of the node."""

    path: str = ZERO_TEXT


class Volume(Struct, frozen=True, kw_only=True):
    """Volume of a pod: the sources that scheduling and nodes read."""

    name: str = ZERO_TEXT
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: meta.Opaque = None
    """Claim template; the generated claim is named after the pod and the volume."""
    image: ImageVolume | None = None
    host_path: HostPathVolume | None = None
    gce_persistent_disk: GCEDisk | None = None
    aws_elastic_block_store: EBSVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None


class PodSchedulingGroup(Struct, frozen=True, kw_only=True):
    """Pod group of a pod."""

    pod_group_name: str | None = None


class PodSpec(Struct, frozen=True, kw_only=True):
    """Desired state of the pod."""

    volumes: tuple[Volume, ...] = ABSENT_TUPLE
    init_containers: tuple[Container, ...] = ABSENT_TUPLE
    containers: tuple[Container, ...] = ABSENT_TUPLE
    ephemeral_containers: tuple[Container, ...] = ABSENT_TUPLE
    restart_policy: str = ABSENT_TEXT
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    node_selector: Mapping[str, str] = ABSENT_MAP
    service_account_name: str = ABSENT_TEXT
    node_name: str = ABSENT_TEXT
    hostname: str = ABSENT_TEXT
    subdomain: str = ABSENT_TEXT
    host_network: bool | None = None
    runtime_class_name: str | None = None
    affinity: Affinity | None = None
    scheduler_name: str = ABSENT_TEXT
    tolerations: tuple[Toleration, ...] = ABSENT_TUPLE
    priority_class_name: str = ABSENT_TEXT
    priority: Int32 | None = None
    preemption_policy: str | None = None
    overhead: ResourceList = ABSENT_MAP
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ABSENT_TUPLE
    scheduling_gates: tuple[PodSchedulingGate, ...] = ABSENT_TUPLE
    resource_claims: tuple[PodResourceClaim, ...] = ABSENT_TUPLE
    resources: ResourceRequirements | None = None
    scheduling_group: PodSchedulingGroup | None = None


class PodCondition(Struct, frozen=True, kw_only=True):
    """One observed aspect of the pod's state."""

    type: str = ZERO_TEXT
    observed_generation: Int64 = ABSENT_INT
    status: str = ZERO_TEXT
    last_probe_time: meta.Time | None = None
    last_transition_time: meta.Time | None = None
    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT


class PodResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """Generated claim of one of the pod's claim templates."""

    name: str = ZERO_TEXT
    resource_claim_name: str | None = None


class PodExtendedResourceRequest(Struct, frozen=True, kw_only=True):
    """Request of the special claim that serves a container's extended resource."""

    container_name: str = ABSENT_TEXT
    resource_name: str = ABSENT_TEXT
    request_name: str = ABSENT_TEXT


class PodExtendedResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """Special claim for a pod's extended resources that device classes provide."""

    request_mappings: tuple[PodExtendedResourceRequest, ...] = ABSENT_TUPLE
    resource_claim_name: str = ABSENT_TEXT


class ContainerStateTerminated(Struct, frozen=True, kw_only=True):
    """Exit code and end time of a container."""

    exit_code: Int32 = ABSENT_INT
    finished_at: meta.Time | None = None


class ContainerStateWaiting(Struct, frozen=True, kw_only=True):
    """Reason why a container does not run yet, or not again."""

    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT


class ContainerState(Struct, frozen=True, kw_only=True):
    """State of a container: whether it waits or has terminated."""

    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Struct, frozen=True, kw_only=True):
    """State of a container, and its actual resources, which differ from the spec during a resize."""

    name: str = ZERO_TEXT
    state: ContainerState = ContainerState()
    restart_count: Int32 = ABSENT_INT
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodIP(Struct, frozen=True, kw_only=True):
    """An address of the pod."""

    ip: str = ABSENT_TEXT


class PodStatus(Struct, frozen=True, kw_only=True):
    """Observed state of the pod."""

    observed_generation: Int64 = ABSENT_INT
    phase: str = ABSENT_TEXT
    conditions: tuple[PodCondition, ...] = ABSENT_TUPLE
    message: str = ABSENT_TEXT
    reason: str = ABSENT_TEXT
    nominated_node_name: str = ABSENT_TEXT
    start_time: meta.Time | None = None
    pod_ip: str = msgspec.field(default=ABSENT_TEXT, name="podIP")
    pod_ips: tuple[PodIP, ...] = msgspec.field(default=ABSENT_TUPLE, name="podIPs")
    init_container_statuses: tuple[ContainerStatus, ...] = ABSENT_TUPLE
    container_statuses: tuple[ContainerStatus, ...] = ABSENT_TUPLE
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ABSENT_TUPLE
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[nodeallocatable.NodeAllocatableResourceClaimStatus, ...] = (
        ABSENT_TUPLE
    )


class Pod(meta.Object, frozen=True, kw_only=True):
    """Core Pod, namespaced; a partial view."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
