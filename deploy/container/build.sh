#!/bin/bash
# Builds the image: build.sh [IMAGE], as root. Needs git, buildah and mmdebstrap, and no registry: the Debian root below it is
# made here, the sources are a clean clone of what is committed. From the environment:
#   BASE       a tar of a Debian root made before; else mmdebstrap makes one (SUITE, bookworm)
#   JOBS       compilers at a time
#   CUDA       the folder of a CUDA 13 toolkit, for GPUs
#   NCCL       a version of NCCL to take from PyPI
#   CCACHE_DIR a compiler cache to lend to the build
#   STORAGE    where buildah keeps images and containers; its usual place otherwise
set -euo pipefail

image=${1:-localhost/vitrail}
source=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
buildah=(buildah --storage-driver vfs)
[[ -z ${STORAGE:-} ]] || buildah+=(--root "$STORAGE/images" --runroot "$STORAGE/run")
lent=()
[[ -z ${CCACHE_DIR:-} ]] || lent+=(--volume "$CCACHE_DIR:/root/.cache/ccache:rw")
[[ -z ${CUDA:-} ]] || lent+=(--build-arg CUDA=ON --volume "$(readlink -f "$CUDA"):/usr/local/cuda:ro")

git clone --quiet --depth 1 "file://$source" "$work/vitrail"
if [[ -z ${BASE:-} ]]; then
  BASE=$work/base.tar
  mmdebstrap --variant=minbase "${SUITE:-bookworm}" "$BASE"
fi
printf 'FROM scratch\nADD base.tar /\n' >"$work/Base"
ln "$BASE" "$work/base.tar" 2>/dev/null || [[ $BASE == "$work/base.tar" ]] || cp "$BASE" "$work/base.tar"
"${buildah[@]}" bud --quiet --isolation chroot --tag localhost/vitrail-base --file "$work/Base" --ignorefile /dev/null "$work"
rm "$work/base.tar"
"${buildah[@]}" bud --isolation chroot --tag "$image" --build-arg "JOBS=${JOBS:-}" --build-arg "NCCL=${NCCL:-}" "${lent[@]}" \
  --file "$work/vitrail/deploy/container/Containerfile" "$work/vitrail"
