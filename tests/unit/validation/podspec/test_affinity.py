"""Affinity to nodes and pods, and topology spread."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    ".matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or "
                    "'NotIn'"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-expression",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}
                            ]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    ".matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or "
                    "'DoesNotExist'"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-expression-2",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}
                            ]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    ".matchExpressions[0].values: Required value: must be specified single value when `operator` "
                    "is 'Lt' or 'Gt'"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-expression-3",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Lt"}]}]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    ".matchExpressions[0].values: Required value: must be specified single value when `operator` "
                    "is 'Lt' or 'Gt'"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-expression-4",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Bogus"}]}]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    '.matchExpressions[0].operator: Invalid value: "Bogus": not a valid selector operator'
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-expression-5",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "bad key", "operator": "In", "values": ["x"]}]}
                            ]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    '.matchExpressions[0].key: Invalid value: "bad key": name part must consist of alphanumeric '
                    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-expression-6",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-bad-"]}]}
                            ]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    '.matchExpressions[0].values[0]: Invalid value: "-bad-": a valid label must be an empty '
                    "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
                    "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
                    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-expression-7",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}]}
                            ]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    ".matchFields[0].values: Required value: must be only one value when `operator` is 'In' or "
                    "'NotIn' for node field selector"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-fields-0-v",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    '.matchFields[0].operator: Invalid value: "Exists": not a valid selector operator'
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-fields-0-o",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchFields": [{"key": "spec.x", "operator": "In", "values": ["n1"]}]}
                            ]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    '.matchFields[0].key: Invalid value: "spec.x": not a valid field selector key'
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-fields-0-k",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["Bad_"]}]}
                            ]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    '.matchFields[0].values[0]: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-0-match-fields-0-v-2",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 101,
                                "preference": {
                                    "matchExpressions": [{"key": "a", "operator": "In", "values": ["-bad-"]}]
                                },
                            }
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
                    "Invalid value: 101: must be in the range 1-100"
                )
            ],
            id="affinity-node-affinity-preferred-0-weight-invalid-value",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"preference": {"matchExpressions": [{"key": "a", "operator": "In"}]}}
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
                    "Invalid value: 0: must be in the range 1-100"
                ),
                (
                    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.match"
                    "Expressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
                ),
            ],
            id="affinity-node-affinity-preferred-0-weight-invalid-value-2",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
                }
            },
            [
                (
                    ""
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
                    "Required value: must have at least one node selector term"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-required-value",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            [
                (
                    ""
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
                    "Required value: must have at least one node selector term"
                )
            ],
            id="affinity-node-affinity-required-node-selector-terms-required-value-2",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
                    "Required value: can not be empty"
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
                    'Invalid value: "": name part must be non-empty'
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
                    "Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', "
                    "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                    "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
            ],
            id="affinity-pod-affinity-required-0-topology-key-required-value",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "bad key"}]}
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
                    "Invalid value: \"bad key\": name part must consist of alphanumeric characters, '-', '_' or "
                    "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  "
                    "or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                )
            ],
            id="affinity-pod-affinity-required-0-topology-key-invalid-value",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b b"}}}
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matc"
                    'hLabels: Invalid value: "b b": a valid label must be an empty string or consist of '
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            ],
            id="affinity-pod-affinity-required-0-label-selector-match-labels-invalid-v",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "z",
                                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
                            }
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matc"
                    "hExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
                )
            ],
            id="affinity-pod-affinity-required-0-label-selector-match-expressions-0-va",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "z",
                                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]},
                            }
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matc"
                    'hExpressions[0].operator: Invalid value: "Bogus": not a valid selector operator'
                )
            ],
            id="affinity-pod-affinity-required-0-label-selector-match-expressions-0-op",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "z",
                                "labelSelector": {
                                    "matchExpressions": [{"key": "a a", "operator": "Exists", "values": ["x"]}]
                                },
                            }
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector."
                    "matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or "
                    "'DoesNotExist'"
                ),
                (
                    "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector."
                    'matchExpressions[0].key: Invalid value: "a a": name part must consist of alphanumeric '
                    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
            ],
            id="affinity-pod-anti-affinity-required-0-label-selector-match-expressions",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z", "namespaces": ["Bad_"]}]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace: "
                    'Invalid value: "Bad_": a lowercase RFC 1123 label must consist of lower case alphanumeric '
                    "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
                    "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                )
            ],
            id="affinity-pod-affinity-required-0-namespace-invalid-value",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 0, "podAffinityTerm": {"topologyKey": "z"}}
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
                    "Invalid value: 0: must be in the range 1-100"
                )
            ],
            id="affinity-pod-affinity-preferred-0-weight-invalid-value",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 200, "podAffinityTerm": {"topologyKey": ""}}
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
                    "Invalid value: 200: must be in the range 1-100"
                ),
                (
                    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTe"
                    "rm.topologyKey: Required value: can not be empty"
                ),
                (
                    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTe"
                    'rm.topologyKey: Invalid value: "": name part must be non-empty'
                ),
                (
                    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTe"
                    'rm.topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '
                    "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
                    "'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
            ],
            id="affinity-pod-anti-affinity-preferred-0-weight-invalid-value",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "z", "matchLabelKeys": ["a"]}
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys: "
                    "Forbidden: must not be specified when labelSelector is not set"
                )
            ],
            id="affinity-pod-affinity-required-0-match-label-keys-forbidden",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "z",
                                "matchLabelKeys": ["a"],
                                "mismatchLabelKeys": ["a", "b b"],
                                "labelSelector": {"matchLabels": {"q": "r"}},
                            }
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].mismatchLabelKeys["
                    "1]: Invalid value: \"b b\": name part must consist of alphanumeric characters, '-', '_' or "
                    "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  "
                    "or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]:"
                    ' Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys'
                ),
            ],
            id="affinity-pod-affinity-required-0-mismatch-label-keys-1-invalid-value",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "z", "namespaceSelector": {"matchLabels": {"a b": "c"}}}
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector."
                    'matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '
                    "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
                    "'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                )
            ],
            id="affinity-pod-affinity-required-0-namespace-selector-match-labels-inval",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{}]},
            [
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
                (
                    'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "": supported '
                    'values: "DoNotSchedule", "ScheduleAnyway"'
                ),
            ],
            id="topology-spread-constraints-0-max-skew-invalid-value",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            ["spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"],
            id="topology-spread-constraints-0-max-skew-invalid-value-2",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Bogus"}]},
            [
                (
                    'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Bogus": supported '
                    'values: "DoNotSchedule", "ScheduleAnyway"'
                )
            ],
            id="topology-spread-constraints-0-when-unsatisfiable-unsupported-value",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                ]
            },
            [
                (
                    "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
                    '"{zone, DoNotSchedule}"'
                )
            ],
            id="topology-spread-constraints-0-topology-key-when-unsatisfiable-duplicat",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0}
                ]
            },
            ["spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero"],
            id="topology-spread-constraints-0-min-domains-invalid-value",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}
                ]
            },
            [
                (
                    "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if "
                    "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                )
            ],
            id="topology-spread-constraints-0-min-domains-invalid-value-2",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "nodeAffinityPolicy": "x",
                        "nodeTaintsPolicy": "y",
                    }
                ]
            },
            [
                (
                    'spec.topologySpreadConstraints[0].nodeAffinityPolicy: Unsupported value: "x": supported '
                    'values: "Honor", "Ignore"'
                ),
                (
                    'spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: "y": supported '
                    'values: "Honor", "Ignore"'
                ),
            ],
            id="topology-spread-constraints-0-node-affinity-policy-unsupported-value",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]}
                ]
            },
            [
                (
                    "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified when "
                    "labelSelector is not set"
                )
            ],
            id="topology-spread-constraints-0-match-label-keys-forbidden",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"a": "b b"}},
                    }
                ]
            },
            [
                (
                    'spec.topologySpreadConstraints[0].labelSelector.matchLabels: Invalid value: "b b": a valid '
                    "label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
                    "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
                    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            ],
            id="topology-spread-constraints-0-label-selector-match-labels-invalid-valu",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
