#!/usr/bin/env python3
"""Writes tests/golden/deit_tiny: logits of the DeiT-Tiny file on photographs, as timm computes them loading
that same file, in float32 and float64 (stored as 1000 float32 each), with DeiT's own preprocessing: shorter
side 256, Pillow bicubic, centre crop 224 (the crop is kept as NAME_crop.png). And for the fp16 copy of the file a float64 forward of the rounded
weights on chelsea.

    python tools/make_golden_deit.py MODEL_DIR IMAGES_DIR      (MODEL_DIR: model.safetensors, ref_chelsea_*)
"""
import pathlib
import shutil
import sys

import numpy as np
import safetensors.torch
import timm
import torch
from PIL import Image
from torchvision import transforms

from make_goldens import GOLDEN, numbers, write_json

OUT = GOLDEN / "deit_tiny"
PHOTOGRAPHS = ["astronaut.png", "chelsea.png", "coffee.png", "raccoon.png", "rocket.jpg"]
CROP = transforms.Compose([
    transforms.Resize(256, interpolation=transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(224)])
NORMALISE = transforms.Compose([
    transforms.ToTensor(), transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])


def load(state):
    model = timm.create_model("deit_tiny_patch16_224", pretrained=False)
    model.load_state_dict(state)
    return model.eval()


def forward(model, x, dtype):
    with torch.inference_mode():
        return model.to(dtype)(x.to(dtype)).numpy()[0]


def main():
    model_dir, images_dir = map(pathlib.Path, sys.argv[1:3])
    OUT.mkdir(parents=True, exist_ok=True)
    state = safetensors.torch.load_file(model_dir / "model.safetensors")
    model, apart = load(state), {}
    for name in PHOTOGRAPHS:
        stem = pathlib.Path(name).stem
        crop = CROP(Image.open(images_dir / name).convert("RGB"))
        crop.save(OUT / f"{stem}_crop.png", optimize=True)
        x = NORMALISE(crop)[None]
        f64, f32 = forward(model, x, torch.float64), forward(model, x, torch.float32)
        f64.astype("<f4").tofile(OUT / f"{stem}_logits_f64.f32")
        f32.astype("<f4").tofile(OUT / f"{stem}_logits_f32.f32")
        apart[name] = float("%.3g" % np.abs(f64 - f32).max())
        print(f"{name:14} class {f64.argmax():3} logit {f64.max():7.4f} |f32-f64| {apart[name]:.2e}")

    for file in ("ref_chelsea_input_3x224x224.f32", "ref_chelsea_logits_1000.f32"):
        shutil.copyfile(model_dir / file, OUT / file)
    x = torch.from_numpy(np.fromfile(OUT / "ref_chelsea_input_3x224x224.f32", "<f4").reshape(1, 3, 224, 224))
    known = np.fromfile(OUT / "ref_chelsea_logits_1000.f32", "<f4")
    f64, f32 = forward(model, x, torch.float64), forward(model, x, torch.float32)
    print(f"reference logits: timm f64 differs by {np.abs(f64 - known).max():.2e}, f32 by {np.abs(f32 - known).max():.2e}")
    rounded = load({key: value.half().float() for key, value in state.items()})
    f16 = forward(rounded, x, torch.float64)
    print(f"fp16 copy: differs from the fp32 file by {np.abs(f16 - f64).max():.2e}")
    write_json(OUT / "chelsea_f16_logits_f64.json", dict(
        input="ref_chelsea_input_3x224x224.f32", weights="every tensor rounded to fp16", logits=numbers(f16, 10)))
    write_json(OUT / "photographs.json", dict(
        library="timm " + timm.__version__, preprocess="shorter side 256 bicubic, centre crop 224",
        images=PHOTOGRAPHS, max_f32_f64=apart))


if __name__ == "__main__":
    main()
