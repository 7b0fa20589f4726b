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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["],
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
            ["spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invali"],
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
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invali",
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.mat",
            ],
            id="affinity-node-affinity-preferred-0-weight-invalid-value-2",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
                }
            },
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms:"],
            id="affinity-node-affinity-required-node-selector-terms-required-value",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms:"],
            id="affinity-node-affinity-required-node-selector-terms-required-value-2",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            [
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Req",
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Inv",
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Inv",
            ],
            id="affinity-pod-affinity-required-0-topology-key-required-value",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "bad key"}]}
                }
            },
            ["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Inv"],
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
            ["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.ma"],
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
            ["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.ma"],
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
            ["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.ma"],
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
                "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelecto",
                "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelecto",
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
            ["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace: Inval"],
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
            ["spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid"],
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
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Inv",
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinity",
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinity",
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinity",
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
            ["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys:"],
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
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].mismatchLabelKey",
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0",
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
            ["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelecto"],
            id="affinity-pod-affinity-required-0-namespace-selector-match-labels-inval",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{}]},
            [
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
                'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "": supported values',
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
            ['spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Bogus": supported v'],
            id="topology-spread-constraints-0-when-unsatisfiable-unsupported-value",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                ]
            },
            ['spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone,'],
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
            ["spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if w"],
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
                'spec.topologySpreadConstraints[0].nodeAffinityPolicy: Unsupported value: "x": supported valu',
                'spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: "y": supported values',
            ],
            id="topology-spread-constraints-0-node-affinity-policy-unsupported-value",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]}
                ]
            },
            ["spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified when labe"],
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
            ['spec.topologySpreadConstraints[0].labelSelector.matchLabels: Invalid value: "b b": a valid l'],
            id="topology-spread-constraints-0-label-selector-match-labels-invalid-valu",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert len(found) == len(want), found
    assert all(error.startswith(start) for error, start in zip(found, want, strict=True)), found
