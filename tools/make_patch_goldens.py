#!/usr/bin/env python3
"""Writes tests/golden/patch_resize.json: patch weights resampled by timm's resample_patch_embed, its matrices
in double. Run where torch and timm are installed."""
import json
import pathlib

import numpy as np
import torch
from timm.layers import patch_embed

KERNELS = 2
CASES = [(16, 8), (16, 32), (16, 14), (32, 16), (14, 16), (1, 3), (5, 1)]


def weights(patch):
    """Values both sides compute: exact in float32."""
    n = np.arange(KERNELS * patch * patch, dtype=np.int64)
    return ((n * n * 37 % 64 - 32) / 16).reshape(KERNELS, 1, patch, patch)


def resampled(old, new):
    sizes = ((old, old), (new, new))
    matrix = patch_embed._compute_resize_matrix(*sizes, "bicubic", True, "cpu", torch.float64)
    kernels = torch.from_numpy(weights(old))
    exact = patch_embed._apply_resampling(kernels, torch.linalg.pinv(matrix), sizes[1], torch.float64, torch.float64)
    usual = patch_embed.resample_patch_embed(kernels.float(), list(sizes[1])).double()
    assert (exact - usual).abs().max() < 1e-5 * exact.abs().max()
    return exact


def main():
    cases = [{"from": old, "to": new, "values": [float("%.9g" % v) for v in resampled(old, new).ravel()]}
             for old, new in CASES]
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "patch_resize.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    path.write_text('{"kernels": %d, "cases": [\n%s\n]}\n' % (KERNELS, lines))


if __name__ == "__main__":
    main()
