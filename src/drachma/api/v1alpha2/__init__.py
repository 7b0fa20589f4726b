"""The kinds of ``resource.k8s.io/v1alpha2``, the first alpha of structured parameters (KEP-4381).

They are kinds of their own, not another shape of v1's: what a claim asks for stands in other objects. There are two
spellings, the KEP's and that of Kubernetes 1.30; both are fields here, and each is written back as it came.
:mod:`drachma.structured` says what they mean in terms of v1.
"""
