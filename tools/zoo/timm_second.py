"""A second round of models saved by timm, written without regard to the first: single arguments it lacks, and draws
of all arguments at once."""
import random

import timm
import torch

from common import Case, Refusal, seed_for
from timm_kinds import answer_of, hub, make, refused, tiny

SMALL = dict(embed_dim=48, depth=2, num_heads=3, num_classes=5, img_size=32)


def layers():
    """Activations, norms and attention by every name that timm's factories take."""
    for act in ("selu", "celu", "hard_sigmoid", "hardsigmoid", "hard_mish", "identity", "GELU", "SiLU",
                "Gelu_Tanh"):
        yield hub(f"2_act_{act}", tiny(act_layer=act))
    yield hub("2_act_selu_map", tiny(act_layer="selu", class_token=False, global_pool="map"))
    for norm in ("LayerNorm", "layer_norm", "RMSNorm", "rms_norm", "simplenorm", "simple_norm_fp32"):
        yield hub(f"2_norm_{norm}", tiny(norm_layer=norm))
    yield hub("2_simplenorm_gap", tiny(norm_layer="simplenorm", class_token=False, global_pool="avg", pre_norm=True))
    yield hub("2_qk_norm_rms", tiny(qk_norm=True, norm_layer="rmsnorm"))
    yield hub("2_qk_norm_simple", tiny(qk_norm=True, norm_layer="simplenorm"))
    yield hub("2_qk_norm_registers", tiny(qk_norm=True, reg_tokens=3, init_values=0.3, qkv_bias=False))
    yield hub("2_scale_attn_norm", tiny(scale_attn_norm=True))
    yield hub("2_scale_mlp_norm", tiny(scale_mlp_norm=True))
    yield hub("2_scale_norms", tiny(scale_attn_norm=True, scale_mlp_norm=True, global_pool="avg"))
    yield hub("2_scale_norms_rms", tiny(scale_attn_norm=True, scale_mlp_norm=True, norm_layer="rmsnorm"))
    yield hub("2_attn_layer", tiny(attn_layer="attn"))
    yield hub("2_attn_layer_empty", tiny(attn_layer=""))
    yield hub("2_embed_norm_empty", tiny(embed_norm_layer=""))


def pooling():
    for pool in ("avg", "map", "max", "avgmax"):
        yield hub(f"2_{pool}_bare", tiny(global_pool=pool, num_classes=0))
        yield hub(f"2_{pool}_one_class", tiny(global_pool=pool, num_classes=1, class_token=False))
    yield hub("2_token_fc_norm_registers", tiny(fc_norm=True, reg_tokens=2, no_embed_class=True))
    yield hub("2_map_no_embed", tiny(global_pool="map", no_embed_class=True, reg_tokens=3, pool_include_prefix=True))
    yield hub("2_map_no_final_norm", tiny(global_pool="map", final_norm=False, fc_norm=True, act_layer="relu"))
    yield hub("2_bare_fc_norm", tiny(num_classes=0, fc_norm=True))


def shapes():
    yield hub("2_width_50", tiny(embed_dim=50, num_heads=5))
    yield hub("2_head_of_three", tiny(embed_dim=33, num_heads=11))
    yield hub("2_head_of_one", tiny(embed_dim=7, num_heads=7))
    yield hub("2_width_seven", tiny(embed_dim=7, num_heads=1, depth=3))
    for ratio in (0.1, 0.5, 1 / 3, 5.33):
        yield hub(f"2_mlp_{ratio:.2f}", tiny(mlp_ratio=ratio))
    yield hub("2_odd_patches", tiny(patch_size=[5, 7], img_size=[25, 35]))
    yield hub("2_patch_of_one", tiny(patch_size=1, img_size=6))
    yield hub("2_one_patch", tiny(patch_size=32))
    yield hub("2_prime_patch", tiny(patch_size=11, img_size=33))
    yield hub("2_strip", tiny(patch_size=8, img_size=[8, 96]))
    yield hub("2_grey_gap", tiny(in_chans=1, global_pool="avg", class_token=False), cfg=dict(mean=(0.5,), std=(0.5,)))
    yield hub("2_deep", tiny(depth=13, embed_dim=12, num_heads=2))
    yield hub("2_dynamic_registers", tiny(dynamic_img_size=True, reg_tokens=2), cfg=dict(input_size=(3, 40, 40)))
    yield hub("2_dynamic_no_embed", tiny(dynamic_img_size=True, no_embed_class=True), cfg=dict(input_size=(3, 48, 24)))
    yield hub("2_dynamic_no_positions", tiny(dynamic_img_size=True, pos_embed="none"), cfg=dict(input_size=(3, 48, 24)))


