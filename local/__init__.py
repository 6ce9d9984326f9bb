"""A real Kubernetes cluster as plain processes on one Linux machine.

Read the modules in this order to learn the parts of a Kubernetes cluster:

1. ``plan``: which address each part has. Nothing else decides an address.
2. ``certs``: the credentials of each component (kubeadm creates the keys).
3. ``controlplane``: etcd, API server, controller manager, scheduler: four programs and their flags.
4. ``machines``, ``network``, ``cgroups``: what isolates a Node: namespaces, one veth pair, its cgroups.
5. ``node``: what runs on a Node: containerd, kubelet, kube-proxy, and a pod network.
6. ``addons``: the objects that a cluster needs before it is useful: CoreDNS, and the permission to reach kubelets.
7. ``cluster``: the order in which all parts start and stop.

``binaries`` and ``golang`` build the programs, ``debian`` installs packages of Debian, ``archive`` and ``load`` import
images, ``process`` starts, identifies and stops processes, ``components`` does so for one program of the cluster.
The modules use the standard library only, because they run before any package is installed.
"""
