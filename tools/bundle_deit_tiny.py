#!/usr/bin/env python3
"""Makes models/deit_tiny_patch16_224 from a timm safetensors file: fp16 weights by `vitrail convert`, DeiT's own
preprocessing (shorter side 256) and ImageNet's class names.

    tools/bundle_deit_tiny.py deit_tiny.safetensors build/release/vitrail
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "deit_tiny_patch16_224"


def edit(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def main():
    source, vitrail = sys.argv[1:3]
    folder = ROOT / "models" / NAME
    subprocess.run([vitrail, "convert", source, folder, "--to", "hf", "--dtype", "f16", "--arch", NAME, "--force"],
                   check=True)
    index = json.loads((ROOT / "examples/images/imagenet_class_index.json").read_text())
    labels = [index[f"{i:03d}"][1].replace("_", " ") for i in range(1000)]

    def card(config):
        config["id2label"] = {str(i): label for i, label in enumerate(labels)}
        config["label2id"] = {label: i for i, label in enumerate(labels)}
        config["vitrail"]["preprocess"].update(resize=256, crop_pct=0.875)

    edit(folder / "config.json", card)
    edit(folder / "preprocessor_config.json", lambda config: config["size"].update(shortest_edge=256))


if __name__ == "__main__":
    main()
