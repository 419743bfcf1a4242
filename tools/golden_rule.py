"""Weights and inputs by rule: a value depends only on its parameter's canonical name and its index.

The C++ side is src/base/rng.h and src/models/rule_weights.cpp; both give the same bits. Every value is
float32(offset + scale * u), the sum taken in float64 where the product is exact, so that a fused
multiply-add changes nothing.
"""
import math

import numpy as np

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15

# (ending of the name, offset, scale); the first that matches holds. None: sqrt(3 / fan_in).
RULES = [
    ("input", 0.0, 1.5),
    ("_token", 0.0, 0.5),
    ("pos_embed", 0.0, 0.5),
    ("latent", 0.0, 0.5),
    (".gamma", 0.5, 0.2),
    (".bias", 0.0, 0.1),
    ("norm.weight", 1.0, 0.2),
    ("norm1.weight", 1.0, 0.2),
    ("norm2.weight", 1.0, 0.2),
    (".weight", 0.0, None),
]


def name_key(name):
    """FNV-1a, 64 bits."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & MASK
    return key


def counter_hash(key, index):
    """SplitMix64 at position `index` of the stream that starts at `key`; `index` may be an array."""
    with np.errstate(over="ignore"):
        z = np.uint64(key) + (np.asarray(index, np.uint64) + np.uint64(1)) * np.uint64(STEP)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def counter_uniform(key, index):
    """In [-1, 1), a multiple of 2^-23: exact in float32."""
    return (counter_hash(key, index) >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0


def offset_and_scale(name, fan_in):
    for ending, offset, scale in RULES:
        if name.endswith(ending):
            return np.float32(offset), np.float32(math.sqrt(3.0 / fan_in) if scale is None else scale)
    raise KeyError(f"no rule for {name}")


def rule_values(name, shape):
    """The parameter `name` as float32; a weight's first dim is its outputs, the rest its fan-in."""
    count = math.prod(shape)
    offset, scale = offset_and_scale(name, count // shape[0])
    u = counter_uniform(name_key(name), np.arange(count))
    return (np.float64(offset) + np.float64(scale) * u).astype(np.float32).reshape(shape)


def rule_input(batch, channels, height, width):
    return rule_values("input", (batch, channels, height, width))
