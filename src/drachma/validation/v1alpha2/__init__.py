"""The rules of ``resource.k8s.io/v1alpha2``: the KEP's, in the words of Kubernetes 1.30."""
