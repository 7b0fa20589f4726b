"""The kinds of ``kueue.x-k8s.io``, as far as deciding looks at them; partial views of v1beta2."""
