"""The checks of a Kubernetes cluster before something is installed in it: what they read, what they conclude, and the verb."""
