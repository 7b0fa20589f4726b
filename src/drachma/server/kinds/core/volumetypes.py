"""The volumes of pods and everything that can be projected into one.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

from drachma.server.kinds.core import references
from drachma.server.schema import metatypes, notation

_TYPES: Final = """\
AWSElasticBlockStoreVolumeSource: fsType=str partition=int32 readOnly=bool volumeID=str*
AzureDiskVolumeSource: cachingMode=str?/ReadWrite diskName=str* diskURI=str* fsType=str?/ext4 kind=str?/Shared
    readOnly=bool?/False
AzureFileVolumeSource: readOnly=bool secretName=str* shareName=str*
CSIVolumeSource: driver=str* fsType=str? nodePublishSecretRef=LocalObjectReference readOnly=bool? volumeAttributes=<str>
CephFSVolumeSource: monitors=[str]!* path=str readOnly=bool secretFile=str secretRef=LocalObjectReference user=str
CinderVolumeSource: fsType=str readOnly=bool secretRef=LocalObjectReference volumeID=str*
ClusterTrustBundleProjection: labelSelector=LabelSelector name=str? optional=bool? path=str* signerName=str? user=int64?
ConfigMapProjection: items=[KeyToPath] name=str/ optional=bool?
ConfigMapVolumeSource: defaultMode=int32? defaultUser=int64? items=[KeyToPath] name=str/ optional=bool?
DownwardAPIProjection: items=[DownwardAPIVolumeFile]
DownwardAPIVolumeFile: fieldRef=ObjectFieldSelector mode=int32? path=str* resourceFieldRef=ResourceFieldSelector
    user=int64?
DownwardAPIVolumeSource: defaultMode=int32? defaultUser=int64? items=[DownwardAPIVolumeFile]
EmptyDirVolumeSource: medium=str mode=int32? sizeLimit=Quantity
EphemeralVolumeSource: volumeClaimTemplate=PersistentVolumeClaimTemplate
FCVolumeSource: fsType=str lun=int32? readOnly=bool targetWWNs=[str] wwids=[str]
FlexVolumeSource: driver=str* fsType=str options=<str> readOnly=bool secretRef=LocalObjectReference
FlockerVolumeSource: datasetName=str datasetUUID=str
GCEPersistentDiskVolumeSource: fsType=str partition=int32 pdName=str* readOnly=bool
GitRepoVolumeSource: directory=str repository=str* revision=str
GlusterfsVolumeSource: endpoints=str* path=str* readOnly=bool
HostPathVolumeSource: path=str* type=str?
ISCSIVolumeSource: chapAuthDiscovery=bool chapAuthSession=bool fsType=str initiatorName=str? iqn=str*
    iscsiInterface=str/default lun=int32* portals=[str] readOnly=bool secretRef=LocalObjectReference targetPortal=str*
ImageVolumeSource: pullPolicy=str reference=str
KeyToPath: key=str* mode=int32? path=str* user=int64?
NFSVolumeSource: path=str* readOnly=bool server=str*
PersistentVolumeClaimSpec: accessModes=[str] dataSource=TypedLocalObjectReference dataSourceRef=TypedObjectReference
    resources=VolumeResourceRequirements! selector=LabelSelector storageClassName=str? volumeAttributesClassName=str?
    volumeMode=str? volumeName=str
PersistentVolumeClaimTemplate: metadata=ObjectMeta! spec=PersistentVolumeClaimSpec!*
PersistentVolumeClaimVolumeSource: claimName=str* readOnly=bool
PhotonPersistentDiskVolumeSource: fsType=str pdID=str*
PodCertificateProjection: certificateChainPath=str credentialBundlePath=str keyPath=str keyType=str*
    maxExpirationSeconds=int32? signerName=str* user=int64? userAnnotations=<str>
PortworxVolumeSource: fsType=str readOnly=bool volumeID=str*
ProjectedVolumeSource: defaultMode=int32? defaultUser=int64? sources=[VolumeProjection]!
QuobyteVolumeSource: group=str readOnly=bool registry=str* tenant=str user=str volume=str*
RBDVolumeSource: fsType=str image=str* keyring=str//etc/ceph/keyring monitors=[str]!* pool=str/rbd readOnly=bool
    secretRef=LocalObjectReference user=str/admin
ScaleIOVolumeSource: fsType=str/xfs gateway=str* protectionDomain=str readOnly=bool secretRef=LocalObjectReference*
    sslEnabled=bool storageMode=str/ThinProvisioned storagePool=str system=str* volumeName=str
