#!/bin/bash
# The demonstration behind `make demo`: names what is on each photograph with the bundled DeiT-Tiny and draws
# where the model looks.  tools/demo.sh PROGRAM [OUT]
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/.."
out=${2:-demo-out}
model=deit_tiny_patch16_224
shopt -s nullglob
pictures=(examples/images/*.png examples/images/*.jpg)
if [[ ${#pictures[@]} -eq 0 ]]; then
  echo "vitrail: no pictures in examples/images" >&2
  exit 1
fi

"$program" predict -m "$model" "${pictures[@]}"
mkdir -p "$out"
for picture in "${pictures[@]}"; do
  name=$(basename "$picture")
  "$program" explain -m "$model" --out "$out/${name%.*}" "$picture"
done
echo "Attention overlays: $out/"
