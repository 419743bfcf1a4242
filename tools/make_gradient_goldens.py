#!/usr/bin/env python3
"""Writes tests/golden/gradients with torch and timm: the gradient of every parameter after one step of a small ViT
with as many tokens of 64 as ViTs have at 224 and 384 pixels, in float64, and how far torch's own bf16 autocast is
from it (on a GPU where there is one), with a residual stream of f32 and (on the CPU) with one of bf16.

Weights, images and labels follow the rule (golden_rule.py). A gradient is stored as its norm and its sums under
random signs (PROJECTIONS of them, counter_hash): the root mean square of the sums of a difference is the
difference's norm. The weight that makes queries, keys and values counts as three.

    python tools/make_gradient_goldens.py [--stream]      --stream: the last of these alone, into the files that are there
"""
import json
import pathlib
import sys

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


def gradients(config, dtype, device, autocast, narrow_stream=False):
    model = Timm(config).model.to(device, dtype).train()
    if narrow_stream:  # what blocks add to it is bf16 under autocast, so it stays so
        model.blocks[0].register_forward_pre_hook(lambda block, inputs: (inputs[0].bfloat16(), *inputs[1:]))
        for norm in (m for m in model.modules() if isinstance(m, torch.nn.LayerNorm)):
            norm.register_forward_pre_hook(lambda norm, inputs: inputs[0].float())  # as autocast does on a GPU
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


def off(found, wanted):
    return float(np.linalg.norm(found - wanted)) / max(float(np.linalg.norm(wanted)), 1e-30)


def offs(exact, found):
    """By part, how far these gradients are off."""
    return {part: off(other, wanted) for name, gradient in exact.items()
            for (part, wanted), (_, other) in zip(parts(name, gradient), parts(name, found[name]))}


def write(case):
    """One line a key, one a gradient."""
    head = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in case.items() if key != "gradients"]
    head.append(' "gradients": [\n  ' + ",\n  ".join(map(json.dumps, case["gradients"])) + "\n ]")
    (FOLDER / f"{case['name']}.json").write_text("{\n" + ",\n".join(head) + "\n}\n")


def add_stream(case, exact):
    _, narrow = gradients(dict(MODEL, **case["model"]), torch.float32, "cpu", True, narrow_stream=True)
    found = offs(exact, narrow)
    rows = case.pop("gradients")
    case.update(torch_bf16_stream_on=f"cpu, torch {torch.__version__}")
    case["gradients"] = [dict(name=row["name"], norm=row["norm"], torch_bf16_off=row["torch_bf16_off"],
                              torch_bf16_stream_off=found[row["name"]], projections=row["projections"]) for row in rows]
    write(case)
    worst = max((row for row in rows if row["norm"] > 1e-9), key=lambda row: found[row["name"]])["name"]
    print(f"{case['name']}: with a bf16 residual stream torch is off by up to {found[worst]:.3f} ({worst})")


def make_case(size):
    config = dict(MODEL, image_height=size, image_width=size)
    tokens = (size // 16) ** 2 + 1
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loss, exact = gradients(config, torch.float64, "cpu", False)
    _, rounded = gradients(config, torch.float32, device, True)
    found = offs(exact, rounded)
    rows = [dict(name=part, norm=float(np.linalg.norm(values)), torch_bf16_off=found[part],
                 projections=projections(part, values))
            for name, gradient in exact.items() for part, values in parts(name, gradient)]
    FOLDER.mkdir(parents=True, exist_ok=True)
    worst = max(rows, key=lambda row: row["torch_bf16_off"] if row["norm"] > 1e-9 else 0)
    print(f"tokens_{tokens}: loss {loss:.6f}, torch's bf16 off by up to {worst['torch_bf16_off']:.3f} ({worst['name']})")
    add_stream(dict(name=f"tokens_{tokens}", batch=BATCH, steps=1, accumulate=1, model=config,
                    optim=dict(name="adamw", lr=0.001), loss=dict(kind="softmax"), torch=torch.__version__,
                    torch_bf16_on=torch.cuda.get_device_name() if device == "cuda" else "cpu", loss_value=loss,
                    gradients=rows), exact)


def only_stream(path):
    case = json.loads(path.read_text())
    loss, exact = gradients(dict(MODEL, **case["model"]), torch.float64, "cpu", False)
    assert abs(loss - case["loss_value"]) < 1e-9 * loss, (path, loss)
    add_stream(case, exact)


if __name__ == "__main__":
    if sys.argv[1:] == ["--stream"]:
        for path in sorted(FOLDER.glob("*.json")):
            only_stream(path)
    else:
        for image in (224, 384):
            make_case(image)