SecretProjection: items=[KeyToPath] name=str/ optional=bool?
SecretVolumeSource: defaultMode=int32? defaultUser=int64? items=[KeyToPath] optional=bool? secretName=str
ServiceAccountTokenProjection: audience=str expirationSeconds=int64? path=str* user=int64?
StorageOSVolumeSource: fsType=str readOnly=bool secretRef=LocalObjectReference volumeName=str volumeNamespace=str
Volume: awsElasticBlockStore=AWSElasticBlockStoreVolumeSource azureDisk=AzureDiskVolumeSource
    azureFile=AzureFileVolumeSource cephfs=CephFSVolumeSource cinder=CinderVolumeSource configMap=ConfigMapVolumeSource
    csi=CSIVolumeSource downwardAPI=DownwardAPIVolumeSource emptyDir=EmptyDirVolumeSource
    ephemeral=EphemeralVolumeSource fc=FCVolumeSource flexVolume=FlexVolumeSource flocker=FlockerVolumeSource
    gcePersistentDisk=GCEPersistentDiskVolumeSource gitRepo=GitRepoVolumeSource glusterfs=GlusterfsVolumeSource
    hostPath=HostPathVolumeSource image=ImageVolumeSource iscsi=ISCSIVolumeSource name=str* nfs=NFSVolumeSource
    persistentVolumeClaim=PersistentVolumeClaimVolumeSource photonPersistentDisk=PhotonPersistentDiskVolumeSource
    portworxVolume=PortworxVolumeSource projected=ProjectedVolumeSource quobyte=QuobyteVolumeSource rbd=RBDVolumeSource
    scaleIO=ScaleIOVolumeSource secret=SecretVolumeSource storageos=StorageOSVolumeSource
    vsphereVolume=VsphereVirtualDiskVolumeSource
VolumeProjection: clusterTrustBundle=ClusterTrustBundleProjection configMap=ConfigMapProjection
    downwardAPI=DownwardAPIProjection podCertificate=PodCertificateProjection secret=SecretProjection
    serviceAccountToken=ServiceAccountTokenProjection
VolumeResourceRequirements: limits=<Quantity> requests=<Quantity>
VsphereVirtualDiskVolumeSource: fsType=str storagePolicyID=str storagePolicyName=str volumePath=str*
"""
_NUMBERS: Final = """\
AWSElasticBlockStoreVolumeSource: volumeID fsType partition readOnly
AzureDiskVolumeSource: diskName diskURI cachingMode fsType? readOnly? kind
AzureFileVolumeSource: secretName shareName readOnly
CSIVolumeSource: driver readOnly? fsType? volumeAttributes nodePublishSecretRef
CephFSVolumeSource: monitors path user secretFile secretRef readOnly
CinderVolumeSource: volumeID fsType readOnly secretRef
ClusterTrustBundleProjection: name? signerName? labelSelector path optional? user?
ConfigMapProjection: +LocalObjectReference items 4:optional?
ConfigMapVolumeSource: +LocalObjectReference items defaultMode? optional? defaultUser?
DownwardAPIProjection: items
DownwardAPIVolumeFile: path fieldRef resourceFieldRef mode? user?
DownwardAPIVolumeSource: items defaultMode? defaultUser?
EmptyDirVolumeSource: medium sizeLimit mode?
EphemeralVolumeSource: volumeClaimTemplate
FCVolumeSource: targetWWNs lun? fsType readOnly wwids
FlexVolumeSource: driver fsType secretRef readOnly options
FlockerVolumeSource: datasetName datasetUUID
GCEPersistentDiskVolumeSource: pdName fsType partition readOnly
GitRepoVolumeSource: repository revision directory
GlusterfsVolumeSource: endpoints path readOnly
HostPathVolumeSource: path type
ISCSIVolumeSource: targetPortal iqn lun iscsiInterface fsType readOnly portals chapAuthDiscovery 10:secretRef
    chapAuthSession initiatorName?
ImageVolumeSource: reference pullPolicy
KeyToPath: key path mode? user?
NFSVolumeSource: server path readOnly
PersistentVolumeClaimSpec: accessModes resources volumeName selector storageClassName? volumeMode dataSource
    dataSourceRef volumeAttributesClassName?
PersistentVolumeClaimTemplate: metadata spec
PersistentVolumeClaimVolumeSource: claimName readOnly
PhotonPersistentDiskVolumeSource: pdID fsType
PodCertificateProjection: signerName keyType maxExpirationSeconds? credentialBundlePath keyPath certificateChainPath
    userAnnotations user?
PortworxVolumeSource: volumeID fsType readOnly
ProjectedVolumeSource: sources defaultMode? defaultUser?
QuobyteVolumeSource: registry volume readOnly user group tenant
RBDVolumeSource: monitors image fsType pool user keyring secretRef readOnly
ScaleIOVolumeSource: gateway system secretRef sslEnabled protectionDomain storagePool storageMode volumeName fsType
    readOnly
SecretProjection: +LocalObjectReference items 4:optional?
SecretVolumeSource: secretName items defaultMode? optional? defaultUser?
ServiceAccountTokenProjection: audience expirationSeconds? path user?
StorageOSVolumeSource: volumeName volumeNamespace fsType readOnly secretRef
Volume: name +VolumeSource
VolumeProjection: secret downwardAPI configMap serviceAccountToken clusterTrustBundle podCertificate
VolumeResourceRequirements: limits requests
VolumeSource: hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs
    persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume quobyte
    azureDisk photonPersistentDisk portworxVolume scaleIO projected storageos csi ephemeral image
VsphereVirtualDiskVolumeSource: volumePath fsType storagePolicyName storagePolicyID
"""

VOLUMES: Final = notation.Types(
    "io.k8s.api.core.v1",
    _TYPES,
    numbers=_NUMBERS,
    uses=(
        metatypes.META,
        references.REFERENCES,
    ),
)
