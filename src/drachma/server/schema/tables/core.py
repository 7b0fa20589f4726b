"""The other kinds of the core group: nodes, namespaces, quotas, events, configuration, accounts.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

TYPES: Final = """\
@io.k8s.api.core.v1
AttachedVolume: devicePath=str* name=str*
Binding: apiVersion=str kind=str metadata=ObjectMeta! target=ObjectReference!*
ConfigMap: apiVersion=str binaryData=<bytes> data=<str> immutable=bool? kind=str metadata=ObjectMeta!
ConfigMapNodeConfigSource: kubeletConfigKey=str* name=str* namespace=str* resourceVersion=str uid=str
ContainerImage: names=[str]! sizeBytes=int64
DaemonEndpoint: Port=int32*
Event: action=str apiVersion=str count=int32 eventTime=MicroTime! firstTimestamp=Time! involvedObject=ObjectReference!*
    kind=str lastTimestamp=Time! message=str metadata=ObjectMeta!* reason=str related=ObjectReference
    reportingComponent=str!/ reportingInstance=str!/ series=EventSeries source=EventSource! type=str
EventSeries: count=int32 lastObservedTime=MicroTime!
EventSource: component=str host=str
Namespace: apiVersion=str kind=str metadata=ObjectMeta! spec=NamespaceSpec! status=NamespaceStatus!
NamespaceCondition: lastTransitionTime=Time! message=str reason=str status=str* type=str*
NamespaceSpec: finalizers=[str]
NamespaceStatus: conditions={NamespaceCondition:type}~ phase=str
Node: apiVersion=str kind=str metadata=ObjectMeta! spec=NodeSpec! status=NodeStatus!
NodeAddress: address=str* type=str*
NodeCondition: lastHeartbeatTime=Time! lastTransitionTime=Time! message=str reason=str status=str* type=str*
NodeConfigSource: configMap=ConfigMapNodeConfigSource
NodeConfigStatus: active=NodeConfigSource assigned=NodeConfigSource error=str lastKnownGood=NodeConfigSource
NodeDaemonEndpoints: kubeletEndpoint=DaemonEndpoint!
NodeFeatures: supplementalGroupsPolicy=bool?
NodePodPreemptionPolicy: disableResizePreemption={str}
NodeRuntimeHandler: features=NodeRuntimeHandlerFeatures name=str!/
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts=bool? userNamespaces=bool?
NodeSpec: configSource=NodeConfigSource externalID=str podCIDR=str podCIDRs={str}~
    podPreemptionPolicy=NodePodPreemptionPolicy providerID=str taints=[Taint] unschedulable=bool
NodeStatus: addresses={NodeAddress:type}~ allocatable=<Quantity> capacity=<Quantity> conditions={NodeCondition:type}~
    config=NodeConfigStatus daemonEndpoints=NodeDaemonEndpoints! declaredFeatures=[str] features=NodeFeatures
    images=[ContainerImage] nodeInfo=NodeSystemInfo! phase=str runtimeHandlers=[NodeRuntimeHandler]
    volumesAttached=[AttachedVolume] volumesInUse=[str]
NodeSwapStatus: capacity=int64?
NodeSystemInfo: architecture=str* bootID=str* containerRuntimeVersion=str* kernelVersion=str* kubeProxyVersion=str*
    kubeletVersion=str* machineID=str* operatingSystem=str* osImage=str* runningInUserNamespace=bool?
    swap=NodeSwapStatus systemUUID=str*
ObjectReference!: apiVersion=str fieldPath=str kind=str name=str namespace=str resourceVersion=str uid=str
PodTemplateSpec: metadata=ObjectMeta! spec=PodSpec!
ResourceQuota: apiVersion=str kind=str metadata=ObjectMeta! spec=ResourceQuotaSpec! status=ResourceQuotaStatus!
ResourceQuotaSpec: hard=<Quantity> scopeSelector=ScopeSelector scopes=[str]
ResourceQuotaStatus: hard=<Quantity> used=<Quantity>
ScopeSelector!: matchExpressions=[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement: operator=str* scopeName=str* values=[str]
Secret: apiVersion=str data=<bytes> immutable=bool? kind=str metadata=ObjectMeta! stringData=<str> type=str
ServiceAccount: apiVersion=str automountServiceAccountToken=bool? imagePullSecrets=[LocalObjectReference] kind=str
    metadata=ObjectMeta! secrets={ObjectReference:name}~
Taint: effect=str* key=str* timeAdded=Time value=str
"""
