"""A fourth round of models saved by transformers: every image processor whose result a ViT can take, in the forms that
are its own, and where else a folder may say how images are prepared."""
import json
import random

import transformers as T

from common import Case
from hf_kinds import own_answer, refused, saved, tiny, vit

SQUARE, WIDE, EDGE = {"height": 32, "width": 32}, {"height": 24, "width": 40}, {"shortest_edge": 36}

# What gives images of 32 x 32; a second set of settings where a processor has further ways.
KINDS = {
    "BridgeTower": (dict(size={"shortest_edge": 32}, crop_size={"shortest_edge": 32}),
                    dict(size={"shortest_edge": 45}, crop_size={"shortest_edge": 32}, size_divisor=4),
                    dict(size={"shortest_edge": 36}, do_center_crop=False)),
    "Chameleon": (dict(size=EDGE, crop_size=SQUARE), dict(size=SQUARE, do_center_crop=False)),
    "ConditionalDetr": (dict(size=SQUARE),),
    "DPT": (dict(size=SQUARE, ensure_multiple_of=8), dict(size=SQUARE, do_pad=True, size_divisor=16)),
    "DeepseekOcr2": (dict(size=SQUARE), dict(size={"height": 99, "width": 99}, crop_to_patches=False, tile_size=32)),
    "DeepseekVL": (dict(size=SQUARE), dict(size=SQUARE, min_size=30, image_mean=[0.1, 0.5, 0.9])),
    "DeformableDetr": (dict(size={"height": 20, "width": 28}, pad_size=SQUARE),),
    "Detr": (dict(size=SQUARE), dict(size=SQUARE, do_pad=False, pad_size={"height": 64, "width": 64})),
    "Donut": (dict(size=SQUARE), dict(size=SQUARE, resample=3)),
    "EfficientNet": (dict(size=SQUARE, rescale_offset=True),
                     dict(size=SQUARE, rescale_offset=True, do_normalize=False)),
    "Eomt": (dict(size=SQUARE),),
    "Gemma3": (dict(size=SQUARE),),
    "GotOcr2": (dict(size=SQUARE),),
    "GroundingDino": (dict(size=SQUARE),),
    "ImageGPT": (dict(size=SQUARE, do_color_quantize=False),),
    "Janus": (dict(size=SQUARE), dict(size=SQUARE, resample=2)),
    "LayoutLMv2": (dict(size=SQUARE, apply_ocr=False),),
    "Mask2Former": (dict(size={"height": 30, "width": 31}),),
    "MaskFormer": (dict(size={"height": 21, "width": 29}, size_divisor=0, pad_size=SQUARE),),
    "MobileViT": (dict(size=EDGE, crop_size=SQUARE), dict(size={"shortest_edge": 24}, crop_size=SQUARE),
                  dict(size=EDGE, crop_size=SQUARE, do_flip_channel_order=False)),
    "OneFormer": (dict(size=SQUARE),),
    "Ovis2": (dict(size=SQUARE), dict(size={"height": 40, "width": 36}, do_center_crop=True, crop_size=SQUARE)),
    "PPChart2Table": (dict(size=SQUARE),),
    "Perceiver": (dict(size=SQUARE, crop_size={"height": 40, "width": 40}), dict(size=SQUARE, crop_size=SQUARE),
                  dict(size=SQUARE, do_center_crop=False)),
    "PromptDepthAnything": (dict(size=SQUARE),),
    "RTDetr": (dict(size=SQUARE), dict(size=SQUARE, do_normalize=True)),
    "Sam": (dict(size={"longest_edge": 32}, pad_size=SQUARE), dict(size={"longest_edge": 27}, pad_size=SQUARE)),
    "SegGpt": (dict(size=SQUARE),),
    "Segformer": (dict(size=SQUARE, do_center_crop=True, crop_size=WIDE),),
    "SuperPoint": (dict(size=SQUARE),),
    "TextNet": (dict(size=EDGE, do_center_crop=True, crop_size=SQUARE), dict(size={"shortest_edge": 20}),
                dict(size={"shortest_edge": 37}, do_center_crop=True, crop_size=SQUARE, size_divisor=5)),
    "Vilt": (dict(size={"shortest_edge": 32}), dict(size={"shortest_edge": 40}, do_pad=False)),
    "Yolos": (dict(size=SQUARE), dict(size={"height": 30, "width": 20}, pad_size=SQUARE)),
}


def made(name, settings):
    return lambda: getattr(T, f"{name}ImageProcessor")(**settings)


