#!/usr/bin/env python3
"""Writes tests/golden/zoo.json: what timm builds and how it prepares images under every name of a plain ViT, read from
the built model (without weights) and from its default config. Needs torch, timm.

The test compares the rows of src/models/zoo.cpp that carry one of these names; other names are here for rows to come."""
import json
import math
import pathlib

import timm
import torch
from timm.layers import RmsNorm
from timm.models.vision_transformer import VisionTransformer

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "zoo.json"
NAMES = ["vit_*", "deit*", "flexivit*", "test_vit*"]


def pool_of(model):
    return {"token": "cls", "avg": "mean", "map": "map"}.get(model.global_pool, model.global_pool)


def norm_place_of(model):
    norms = {"before_pool": model.norm, "after_pool": model.fc_norm}
    return next((place for place, norm in norms.items() if not isinstance(norm, torch.nn.Identity)), "none")


def config_of(model):
    block, prefix = model.blocks[0], model.num_prefix_tokens
    rows = model.pos_embed.shape[1] - model.patch_embed.num_patches
    distilled = hasattr(model, "dist_token") and model.dist_token is not None
    return {
        "image_height": model.patch_embed.img_size[0], "image_width": model.patch_embed.img_size[1],
        "patch": model.patch_embed.patch_size[0], "width": model.embed_dim, "depth": len(model.blocks),
        "heads": block.attn.num_heads, "mlp": block.mlp.fc1.out_features, "classes": model.num_classes,
        "pool": pool_of(model), "class_token": model.cls_token is not None, "distilled": distilled,
        "registers": prefix - (model.cls_token is not None) - distilled,
        "norm_place": norm_place_of(model), "norm": "rms" if isinstance(block.norm1, RmsNorm) else "layer",
        "pos_for_prefix": rows > 0, "qkv_bias": block.attn.qkv.bias is not None,
        "qk_norm": not isinstance(block.attn.q_norm, torch.nn.Identity),
        "layer_scale": not isinstance(block.ls1, torch.nn.Identity), "norm_eps": block.norm1.eps,
        "pre_norm": not isinstance(model.norm_pre, torch.nn.Identity),
        "gelu": {"GELU": "erf", "GELUTanh": "tanh", "QuickGELU": "erf"}.get(type(block.mlp.act).__name__, "other"),
        "activation": {"GELU": "gelu", "GELUTanh": "gelu", "QuickGELU": "quick_gelu"}.get(
            type(block.mlp.act).__name__, "other"),
    }


def preprocess_of(config):
    channels, height, width = config["input_size"]
    return {"height": height, "width": width, "resize": math.floor(height / config["crop_pct"]),
            "interpolation": config["interpolation"], "mean": list(config["mean"]), "std": list(config["std"]),
            "crop_mode": config.get("crop_mode", "center"), "channels": channels}


def row_of(name):
    with torch.device("meta"):
        model = timm.create_model(name)
    if not isinstance(model, VisionTransformer) or not hasattr(model.blocks[0], "attn") or model.pos_embed is None:
        return None
    try:
        return {"name": name, "config": config_of(model), "preprocess": preprocess_of(model.default_cfg)}
    except AttributeError:  # blocks or embeddings of another kind
        return None


if __name__ == "__main__":
    rows = [row for name in timm.list_models(NAMES) if (row := row_of(name))]
    OUT.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    print(len(rows), "names")
