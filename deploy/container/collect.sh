#!/bin/bash
# What the image takes from a build: collect.sh BUILD ROOT [NCCL-VERSION], run in the source folder.
set -euo pipefail
build=$1 root=$2 nccl=${3:-}
install -D "$build/vitrail" "$root/usr/local/bin/vitrail"
install -D deploy/container/entry.sh "$root/usr/local/bin/vitrail-entry"
cmake --install "$build" --component mpi --prefix "$root/usr/local"
mkdir -p "$root/usr/local/share/vitrail" "$root/etc/ssh/ssh_config.d" "$root/etc/ssh/sshd_config.d"
cp -r models configs "$root/usr/local/share/vitrail/"

if [[ -e $build/libvitrail_cuda.so ]]; then
  install -D "$build/libvitrail_cuda.so" "$root/usr/local/lib/vitrail/libvitrail_cuda.so"
  cp -L /usr/local/cuda/lib64/lib{cudart,cublas,cublasLt}.so.* "$root/usr/local/lib/vitrail/"
fi
if [[ -n $nccl ]]; then
  apt-get install -y --no-install-recommends python3-pip unzip >/dev/null
  pip download --no-deps --dest /tmp/nccl "nvidia-nccl-cu13==$nccl"
  mkdir -p "$root/usr/local/lib"
  unzip -jo /tmp/nccl/*.whl 'nvidia/nccl/lib/libnccl.so.2' -d "$root/usr/local/lib"
fi

# The keys of pods are as new as the pods, and the folder with the job's own key is mounted read-only, by another user.
printf 'Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n' \
  >"$root/etc/ssh/ssh_config.d/vitrail.conf"
printf 'StrictModes no\nPasswordAuthentication no\n' >"$root/etc/ssh/sshd_config.d/vitrail.conf"