def processors():
    for name, forms in KINDS.items():
        for number, settings in enumerate(forms):
            yield vit(f"4_of_{name}_{number}", processor=made(name, settings))
    for name, side, patch in (("Perceiver", 224, 32), ("MobileViT", 256, 32), ("BridgeTower", 288, 32),
                              ("Janus", 384, 64), ("Chameleon", 512, 64)):
        yield vit(f"4_default_of_{name}", tiny(image_size=side, patch_size=patch), processor=made(name, {}))
    yield saved("4_bgr_base", T.ViTModel, T.ViTConfig, tiny(), base=True,
                processor=made("MobileViT", dict(size=EDGE, crop_size=SQUARE)))
    yield saved("4_bgr_teacher", T.DeiTForImageClassificationWithTeacher, T.DeiTConfig, tiny(patch_size=[8, 4]),
                processor=made("LayoutLMv2", dict(size=SQUARE, apply_ocr=False)))
    yield vit("4_perceiver_wide", tiny(image_size=[24, 40]),
              processor=made("Perceiver", dict(size=WIDE, crop_size={"height": 30, "width": 44})))
    for form, size in (("tall", {"height": 40, "width": 24}), ("list", [24, 40])):
        yield vit(f"4_donut_{form}", tiny(image_size=[40, 24]), processor=made("Donut", dict(size=size)))
    for name, settings in (("ImageGPT", dict(clusters=[[0, 0, 0]])), ("GLPN", {}), ("VideoMAE", {}), ("Pixtral", {}),
                           ("ZoeDepth", {}), ("Detr", {}), ("Vilt", {})):
        yield refused(f"4_not_{name}", T.ViTForImageClassification, lambda: T.ViTConfig(**tiny()),
                      f"{name}ImageProcessor", processor=made(name, settings))


def sizes():
    """Forms of sizes that most processors share."""
    for name in ("CLIP", "DeiT", "Flava", "MobileNetV2", "EfficientNet"):
        for form, size in (("edges", {"shortest_edge": 36, "longest_edge": 40}),
                           ("fitting", {"shortest_edge": 36, "longest_edge": 99}),
                           ("within", {"max_height": 44, "max_width": 40})):
            yield vit(f"4_{form}_{name}", processor=made(name, dict(size=size, do_center_crop=True, crop_size=SQUARE)))
    for name in ("ViT", "Blip", "Pvt", "OwlViT"):
        yield vit(f"4_padded_{name}",
                  processor=made(name, dict(size={"height": 25, "width": 30}, do_pad=True, pad_size=SQUARE)))
    yield vit("4_padded_crop", processor=made("CLIP", dict(size=EDGE, crop_size={"height": 24, "width": 24},
                                                           do_pad=True, pad_size=32)))
    yield vit("4_do_pad", change_images=lambda c: c.update(do_pad=True))
    yield vit("4_edge_of_vit", change_images=lambda c: c.update(size=36, default_to_square=False, do_center_crop=True,
                                                                crop_size=32))
    yield vit("4_sides_of_clip", processor=made("CLIP", dict(size=EDGE, crop_size=SQUARE)),
              change_images=lambda c: c.update(size=36, default_to_square=True))


def places():
    """Where else a folder says how images are prepared."""
    def nested(folder):  # transformers prefers what lies within the config of a processor of several kinds of input
        vit("4_processor_config").make(folder)
        images = json.loads((folder / "preprocessor_config.json").read_text())
        images.update(size={"height": 40, "width": 44}, do_center_crop=True, crop_size=SQUARE)
        (folder / "processor_config.json").write_text(json.dumps({"image_processor": images}))
        return own_answer(folder)
    yield Case("hf_4_processor_config", nested)
    yield vit("4_type_in_config", change=lambda c: c.update(image_processor_type="CLIPImageProcessor"),
              change_images=lambda c: (c.pop("image_processor_type"),
                                       c.update(size=36, do_center_crop=True, crop_size=32)))


def blockless():
    none = tiny(num_hidden_layers=0)
    yield vit("4_no_blocks", none)
    yield saved("4_no_blocks_base", T.ViTModel, T.ViTConfig, none, base=True)
    yield saved("4_no_blocks_ijepa", T.IJepaForImageClassification, T.IJepaConfig, none)
    yield saved("4_no_blocks_teacher", T.DeiTForImageClassificationWithTeacher, T.DeiTConfig, none)


def draw(number):
    """A processor with settings that are not its own, a part of which may be null."""
    r = random.Random(400 + number)
    name = r.choice(sorted(KINDS))
    settings = dict(r.choice(KINDS[name]), resample=r.choice((1, 2, 3, 4)))
    may = dict(image_mean=[0.4, 0.5, 0.6], image_std=[0.2, 0.3, 0.4], do_convert_rgb=True)
    settings.update({key: value for key, value in may.items() if r.random() < 0.3 and name != "DeepseekOcr2"})
    kind, config_kind = r.choice(((T.ViTForImageClassification, T.ViTConfig),
                                  (T.ViTMSNForImageClassification, T.ViTMSNConfig),
                                  (T.IJepaForImageClassification, T.IJepaConfig),
                                  (T.DeiTForImageClassification, T.DeiTConfig)))
    return saved(f"4_draw_{number:02}", kind, config_kind, tiny(patch_size=r.choice((4, 8, [8, 4]))),
                 processor=made(name, settings))


def cases():
    for group in (processors, sizes, places, blockless):
        yield from group()
    for number in range(40):
        yield draw(number)
