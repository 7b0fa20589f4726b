"""Who makes a request, and how clients come to be known: tokens, certificates, the admin's kubeconfig."""
