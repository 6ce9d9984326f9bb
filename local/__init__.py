"""A real Kubernetes cluster as plain processes on one Linux machine.

Read it in this order, and you have seen what a Kubernetes cluster is made of:

1. ``plan``: which address everything has. Nothing else decides an address.
2. ``certs``: who may speak to whom (kubeadm makes the keys).
3. ``controlplane``: etcd, API server, controller manager, scheduler: four programs and their flags.
4. ``machines``, ``network``, ``cgroups``: what makes a Node a machine of its own: namespaces, one cable, its cgroups.
5. ``node``: what runs on a Node: containerd, kubelet, kube-proxy, and a pod network.
6. ``addons``: the objects that a cluster needs before it is useful: CoreDNS, and the right to reach kubelets.
7. ``cluster``: the order in which all that starts and stops.

``binaries`` and ``golang`` build the programs, ``debian`` installs what Debian has, ``archive`` and ``load`` bring
images in, ``process`` starts, recognises and stops processes, ``components`` does so with one program of the cluster.
Standard library only: it must run before anything is installed.
"""
