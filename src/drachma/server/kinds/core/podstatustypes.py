"""What became of pods.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

from drachma.api import nodeallocatable, pod
from drachma.server.kinds.core import containertypes
from drachma.server.schema import notation

_TYPES: Final = """\
ContainerExtendedResourceRequest: containerName=str* requestName=str* resourceName=str*
ContainerState: running=ContainerStateRunning terminated=ContainerStateTerminated waiting=ContainerStateWaiting
ContainerStateRunning: startedAt=Time!
ContainerStateTerminated: containerID=str exitCode=int32* finishedAt=Time! message=str reason=str signal=int32
    startedAt=Time!
ContainerStateWaiting: message=str reason=str
ContainerStatus: allocatedResources=<Quantity> allocatedResourcesStatus={ResourceStatus:name}~ containerID=str
    image=str* imageID=str* lastState=ContainerState! name=str* ready=bool* resources=ResourceRequirements
    restartCount=int32* started=bool? state=ContainerState! stopSignal=str? user=ContainerUser
    volumeMounts={VolumeMountStatus:mountPath}~
ContainerUser: linux=LinuxContainerUser
HostIP: ip=str*
ImageVolumeStatus: imageRef=str*
LinuxContainerUser: gid=int64* supplementalGroups=[int64] uid=int64*
NodeAllocatableMappedResources: name=str* quantity=Quantity!*
NodeAllocatableOverheadResources: name=str* perContainer=Quantity perPod=Quantity
NodeAllocatableResourceClaimStatus: containers={str} mapping={NodeAllocatableMappedResources:name}~
    overhead={NodeAllocatableOverheadResources:name}~ resourceClaimName=str*
PodCondition: lastProbeTime=Time! lastTransitionTime=Time! message=str observedGeneration=int64 reason=str status=str*
    type=str*
PodExtendedResourceClaimStatus: requestMappings=[ContainerExtendedResourceRequest]!* resourceClaimName=str*
PodIP: ip=str*
PodResourceClaimStatus: name=str* resourceClaimName=str?
PodStatus: allocatedResources=<Quantity> conditions={PodCondition:type}~ containerStatuses=[ContainerStatus]
    ephemeralContainerStatuses=[ContainerStatus] extendedResourceClaimStatus=PodExtendedResourceClaimStatus hostIP=str
    hostIPs=[HostIP]~ip initContainerStatuses=[ContainerStatus] message=str
    nodeAllocatableResourceClaimStatuses={NodeAllocatableResourceClaimStatus:resourceClaimName}~ nominatedNodeName=str
    observedGeneration=int64 phase=str@PodPhase podIP=str podIPs={PodIP:ip}~ qosClass=str reason=str resize=str
    resourceClaimStatuses={PodResourceClaimStatus:name}~+ resources=ResourceRequirements startTime=Time
    volumeHealth={PodVolumeHealth:name}
PodVolumeHealth: healthConditions={VolumeHealthCondition:status,reason}~ lastTransitionTime=Time! name=str*
ResourceHealth: health=str message=str? resourceID=str*
ResourceStatus: name=str* resources={ResourceHealth:resourceID}
VolumeHealthCondition: message=str reason=str* status=str*
VolumeMountStatus: mountPath=str* name=str* readOnly=bool recursiveReadOnly=str? volumeStatus=VolumeStatus
VolumeStatus: image=ImageVolumeStatus
"""
_NUMBERS: Final = """\
ContainerExtendedResourceRequest: containerName resourceName requestName
ContainerState: waiting running terminated
ContainerStateRunning: startedAt
ContainerStateTerminated: exitCode signal reason message startedAt finishedAt containerID
ContainerStateWaiting: reason message
ContainerStatus: name state lastState ready restartCount image imageID containerID started? allocatedResources resources
    volumeMounts user allocatedResourcesStatus stopSignal
ContainerUser: linux
HostIP: ip
ImageVolumeStatus: imageRef
LinuxContainerUser: uid gid supplementalGroups
NodeAllocatableMappedResources: name quantity
NodeAllocatableOverheadResources: name perPod perContainer
NodeAllocatableResourceClaimStatus: resourceClaimName containers 4:mapping overhead
PodCondition: type status lastProbeTime lastTransitionTime reason message observedGeneration
PodExtendedResourceClaimStatus: requestMappings resourceClaimName
PodIP: ip
PodResourceClaimStatus: name resourceClaimName?
PodStatus: phase conditions message reason hostIP podIP startTime containerStatuses qosClass initContainerStatuses
    nominatedNodeName podIPs ephemeralContainerStatuses resize resourceClaimStatuses hostIPs observedGeneration
    extendedResourceClaimStatus allocatedResources resources nodeAllocatableResourceClaimStatuses volumeHealth
PodVolumeHealth: name healthConditions lastTransitionTime
ResourceHealth: resourceID health 6:message?
ResourceStatus: name resources
VolumeHealthCondition: status reason message
VolumeMountStatus: name mountPath readOnly recursiveReadOnly volumeStatus
VolumeStatus: image
"""
_TEXTS: Final = """\
PodStatus.phase: Pending, Running, Succeeded, Failed or Unknown.
PodStatus.nominatedNodeName: Where the pod will run once others have made room.
PodStatus.resourceClaimStatuses: Which claims were made for the pod.
"""

POD_STATUS: Final = notation.Types(
    "io.k8s.api.core.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    docs=(pod, nodeallocatable),
    uses=(containertypes.CONTAINERS,),
)
