"""Measures the operator at a size that no test machine has: a real API server, Nodes and pods by KWOK, and fakes for the rest.

etcd, the API server and the operator's process are real. KWOK (sigs.k8s.io/kwok) simulates the kubelets: it sets a pod Running and Ready as
soon as the pod has a Node, and removes deleted pods. `simulation` simulates, in one process, the scheduler, the controllers of StatefulSets and
Deployments, and slurmrestd with its slurmctld.
"""