def families():
    """Other names under which timm has its VisionTransformer and its distilled one."""
    for name in ("vit_base_patch16_clip_224", "vit_base_patch32_clip_quickgelu_224", "vit_base_patch16_plus_clip_240",
                 "vit_xsmall_patch16_clip_224", "vit_medium_patch32_clip_224", "vit_betwixt_patch32_clip_224",
                 "vit_large_patch14_clip_336", "vit_large_patch14_clip_quickgelu_224", "vit_huge_patch14_clip_378",
                 "vit_giant_patch14_clip_224", "vit_gigantic_patch14_clip_quickgelu_224"):
        patch = 14 if "patch14" in name else 32 if "patch32" in name else 16
        default = {k: v for k, v in timm.get_pretrained_cfg(name).to_dict().items()
                   if k in ("crop_pct", "crop_mode", "interpolation", "mean", "std") and v is not None}
        yield hub(f"2_{name}", {**SMALL, "img_size": 2 * patch}, arch=name, cfg=default)
    yield hub("2_clip_bare", {**SMALL, "num_classes": 0}, arch="vit_base_patch16_clip_224")
    yield hub("2_clip_gap", {**SMALL, "global_pool": "avg", "class_token": False}, arch="vit_base_patch16_clip_224")
    yield hub("2_clip_silu", {**SMALL, "act_layer": "silu"}, arch="vit_base_patch16_clip_quickgelu_224")
    for name, new in (("vit_base_patch16_224_in21k", "vit_base_patch16_224"),
                      ("vit_small_patch16_224_dino", "vit_small_patch16_224"),
                      ("deit3_small_patch16_224_in21ft1k", "deit3_small_patch16_224"),
                      ("vit_base_patch16_224_miil_in21k", "vit_base_patch16_224_miil")):
        yield hub(f"2_old_{name}", {**SMALL, "img_size": 64}, arch=new,
                  change=lambda c, name=name: c.update(architecture=name))
    yield hub("2_tagged", tiny(), change=lambda c: c.update(architecture="vit_base_patch16_224.augreg_in21k"))
    deit = "deit_tiny_distilled_patch16_224"
    yield hub("2_distilled_scale", tiny(init_values=0.2, qk_norm=True), arch=deit)
    yield hub("2_distilled_pre_norm", tiny(pre_norm=True), arch=deit)
    yield hub("2_distilled_dynamic", tiny(dynamic_img_size=True), arch=deit, cfg=dict(input_size=(3, 48, 48)))
    yield hub("2_distilled_wide", tiny(img_size=[24, 40], patch_size=[8, 4]), arch=deit)
    yield hub("2_distilled_one_class", tiny(num_classes=1), arch=deit)


def images():
    yield hub("2_one_mean", cfg=dict(mean=(0.4,), std=(0.3,)))
    yield hub("2_odd_crop", tiny(img_size=33, patch_size=11), cfg=dict(crop_pct=0.77))
    yield hub("2_test_size", cfg=dict(test_input_size=(3, 48, 48), test_crop_pct=1.0))
    yield hub("2_no_crop_mode", cfg=dict(crop_mode=None, crop_pct=0.6, interpolation="bilinear"))
    yield hub("2_squash_wide_bilinear", tiny(img_size=[40, 24]), cfg=dict(crop_mode="squash", crop_pct=0.7,
                                                                          interpolation="bilinear"))


