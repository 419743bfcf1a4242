"""A fourth round of models saved by timm: pooling by refined patches and models without a block, beside what else its
arguments can be."""
import random

import torch

from timm_kinds import hub, tiny

DEIT = "deit_tiny_distilled_patch16_224"


def refined():
    """global_pool='prr': all tokens attend to one another once more, without weights."""
    yield hub("4_prr_registers", tiny(global_pool="prr", reg_tokens=3))
    yield hub("4_prr_registers_alone", tiny(global_pool="prr", reg_tokens=2, class_token=False, no_embed_class=True))
    yield hub("4_prr_bare", tiny(global_pool="prr", num_classes=0))
    yield hub("4_prr_one_head", tiny(global_pool="prr", num_heads=1, qk_norm=True))
    yield hub("4_prr_rms", tiny(global_pool="prr", norm_layer="rmsnorm", act_layer="silu", init_values=0.3))
    yield hub("4_prr_no_norm", tiny(global_pool="prr", final_norm=False, class_token=False))
    yield hub("4_prr_wide", tiny(global_pool="prr", img_size=[24, 40], patch_size=[8, 4]), cfg=dict(crop_mode="border"))
    yield hub("4_prr_prefix_told", tiny(global_pool="prr", pool_include_prefix=False, fc_norm=True, class_token=False))
    yield hub("4_prr_dynamic", tiny(global_pool="prr", dynamic_img_size=True), cfg=dict(input_size=(3, 40, 48)))
    yield hub("4_prr_resized", tiny(global_pool="prr"), vitrail_args=("--image", "24x48"), size=(24, 48))
    yield hub("4_prr_bf16", tiny(global_pool="prr"), dtype=torch.bfloat16)
    yield hub("4_prr_clip", dict(embed_dim=48, depth=2, num_heads=3, num_classes=5, img_size=32, global_pool="prr"),
              arch="vit_base_patch16_clip_224")


def blockless():
    yield hub("4_no_blocks_gap", tiny(depth=0, global_pool="avg", class_token=False))
    yield hub("4_no_blocks_map", tiny(depth=0, global_pool="map", mlp_ratio=2))
    yield hub("4_no_blocks_prr", tiny(depth=0, global_pool="prr", reg_tokens=2))
    yield hub("4_no_blocks_bare", tiny(depth=0, num_classes=0, pre_norm=True))
    yield hub("4_no_blocks_distilled", tiny(depth=0), arch=DEIT)
    yield hub("4_no_blocks_said_much", tiny(depth=0, qk_norm=True, qkv_bias=False, init_values=0.1, scale_mlp_norm=True,
                                            scale_attn_norm=True, act_layer="relu"))
    yield hub("4_no_blocks_bin", tiny(depth=0, final_norm=False), safe=False)


def draw(number):
    r = random.Random(4000 + number)
    heads = r.choice((1, 2, 4))
    args = dict(embed_dim=heads * r.choice((8, 12)), num_heads=heads, depth=r.choice((0, 1, 2)),
                patch_size=r.choice((4, 8, [8, 4])), img_size=r.choice((24, [16, 40])),
                num_classes=r.choice((0, 1, 7)), class_token=r.random() < 0.6)
    args["global_pool"] = r.choice(("prr", "prr", "map", "avgmax", "token" if args["class_token"] else "avg"))
    may = dict(qkv_bias=False, proj_bias=False, qk_norm=True, init_values=0.2, no_embed_class=True, pre_norm=True,
               final_norm=False, fc_norm=r.random() < 0.5, pool_include_prefix=True, reg_tokens=r.choice((1, 3)),
               pos_embed="none", scale_attn_norm=True, scale_mlp_norm=True, embed_norm_layer="layernorm", mlp_ratio=1.5,
               act_layer=r.choice(("relu", "gelu_tanh", "elu", "selu")), norm_layer=r.choice(("rmsnorm", "simplenorm")))
    args.update({key: value for key, value in may.items() if r.random() < 0.25})
    cfg = dict(crop_pct=r.choice((0.8, 1.0)), crop_mode=r.choice(("center", "squash", "border")))
    return hub(f"4_draw_{number:02}", args, cfg=cfg, dtype=r.choice((None, None, torch.float16)), safe=r.random() < 0.7)


def cases():
    for group in (refined, blockless):
        yield from group()
    for number in range(30):
        yield draw(number)
