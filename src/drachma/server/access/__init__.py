"""Authentication, authorisation questions, and credentials: tokens, certificates, the admin's kubeconfig."""
