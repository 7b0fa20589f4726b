"""Field numbers of ``resource.k8s.io``. v1beta2 and v1alpha3 have those of v1, v1beta1 differs where listed.

For the notation see :mod:`drachma.server.decoding.protobuf.notation`.
"""

from typing import Final

TYPES: Final = """\
@io.k8s.api.resource.v1
AllocatedDeviceStatus: driver pool device conditions data networkData shareID?
AllocationResult: devices 3:nodeSelector 5:allocationTimestamp
CELDeviceSelector: expression
CapacityRequestPolicy: default 3:validValues validRange
CapacityRequestPolicyRange: min max step
CapacityRequirements: requests
Counter: value
CounterSet: name counters
Device: name attributes capacity consumesCounters nodeName? nodeSelector allNodes? taints bindsToNode?
    bindingConditions bindingFailureConditions allowMultipleAllocations? 14:nodeAllocatableResources
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
ExactDeviceRequest: deviceClassName selectors allocationMode count adminAccess? tolerations capacity
    derivedAttributes
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
@io.k8s.api.resource.v1beta1
BasicDevice: attributes capacity consumesCounters nodeName? nodeSelector allNodes? taints bindsToNode?
    bindingConditions bindingFailureConditions allowMultipleAllocations? 14:nodeAllocatableResources
Device: name basic
DeviceRequest: name deviceClassName selectors allocationMode count adminAccess? firstAvailable tolerations capacity
    derivedAttributes
DeviceSubRequest: name deviceClassName selectors allocationMode count 7:tolerations capacity derivedAttributes
ResourceSliceSpec: driver pool nodeName nodeSelector allNodes devices perDeviceNodeSelection? sharedCounters
    partitionTypeAttribute skipNodeOperations
"""
