"""Types that policies, bindings and webhooks are made of, and the defaults of what they share."""

from typing import Any, Final

from drachma.server.kinds.document import Document
from drachma.server.schema import metatypes, notation

_TYPES: Final = """\
ApplyConfiguration: expression=str
AuditAnnotation: key=str* valueExpression=str*
ExpressionWarning: fieldRef=str* warning=str*
JSONPatch: expression=str
MatchCondition: expression=str* name=str*
MatchResources!: excludeResourceRules=[NamedRuleWithOperations] matchPolicy=str? namespaceSelector=LabelSelector
    objectSelector=LabelSelector resourceRules=[NamedRuleWithOperations]
MutatingAdmissionPolicy: apiVersion=str kind=str metadata=ObjectMeta! spec=MutatingAdmissionPolicySpec!
MutatingAdmissionPolicyBinding: apiVersion=str kind=str metadata=ObjectMeta! spec=MutatingAdmissionPolicyBindingSpec!
MutatingAdmissionPolicyBindingSpec: matchResources=MatchResources paramRef=ParamRef policyName=str
MutatingAdmissionPolicySpec: failurePolicy=str@FailurePolicyType? matchConditions={MatchCondition:name}~
    matchConstraints=MatchResources mutations=[Mutation] paramKind=ParamKind
    reinvocationPolicy=str@ReinvocationPolicyType variables=[Variable]
MutatingWebhook: admissionReviewVersions=[str]!* clientConfig=WebhookClientConfig!* failurePolicy=str@FailurePolicyType?
    matchConditions={MatchCondition:name}~ matchPolicy=str@MatchPolicyType? name=str* namespaceSelector=LabelSelector
    objectSelector=LabelSelector reinvocationPolicy=str@ReinvocationPolicyType? rules=[RuleWithOperations]
    sideEffects=str@SideEffectClass?* timeoutSeconds=int32?
MutatingWebhookConfiguration: apiVersion=str kind=str metadata=ObjectMeta! webhooks={MutatingWebhook:name}~
Mutation: applyConfiguration=ApplyConfiguration jsonPatch=JSONPatch patchType=str@PatchType*
NamedRuleWithOperations!: apiGroups=[str] apiVersions=[str] operations=[str]@OperationType resourceNames=[str]
    resources=[str] scope=str@ScopeType?
ParamKind!: apiVersion=str kind=str
ParamRef!: name=str namespace=str parameterNotFoundAction=str@ParameterNotFoundActionType? selector=LabelSelector
RuleWithOperations: apiGroups=[str] apiVersions=[str] operations=[str]@OperationType resources=[str]
    scope=str@ScopeType?
ServiceReference: name=str* namespace=str* path=str? port=int32?
TypeChecking: expressionWarnings=[ExpressionWarning]
ValidatingAdmissionPolicy: apiVersion=str kind=str metadata=ObjectMeta! spec=ValidatingAdmissionPolicySpec!
    status=ValidatingAdmissionPolicyStatus!
ValidatingAdmissionPolicyBinding: apiVersion=str kind=str metadata=ObjectMeta!
    spec=ValidatingAdmissionPolicyBindingSpec!*
ValidatingAdmissionPolicyBindingSpec: matchResources=MatchResources paramRef=ParamRef policyName=str
    validationActions={str}@ValidationAction
ValidatingAdmissionPolicySpec: auditAnnotations=[AuditAnnotation] failurePolicy=str@FailurePolicyType?
    matchConditions={MatchCondition:name}~ matchConstraints=MatchResources paramKind=ParamKind validations=[Validation]
    variables={Variable:name}~
ValidatingAdmissionPolicyStatus: conditions={Condition:type} observedGeneration=int64 typeChecking=TypeChecking
ValidatingWebhook: admissionReviewVersions=[str]!* clientConfig=WebhookClientConfig!*
    failurePolicy=str@FailurePolicyType? matchConditions={MatchCondition:name}~ matchPolicy=str@MatchPolicyType?
    name=str* namespaceSelector=LabelSelector objectSelector=LabelSelector rules=[RuleWithOperations]
    sideEffects=str@SideEffectClass?* timeoutSeconds=int32?
ValidatingWebhookConfiguration: apiVersion=str kind=str metadata=ObjectMeta! webhooks={ValidatingWebhook:name}~
Validation: expression=str* message=str messageExpression=str reason=str?
Variable!: expression=str* name=str*
WebhookClientConfig: caBundle=bytes service=ServiceReference url=str?
"""
_NUMBERS: Final = """\
ApplyConfiguration: expression
AuditAnnotation: key valueExpression
ExpressionWarning: 2:fieldRef warning
JSONPatch: expression
MatchCondition: name expression
MatchResources: namespaceSelector objectSelector resourceRules excludeResourceRules 7:matchPolicy?
MutatingAdmissionPolicy: metadata spec
MutatingAdmissionPolicyBinding: metadata spec
MutatingAdmissionPolicyBindingSpec: policyName paramRef matchResources
MutatingAdmissionPolicySpec: paramKind matchConstraints variables mutations failurePolicy? matchConditions
    reinvocationPolicy
MutatingWebhook: name clientConfig rules failurePolicy? namespaceSelector sideEffects? timeoutSeconds?
    admissionReviewVersions matchPolicy? reinvocationPolicy? objectSelector matchConditions
MutatingWebhookConfiguration: metadata webhooks
Mutation: 2:patchType applyConfiguration jsonPatch
NamedRuleWithOperations: resourceNames +RuleWithOperations
ParamKind: apiVersion kind
ParamRef: name namespace selector parameterNotFoundAction?
Rule: apiGroups apiVersions resources scope?
RuleWithOperations: operations +Rule
ServiceReference: namespace name path? port?
TypeChecking: expressionWarnings
ValidatingAdmissionPolicy: metadata spec status
ValidatingAdmissionPolicyBinding: metadata spec
ValidatingAdmissionPolicyBindingSpec: policyName paramRef matchResources validationActions
ValidatingAdmissionPolicySpec: paramKind matchConstraints validations failurePolicy? auditAnnotations matchConditions
    variables
ValidatingAdmissionPolicyStatus: observedGeneration typeChecking conditions
ValidatingWebhook: name clientConfig rules failurePolicy? namespaceSelector sideEffects? timeoutSeconds?
    admissionReviewVersions matchPolicy? objectSelector matchConditions
ValidatingWebhookConfiguration: metadata webhooks
Validation: expression message reason? messageExpression
Variable: name expression
WebhookClientConfig: service caBundle url?
"""
_TEXTS: Final = """\
ValidatingAdmissionPolicy: What objects must be like to be admitted, said in expressions.
ValidatingAdmissionPolicyBinding: Where a validating policy holds, with which parameters, and what comes of it.
MutatingAdmissionPolicy: How objects are changed when they are admitted, said in expressions.
MutatingAdmissionPolicyBinding: Where a mutating policy holds, and with which parameters.
ValidatingWebhookConfiguration: Servers that are asked whether objects may be admitted.
MutatingWebhookConfiguration: Servers that are asked how objects are to be changed when they are admitted.
ValidatingAdmissionPolicySpec.paramKind: The kind of objects that parameters come from.
ValidatingAdmissionPolicySpec.matchConstraints: Which requests the policy is about.
ValidatingAdmissionPolicySpec.matchConditions: Expressions that must all hold for the policy to look at a request.
ValidatingAdmissionPolicySpec.variables: Expressions that others can use by name.
ValidatingAdmissionPolicySpec.validations: Expressions that must hold for a request to be admitted.
ValidatingAdmissionPolicySpec.auditAnnotations: What is noted in the audit log.
ValidatingAdmissionPolicySpec.failurePolicy: What happens where an expression cannot be evaluated, Fail or Ignore.
ValidatingAdmissionPolicyBindingSpec.policyName: The policy that is bound.
ValidatingAdmissionPolicyBindingSpec.paramRef: Which parameters the policy is given.
ValidatingAdmissionPolicyBindingSpec.matchResources: Which of the requests that the policy is about.
ValidatingAdmissionPolicyBindingSpec.validationActions: What comes of a request that breaks it: Deny, Warn or Audit.
ValidatingAdmissionPolicyStatus.typeChecking: Where expressions do not fit the types of what they look at.
MutatingAdmissionPolicySpec.mutations: Expressions that give the changes.
MutatingAdmissionPolicySpec.reinvocationPolicy: Whether it looks again at what others changed, Never or IfNeeded.
ValidatingWebhookConfiguration.webhooks: The servers, and what each is asked about.
MutatingWebhookConfiguration.webhooks: The servers, and what each is asked about.
"""

