#!/bin/bash
# A "pod": an image's root over a node of two_nodes.sh, with files, host name and processes of its own.
#   pod.sh NODE ROOT FOLDER RUNS COMMAND...
# FOLDER holds what the pod changes, and FOLDER/files what is laid over the image (/etc/hosts, /root/.ssh); RUNS is its /runs.
# The pod ends with its command, or when this process is killed: nothing of it can outlive that.
set -euo pipefail
node=$1 root=$2 folder=$3 runs=$4
shift 4
mkdir -p "$folder"/{upper,work,root}
cp -r "$folder/files/." "$folder/upper/"
exec ip netns exec "$node" unshare --uts --mount --pid --fork --kill-child --propagation private bash -euc '
  node=$1 root=$2 folder=$3 runs=$4
  shift 4
  hostname "$node"
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
  cd "$folder/root"
  mount -t proc proc proc
  mount --rbind /dev dev
  mount -t tmpfs tmpfs tmp
  mkdir -p runs run/sshd
  mount --bind "$runs" runs
  exec chroot . /usr/local/bin/vitrail-entry "$@"' pod "$node" "$root" "$folder" "$runs" "$@"
