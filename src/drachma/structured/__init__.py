"""The first alpha of structured parameters (``resource.k8s.io/v1alpha2``) in terms of v1, object by object.

Pure: slices become slices, claims with their parameters become claims, selectors become device selectors, and
allocations are written back in the terms of v1alpha2. The controller does this for a running cluster, ``drachma
migrate`` for good, and the offline tools for their answers. Allocator, scheduler and node never see v1alpha2
(``docs/adr/0013-the-first-alpha.md``).
"""
