"""Who makes a request, may they, and how clients come to be known: tokens, certificates, the admin's kubeconfig."""
