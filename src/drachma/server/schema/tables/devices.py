"""What the structs of ``resource.k8s.io`` do not say: required fields, and lists that are not atomic.

All versions share it; fields that a version does not have are left out there. For the notation see
:mod:`drachma.server.schema.notation`; only marks and list types count here, the types are the structs'.
"""

from typing import Final

FACTS: Final = """\
AllocatedDeviceStatus: conditions={Condition:type} device=str* driver=str* pool=str*
CapacityRequestPolicyRange: min=Quantity*
CELDeviceSelector: expression=str*
Counter: value=Quantity*
CounterSet: counters=<Quantity>* name=str*
Device: name=str*
DeviceAllocationConfiguration: source=str*
DeviceCapacity: value=Quantity*
DeviceCounterConsumption: counterSet=str* counters=<Quantity>*
DeviceDerivedAttribute: expression=str* name=str*
DeviceRequest: deviceClassName=str/ name=str*
DeviceRequestAllocationResult: device=str* driver=str* pool=str* request=str* skipNodeOperations={str}
DeviceSubRequest: deviceClassName=str* name=str*
DeviceTaint: effect=str* key=str*
DeviceTaintRule: spec=RawExtension*
DeviceTaintRuleSpec: taint=RawExtension*
DeviceTaintRuleStatus: conditions={Condition:type}~
DeviceToleration: operator=str/Equal
ExactDeviceRequest: deviceClassName=str*
OpaqueDeviceConfiguration: driver=str* parameters=RawExtension*
ResourceClaimConsumerReference: name=str* resource=str* uid=str*
ResourceClaimStatus: devices={RawExtension:driver,device,pool,shareID} reservedFor={RawExtension:uid}~
ResourcePool: generation=int64* name=str* resourceSliceCount=int64*
ResourceSlice: spec=RawExtension*
ResourceSliceSpec: driver=str* pool=RawExtension* skipNodeOperations={str}
"""
