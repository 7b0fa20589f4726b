"""Field numbers of volumes.

For the notation see :mod:`drachma.server.decoding.protobuf.notation`.
"""

from typing import Final

TYPES: Final = """\
@io.k8s.api.core.v1
AWSElasticBlockStoreVolumeSource: volumeID fsType partition readOnly
AttachedVolume: name devicePath
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
ImageVolumeStatus: imageRef
KeyToPath: key path mode? user?
NFSVolumeSource: server path readOnly
PersistentVolumeClaimSpec: accessModes resources volumeName selector storageClassName? volumeMode dataSource
    dataSourceRef volumeAttributesClassName?
PersistentVolumeClaimTemplate: metadata spec
PersistentVolumeClaimVolumeSource: claimName readOnly
PhotonPersistentDiskVolumeSource: pdID fsType
PodCertificateProjection: signerName keyType maxExpirationSeconds? credentialBundlePath keyPath certificateChainPath
    userAnnotations user?
PodVolumeHealth: name healthConditions lastTransitionTime
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
VolumeDevice: name devicePath
VolumeHealthCondition: status reason message
VolumeMount: name readOnly mountPath subPath mountPropagation subPathExpr recursiveReadOnly bindMountOptions
VolumeMountStatus: name mountPath readOnly recursiveReadOnly volumeStatus
VolumeProjection: secret downwardAPI configMap serviceAccountToken clusterTrustBundle podCertificate
VolumeResourceRequirements: limits requests
VolumeSource: hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs
    persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume
    quobyte azureDisk photonPersistentDisk portworxVolume scaleIO projected storageos csi ephemeral image
VolumeStatus: image
VsphereVirtualDiskVolumeSource: volumePath fsType storagePolicyName storagePolicyID
"""
