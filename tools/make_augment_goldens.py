#!/usr/bin/env python3
"""Writes tests/golden/augment/: ops.txt, what Pillow and torchvision make of small images (checksums), and
levels.txt, which argument timm and torchvision give an operation of a policy at each level. Needs Pillow,
numpy, torch, torchvision, timm.

The images follow a rule that the tests compute too, see scene()."""
import pathlib

import numpy as np
import timm.data.auto_augment as timm_aa
import timm.data.mixup
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torchvision.transforms import functional as F
from torchvision.transforms.autoaugment import AutoAugment, RandAugment

from make_image_goldens import crc, hashed, noise, pillow_image

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "augment"
FILL = (124, 116, 104)
FILTERS = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
SHAPES = [(1, 1), (1, 9), (9, 1), (2, 2), (3, 3), (17, 23), (32, 32), (64, 48)]


def scene(height, width, channels, seed):
    """Even seeds: a slope of levels with some noise, other levels in every channel; odd seeds: noise()."""
    if seed % 2:
        return noise(height, width, channels, seed)
    y, x, c = np.ogrid[:height, :width, :channels]
    slope = x * 120 // width + y * 30 // height + 40 * c
    return np.minimum(slope + hashed(height * width * channels, seed).reshape(height, width, channels) // 4,
                      255).astype(np.uint8)


def fill(image):
    return FILL[0] if image.mode == "L" else FILL


def affine(image, map, name):
    return image.transform(image.size, Image.AFFINE, map, FILTERS[name], fillcolor=fill(image))


# name: (arguments, function of image and argument); with "@" the interpolation is an argument too
OPS = {
    "auto_contrast": ([0], lambda i, a: ImageOps.autocontrast(i)),
    "equalize": ([0], lambda i, a: ImageOps.equalize(i)),
    "invert": ([0], lambda i, a: ImageOps.invert(i)),
    "posterize": ([1, 2, 4, 7, 8], ImageOps.posterize),
    "solarize": ([0, 1, 100.5, 128, 255, 256], ImageOps.solarize),
    "solarize_add": ([0, 40, 110, 128], lambda i, a: timm_aa.solarize_add(i, a)),
    "brightness": ([0, 0.1, 0.75, 1, 1.37, 1.9], lambda i, a: ImageEnhance.Brightness(i).enhance(a)),
    "contrast": ([0, 0.1, 0.75, 1, 1.37, 1.9], lambda i, a: ImageEnhance.Contrast(i).enhance(a)),
    "saturation": ([0, 0.1, 0.75, 1, 1.37, 1.9], lambda i, a: ImageEnhance.Color(i).enhance(a)),
    "sharpness": ([0, 0.1, 0.75, 1, 1.37, 1.9], lambda i, a: ImageEnhance.Sharpness(i).enhance(a)),
    "hue": ([-0.5, -0.31, -0.1, 0, 0.05, 0.25, 0.5], F.adjust_hue),
    "grey": ([0], lambda i, a: F.to_grayscale(i, 3 if i.mode == "RGB" else 1)),
    "blur": ([0.1, 0.5, 0.9, 1.4, 2, 3.7], lambda i, a: i.filter(ImageFilter.GaussianBlur(a))),
    "flip_horizontal": ([0], lambda i, a: F.hflip(i)),
    "flip_vertical": ([0], lambda i, a: F.vflip(i)),
    "pad_reflect": ([2], lambda i, a: F.pad(i, [a], padding_mode="reflect") if min(i.size) > a else None),
    "pad_zero": ([3], lambda i, a: F.pad(i, [a])),
    "rotate@": ([-30, -7.3, 0, 12.5, 29.9, 90.5], lambda i, a, f: i.rotate(a, FILTERS[f], fillcolor=fill(i))),
    "shear_x@": ([-0.3, 0.11, 0.27], lambda i, a, f: affine(i, (1, a, 0, 0, 1, 0), f)),
    "shear_y@": ([-0.3, 0.11, 0.27], lambda i, a, f: affine(i, (1, 0, 0, a, 1, 0), f)),
    "translate_x@": ([-3, 2.5, 6.4], lambda i, a, f: affine(i, (1, 0, a, 0, 1, 0), f)),
    "translate_y@": ([-3, 2.5, 6.4], lambda i, a, f: affine(i, (1, 0, 0, 0, 1, a), f)),
}
RGB_ONLY = {"hue", "saturation"}


