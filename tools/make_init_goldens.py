#!/usr/bin/env python3
"""Writes tests/golden/init.json: how fresh weights are distributed, parameter by parameter, as timm and Flax draw
them. Needs torch, timm, jax, flax.

timm's models are drawn by timm. Flax's layers are drawn by Flax, with the initialisers vit_jax and (attention
pooling) big_vision give them. Of every parameter: count over all draws, mean, deviation, kurtosis (the fourth
moment over the square of the second; 0 where all values are the same) and the largest magnitude."""
import json
import pathlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import torch
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "init.json"
DRAWS = 24
SIZES = {"image_height": 32, "image_width": 24, "patch": 8, "channels": 3, "width": 96, "depth": 2, "heads": 3, "mlp": 240,
         "classes": 17}


def moments(values):
    drawn = np.concatenate([np.asarray(v, dtype=np.float64).ravel() for v in values])
    # Once in some millions torch's trunc_normal_ gives its bound of 2 itself, a hundred deviations away.
    x = drawn[abs(drawn) < 2]
    spread = x - x.mean()
    square = float((spread ** 2).mean())
    return {"count": len(drawn), "mean": float(f"{x.mean():.6g}"), "deviation": float(f"{square ** 0.5:.6g}"),
            "kurtosis": float(f"{(spread ** 4).mean() / square ** 2:.6g}") if square > 0 else 0,
            "largest": float(f"{abs(x).max():.6g}")}


def gathered(draw):
    """draw(seed) -> {name: array}."""
    drawn = [draw(seed) for seed in range(DRAWS)]
    return {name: moments([one[name] for one in drawn]) for name in drawn[0]}


# ---- timm

TIMM = {"img_size": (32, 24), "patch_size": 8, "embed_dim": 96, "depth": 2, "num_heads": 3, "mlp_ratio": 2.5,
        "num_classes": 17}


def timm_params(kind, **settings):
    def draw(seed):
        torch.manual_seed(seed)
        return {name: p.detach().numpy() for name, p in kind(**TIMM, **settings).named_parameters()}
    return gathered(draw)


# ---- Flax

xavier, tiny = nn.initializers.xavier_uniform(), nn.initializers.normal(stddev=1e-6)


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(240, kernel_init=xavier, bias_init=tiny, name="fc1")(x)
        return nn.Dense(96, kernel_init=xavier, bias_init=tiny, name="fc2")(nn.gelu(x))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm(name="norm1")(x)
        x = x + nn.MultiHeadDotGemmAttention(num_heads=3, kernel_init=xavier, name="attn")(y, y)
        return x + Mlp(name="mlp")(nn.LayerNorm(name="norm2")(x))


class Pool(nn.Module):
    @nn.compact
    def __call__(self, x):
        probe = self.param("latent", xavier, (1, 1, 96), x.dtype)
        x = nn.MultiHeadDotGemmAttention(num_heads=3, kernel_init=xavier, name="attn")(probe, x)
        return (x + Mlp(name="mlp")(nn.LayerNorm(name="norm")(x)))[:, 0]


class FlaxVit(nn.Module):
    pool: bool

    @nn.compact
    def __call__(self, images):
        x = nn.Conv(96, (8, 8), strides=(8, 8), padding="VALID", name="patch")(images)
        x = x.reshape(x.shape[0], -1, 96)
        if not self.pool:
            x = jnp.concatenate([self.param("cls_token", nn.initializers.zeros, (1, 1, 96)), x], axis=1)
        x = x + self.param("pos_embed", nn.initializers.normal(stddev=0.02), (1, x.shape[1], 96))
        for i in range(2):
            x = Block(name=f"block{i}")(x)
        x = nn.LayerNorm(name="norm")(x)
        x = Pool(name="attn_pool")(x) if self.pool else nn.tanh(nn.Dense(96, name="pre_logits")(x[:, 0]))
        return nn.Dense(17, kernel_init=nn.initializers.zeros, name="head")(x)


def joined(layers, part):
    return np.stack([np.asarray(layer[part]) for layer in layers])


def layer(into, name, params, part="kernel"):
    into[f"{name}.weight"] = params["scale" if part == "scale" else part]
    into[f"{name}.bias"] = params["bias"]


def mlp(into, at, params):
    for name in ("fc1", "fc2"):
        layer(into, f"{at}mlp.{name}", params[name])


def flax_params(pool):
    def draw(seed):
        p = FlaxVit(pool).init(jax.random.PRNGKey(seed), jnp.zeros((1, 32, 24, 3)))["params"]
        into = {"pos_embed": p["pos_embed"]}
        layer(into, "patch_embed.proj", p["patch"])
        for i in range(2):
            block, at = p[f"block{i}"], f"blocks.{i}."
            layer(into, f"{at}norm1", block["norm1"], "scale")
            layer(into, f"{at}norm2", block["norm2"], "scale")
            qkv = [block["attn"][name] for name in ("query", "key", "value")]
            into[f"{at}attn.qkv.weight"], into[f"{at}attn.qkv.bias"] = joined(qkv, "kernel"), joined(qkv, "bias")
            layer(into, f"{at}attn.proj", block["attn"]["out"])
            mlp(into, at, block["mlp"])
        layer(into, "norm", p["norm"], "scale")
        layer(into, "head", p["head"])
        if not pool:
            into["cls_token"] = p["cls_token"]
            layer(into, "pre_logits.fc", p["pre_logits"])
            return into
        head = p["attn_pool"]
        into["attn_pool.latent"] = head["latent"]
        layer(into, "attn_pool.q", head["attn"]["query"])
        kv = [head["attn"][name] for name in ("key", "value")]
        into["attn_pool.kv.weight"], into["attn_pool.kv.bias"] = joined(kv, "kernel"), joined(kv, "bias")
        layer(into, "attn_pool.proj", head["attn"]["out"])
        layer(into, "attn_pool.norm", head["norm"], "scale")
        mlp(into, "attn_pool.", head["mlp"])
        return into
    return gathered(draw)


def case(name, style, params, **config):
    return {"name": name, "style": style, "config": {**SIZES, **config}, "params": params}


if __name__ == "__main__":
    OUT.write_text(json.dumps([
        case("timm_registers", "timm",
             timm_params(VisionTransformer, reg_tokens=4, init_values=1e-5, qk_norm=True, no_embed_class=True),
             registers=4, layer_scale=True, qk_norm=True, pos_for_prefix=False),
        case("timm_distilled", "timm", timm_params(VisionTransformerDistilled), distilled=True),
        case("timm_map", "timm", timm_params(VisionTransformer, class_token=False, global_pool="map", fc_norm=False),
             class_token=False, pool="map", pos_for_prefix=False),
        case("jax_class_token", "jax", flax_params(False), pre_logits=True),
        case("jax_map", "jax", flax_params(True), class_token=False, pool="map", pos_for_prefix=False),
    ]) + "\n")
