"""The first alpha of structured parameters (``resource.k8s.io/v1alpha2``) in terms of v1, object by object.

Pure: slices become slices, claims with their parameters become claims, selectors become device selectors, and what was
allocated is written back in the words of v1alpha2. The controller does it for a running cluster, ``drachma migrate``
for good, the offline tools for their answers; allocator, scheduler and node never meet v1alpha2
(``docs/adr/0013-the-first-alpha.md``).
"""
