"""The list of golden cases: name -> (library, config, options). Data only.

Options: batch, base (image height and width whose position table the weights hold; the rule named by
config.pos_resize brings it to the config's size), keep ("activations" stores them, "positions" the resized
table).
"""
from golden_vit import make_config

TINY = dict(image_height=32, image_width=32, patch=8, width=48, depth=2, heads=3, mlp=192, classes=7)
HF = dict(norm_eps=1e-12, pos_resize="hf")
TV = dict(pos_resize="torchvision")
JAX = dict(gelu="tanh", pos_resize="jax")
TI = dict(width=192, heads=3, mlp=768)


def tiny(**fields):
    return make_config(**{**TINY, **fields})


def zoo(arch, **fields):
    return make_config(arch=arch, **fields)


ACTIVATIONS = dict(keep="activations")
EVERYTHING = dict(image_height=40, image_width=72, channels=4, width=56, heads=4, mlp=100, depth=3, classes=11,
                  pool="mean", norm_place="after_pool", registers=3, pos_for_prefix=False, qkv_bias=False,
                  qk_norm=True, layer_scale=True, gelu="tanh")

CASES = {
    # name: (library, config, options)
    "tiny_cls": ("timm", tiny(), ACTIVATIONS),
    "tiny_cls_batch2": ("timm", tiny(depth=3, heads=4, classes=13), dict(batch=2)),
    "tiny_mean_norm_after": ("timm", tiny(pool="mean", norm_place="after_pool"), dict(batch=2)),
    "tiny_mean_norm_before": ("timm", tiny(pool="mean", class_token=False), ACTIVATIONS),
    "tiny_mean_with_cls": ("timm", tiny(pool="mean"), {}),
    "tiny_map": ("timm", tiny(pool="map", class_token=False), ACTIVATIONS),
    "tiny_map_with_cls": ("timm", tiny(pool="map", heads=2, mlp=144), dict(batch=2)),
    "tiny_map_norm_after": ("timm", tiny(pool="map", class_token=False, norm_place="after_pool"), {}),
    "tiny_no_embed_class": ("timm", tiny(pos_for_prefix=False), {}),
    "tiny_registers": ("timm", tiny(registers=4, pos_for_prefix=False, layer_scale=True), ACTIVATIONS),
    "tiny_registers_mean": ("timm", tiny(registers=1, pos_for_prefix=False, pool="mean",
                                         norm_place="after_pool"), dict(batch=2)),
    "tiny_registers_positions": ("timm", tiny(registers=3), ACTIVATIONS),
    "tiny_registers_map_all": ("timm", tiny(registers=2, class_token=False, pool="map", pool_prefix=True), {}),
    "tiny_mean_all_tokens": ("timm", tiny(registers=1, pool="mean", pool_prefix=True), {}),
    "tiny_layer_scale": ("timm", tiny(layer_scale=True), {}),
    "tiny_qk_norm": ("timm", tiny(qk_norm=True), {}),
    "tiny_no_qkv_bias": ("timm", tiny(qkv_bias=False), {}),
    "tiny_distilled": ("timm", tiny(distilled=True), dict(batch=2, **ACTIVATIONS)),
    "tiny_channels1": ("timm", tiny(channels=1), {}),
    "tiny_channels4": ("timm", tiny(channels=4), {}),
    "tiny_channels8": ("timm", tiny(channels=8), dict(batch=2)),
    "tiny_patch7_63x35": ("timm", tiny(image_height=63, image_width=35, patch=7, classes=3), {}),
    "tiny_48x80": ("timm", tiny(image_height=48, image_width=80, width=64, heads=2, mlp=256, depth=3), {}),
    "tiny_patch16_64": ("timm", tiny(image_height=64, image_width=64, patch=16, width=64, heads=4, mlp=160), {}),
    "tiny_one_patch": ("timm", tiny(image_height=8, image_width=8, classes=2), dict(batch=3)),
    "tiny_gelu_tanh": ("timm", tiny(gelu="tanh"), {}),
    "tiny_no_head": ("timm", tiny(classes=0), {}),
    "tiny_rms": ("timm", tiny(norm="rms", pool="mean", class_token=False, layer_scale=True), ACTIVATIONS),
    "tiny_rms_map": ("timm", tiny(norm="rms", pool="map", class_token=False), {}),
    "tiny_max": ("timm", tiny(pool="max", norm_place="after_pool"), dict(batch=2)),
    "tiny_mean_max": ("timm", tiny(pool="mean_max", registers=1, pool_prefix=True), dict(batch=2)),
    "tiny_no_last_norm": ("timm", tiny(norm_place="none"), {}),
    "tiny_no_positions": ("timm", tiny(pos="none", pos_for_prefix=False), ACTIVATIONS),
    "tiny_pre_norm": ("timm", tiny(pre_norm=True), ACTIVATIONS),
    "tiny_uncovered_45x30": ("timm", tiny(image_height=45, image_width=30), dict(batch=2)),
    "tiny_patch8x4": ("timm", tiny(patch_width=4), dict(batch=2)),
    **{f"tiny_{act}": ("timm", tiny(activation=act), {}) for act in
       ("relu", "relu6", "leaky_relu", "elu", "silu", "mish", "quick_gelu", "hard_swish", "tanh", "sigmoid")},
    "tiny_everything": ("timm", tiny(**EVERYTHING), dict(batch=2)),
    "hf_tiny": ("hf", tiny(**HF), ACTIVATIONS),
    "hf_tiny_40x24_channels1": ("hf", tiny(image_height=40, image_width=24, channels=1, **HF), dict(batch=2)),
    "hf_tiny_no_qkv_bias_tanh": ("hf", tiny(qkv_bias=False, gelu="tanh", classes=5, **HF), {}),
    "hf_tiny_eps": ("hf", tiny(**{**HF, "norm_eps": 1e-2}), {}),
    "hf_tiny_base": ("hf_base", tiny(classes=0, pre_logits=True, **HF), {}),
    "hf_tiny_distilled": ("hf_deit", tiny(distilled=True, **HF), dict(batch=2, **ACTIVATIONS)),
    "tv_tiny": ("torchvision", tiny(**TV), ACTIVATIONS),
    "tv_tiny_pre_logits": ("torchvision", tiny(pre_logits=True, classes=9, **TV), dict(batch=2)),
    "tv_tiny_representation": ("torchvision", tiny(pre_logits=True, representation=20, **TV), dict(batch=2)),
    "google_tiny": ("google", tiny(**JAX), ACTIVATIONS),
    "google_tiny_mean": ("google", tiny(pool="mean", class_token=False, **JAX), dict(batch=2)),
    "google_tiny_map": ("google", tiny(pool="map", class_token=False, **JAX), {}),
    "google_tiny_pre_logits": ("google", tiny(pre_logits=True, **JAX), {}),
    "google_tiny_sincos2d_24x56": ("google", tiny(image_height=24, image_width=56, pos="sincos2d", pool="mean",
                                                  class_token=False, **JAX), {}),
    # positions resized
    "tiny_resize_timm_up_48x80": ("timm", tiny(image_height=48, image_width=80),
                                  dict(base=(32, 32), keep="positions")),
    "tiny_resize_timm_down_24x40": ("timm", tiny(image_height=24, image_width=40),
                                    dict(base=(64, 64), keep="positions")),
    "tiny_resize_timm_registers": ("timm", tiny(image_height=40, image_width=24, registers=2, pos_for_prefix=False),
                                   dict(base=(32, 32), keep="positions")),
    "tiny_resize_hf_up_48x80": ("hf", tiny(image_height=48, image_width=80, **HF),
                                dict(base=(32, 32), keep="positions")),
    "tiny_resize_hf_down_24x40": ("hf", tiny(image_height=24, image_width=40, **HF),
                                  dict(base=(64, 64), keep="positions")),
    "tiny_resize_hf_distilled": ("hf_deit", tiny(image_height=40, image_width=24, distilled=True, **HF),
                                 dict(base=(32, 32), keep="positions")),
    "tiny_resize_tv_up_56": ("torchvision", tiny(image_height=56, image_width=56, **TV),
                             dict(base=(32, 32), keep="positions")),
    "tiny_resize_tv_down_24": ("torchvision", tiny(image_height=24, image_width=24, **TV),
                               dict(base=(64, 64), keep="positions")),
    "tiny_resize_jax_up_48x80": ("google", tiny(image_height=48, image_width=80, **JAX),
                                 dict(base=(32, 32), keep="positions")),
    "tiny_resize_jax_down_24x40": ("google", tiny(image_height=24, image_width=40, **JAX),
                                   dict(base=(64, 64), keep="positions")),
    # whole architectures
    "vit_tiny_patch16_224": ("timm", zoo("vit_tiny_patch16_224", **TI), {}),
    "deit_tiny_distilled_patch16_224": ("timm", zoo("deit_tiny_distilled_patch16_224", distilled=True, **TI), {}),
    "vit_small_patch32_224": ("timm", zoo("vit_small_patch32_224", patch=32, width=384, heads=6, mlp=1536), {}),
    "vit_base_patch16_224": ("timm", zoo("vit_base_patch16_224"), {}),
    "hf_base_patch16_224": ("hf", make_config(**HF), {}),
    "tv_vit_b_32": ("torchvision", make_config(patch=32, **TV), {}),
    "vit_large_patch32_224": ("timm", zoo("vit_large_patch32_224", patch=32, width=1024, depth=24, heads=16,
                                          mlp=4096), {}),
    "google_base_patch32_224": ("google", make_config(patch=32, **JAX), {}),
    "vit_tiny_160x256_timm": ("timm", zoo("vit_tiny_patch16_224", image_height=160, image_width=256, **TI),
                              dict(base=(224, 224))),
    "vit_tiny_160x256_hf": ("hf", make_config(image_height=160, image_width=256, **TI, **HF),
                            dict(base=(224, 224))),
    "vit_tiny_288_torchvision": ("torchvision", make_config(image_height=288, image_width=288, **TI, **TV),
                                 dict(base=(224, 224))),
    "vit_tiny_160x256_jax": ("google", make_config(image_height=160, image_width=256, **TI, **JAX),
                             dict(base=(224, 224))),
}