GROUP: Final = "admissionregistration.k8s.io"


def _package(version: str) -> notation.Types:
    package = f"io.k8s.api.admissionregistration.{version}"
    return notation.Types(package, _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,))


PACKAGE: Final = _package("v1")
BETA: Final = _package("v1beta1")


def default_matching(resources: Document | None) -> Any:
    """Match constraints or match resources with defaults; None where there are none."""
    if resources is None:
        return None
    rules = {
        field: [default_rule(rule) for rule in resources[field]]
        for field in ("resourceRules", "excludeResourceRules")
        if resources.get(field)
    }
    defaults = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    return {**defaults, **{field: value for field, value in resources.items() if value is not None}, **rules}


def default_rule(rule: Document) -> Document:
    """A rule is about all scopes unless it says otherwise."""
    return {**rule, "scope": "*"} if rule.get("scope") is None else rule


def param_kind_shown(policy: Document) -> str:
    """The kind of a policy's parameters, for its column."""
    kind = (policy.get("spec") or {}).get("paramKind")
    return "<unset>" if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"


def param_ref_shown(binding: Document) -> str:
    """The parameters of a binding, for its column."""
    ref = (binding.get("spec") or {}).get("paramRef")
    if ref is None:
        return "<unset>"
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    return _selector_shown(ref.get("selector") or {})


def _selector_shown(selector: Document) -> str:
    labels = ",".join(f"{key}: {value}" for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = " ".join(
        f"{{{each.get('key', '')} {each.get('operator', '')} [{' '.join(each.get('values') or ())}]}}"
        for each in selector.get("matchExpressions") or ()
    )
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[{expressions}],}}"