def draw(number):
    """One draw of every argument that a config file can hold."""
    r = random.Random(number)
    heads = r.choice((1, 2, 3, 4, 6))
    patch = r.choice((4, 8, 16, [8, 4], [4, 6], 5))
    sides = patch if isinstance(patch, list) else [patch, patch]
    pool = r.choice(("token", "token", "avg", "map", "max", "avgmax"))
    args = dict(embed_dim=heads * r.choice((8, 12, 16)), num_heads=heads, depth=r.choice((1, 2, 3)), patch_size=patch,
                img_size=[sides[0] * r.choice((2, 3, 4)), sides[1] * r.choice((2, 3, 5))],
                mlp_ratio=r.choice((1, 2, 2.67, 4)), num_classes=r.choice((0, 1, 3, 10, 100)), global_pool=pool,
                class_token=True if pool == "token" else r.random() < 0.5)
    may = dict(qkv_bias=False, proj_bias=False, qk_norm=True, init_values=0.2, no_embed_class=True, pre_norm=True,
               final_norm=False, fc_norm=r.random() < 0.5, pool_include_prefix=True, dynamic_img_size=True,
               reg_tokens=r.choice((1, 2, 5)), pos_embed=r.choice(("none", "learn")), scale_attn_norm=True,
               scale_mlp_norm=True, drop_rate=0.3, weight_init="jax", in_chans=1,
               act_layer=r.choice(("relu", "gelu_tanh", "silu", "mish", "selu", "hard_sigmoid", "quick_gelu")),
               norm_layer=r.choice(("rmsnorm", "layernorm", "simplenorm")))
    args.update({key: value for key, value in may.items() if r.random() < 0.25})
    cfg = dict(crop_pct=r.choice((0.8, 0.9, 1.0)), interpolation=r.choice(("bicubic", "bilinear")),
               crop_mode=r.choice(("center", "squash")))
    if args.get("in_chans") == 1:
        cfg.update(mean=(0.5,), std=(0.25,))
    dtype = r.choice((None, None, None, torch.bfloat16, torch.float16))
    return hub(f"2_draw_{number:02}", args, cfg=cfg, dtype=dtype, safe=r.random() < 0.7)


def strange():
    yield refused("2_diff_attention", tiny(attn_layer="diff", num_heads=2), "attn_layer")
    yield refused("2_no_pooling", tiny(global_pool=""), "global_pool")
    for arch in ("vit_dwee_patch16_reg1_gap_256", "vit_pwee_patch16_reg1_gap_256", "vit_dpwee_patch16_reg1_gap_256"):
        yield refused(f"2_{arch}", {**SMALL, "num_heads": 2}, arch.split("_")[1], arch=arch)

    def bare(name, arch, *names):
        def build(folder):
            seed_for(name)
            torch.save(make(name, arch, SMALL).state_dict(), folder / "weights.pth")
            return Refusal("weights.pth", names)
        return Case(f"timm_2_bare_{name}", build)
    yield bare("clip", "vit_base_patch16_clip_quickgelu_224", "CLIP")
    yield bare("parallel_scaling", "vit_pwee_patch16_reg1_gap_256", "unexpected")

    def clip_file(name, arch):  # a CLIP tower's file is read once somebody says which one
        def build(folder):
            model = make(name, arch, dict(num_classes=3), cfg=dict(input_size=(3, 224, 224)))
            torch.save(model.state_dict(), folder / "weights.pth")
            return answer_of(model, "weights.pth", args=("--arch", arch))
        return Case(f"timm_2_{name}", build)
    yield clip_file("clip_file", "vit_xsmall_patch16_clip_224")
    yield hub("2_embed_norm", tiny(embed_norm_layer="layernorm"))
    yield hub("2_prr_no_class", tiny(global_pool="prr", class_token=False))
    yield hub("2_padded_wide", tiny(img_size=[27, 44], dynamic_img_pad=True, dynamic_img_size=True))
    deit = "deit_tiny_distilled_patch16_224"
    yield hub("2_distilled_registers", tiny(reg_tokens=2), arch=deit)
    yield hub("2_distilled_fc_norm", tiny(fc_norm=True), arch=deit)
    yield hub("2_distilled_no_positions", tiny(pos_embed="none"), arch=deit)
    yield hub("2_border", cfg=dict(crop_mode="border"))


def cases():
    for group in (layers, pooling, shapes, families, images, strange):
        yield from group()
    for number in range(40):
        yield draw(number)
