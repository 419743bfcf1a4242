#!/bin/bash
# The demonstration behind `make demo`: trains a small ViT on Fashion-MNIST, lets it name images it has never
# seen, then names photographs with the bundled DeiT-Tiny and draws where that model looks.
# tools/demo.sh PROGRAM [OUT]
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/.."
out=${2:-demo-out}
config=configs/demo-fashion.json
fashion=/usr/share/datasets/fashion-mnist

train_and_predict() {
  rm -rf "$out/run" "$out/garments"
  mkdir -p "$out"
  "$program" train --config "$config" --out "$out/run"
  "$program" data show "idx:$fashion" --part val --count 8 --seed 3 --out "$out/garments.png" --files "$out/garments"
  "$program" predict -m "$out/run/best" -k 2 "$out"/garments/*.png
  echo "Report with curves and confusion matrix: $out/run/report.html"
}

classify_photographs() {
  local model=deit_tiny_patch16_224 image name
  local -a images
  shopt -s nullglob
  images=(examples/images/*.png examples/images/*.jpg)
  if [[ ${#images[@]} -eq 0 ]]; then
    echo "vitrail: no images in examples/images" >&2
    exit 1
  fi
  "$program" predict -m "$model" "${images[@]}"
  for image in "${images[@]}"; do
    name=$(basename "$image")
    "$program" explain -m "$model" --out "$out/${name%.*}" "$image"
  done
  echo "Attention overlays: $out/"
}

if [[ -d $fashion ]]; then
  train_and_predict
else
  echo "Fashion-MNIST is missing (Debian package dataset-fashion-mnist): no training this time" >&2
fi
classify_photographs
