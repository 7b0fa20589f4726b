"""Tables of types, one module for what is read together; facts of the Kubernetes 1.37 API."""
