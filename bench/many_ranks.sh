#!/bin/bash
# Many ranks on one host beside torch and beside copies that exchange nothing, on a host where nothing is built: the program,
# its image libraries and timm are packed into a folder here, which is carried there.
#   bench/many_ranks.sh pack FOLDER [BUILD-FOLDER]   here; fetches timm by pip
#   bench/many_ranks.sh run FOLDER [RESULTS] [RANKS] there: about three minutes with 16 ranks; needs torch, and mpirun for the mpi rows
# Each side is run twice, in turn. The table has img/s, ratios to torch and to the copies, and the shares of communication.
set -euo pipefail
what=${1:?"usage: bench/many_ranks.sh pack|run FOLDER"} folder=${2:?"the folder that is carried"}

pack() {
  local build=${1:-build/release}
  mkdir -p "$folder/lib" "$folder/python"
  cp "$build/vitrail" "$folder/"
  if [ -e "$build/libvitrail_mpi.so" ]; then cp "$build/libvitrail_mpi.so" "$folder/"; fi
  ldd "$build/vitrail" | awk '/lib(jpeg|png16|webp|sharpyuv|z)\.so/ {print $3}' | xargs -I{} cp -L {} "$folder/lib/"
  pip install --quiet --no-deps --no-compile --target "$folder/python" timm
  du -sh "$folder"
}

# part KIND SIDES...: a table of its own.
part() {
  local kind=$1
  shift
  timeout 150 python3 -B "$(dirname "$0")/compare_ranks.py" --vitrail "$folder/vitrail" --ranks "$ranks" --rounds 2 --updates 12 \
    --kinds "$kind" --sides "$@" --json "$results/$kind.json" || echo "$kind: ended early"
}

run() {
  results=${1:-.} ranks=${2:-16}
  export LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PYTHONPATH=$folder/python
  nproc
  part weak threads threads_zero mpi mpi_zero copies
  part strong threads threads_zero threads_unbound mpi mpi_zero copies torch
}

folder=$(realpath -m "$folder")
case $what in
  pack) pack "${@:3}" ;;
  run) run "${@:3}" ;;
  *) echo "pack or run, not $what" >&2 && exit 64 ;;
esac
