#!/bin/sh
# What a Node does when it is switched on. It runs as process 1 of the Node's own namespaces (machines.py starts it)
# and puts the Node's own folders where every machine has them, so that kubelet and containerd need no special paths,
# and what one Node mounts under /run is never held by another. The image store may lie under a folder that only root
# may enter; mounted here, pods with user namespaces reach it.
set -eu
name=$1 disk=$2 images=$3

hostname "$name"
mount --make-rshared /
mount -t tmpfs -o mode=0755 tmpfs /run
mount --bind "$disk/kubelet" /var/lib/kubelet
mount --bind "$disk/log" /var/log
mount --bind "$images" /var/lib/containerd
echo 1 >/proc/sys/net/ipv4/ip_forward
: >"$disk/booted"
exec catatonit -P
