#!/usr/bin/env python3
"""Writes to tests/golden/augment/: draws.json, how what timm and torchvision draw at random is distributed, and
policies.txt, their tables of sub-policies and lists of operations, read from the libraries themselves. Needs
Pillow, numpy, torch, torchvision, timm.

A distribution is `draws` many numbers x, kept as its mean, its deviation and points [v, P(x < v), P(x <= v)]."""
import json
import math
import pathlib
import random

import numpy as np
import timm.data.auto_augment as timm_aa
import timm.data.mixup as timm_mixup
import timm.data.random_erasing as timm_erasing
import timm.data.transforms as timm_transforms
import torch
from PIL import Image
from torchvision.transforms import ColorJitter
from torchvision.transforms.autoaugment import AutoAugment, AutoAugmentPolicy, RandAugment

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "augment"
SHARES = (0.01, 0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 0.99)

# timm's and torchvision's names of operations that are one here
NAMES = {"TranslateXRel": "TranslateX", "TranslateYRel": "TranslateY", "GaussianBlurRand": "GaussianBlur",
         **{f"{op}Increasing": op for op in ("Posterize", "Solarize", "Color", "Contrast", "Brightness", "Sharpness")}}


def named(op):
    return NAMES.get(op, op)


def distribution(numbers):
    x = np.sort(np.asarray(numbers, dtype=np.float64))
    # Values and shares to as many digits as both sides compute alike: a value must not fall beside its own point.
    points = sorted({float(f"{x[int(share * (len(x) - 1))]:.9g}") for share in SHARES})
    slack = [1e-7 * (1 + abs(v)) for v in points]
    return {"draws": len(x), "mean": float(f"{x.mean():.9g}"), "deviation": float(f"{x.std():.9g}"),
            "points": [[v, float((x < v - s).mean()), float((x <= v + s).mean())] for v, s in zip(points, slack)]}


def distributions(rows):
    return {name: distribution(numbers) for name, numbers in rows.items()}


# ---- crops


def crops(width, height, scale, ratio, draws=40000):
    crop = timm_transforms.RandomResizedCropAndInterpolation(8, scale=scale, ratio=ratio)
    image = Image.new("L", (width, height))
    rows = {"area": [], "log_ratio": [], "height": [], "width": [], "top": [], "left": []}
    for _ in range(draws):
        top, left, h, w = crop.get_params(image, crop.scale, crop.ratio)
        for name, value in zip(rows, (h * w / (height * width), math.log(w / h), h, w, top, left)):
            rows[name].append(value)
    return {"width": width, "height": height, "scale": scale, "ratio": ratio, "drawn": distributions(rows)}


# ---- mixing


def mixes(mixup, cutmix, prob, switch, height, width, draws=60000):
    mix = timm_mixup.Mixup(mixup_alpha=mixup, cutmix_alpha=cutmix, prob=prob, switch_prob=switch)
    rows = {"mixed": [], "cut": [], "blend_lambda": [], "cut_lambda": [], "box_height": [], "box_width": []}
    for _ in range(draws):
        lam, cut = mix._params_per_batch()
        rows["mixed"].append(float(lam != 1))
        if lam == 1:
            continue
        rows["cut"].append(float(cut))
        if not cut:
            rows["blend_lambda"].append(lam)
            continue
        (top, bottom, left, right), used = timm_mixup.cutmix_bbox_and_lam((1, 3, height, width), lam)
        rows["cut_lambda"].append(used)
        rows["box_height"].append(bottom - top)
        rows["box_width"].append(right - left)
    return {"mixup": mixup, "cutmix": cutmix, "prob": prob, "switch": switch, "height": height, "width": width,
            "drawn": distributions({name: numbers for name, numbers in rows.items() if numbers})}


# ---- erasing


def erasures(height, width, area, count, probability=1.0, draws=20000):
    erasing = timm_erasing.RandomErasing(probability=probability, min_area=area[0], max_area=area[1], mode="const",
                                         max_count=count, device="cpu")
    rows = {"erased": [], "happens": []}
    one = {"log_ratio": [], "height": [], "width": [], "top": [], "left": []}
    for _ in range(draws):
        image = torch.ones(1, height, width)
        erasing(image)
        gone = image[0] == 0
        rows["happens"].append(float(gone.any()))
        rows["erased"].append(float(gone.float().mean()))
        if count == 1 and gone.any():
            lines, columns = gone.any(1).nonzero(), gone.any(0).nonzero()
            h, w = len(lines), len(columns)
            for name, value in zip(one, (math.log(w / h), h, w, int(lines[0]), int(columns[0]))):
                one[name].append(value)
    return {"height": height, "width": width, "area": area, "count": count, "probability": probability,
            "drawn": distributions({**rows, **(one if count == 1 else {})})}


