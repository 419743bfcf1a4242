#!/usr/bin/env python3
"""Writes tests/golden/gradients with torch and timm: the gradient of every parameter after one step of a small ViT
with as many tokens of 64 as ViTs have at 224 and 384 pixels, in float64, and how far torch's own bf16 autocast is
from it (on a GPU where there is one). Likewise, on the CPU: autocast with a residual stream of bf16, autocast with the
blocks' GEMMs in fp8, and f32 with them in tf32, their factors rounded as docs/precision.md says. fp8 is coarse: how far
it is off depends on which factors a kernel's last bit moves to another code, so that is the root mean square of DRAWS.

Weights, images and labels follow the rule (golden_rule.py). A gradient is stored as its norm and its sums under
random signs (PROJECTIONS of them, counter_hash): the root mean square of the sums of a difference is the
difference's norm. The weight that makes queries, keys and values counts as three.

    python tools/make_gradient_goldens.py [bf16_stream] [fp8] [tf32]     those alone, into the files that are there
"""
import functools
import json
import pathlib
import sys

import numpy as np
import torch

from golden_libs import Timm
from golden_rule import counter_hash, name_key, rule_input
from golden_vit import make_config

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "gradients"
BATCH, CLASSES, PROJECTIONS, DRAWS = 4, 10, 64, 8
MODEL = make_config(width=128, depth=3, heads=2, mlp=512, classes=CLASSES)


def labels():
    return torch.from_numpy((counter_hash(name_key("labels"), np.arange(BATCH)) % np.uint64(CLASSES)).astype(np.int64))


def e4m3_rows(x):
    """Rounded with a scale for each row, the least power of two that brings its largest magnitude to 448 or less, of
    values that another kernel may have rounded to another bf16."""
    x = x * (1 + 2**-9 * (2 * torch.rand_like(x) - 1))
    scale = torch.exp2(torch.ceil(torch.log2(x.abs().amax(-1, keepdim=True).clamp_min(1e-30) / 448)))
    return (x / scale).to(torch.float8_e4m3fn).to(x.dtype) * scale


def tf32(x):
    """Eleven bits of precision, the others cut off: tensor cores need not round."""
    return (x.view(torch.int32) & -0x2000).view(torch.float32)


class RoundedGemm(torch.autograd.Function):
    """x . w and its gradients with the factors rounded row by row; in fp8 the gradient of w keeps its own."""

    @staticmethod
    def forward(ctx, x, w, kind):
        ctx.save_for_backward(x, w)
        ctx.rounded = e4m3_rows if kind == "fp8" else tf32
        ctx.of_weight = tf32 if kind == "tf32" else lambda values: values
        with torch.autocast("cpu", enabled=False):
            return ctx.rounded(x.float()) @ ctx.rounded(w.float()).T

    @staticmethod
    def backward(ctx, dy):
        x, w = (value.float() for value in ctx.saved_tensors)
        dx = ctx.rounded(dy) @ ctx.rounded(w.T.contiguous()).T
        dw = ctx.of_weight(dy.flatten(0, -2)).T @ ctx.of_weight(x.flatten(0, -2))
        return dx, dw, None


def rounded_linear(linear, kind, x):
    """What a linear layer becomes; fp8 stands beside values of bf16, tf32 beside f32."""
    dtype = torch.bfloat16 if kind == "fp8" else torch.float32
    return (RoundedGemm.apply(x.to(dtype), linear.weight.to(dtype), kind) + linear.bias).to(dtype)


def gradients(config, dtype, device, autocast, narrow_stream=False, gemms=None):
    model = Timm(config).model.to(device, dtype).train()
    if gemms:
        for block in model.blocks:
            for linear in (block.attn.qkv, block.attn.proj, block.mlp.fc1, block.mlp.fc2):
                linear.forward = functools.partial(rounded_linear, linear, gemms)
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


# What is computed on the CPU, by name.
ON_CPU = {"bf16_stream": dict(autocast=True, narrow_stream=True), "fp8": dict(autocast=True, gemms="fp8"),
          "tf32": dict(autocast=False, gemms="tf32")}


def add_column(case, exact, column):
    torch.manual_seed(1)
    config, draws = dict(MODEL, **case["model"]), []
    for _ in range(DRAWS if column == "fp8" else 1):
        draws.append(offs(exact, gradients(config, torch.float32, "cpu", **ON_CPU[column])[1]))
    found = {part: float(np.sqrt(np.mean([draw[part]**2 for draw in draws]))) for part in draws[0]}
    rows = case.pop("gradients")
    case[f"torch_{column}_on"] = f"cpu, torch {torch.__version__}"
    case["gradients"] = rows
    for row in rows:
        values = row.pop("projections")  # the long one stays the last
        row.update({f"torch_{column}_off": found[row["name"]], "projections": values})
    write(case)
    worst = max((row for row in rows if row["norm"] > 1e-9), key=lambda row: found[row["name"]])["name"]
    print(f"{case['name']}: {column} of torch is off by up to {found[worst]:.5f} ({worst})")


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
    case = dict(name=f"tokens_{tokens}", batch=BATCH, steps=1, accumulate=1, model=config,
                optim=dict(name="adamw", lr=0.001), loss=dict(kind="softmax"), torch=torch.__version__,
                torch_bf16_on=torch.cuda.get_device_name() if device == "cuda" else "cpu", loss_value=loss,
                gradients=rows)
    for column in ON_CPU:
        add_column(case, exact, column)


def add_columns(path, columns):
    case = json.loads(path.read_text())
    loss, exact = gradients(dict(MODEL, **case["model"]), torch.float64, "cpu", False)
    assert abs(loss - case["loss_value"]) < 1e-9 * loss, (path, loss)
    for column in columns:
        add_column(case, exact, column)


if __name__ == "__main__":
    if sys.argv[1:]:
        for file in sorted(FOLDER.glob("*.json")):
            add_columns(file, sys.argv[1:])
    else:
        for image in (224, 384):
            make_case(image)
