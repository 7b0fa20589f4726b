"""The kinds of ``resource.k8s.io/v1alpha2``, the first alpha of structured parameters (KEP-4381).

They are kinds of their own, not another shape of v1: the requests of a claim are in other objects. There are two
spellings, the KEP's and that of Kubernetes 1.30. Structs have the fields of both, and objects keep their spelling.
:mod:`drachma.structured` translates them to v1.
"""
