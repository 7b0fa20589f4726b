"""Rules for what registers admission: policies, their bindings, and webhooks."""
