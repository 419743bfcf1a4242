#!/usr/bin/env python3
"""Writes tests/golden/gradients with torch and timm: the gradient of every parameter after one step of a small ViT
with as many tokens of 64 as ViTs have at 224 and 384 pixels, in float64, and how far torch's own bf16 autocast is
from it (on a GPU where there is one).

Weights, images and labels follow the rule (golden_rule.py). A gradient is stored as its norm and its sums under
random signs (PROJECTIONS of them, counter_hash): the root mean square of the sums of a difference is the
difference's norm. The weight that makes queries, keys and values counts as three.

    python tools/make_gradient_goldens.py
"""
import json
import pathlib

import numpy as np
import torch

from golden_libs import Timm
from golden_rule import counter_hash, name_key, rule_input
from golden_vit import make_config

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "gradients"
BATCH, CLASSES, PROJECTIONS = 4, 10, 64
MODEL = make_config(width=128, depth=3, heads=2, mlp=512, classes=CLASSES)


def labels():
    return torch.from_numpy((counter_hash(name_key("labels"), np.arange(BATCH)) % np.uint64(CLASSES)).astype(np.int64))


def gradients(config, dtype, device, autocast):
    model = Timm(config).model.to(device, dtype).train()
    images = torch.from_numpy(rule_input(BATCH, 3, config["image_height"], config["image_width"]))
    with torch.autocast(device, torch.bfloat16, enabled=autocast):
        logits = model(images.to(device, dtype))
    loss = torch.nn.functional.cross_entropy(logits.to(dtype), labels().to(device))
    loss.backward()
    return float(loss.detach()), {name: p.grad.double().cpu() for name, p in model.named_parameters()}


def parts(name, gradient):
    """(name, values): queries, keys and values apart."""
    flat = gradient.flatten().numpy()
    if ".qkv." not in name:
        return [(name, flat)]
    return [(f"{name}/{part}", values) for part, values in zip("qkv", np.split(flat, 3))]


def projections(name, values):
    index = np.arange(len(values))
    signs = (1.0 - 2.0 * (counter_hash(name_key(f"{name}/{k}"), index) & np.uint64(1)) for k in range(PROJECTIONS))
    return [float(sign @ values) for sign in signs]


def make_case(size):
    config = dict(MODEL, image_height=size, image_width=size)
    tokens = (size // 16) ** 2 + 1
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loss, exact = gradients(config, torch.float64, "cpu", False)
    _, rounded = gradients(config, torch.float32, device, True)
    rows = []
    for name, gradient in exact.items():
        for (part, wanted), (_, found) in zip(parts(name, gradient), parts(name, rounded[name])):
            norm = float(np.linalg.norm(wanted))
            off = float(np.linalg.norm(found - wanted)) / max(norm, 1e-30)
            rows.append(dict(name=part, norm=norm, torch_bf16_off=off, projections=projections(part, wanted)))
    head = dict(name=f"tokens_{tokens}", batch=BATCH, steps=1, accumulate=1, model=config,
                optim=dict(name="adamw", lr=0.001), loss=dict(kind="softmax"), torch=torch.__version__,
                torch_bf16_on=torch.cuda.get_device_name() if device == "cuda" else "cpu", loss_value=loss)
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines.append(' "gradients": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]")
    (FOLDER / f"tokens_{tokens}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    worst = max(rows, key=lambda row: row["torch_bf16_off"] if row["norm"] > 1e-9 else 0)
    print(f"tokens_{tokens}: loss {loss:.6f}, torch's bf16 off by up to {worst['torch_bf16_off']:.3f} ({worst['name']})")


if __name__ == "__main__":
    for image in (224, 384):
        make_case(image)
