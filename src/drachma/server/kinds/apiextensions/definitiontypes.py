"""Types of custom resource definitions, schemas included, which refer to themselves.

Where a schema may stand beside something else, as in ``items`` and ``additionalProperties``, Go's types read
themselves: what is wrong there is not known before the schema is parsed.
"""

from typing import Any, Final

from drachma.server.schema import metatypes, model, normalform, notation

_TYPES: Final = """\
CustomResourceColumnDefinition: description=str format=str jsonPath=str* name=str* priority=int32 type=str*
CustomResourceConversion: strategy=str@ConversionStrategyType* webhook=WebhookConversion
CustomResourceDefinition: apiVersion=str kind=str metadata=ObjectMeta! spec=CustomResourceDefinitionSpec!*
    status=CustomResourceDefinitionStatus!
CustomResourceDefinitionCondition: lastTransitionTime=Time message=str observedGeneration=int64 reason=str status=str*
    type=str*
CustomResourceDefinitionNames: categories=[str] kind=str* listKind=str plural=str* shortNames=[str] singular=str
CustomResourceDefinitionSpec: conversion=CustomResourceConversion group=str* names=CustomResourceDefinitionNames!*
    preserveUnknownFields=bool scope=str@ResourceScope* versions=[CustomResourceDefinitionVersion]*
CustomResourceDefinitionStatus: acceptedNames=CustomResourceDefinitionNames!
    conditions={CustomResourceDefinitionCondition:type}! observedGeneration=int64 storedVersions=[str]!
CustomResourceDefinitionVersion: additionalPrinterColumns=[CustomResourceColumnDefinition] deprecated=bool
    deprecationWarning=str? name=str* schema=CustomResourceValidation selectableFields=[SelectableField] served=bool*
    storage=bool* subresources=CustomResourceSubresources
CustomResourceSubresourceScale: labelSelectorPath=str? specReplicasPath=str* statusReplicasPath=str*
CustomResourceSubresourceStatus:
CustomResourceSubresources: scale=CustomResourceSubresourceScale status=CustomResourceSubresourceStatus
CustomResourceValidation: openAPIV3Schema=JSONSchemaProps
ExternalDocumentation: description=str url=str
JSONSchemaProps: $ref=str? $schema=str additionalItems=RawExtension additionalProperties=RawExtension
    allOf=[JSONSchemaProps] anyOf=[JSONSchemaProps] default=RawExtension definitions=<JSONSchemaProps>
    dependencies=<RawExtension> description=str enum=[RawExtension] example=RawExtension exclusiveMaximum=bool
    exclusiveMinimum=bool externalDocs=ExternalDocumentation format=str id=str items=RawExtension maxItems=int64?
    maxLength=int64? maxProperties=int64? maximum=float64? minItems=int64? minLength=int64? minProperties=int64?
    minimum=float64? multipleOf=float64? not=JSONSchemaProps nullable=bool oneOf=[JSONSchemaProps] pattern=str
    patternProperties=<JSONSchemaProps> properties=<JSONSchemaProps> required=[str] title=str type=str uniqueItems=bool
    x-kubernetes-embedded-resource=bool x-kubernetes-int-or-string=bool x-kubernetes-list-map-keys=[str]
    x-kubernetes-list-type=str? x-kubernetes-map-type=str? x-kubernetes-preserve-unknown-fields=bool?
    x-kubernetes-validations={ValidationRule:rule}~
SelectableField: jsonPath=str*
ServiceReference: name=str* namespace=str* path=str? port=int32?
ValidationRule: fieldPath=str message=str messageExpression=str optionalOldSelf=bool? reason=str@FieldValueErrorReason?
    rule=str*
WebhookClientConfig: caBundle=bytes service=ServiceReference url=str?
WebhookConversion: clientConfig=WebhookClientConfig conversionReviewVersions=[str]*
"""
_NUMBERS: Final = """\
CustomResourceColumnDefinition: name type format description priority jsonPath
CustomResourceConversion: strategy webhook
CustomResourceDefinition: metadata spec status
CustomResourceDefinitionCondition: type status lastTransitionTime reason message observedGeneration
CustomResourceDefinitionNames: plural singular shortNames kind listKind categories
CustomResourceDefinitionSpec: group 3:names scope 7:versions 9:conversion preserveUnknownFields
CustomResourceDefinitionStatus: conditions acceptedNames storedVersions observedGeneration
CustomResourceDefinitionVersion: name served storage schema subresources additionalPrinterColumns deprecated
    deprecationWarning? selectableFields
CustomResourceSubresourceScale: specReplicasPath statusReplicasPath labelSelectorPath?
CustomResourceSubresources: status scale
CustomResourceValidation: openAPIV3Schema
ExternalDocumentation: description url
JSONSchemaProps: id $schema $ref? description type format title default maximum? exclusiveMaximum minimum?
    exclusiveMinimum maxLength? minLength? pattern maxItems? minItems? uniqueItems multipleOf? enum maxProperties?
    minProperties? required items allOf oneOf anyOf not properties additionalProperties patternProperties dependencies
    additionalItems definitions externalDocs example nullable x-kubernetes-preserve-unknown-fields?
    x-kubernetes-embedded-resource x-kubernetes-int-or-string x-kubernetes-list-map-keys x-kubernetes-list-type?
    x-kubernetes-map-type? x-kubernetes-validations
SelectableField: jsonPath
ServiceReference: namespace name path? port?
ValidationRule: rule message messageExpression reason? fieldPath optionalOldSelf?
WebhookClientConfig: service caBundle url?
WebhookConversion: 2:clientConfig conversionReviewVersions
"""
_TEXTS: Final = """\
CustomResourceDefinition: A kind of objects that users add to the API, with its names, versions and schemas.
CustomResourceDefinition.spec: What the kind is to be.
CustomResourceDefinition.status: What became of it.
CustomResourceDefinitionSpec.conversion: How objects of one version become objects of another.
CustomResourceDefinitionSpec.group: The group that the kind is served in.
CustomResourceDefinitionSpec.names: What the kind is called, and what else it may be called.
CustomResourceDefinitionSpec.preserveUnknownFields: Not used any more; schemas say it for themselves.
CustomResourceDefinitionSpec.scope: Whether objects are in namespaces: Cluster or Namespaced.
CustomResourceDefinitionSpec.versions: The versions of the kind, of which one is stored.
CustomResourceDefinitionNames.categories: Groups of kinds that it belongs to, such as all.
CustomResourceDefinitionNames.kind: The kind of its objects.
CustomResourceDefinitionNames.listKind: The kind of its lists.
CustomResourceDefinitionNames.plural: The name in paths.
CustomResourceDefinitionNames.shortNames: Abbreviations for people.
CustomResourceDefinitionNames.singular: The name of one object, for people.
CustomResourceDefinitionStatus.acceptedNames: The names that it is served under.
CustomResourceDefinitionStatus.conditions: Whether its names are free, whether it is served, whether it is going.
CustomResourceDefinitionStatus.storedVersions: The versions that objects may still be stored in.
CustomResourceDefinitionVersion.additionalPrinterColumns: What tables show beside the name.
CustomResourceDefinitionVersion.deprecated: Whether clients are warned when they use the version.
CustomResourceDefinitionVersion.deprecationWarning: What they are told.
CustomResourceDefinitionVersion.name: The name of the version.
CustomResourceDefinitionVersion.schema: What objects of the version look like.
CustomResourceDefinitionVersion.selectableFields: Fields that objects can be selected by.
CustomResourceDefinitionVersion.served: Whether the version is served.
CustomResourceDefinitionVersion.storage: Whether objects are stored in the version.
CustomResourceDefinitionVersion.subresources: Whether status and scale are written apart.
JSONSchemaProps: A schema of OpenAPI v3 with Kubernetes' extensions.
ValidationRule: A CEL expression that must hold.
ValidationRule.fieldPath: The field that is blamed.
ValidationRule.message: What is said if it does not hold.
ValidationRule.messageExpression: A CEL expression that gives the message.
ValidationRule.optionalOldSelf: Whether it is also evaluated where there is nothing to compare with.
ValidationRule.reason: Why an object is refused, in one word.
ValidationRule.rule: The expression; self is the value, oldSelf what it was.
"""

GROUP: Final = "apiextensions.k8s.io"

PACKAGE: Final = notation.Types(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    uses=(metatypes.META,),
)

_SCHEMA: Final = PACKAGE.object("JSONSchemaProps")
_SELF_READING: Final = ("items", "additionalProperties", "additionalItems")


def settled(document: Any, schema: model.Object = _SCHEMA) -> Any:
    """A schema in normal form, also where Go's types read themselves; what is no schema there is left alone."""
    if not isinstance(document, dict):
        return document
    result = normalform.settled(document, schema)
    for name in result:
        value = result[name]
        if name in _SELF_READING:
            result[name] = _known(settled(value))
        elif name in ("allOf", "anyOf", "oneOf"):
            result[name] = [settled(each) for each in value]
        elif name in ("properties", "patternProperties", "definitions"):
            result[name] = {key: settled(each) for key, each in value.items()}
        elif name == "not":
            result[name] = settled(value)
    return result


def _known(value: Any) -> Any:
    """Go's types that read themselves forget what they do not know."""
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in value.items() if name in _SCHEMA.fields}
