"""A second round of models saved by transformers, written without regard to the first: activations, base models,
image processors, and draws of all keys at once."""
import random

import torch
import transformers

from hf_kinds import deit, labels, saved, tiny, vit

T = transformers


def activations():
    for act in ("gelu_10", "laplace", "linear", "relu2", "sqrtsoftplus"):
        yield vit(f"2_act_{act}", tiny(hidden_act=act))
    yield deit("2_deit_act_laplace", tiny(hidden_act="laplace"))
    for act in ("relu2", "linear", "laplace", "sigmoid", "quick_gelu"):
        yield saved(f"2_pooler_{act}", T.ViTModel, T.ViTConfig, tiny(pooler_act=act), base=True)


def bases():
    yield saved("2_no_pooler", T.ViTModel, T.ViTConfig, tiny(), base=True, pooler=False,
                make=lambda c: T.ViTModel(c, add_pooling_layer=False), change=None)
    yield saved("2_base_wide", T.ViTModel, T.ViTConfig, tiny(image_size=[24, 40], qkv_bias=False), base=True)
    yield saved("2_deit_base", T.DeiTModel, T.DeiTConfig, tiny(image_size=40), base=True)
    yield saved("2_msn", T.ViTMSNForImageClassification, T.ViTMSNConfig, labels(4))
    yield saved("2_msn_silu", T.ViTMSNForImageClassification, T.ViTMSNConfig, tiny(hidden_act="silu", qkv_bias=False))
    yield saved("2_ijepa", T.IJepaForImageClassification, T.IJepaConfig, labels(4))
    yield saved("2_ijepa_wide", T.IJepaForImageClassification, T.IJepaConfig, tiny(image_size=[24, 40], patch_size=4))
    yield vit("2_head_of_one", tiny(hidden_size=6, num_attention_heads=6))
    yield vit("2_head_of_five", tiny(hidden_size=35, num_attention_heads=7))
    yield vit("2_narrow_mlp", tiny(intermediate_size=1))
    yield vit("2_hundred_labels", labels(100))
    yield vit("2_two_labels", labels(2))
    yield vit("2_labels_out_of_order", labels(3),
              change=lambda c: c.update(id2label={"2": "c", "0": "a", "1": "b"}))
    yield vit("2_tuple_patch", tiny(patch_size=(4, 8), image_size=(24, 40)))
    yield vit("2_bf16_sharded", max_shard_size="30KB", dtype=torch.bfloat16)
    yield vit("2_old_names", change=lambda c: c.update(torch_dtype="float32", transformers_version="4.11.0"))
    yield vit("2_unknown_keys", change=lambda c: c.update(use_cache=True, finetuning_task="x", my_own_key=3))
    yield deit("2_deit_teacher_wide", tiny(image_size=[24, 40]), model_class=T.DeiTForImageClassificationWithTeacher)
    yield deit("2_deit_teacher_one", labels(1), model_class=T.DeiTForImageClassificationWithTeacher)


def images():
    """Image processors of other models in front of a ViT."""
    def processor(kind, **settings):
        return lambda: kind(**settings)
    square, edge = {"height": 32, "width": 32}, {"shortest_edge": 32}
    kinds = {"beit": (T.BeitImageProcessor, dict(size=square)),
             "beit_crop": (T.BeitImageProcessor, dict(size={"height": 40, "width": 40}, do_center_crop=True,
                                                      crop_size=square)),
             "convnext": (T.ConvNextImageProcessor, dict(size=edge)),
             "convnext_pct": (T.ConvNextImageProcessor, dict(size=edge, crop_pct=0.95)),
             "levit": (T.LevitImageProcessor, dict(size=edge, crop_size=square)),
             "efficientnet": (T.EfficientNetImageProcessor, dict(size=square)),
             "dpt": (T.DPTImageProcessor, dict(size=square)),
             "poolformer": (T.PoolFormerImageProcessor, dict(size=edge, crop_size=square)),
             "pvt": (T.PvtImageProcessor, dict(size=square)),
             "mobilenet": (T.MobileNetV1ImageProcessor, dict(size={"shortest_edge": 40}, crop_size=square)),
             "segformer": (T.SegformerImageProcessor, dict(size=square)),
             "blip": (T.BlipImageProcessor, dict(size=square)),
             "chinese_clip": (T.ChineseCLIPImageProcessor, dict(size={"shortest_edge": 36}, crop_size=square)),
             "clip_square": (T.CLIPImageProcessor, dict(size=square, do_center_crop=False)),
             "clip_number": (T.CLIPImageProcessor, dict(size=36, crop_size=32)),
             "deit_default": (T.DeiTImageProcessor, dict()),
             "vit_edge": (T.ViTImageProcessor, dict(size={"height": 32, "width": 32}, do_convert_rgb=True))}
    for name, (kind, settings) in kinds.items():
        config = tiny(image_size=224, patch_size=32) if name == "deit_default" else tiny()
        yield vit(f"2_processor_{name}", config, processor=processor(kind, **settings))
    yield vit("2_no_rescale", change_images=lambda c: c.update(do_rescale=False))
    yield vit("2_no_resize", tiny(image_size=32), change_images=lambda c: c.update(size={"height": 32, "width": 32}))
    yield vit("2_one_colour", change_images=lambda c: c.update(image_mean=0.4, image_std=0.3))
    yield vit("2_no_type", change_images=lambda c: [c.pop(k, None) for k in ("image_processor_type",)])
    yield vit("2_null_keys", change_images=lambda c: c.update(do_convert_rgb=None, crop_size=None))


def draw(number):
    r = random.Random(100 + number)
    heads = r.choice((1, 2, 3, 4, 6))
    patch = r.choice((4, 8, 16, [8, 4], 5))
    sides = patch if isinstance(patch, list) else [patch, patch]
    image = [sides[0] * r.choice((2, 3, 4)) + r.choice((0, 0, 1)), sides[1] * r.choice((2, 3, 5)) + r.choice((0, 0, 2))]
    config = dict(hidden_size=heads * r.choice((8, 12, 16)), num_attention_heads=heads,
                  num_hidden_layers=r.choice((1, 2, 3)), intermediate_size=r.choice((8, 33, 100)), patch_size=patch,
                  image_size=image, layer_norm_eps=r.choice((1e-12, 1e-6, 1e-3)), qkv_bias=r.random() < 0.7,
                  hidden_act=r.choice(("gelu", "gelu_new", "relu", "silu", "quick_gelu", "relu2", "tanh", "linear")))
    count = r.choice((1, 2, 3, 10))
    config.update(id2label={i: f"thing {i}" for i in range(count)}, label2id={f"thing {i}": i for i in range(count)})
    kind = r.choice(("vit", "deit", "teacher", "msn", "base"))
    classes = {"vit": (T.ViTForImageClassification, T.ViTConfig), "deit": (T.DeiTForImageClassification, T.DeiTConfig),
               "teacher": (T.DeiTForImageClassificationWithTeacher, T.DeiTConfig),
               "msn": (T.ViTMSNForImageClassification, T.ViTMSNConfig), "base": (T.ViTModel, T.ViTConfig)}
    dtype = r.choice((None, None, torch.bfloat16, torch.float16))
    resample = r.choice((0, 2, 3))
    return saved(f"2_draw_{number:02}", *classes[kind], config, dtype=dtype, base=kind == "base",
                 change_images=lambda c: c.update(resample=resample))


def cases():
    for group in (activations, bases, images):
        yield from group()
    for number in range(20):
        yield draw(number)
