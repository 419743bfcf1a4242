#!/usr/bin/env python3
"""Writes tests/golden/pos_resize.json: position tables resized by timm, torch and the corner-aligned
bilinear of scipy.ndimage.zoom(order=1). Run where torch and timm are installed."""
import json
import pathlib

import numpy as np
import torch
from timm.layers import resample_abs_pos_embed

DIM = 2
CASES = [((4, 4), (6, 6)), ((4, 4), (2, 2)), ((7, 7), (3, 5)), ((3, 5), (7, 4)), ((5, 2), (1, 9)),
         ((1, 1), (3, 2)), ((8, 8), (5, 8)), ((2, 3), (2, 3))]


def table(height, width):
    """Values both sides compute: exact in float32."""
    n = np.arange((1 + height * width) * DIM, dtype=np.int64)
    return ((n * 37 % 64 - 32) / 16).astype(np.float32).reshape(1, -1, DIM)


def torch_resize(pos, old, new, **how):
    grid = torch.from_numpy(pos[:, 1:]).double().reshape(1, *old, DIM).permute(0, 3, 1, 2)
    grid = torch.nn.functional.interpolate(grid, size=new, mode="bicubic", **how)
    return grid.permute(0, 2, 3, 1).reshape(-1, DIM).numpy()


def zoom_order1(pos, old, new):
    """scipy.ndimage.zoom(order=1): coordinates i*(in-1)/(out-1), linear between neighbours."""
    grid = pos[0, 1:].astype(np.float64).reshape(*old, DIM)
    for axis in (0, 1):
        at = np.linspace(0, old[axis] - 1, new[axis]) if new[axis] > 1 else np.zeros(1)
        low = np.minimum(np.floor(at).astype(int), old[axis] - 1)
        high = np.minimum(low + 1, old[axis] - 1)
        t = (at - low).reshape([-1 if a == axis else 1 for a in range(3)])
        grid = np.take(grid, low, axis) * (1 - t) + np.take(grid, high, axis) * t
    return grid.reshape(-1, DIM)


def main():
    cases = []
    for old, new in CASES:
        pos = table(*old)
        timm_pos = resample_abs_pos_embed(torch.from_numpy(pos), list(new), list(old), num_prefix_tokens=1)
        results = {
            "timm": timm_pos[0, 1:].numpy(),
            "hf": torch_resize(pos, old, new, align_corners=False),
            "torchvision": torch_resize(pos, old, new, align_corners=True),
            "jax": zoom_order1(pos, old, new),
        }
        for rule, values in results.items():
            cases.append({"rule": rule, "from": old, "to": new, "values": [round(float(v), 6) for v in values.ravel()]})
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "pos_resize.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(case) for case in cases)
    path.write_text('{"dim": %d, "cases": [\n%s\n]}\n' % (DIM, lines))


if __name__ == "__main__":
    main()
