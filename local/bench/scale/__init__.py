"""The operator at a size that no test machine has: a real API server, Nodes and pods by KWOK, and stand-ins for the rest.

Real are etcd, the API server and the operator's process, which knows nothing of the rest. KWOK (sigs.k8s.io/kwok) plays the kubelets: it makes a pod
Running and Ready as soon as it has a Node, and removes one that is deleted. `town` plays, in one process of its own, the scheduler, the
controllers of StatefulSets and Deployments, and slurmrestd with the slurmctld behind it.
"""