# ---- colour jitter


def jitters(strengths, draws=20000):
    ranges = [(max(0.0, 1 - s), 1 + s) for s in strengths[:3]] + [(-s, s) for s in strengths[3:]]
    jitter = ColorJitter(*strengths)
    rows = {**{f"factor{i}": [] for i in range(4)}, **{f"place{i}": [] for i in range(4)}}
    for _ in range(draws):
        order, *factors = ColorJitter.get_params(jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue)
        for i, factor in enumerate(factors):
            rows[f"factor{i}"].append(factor)
            rows[f"place{i}"].append(order.tolist().index(i))
    assert all(low <= min(rows[f"factor{i}"]) and max(rows[f"factor{i}"]) <= high
               for i, (low, high) in enumerate(ranges))
    return {"strengths": strengths, "drawn": distributions(rows)}


# ---- policies

WIDTH, HEIGHT = 40, 30


def timm_policy(text, draws=30000):
    """How often each operation happens, and with which argument, in timm's own transform."""
    make = timm_aa.rand_augment_transform if text.startswith("rand") else timm_aa.auto_augment_transform
    policy = make(text, {"translate_pct": 0.45})
    happened = []

    def record(op):
        def apply(image, *args, **kwargs):
            happened.append((named(op.name), args))
            return image
        op.aug_fn = apply

    for op in policy.ops if text.startswith("rand") else [op for sub in policy.policy for op in sub]:
        record(op)
    rows, counts, image = {}, {"operations": []}, Image.new("RGB", (WIDTH, HEIGHT))
    for _ in range(draws):
        happened.clear()
        policy(image)
        counts["operations"].append(len(happened))
        for op, args in happened:
            scale = {"TranslateX": WIDTH, "TranslateY": HEIGHT}.get(op, 1)
            # timm draws a blur's deviation while it blurs, from the level's share of its longest.
            value = random.uniform(0.1, 2.0 * args[0]) if op == "GaussianBlur" else args[0] * scale if args else 0
            rows.setdefault(op, []).append(value)
    return {"policy": text, "draws": draws, "counts": distributions(counts),
            "share": {op: len(values) / draws for op, values in sorted(rows.items())},
            "arguments": distributions(rows)}


def write_draws():
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    (OUT / "draws.json").write_text(json.dumps({
        "crops": [crops(400, 300, (0.08, 1), (3 / 4, 4 / 3)), crops(20, 15, (0.3, 0.7), (1 / 2, 3)),
                  crops(9, 11, (0.08, 1), (3 / 4, 4 / 3))],
        "mixes": [mixes(0.2, 3, 1, 0.3, 24, 40), mixes(0.8, 0, 0.6, 0.5, 9, 9), mixes(0, 1, 1, 0.5, 15, 21)],
        "erasures": [erasures(40, 60, (0.02, 1 / 3), 1), erasures(24, 24, (0.1, 0.2), 3, 0.4)],
        "jitters": [jitters([0.4, 1.5, 0.2, 0.1])],
        "policies": [timm_policy(text) for text in
                     ("rand-m9-mstd0.5-inc1", "rand-m5-n3-p0.75-mmax8-mstd2", "rand-m7-mstd101", "original-mstd0.5",
                      "v0", "3a")],
    }) + "\n")


def write_policies():
    lines = ["# policy sub-policy operation probability level; of RandAugment the operations alone"]
    for name, policy in (("original", timm_aa.auto_augment_policy_original({})),
                         ("v0", timm_aa.auto_augment_policy_v0({})), ("3a", timm_aa.auto_augment_policy_3a({}))):
        lines += [f"{name} {i} {named(op.name)} {op.prob:g} {op.magnitude:g}" for i, sub in enumerate(policy) for op in sub]
    for i, sub in enumerate(AutoAugment(AutoAugmentPolicy.CIFAR10).policies):
        lines += [f"cifar10 {i} {op} {probability:g} {level or 0}" for op, probability, level in sub]
    for name, ops in (("rand", timm_aa._RAND_TRANSFORMS), ("rand-inc1", timm_aa._RAND_INCREASING_TRANSFORMS),
                      ("torchvision", RandAugment()._augmentation_space(31, (HEIGHT, WIDTH)))):
        lines += [f"{name} {i} {named(op)}" for i, op in enumerate(ops)]
    (OUT / "policies.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_policies()
    write_draws()
