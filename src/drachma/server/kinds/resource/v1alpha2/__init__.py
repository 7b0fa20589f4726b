"""``resource.k8s.io/v1alpha2``: the first alpha of structured parameters, stored as it comes beside v1."""