def write_ops():
    lines, seed = ["# operation argument interpolation seed channels width height -> crc32"], 0
    for name, (arguments, apply) in OPS.items():
        for argument in arguments:
            for f in FILTERS if name.endswith("@") else ["-"]:
                for channels in (1, 3):
                    for width, height in SHAPES:
                        seed += 1
                        if channels == 1 and (name in RGB_ONLY or width * height < 300):
                            continue
                        image = pillow_image(scene(height, width, channels, seed))
                        result = apply(image, argument, f) if f != "-" else apply(image, argument)
                        if result is not None:
                            lines.append(f"{name.rstrip('@')} {argument:g} {f} {seed} {channels} {width} {height} "
                                         f"{crc(np.asarray(result))}")
    (OUT / "ops.txt").write_text("\n".join(lines) + "\n")
    print(len(lines) - 1, "op cases")


# ---- levels

PLAIN = {"Rotate": "Rotate", "Posterize": "Posterize", "PosterizeOriginal": "PosterizeOriginal",
         "Solarize": "Solarize", "SolarizeAdd": "SolarizeAdd", "Color": "Color", "Contrast": "Contrast",
         "Brightness": "Brightness", "Sharpness": "Sharpness", "ShearX": "ShearX", "ShearY": "ShearY",
         "TranslateX": "TranslateXRel", "TranslateY": "TranslateYRel", "Desaturate": "Desaturate"}
INCREASING = {**PLAIN, "Posterize": "PosterizeIncreasing", "Solarize": "SolarizeIncreasing",
              "Color": "ColorIncreasing", "Contrast": "ContrastIncreasing", "Brightness": "BrightnessIncreasing",
              "Sharpness": "SharpnessIncreasing"}
WIDTH, HEIGHT = 40, 30


def timm_argument(op, name, level, sign):
    timm_aa._randomly_negate = lambda v: v * sign
    (value,) = timm_aa.LEVEL_TO_ARG[name](level, {})
    return value * {"TranslateX": WIDTH, "TranslateY": HEIGHT}.get(op, 1)


def steps_argument(policy, steps, op, level, sign):
    magnitudes, signed = policy._augmentation_space(steps, (HEIGHT, WIDTH))[op]
    value = float(magnitudes[level]) * (sign if signed else 1)
    if op.startswith("Translate"):
        return int(value)
    return 1 + value if op in ("Color", "Contrast", "Brightness", "Sharpness") else value


def write_levels():
    lines = [f"# operation scale level -> argument and, with the sign drawn, the other; an image of {WIDTH} x {HEIGHT}"]
    for scale, names in (("plain", PLAIN), ("increasing", INCREASING)):
        for op, name in names.items():
            for level in (0, 1, 3.7, 5, 9, 10):
                a, b = (timm_argument(op, name, level, sign) for sign in (1, -1))
                lines.append(f"{op} {scale} {level} {a:.9g} {b:.9g}")
    for op in ("Rotate", "Posterize", "Solarize", "Color", "Contrast", "Brightness", "Sharpness", "ShearX", "ShearY",
               "TranslateX", "TranslateY"):
        for scale, policy, steps in (("ten_steps", AutoAugment(), 10), ("thirty_steps", RandAugment(), 31)):
            for level in range(steps):
                a, b = (steps_argument(policy, steps, op, level, sign) for sign in (1, -1))
                lines.append(f"{op} {scale} {level} {a:.9g} {b:.9g}")
    (OUT / "levels.txt").write_text("\n".join(lines) + "\n")
    print(len(lines) - 1, "levels")


# ---- mixing


def write_mix():
    """Four images of 2 x 4 x 6, three classes, smoothing 0.1: the targets and every seventh pixel."""
    lines = ["# lambda cut top left height width -> lambda used, 12 targets, 28 pixels"]
    x = (hashed(4 * 2 * 4 * 6, 2).astype(np.float32) / 128 - 1).reshape(4, 2, 4, 6)
    for lam, box in [(0.3, None), (0.85, None), (0.5, (1, 2, 2, 3)), (0.9, (0, 0, 4, 1)), (0.2, (3, 5, 1, 1))]:
        mixup = timm.data.mixup.Mixup(num_classes=3, label_smoothing=0.1)
        mixup._params_per_batch = lambda: (lam, box is not None)
        top, left, height, width = box or (0, 0, 0, 0)
        timm.data.mixup.rand_bbox = lambda *_, **__: (top, top + height, left, left + width)
        used = 1 - height * width / 24 if box else lam
        mixed, target = mixup(torch.from_numpy(x.copy()), torch.tensor([0, 2, 1, 0]))
        numbers = " ".join(f"{v:.9g}" for v in [*target.flatten().tolist(), *mixed.flatten()[::7].tolist()])
        lines.append(f"{lam} {int(box is not None)} {top} {left} {height} {width} {used:.9g} {numbers}")
    (OUT / "mix.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    write_ops()
    write_levels()
    write_mix()
