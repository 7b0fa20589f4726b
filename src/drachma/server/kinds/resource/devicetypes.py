"""The types of ``resource.k8s.io``: read off their structs, with what structs do not say.

That is which fields are required, which lists are not atomic, Go's names of types, field numbers, and texts. All
versions share it; fields that a version does not have are left out there. For the notation see
:mod:`drachma.server.schema.notation`; only marks and list types count here, the types are the structs'.
"""

from typing import Final

from drachma.api import (
    deviceclass,
    devices,
    devicetaintrule,
    meta,
    nodeallocatable,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
    scheme,
    v1alpha3,
    v1beta1,
)
from drachma.server.kinds.core import references
from drachma.server.schema import metatypes, model, notation, structs

_FACTS: Final = """\
AllocatedDeviceStatus: conditions={Condition:type} device=str* driver=str* pool=str*
BasicDevice: attributes=<str>@QualifiedName capacity=<str>@QualifiedName
CapacityRequestPolicyRange: min=Quantity*
CELDeviceSelector: expression=str*
Counter: value=Quantity*
CounterSet: counters=<Quantity>* name=str*
Device: attributes=<str>@QualifiedName capacity=<str>@QualifiedName name=str*
DeviceAllocationConfiguration: opaque=RawExtension^DeviceConfiguration source=str@AllocationConfigSource*
DeviceCapacity: value=Quantity*
DeviceClaimConfiguration: opaque=RawExtension^DeviceConfiguration
DeviceClassConfiguration: opaque=RawExtension^DeviceConfiguration
DeviceConstraint: distinctAttribute=str@FullyQualifiedName matchAttribute=str@FullyQualifiedName
DeviceCounterConsumption: counterSet=str* counters=<Quantity>*
DeviceDerivedAttribute: expression=str* name=str*
DeviceRequest: allocationMode=str@DeviceAllocationMode deviceClassName=str/ name=str*
DeviceRequestAllocationResult: device=str* driver=str* pool=str* request=str* skipNodeOperations={str}
DeviceSubRequest: allocationMode=str@DeviceAllocationMode deviceClassName=str* name=str*
DeviceTaint: effect=str@DeviceTaintEffect* key=str*
DeviceTaintRule: spec=RawExtension*
DeviceTaintRuleSpec: taint=RawExtension*
DeviceTaintRuleStatus: conditions={Condition:type}~
DeviceToleration: effect=str@DeviceTaintEffect operator=str@DeviceTolerationOperator/Equal
ExactDeviceRequest: allocationMode=str@DeviceAllocationMode deviceClassName=str*
OpaqueDeviceConfiguration: driver=str* parameters=RawExtension*
ResourceClaimConsumerReference: name=str* resource=str* uid=str@types.UID*
ResourceClaimStatus: devices={RawExtension:driver,device,pool,shareID} reservedFor={RawExtension:uid}~
ResourcePool: generation=int64* name=str* resourceSliceCount=int64*
ResourceSlice: spec=RawExtension*
ResourceSliceSpec: driver=str* pool=RawExtension* skipNodeOperations={str}@SkipNodeOperation
"""
_NUMBERS: Final = """\
AllocatedDeviceStatus: driver pool device conditions data networkData shareID?
AllocationResult: devices 3:nodeSelector 5:allocationTimestamp
CELDeviceSelector: expression
CapacityRequestPolicy: default 3:validValues validRange
CapacityRequestPolicyRange: min max step
CapacityRequirements: requests
Counter: value
CounterSet: name counters
Device: name attributes capacity consumesCounters nodeName? nodeSelector allNodes? taints bindsToNode? bindingConditions
    bindingFailureConditions allowMultipleAllocations? 14:nodeAllocatableResources
DeviceAllocationConfiguration: source requests +DeviceConfiguration
DeviceAllocationResult: results config
DeviceAttribute: 2:int? bool? string? version? ints bools strings versions
DeviceCapacity: value requestPolicy
DeviceClaim: requests constraints config
DeviceClaimConfiguration: requests +DeviceConfiguration
DeviceClass: metadata spec
DeviceClassConfiguration: +DeviceConfiguration
DeviceClassSpec: selectors config 4:extendedResourceName?
DeviceConfiguration: opaque
DeviceConstraint: requests matchAttribute distinctAttribute
DeviceCounterConsumption: counterSet counters compatibilityGroups
DeviceDerivedAttribute: name expression
DeviceRequest: name exactly firstAvailable
DeviceRequestAllocationResult: request driver pool device adminAccess? tolerations bindingConditions
    bindingFailureConditions shareID consumedCapacity skipNodeOperations
DeviceSelector: cel
DeviceSubRequest: name deviceClassName selectors allocationMode count tolerations capacity derivedAttributes
DeviceTaint: key value effect timeAdded
DeviceTaintRule: metadata spec status
DeviceTaintRuleSpec: deviceSelector taint
DeviceTaintRuleStatus: conditions
DeviceTaintSelector: 2:driver? pool? device?
DeviceToleration: key operator value effect tolerationSeconds?
ExactDeviceRequest: deviceClassName selectors allocationMode count adminAccess? tolerations capacity derivedAttributes
NetworkDeviceData: interfaceName ips hardwareAddress
NodeAllocatableMapping: capacityKey capacityMultiplier deviceMultiplier
NodeAllocatableOverhead: perPod perContainer
NodeAllocatableResource: 3:mapping overhead
OpaqueDeviceConfiguration: driver parameters
ResourceClaim: metadata spec status
ResourceClaimConsumerReference: apiGroup 3:resource name uid
ResourceClaimSpec: devices
ResourceClaimStatus: allocation reservedFor 4:devices
ResourceClaimTemplate: metadata spec
ResourceClaimTemplateSpec: metadata spec
ResourcePool: name generation resourceSliceCount
ResourceSlice: metadata spec
ResourceSliceSpec: driver pool nodeName? nodeSelector allNodes? devices perDeviceNodeSelection? sharedCounters
    partitionTypeAttribute skipNodeOperations
"""
_NUMBERS_V1BETA1: Final = """\
BasicDevice: attributes capacity consumesCounters nodeName? nodeSelector allNodes? taints bindsToNode? bindingConditions
    bindingFailureConditions allowMultipleAllocations? 14:nodeAllocatableResources
Device: name basic
DeviceRequest: name deviceClassName selectors allocationMode count adminAccess? firstAvailable tolerations capacity
    derivedAttributes
DeviceSubRequest: name deviceClassName selectors allocationMode count 7:tolerations capacity derivedAttributes
ResourceSliceSpec: driver pool nodeName nodeSelector allNodes devices perDeviceNodeSelection? sharedCounters
    partitionTypeAttribute skipNodeOperations
"""
_TEXTS: Final = """\
DeviceClass: A kind of device that an administrator offers under a name; claims ask for devices of classes.
ResourceClaim: A wish for devices, and once they are allocated, which devices those are and who uses them.
ResourceClaimTemplate: From which a pod gets a claim of its own.
ResourceSlice: Devices, or some of the devices of a pool, as a driver publishes them.
DeviceTaintRule: A taint on all devices that a selector names.
DeviceClassSpec.selectors: What a device must be like to belong to the class; all selectors must match.
DeviceClassSpec.config: Configuration that claims of the class pass to drivers.
DeviceClassSpec.extendedResourceName: The extended resource through which pods can ask for the class without a claim.
DeviceSelector.cel: A CEL expression that is true for devices that match.
CELDeviceSelector.expression: The expression; it sees the driver, attributes and capacity of one device.
OpaqueDeviceConfiguration.driver: The driver that the parameters are for.
OpaqueDeviceConfiguration.parameters: Anything the driver understands, as an object with apiVersion and kind.
DeviceClaim.requests: The devices that are wanted; each request has a name.
DeviceClaim.constraints: What the devices of several requests must have in common or apart.
DeviceClaim.config: Configuration that drivers get with the devices.
ResourceClaimSpec.devices: Which devices are wanted, and how they are to be configured.
DeviceRequest.name: The name of the request, unique in the claim; containers refer to it.
DeviceRequest.exactly: One way to satisfy the request.
DeviceRequest.firstAvailable: Several ways to satisfy the request; the first that can be had is taken.
ExactDeviceRequest.deviceClassName: The class that the devices must belong to.
ExactDeviceRequest.selectors: What else a device must be like.
ExactDeviceRequest.allocationMode: ExactCount for a number of devices, All for all that match.
ExactDeviceRequest.count: How many devices, if the mode is ExactCount; 1 if not set.
ExactDeviceRequest.adminAccess: Use devices for administration although others use them.
ExactDeviceRequest.tolerations: Which taints of devices are put up with.
ExactDeviceRequest.capacity: How much of a device's capacity is needed.
DeviceSubRequest.name: The name of this way, unique in its request.
DeviceSubRequest.deviceClassName: The class that the devices must belong to.
DeviceSubRequest.selectors: What else a device must be like.
DeviceSubRequest.allocationMode: ExactCount for a number of devices, All for all that match.
DeviceSubRequest.count: How many devices, if the mode is ExactCount; 1 if not set.
DeviceSubRequest.tolerations: Which taints of devices are put up with.
DeviceConstraint.requests: The requests that the constraint is about; without any, all.
DeviceConstraint.matchAttribute: An attribute that all the devices must have the same value of.
DeviceConstraint.distinctAttribute: An attribute that all the devices must have different values of.
DeviceToleration.key: The key of the taints that are tolerated; without one, all keys.
DeviceToleration.operator: Equal or Exists.
DeviceToleration.value: The value of the taints that are tolerated.
DeviceToleration.effect: The effect of the taints that are tolerated; without one, all effects.
DeviceToleration.tolerationSeconds: How long a NoExecute taint is tolerated.
ResourceClaimStatus.allocation: What was allocated; absent until then.
ResourceClaimStatus.reservedFor: Who may use the claim now.
ResourceClaimStatus.devices: What drivers report about the allocated devices.
AllocationResult.devices: The allocated devices.
AllocationResult.nodeSelector: Where the devices can be used; without it, everywhere.
DeviceRequestAllocationResult.request: The request that the device was allocated for.
DeviceRequestAllocationResult.driver: The driver of the device.
DeviceRequestAllocationResult.pool: The pool that the device is in.
DeviceRequestAllocationResult.device: The name of the device in its pool.
ResourceClaimTemplateSpec.metadata: Labels and annotations of the claims.
ResourceClaimTemplateSpec.spec: What the claims ask for.
ResourceSliceSpec.driver: The driver that publishes the slice.
ResourceSliceSpec.pool: The pool that the slice is part of.
ResourceSliceSpec.nodeName: The one node that can use the devices.
ResourceSliceSpec.nodeSelector: The nodes that can use the devices.
ResourceSliceSpec.allNodes: All nodes can use the devices.
ResourceSliceSpec.perDeviceNodeSelection: Every device says itself which nodes can use it.
ResourceSliceSpec.devices: The devices.
ResourceSliceSpec.sharedCounters: Counters that devices of the pool share.
ResourcePool.name: The name of the pool; often that of a node.
ResourcePool.generation: Which generation of the pool this is; slices of older ones do not count.
ResourcePool.resourceSliceCount: Of how many slices the pool consists in this generation.
Device.name: The name of the device, unique in its pool.
Device.attributes: What the device is like; selectors and constraints read it.
Device.capacity: How much of what the device has.
Device.taints: What keeps claims away from the device.
Device.consumesCounters: What the device takes from shared counters when it is allocated.
DeviceTaint.key: The key of the taint.
DeviceTaint.value: The value of the taint.
DeviceTaint.effect: None, NoSchedule or NoExecute.
DeviceTaint.timeAdded: When the taint was added.
DeviceTaintRuleSpec.deviceSelector: The devices that get the taint.
DeviceTaintRuleSpec.taint: The taint.
"""
_DOCS: Final = (
    v1alpha3,
    v1beta1,
    deviceclass,
    devices,
    devicetaintrule,
    nodeallocatable,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
)
_ELSEWHERE: Final = notation.Types("", "", uses=(metatypes.META, references.REFERENCES))


def _reader(version: str, numbers: str = _NUMBERS) -> structs.Reader:
    package = f"io.k8s.api.resource.{version}"
    facts = notation.Types(package, _FACTS, numbers=numbers, texts=_TEXTS, docs=_DOCS, uses=(metatypes.META,))
    return structs.Reader(package, facts=facts, elsewhere=_ELSEWHERE)


_READERS: Final = {
    "v1": _reader("v1"),
    "v1beta2": _reader("v1beta2"),
    "v1beta1": _reader("v1beta1", _NUMBERS + _NUMBERS_V1BETA1),
    "v1alpha3": _reader("v1alpha3", _NUMBERS + _NUMBERS_V1BETA1),
}


def schemas(shape: type[meta.Object]) -> dict[str, model.Object]:
    """The type of a kind in all its versions."""
    kind = scheme.of(shape)
    versions = zip(kind.versions, kind.api_versions, strict=True)
    return {version: _READERS[version].kind(kind.shape(api_version)) for version, api_version in versions}
