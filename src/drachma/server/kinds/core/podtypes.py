"""What pods are to be like, in pods and in the templates of workloads.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

from drachma.api import pod
from drachma.server.kinds.core import containertypes, references, volumetypes
from drachma.server.schema import metatypes, notation

_TYPES: Final = """\
Affinity: nodeAffinity=NodeAffinity podAffinity=PodAffinity podAntiAffinity=PodAntiAffinity
EvictionResponder!: name=str* priority=int32!*
HostAlias: hostnames=[str] ip=str*
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm]
    requiredDuringSchedulingIgnoredDuringExecution=NodeSelector
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
PodAffinityTerm: labelSelector=LabelSelector matchLabelKeys=[str] mismatchLabelKeys=[str]
    namespaceSelector=LabelSelector namespaces=[str] topologyKey=str*
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
PodDNSConfig: nameservers=[str] options=[PodDNSConfigOption] searches=[str]
PodDNSConfigOption: name=str value=str?
PodOS: name=str*
PodReadinessGate: conditionType=str*
PodResourceClaim: name=str* resourceClaimName=str? resourceClaimTemplateName=str?
PodSchedulingGate: name=str*
PodSchedulingGroup: podGroupName=str?
PodSecurityContext: appArmorProfile=AppArmorProfile fsGroup=int64? fsGroupChangePolicy=str? runAsGroup=int64?
    runAsNonRoot=bool? runAsUser=int64? seLinuxChangePolicy=str? seLinuxOptions=SELinuxOptions
    seccompProfile=SeccompProfile supplementalGroups=[int64] supplementalGroupsPolicy=str? sysctls=[Sysctl]
    windowsOptions=WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds=int64? affinity=Affinity automountServiceAccountToken=bool?
    containers={Container:name}!*~ dnsConfig=PodDNSConfig dnsPolicy=str enableServiceLinks=bool?
    ephemeralContainers={EphemeralContainer:name}~ evictionResponders={EvictionResponder:name}~
    hostAliases={HostAlias:ip}~ hostIPC=bool hostNetwork=bool hostPID=bool hostUsers=bool? hostname=str
    hostnameOverride=str? imagePullSecrets={LocalObjectReference:name}~ initContainers={Container:name}~ nodeName=str
    nodeSelector=<<str>> os=PodOS overhead=<Quantity> preemptionPolicy=str? priority=int32? priorityClassName=str
    readinessGates=[PodReadinessGate] resourceClaims={PodResourceClaim:name}~+ resources=ResourceRequirements
    restartPolicy=str@RestartPolicy runtimeClassName=str? schedulerName=str schedulingGates={PodSchedulingGate:name}~
    schedulingGroup=PodSchedulingGroup securityContext=PodSecurityContext serviceAccount=str serviceAccountName=str
    setHostnameAsFQDN=bool? shareProcessNamespace=bool? subdomain=str terminationGracePeriodSeconds=int64?
    tolerations=[Toleration] topologySpreadConstraints={TopologySpreadConstraint:topologyKey,whenUnsatisfiable}~
    volumes={Volume:name}~+
PodTemplateSpec: metadata=ObjectMeta! spec=PodSpec!
PreferredSchedulingTerm: preference=NodeSelectorTerm!* weight=int32*
Sysctl: name=str* value=str*
Toleration: effect=str@TaintEffect key=str operator=str@TolerationOperator tolerationSeconds=int64? value=str
TopologySpreadConstraint: labelSelector=LabelSelector matchLabelKeys=[str] maxSkew=int32* minDomains=int32?
    nodeAffinityPolicy=str? nodeTaintsPolicy=str? topologyKey=str* whenUnsatisfiable=str*
WeightedPodAffinityTerm: podAffinityTerm=PodAffinityTerm!* weight=int32*
"""
_NUMBERS: Final = """\
Affinity: nodeAffinity podAffinity podAntiAffinity
EvictionResponder: name priority?
HostAlias: ip hostnames
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution
PodAffinityTerm: labelSelector namespaces topologyKey namespaceSelector matchLabelKeys mismatchLabelKeys
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution
PodDNSConfig: nameservers searches options
PodDNSConfigOption: name value?
PodOS: name
PodReadinessGate: conditionType
PodResourceClaim: name 3:resourceClaimName? resourceClaimTemplateName?
PodSchedulingGate: name
PodSchedulingGroup: podGroupName?
PodSecurityContext: seLinuxOptions runAsUser? runAsNonRoot? supplementalGroups fsGroup? runAsGroup? sysctls
    windowsOptions fsGroupChangePolicy seccompProfile appArmorProfile supplementalGroupsPolicy seLinuxChangePolicy
PodSpec: volumes containers restartPolicy terminationGracePeriodSeconds? activeDeadlineSeconds? dnsPolicy nodeSelector
    serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC securityContext imagePullSecrets hostname
    subdomain affinity schedulerName initContainers automountServiceAccountToken? tolerations hostAliases
    priorityClassName priority? dnsConfig shareProcessNamespace? readinessGates runtimeClassName? enableServiceLinks?
    preemptionPolicy overhead topologySpreadConstraints ephemeralContainers setHostnameAsFQDN? os hostUsers?
    schedulingGates resourceClaims resources hostnameOverride? 43:schedulingGroup evictionResponders
PodTemplateSpec: metadata spec
PreferredSchedulingTerm: weight preference
Sysctl: name value
Toleration: key operator value effect tolerationSeconds?
TopologySpreadConstraint: maxSkew topologyKey whenUnsatisfiable labelSelector minDomains? nodeAffinityPolicy
    nodeTaintsPolicy matchLabelKeys
WeightedPodAffinityTerm: weight podAffinityTerm
"""
_TEXTS: Final = """\
PodTemplateSpec: What each pod is to be like.
PodSpec.containers: The containers of the pod.
PodSpec.initContainers: Containers that run before the others, one after the other.
PodSpec.volumes: What containers can mount.
PodSpec.nodeName: The node that the pod runs on; set by the scheduler.
PodSpec.nodeSelector: Labels that a node must have to run the pod.
PodSpec.tolerations: Which taints of nodes the pod puts up with.
PodSpec.resourceClaims: The claims whose devices the pod uses; containers refer to them by name.
PodSpec.schedulerName: Who schedules the pod.
PodSpec.restartPolicy: Always, OnFailure or Never.
PodSpec.priorityClassName: The class that the pod's priority comes from.
PodSpec.schedulingGates: What keeps the pod from being scheduled yet.
PodSpec.affinity: Where the pod must or should run, and beside which pods.
"""

PODS: Final = notation.Types(
    "io.k8s.api.core.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    docs=(pod,),
    uses=(
        metatypes.META,
        references.REFERENCES,
        volumetypes.VOLUMES,
        containertypes.CONTAINERS,
    ),
)
