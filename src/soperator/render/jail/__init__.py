"""The jail: its claims, the Job that fills it, and the mount plan of each node, as Kubernetes objects."""
