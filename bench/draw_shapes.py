#!/usr/bin/env python3
"""Draws cases for compare_gpu.py at random: models from Ti to g, 1 to 512 images of 50 to 4,097 tokens, odd numbers of
classes in training. The same seed draws the same cases; none is in a table of kernels unless by chance.

    python bench/compare_gpu.py $(python bench/draw_shapes.py --seed 20 --work train --count 10) --streams bf16

Cases are drawn again until torch's memory for one stays under --gib and its FLOPs under --tflop, so that many may be
open at once and none takes long.
"""
import argparse
import math
import random

# Width, depth and patch by timm's names.
MODELS = {"vit_tiny_patch16_224": (192, 12, 16), "vit_small_patch32_224": (384, 12, 32), "vit_small_patch16_224": (384, 12, 16),
          "vit_base_patch32_224": (768, 12, 32), "vit_base_patch16_224": (768, 12, 16), "vit_large_patch16_224": (1024, 24, 16),
          "vit_huge_patch14_224": (1280, 32, 14), "vit_giant_patch14_224": (1408, 40, 14)}
TOKENS, BATCH = (50, 4097), (1, 512)


def log_uniform(rng, bounds):
    return math.exp(rng.uniform(*map(math.log, bounds)))


def flops(width, depth, tokens, batch, work):
    forward = 2 * depth * tokens * (12 * width * width + 2 * tokens * width) * batch
    return forward * (3 if work == "train" else 1)


def memory(width, depth, tokens, batch, work):
    """Returns roughly torch's bytes: parameters with their moments, and what a block keeps of a token."""
    parameters = 12 * width * width * depth
    return parameters * (12 if work == "train" else 2) + 2 * width * tokens * batch * (24 * depth if work == "train" else 12)


def draw(rng, work, limits):
    while True:
        model = rng.choice(list(MODELS))
        width, depth, patch = MODELS[model]
        side = round(math.sqrt(log_uniform(rng, TOKENS) - 1))
        batch, classes = round(log_uniform(rng, BATCH)), 2 * rng.randrange(1, 1000) + 1
        sizes = width, depth, side * side + 1, batch, work
        if flops(*sizes) <= limits.tflop * 1e12 and memory(*sizes) <= limits.gib * 2**30:
            return f"{work}:{model}:{batch}:{side * patch}" + (f":c{classes}" if work == "train" else "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--work", choices=("train", "infer"), required=True)
    p.add_argument("--count", type=int, default=10)
    p.add_argument("--gib", type=float, default=12, help="most memory of a case")
    p.add_argument("--tflop", type=float, default=20, help="most FLOPs of a case, in 10^12")
    options = p.parse_args()
    rng = random.Random(f"{options.seed} {options.work}")
    print(*(draw(rng, options.work, options) for _ in range(options.count)), sep="\n")


if __name__ == "__main__":
    main()
