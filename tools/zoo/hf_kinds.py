"""Models saved by transformers: plain ViTs and DeiTs in every form its classes and configs allow."""
import json

import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoImageProcessor, AutoModel, AutoModelForImageClassification

from common import Case, Refusal, classifier, edit_json, example_image, features, scramble, seed_for

TINY = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96, image_size=32,
            patch_size=8)


def tiny(**changes):
    return {**TINY, **changes}


def own_answer(folder, base=False, pooler=True):
    """What transformers answers when it loads the folder, resizing as Pillow does."""
    pixels = AutoImageProcessor.from_pretrained(folder, backend="pil")(example_image(), return_tensors="pt").pixel_values
    kind = AutoModel if base else AutoModelForImageClassification
    model = kind.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        out = model(pixels)
    if base:
        return features(".", out.pooler_output if pooler else out.last_hidden_state[:, 0])
    config = model.config
    return classifier(".", out.logits,
                      sigmoid=config.problem_type == "multi_label_classification" or config.num_labels == 1)


def saved(name, model_class, config_class, config, processor=None, dtype=None, drop=(), drop_images=(), base=False,
          pooler=True, make=None, change=None, change_images=None, **save):
    def build(folder):
        seed_for(name)
        made = config_class(**config)
        model = scramble(make(made) if make else model_class(made))
        if dtype:
            model = model.to(dtype)
        model.save_pretrained(folder, **save)
        size = made.image_size
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        if processor:
            processor().save_pretrained(folder)
        else:
            transformers.ViTImageProcessor(size={"height": height, "width": width}).save_pretrained(folder)
        edit_json(folder / "config.json", lambda c: ([c.pop(k, None) for k in drop], change and change(c)))
        edit_json(folder / "preprocessor_config.json",
                  lambda c: ([c.pop(k, None) for k in drop_images], change_images and change_images(c)))
        return own_answer(folder, base, pooler)
    return Case(f"hf_{name}", build)


def vit(name, config=None, **options):
    return saved(name, transformers.ViTForImageClassification, transformers.ViTConfig, config or tiny(), **options)


def deit(name, config=None, model_class=transformers.DeiTForImageClassification, **options):
    return saved(name, model_class, transformers.DeiTConfig, config or tiny(), **options)


def refused(name, model_class, config, *names, processor=None):
    def build(folder):
        seed_for(name)
        model_class(config()).save_pretrained(folder)
        (processor or transformers.ViTImageProcessor)().save_pretrained(folder)
        return Refusal(".", names)
    return Case(f"hf_{name}", build)


def bare(name, class_kind):
    """The state dict alone: nothing says how many heads there are, or how images are prepared."""
    def build(folder):
        seed_for(name)
        torch.save(class_kind(transformers.ViTConfig(**TINY)).state_dict(), folder / "weights.pth")
        return Refusal("weights.pth", ("heads", "preprocessing"))
    return Case(f"hf_{name}", build)


def binary(name, prefix="", shards=1):
    """pytorch_model.bin, or shards and their index, as transformers 4 wrote it."""
    def build(folder):
        seed_for(name)
        model = scramble(transformers.ViTForImageClassification(transformers.ViTConfig(**labels(4))))
        model.save_pretrained(folder)
        transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
        answer = own_answer(folder)
        state = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        state = {prefix + k: v for k, v in state.items()}
        if shards == 1:
            torch.save(state, folder / "pytorch_model.bin")
            return answer
        files = {key: f"pytorch_model-{i % shards + 1:05}-of-{shards:05}.bin" for i, key in enumerate(state)}
        for file in set(files.values()):
            torch.save({k: v for k, v in state.items() if files[k] == file}, folder / file)
        size = sum(v.numel() * v.element_size() for v in state.values())
        (folder / "pytorch_model.bin.index.json").write_text(
            json.dumps({"metadata": {"total_size": size}, "weight_map": files}, indent=2))
        return own_answer(folder)
    return Case(f"hf_{name}", build)


def labels(count):
    return tiny(id2label={i: f"thing {i}" for i in range(count)}, label2id={f"thing {i}": i for i in range(count)})


def plain():
    yield vit("plain")
    yield vit("three_labels", labels(3))
    yield vit("ten_labels", labels(10))
    yield vit("one_label", labels(1))
    yield vit("one_label_regression", {**labels(1), "problem_type": "regression"})
    yield vit("multi_label", {**labels(5), "problem_type": "multi_label_classification"})
    yield vit("single_label", {**labels(5), "problem_type": "single_label_classification"})
    yield vit("num_labels_key", tiny(num_labels=7))
    yield vit("no_qkv_bias", tiny(qkv_bias=False))
    for act in ("gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python", "gelu_python_tanh",
                "gelu_accurate"):
        yield vit(f"act_{act}", tiny(hidden_act=act))
    for eps in (1e-5, 1e-6, 1e-3, 0.1):
        yield vit(f"eps_{eps}", tiny(layer_norm_eps=eps))
    yield vit("one_channel", tiny(num_channels=3, image_size=24))
    yield vit("rectangle", tiny(image_size=[24, 48]))
    yield vit("tall", tiny(image_size=[48, 24]))
    yield vit("patch_list", tiny(patch_size=[8, 8]))
    yield vit("six_heads", tiny(num_attention_heads=6))
    yield vit("one_head", tiny(num_attention_heads=1))
    yield vit("one_block", tiny(num_hidden_layers=1))
    yield vit("one_patch", tiny(image_size=8))
    yield vit("dropout", tiny(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2))
    yield vit("encoder_stride", tiny(encoder_stride=4))
    yield vit("bf16", dtype=torch.bfloat16)
    yield vit("f16", dtype=torch.float16)
    yield vit("f64", dtype=torch.float64)
    yield vit("sharded", max_shard_size="60KB")
    yield binary("bin")
    yield binary("bin_data_parallel", prefix="module.")
    yield binary("bin_sharded", shards=3)
    yield bare("bare_state_dict", transformers.ViTForImageClassification)
    yield vit("sharded_bf16", max_shard_size="40KB", dtype=torch.bfloat16)


def rarer():
    for act in ("relu", "relu6", "leaky_relu", "silu", "swish", "mish", "quick_gelu", "hardswish", "tanh", "sigmoid"):
        yield vit(f"act_{act}", tiny(hidden_act=act))
    yield deit("deit_act_relu", tiny(hidden_act="relu"))
    yield saved("vit_model_act_silu", transformers.ViTModel, transformers.ViTConfig, tiny(hidden_act="silu"), base=True)
    for size in (20, 64):
        yield saved(f"pooler_{size}", transformers.ViTModel, transformers.ViTConfig, tiny(pooler_output_size=size),
                    base=True)
    for act in ("relu", "gelu", "silu"):
        yield saved(f"pooler_{act}", transformers.ViTModel, transformers.ViTConfig, tiny(pooler_act=act), base=True)
    yield saved("deit_pooler_20", transformers.DeiTModel, transformers.DeiTConfig, tiny(pooler_output_size=20),
                base=True)
    yield vit("pooler_of_a_classifier", tiny(pooler_output_size=20, pooler_act="relu"))
    yield vit("tall_patches", tiny(patch_size=[8, 4]))
    yield vit("wide_patches", tiny(patch_size=[4, 16], image_size=[24, 48]))
    yield deit("deit_tall_patches", tiny(patch_size=[16, 8]))
    yield vit("uncovered", tiny(image_size=30))
    yield vit("uncovered_wide", tiny(image_size=[31, 45]))
    yield deit("deit_uncovered", tiny(image_size=39))


# Keys that a config may leave out when it means the class's default; the model is made with that default.
def missing_keys():
    wide = dict(hidden_size=96, num_hidden_layers=2, intermediate_size=64, image_size=32, patch_size=8)
    for kind, make in (("vit", vit), ("deit", deit)):
        yield make(f"{kind}_no_heads_key", wide, drop=["num_attention_heads"])
        yield make(f"{kind}_no_eps_key", drop=["layer_norm_eps"])
        yield make(f"{kind}_no_act_key", drop=["hidden_act"])
        yield make(f"{kind}_no_bias_key", drop=["qkv_bias"])
        yield make(f"{kind}_no_channels_key", drop=["num_channels"])
        yield make(f"{kind}_no_patch_key", tiny(patch_size=16, image_size=64), drop=["patch_size"])
        yield make(f"{kind}_no_mlp_key", tiny(intermediate_size=3072), drop=["intermediate_size"])
        yield make(f"{kind}_no_depth_key", tiny(num_hidden_layers=12, intermediate_size=32),
                   drop=["num_hidden_layers"])
        yield make(f"{kind}_bare_config", dict(wide, image_size=224, patch_size=16),
                   drop=["num_attention_heads", "layer_norm_eps", "hidden_act", "qkv_bias", "num_channels",
                         "patch_size", "image_size", "pooler_act", "pooler_output_size", "encoder_stride"])
        if kind == "vit":  # transformers itself cannot do without it for DeiT
            yield make(f"{kind}_no_architectures_key", drop=["architectures"])
        yield make(f"{kind}_no_dtype_key", drop=["dtype", "transformers_version"])


def images():
    def processor(kind, **settings):
        return lambda: kind(**settings)
    square = {"height": 32, "width": 32}
    for code in (0, 1, 2, 3, 4, 5):
        yield vit(f"resample_{code}", change_images=lambda c, code=code: c.update(resample=code))
    yield vit("own_colours", change_images=lambda c: c.update(image_mean=[0.4, 0.5, 0.6], image_std=[0.2, 0.3, 0.4]))
    yield vit("no_normalize", change_images=lambda c: c.update(do_normalize=False))
    yield vit("rescale_factor", change_images=lambda c: c.update(rescale_factor=1 / 127.5))
    yield vit("size_number", change_images=lambda c: c.update(size=32))
    yield vit("old_feature_extractor", change_images=lambda c: (
        c.clear(), c.update(feature_extractor_type="ViTFeatureExtractor", size=32, do_resize=True, do_normalize=True,
                            resample=2, image_mean=[0.5] * 3, image_std=[0.5] * 3)))
    yield vit("fast_processor", change_images=lambda c: c.update(image_processor_type="ViTImageProcessorFast"))
    yield vit("deit_processor", processor=processor(transformers.DeiTImageProcessor, size={"height": 40, "width": 40},
                                                    crop_size=square))
    yield vit("crop_larger_than_resize", processor=processor(transformers.DeiTImageProcessor,
                                                             size={"height": 24, "width": 24}, crop_size=square))
    yield vit("crop_odd_margin", processor=processor(transformers.DeiTImageProcessor,
                                                     size={"height": 37, "width": 41}, crop_size=square))
    yield vit("clip_processor", processor=processor(transformers.CLIPImageProcessor, size={"shortest_edge": 36},
                                                    crop_size=square))
    yield vit("bit_processor", processor=processor(transformers.BitImageProcessor, size={"shortest_edge": 36},
                                                   crop_size=square))
    yield vit("siglip_processor", processor=processor(transformers.SiglipImageProcessor, size=square))
    yield vit("one_mean", change_images=lambda c: c.update(image_mean=[0.5, 0.4, 0.3]))
    yield vit("numbers_as_labels", tiny(id2label={0: "7", 1: "9"}, label2id={"7": 0, "9": 1}),
              change=lambda c: c.update(id2label={"0": "7", "1": "9"}))
    yield vit("processor_unknown_key", change_images=lambda c: c.update(crop_pct=0.9))
    yield vit("center_crop_of_vit", change_images=lambda c: c.update(
        size={"height": 40, "width": 40}, do_center_crop=True, crop_size={"height": 32, "width": 32}))
    yield vit("minimal_processor", tiny(image_size=224, patch_size=32), change_images=lambda c: (
        c.clear(), c.update(image_processor_type="ViTImageProcessor")))


def others():
    yield deit("deit_classifier")
    yield deit("deit_classifier_labels", labels(4))
    yield deit("deit_teacher", model_class=transformers.DeiTForImageClassificationWithTeacher)
    yield deit("deit_teacher_labels", labels(6), model_class=transformers.DeiTForImageClassificationWithTeacher)
    yield deit("deit_no_bias", tiny(qkv_bias=False))
    yield deit("deit_eps", tiny(layer_norm_eps=1e-2))
    yield deit("deit_rectangle", tiny(image_size=[24, 40]))
    yield deit("deit_bf16", dtype=torch.bfloat16)
    yield saved("deit_model", transformers.DeiTModel, transformers.DeiTConfig, tiny(), base=True)
    yield saved("deit_model_mask", None, transformers.DeiTConfig, tiny(), base=True,
                make=lambda c: transformers.DeiTModel(c, use_mask_token=True))
    yield saved("vit_model", transformers.ViTModel, transformers.ViTConfig, tiny(), base=True)
    yield saved("vit_model_eps", transformers.ViTModel, transformers.ViTConfig, tiny(layer_norm_eps=0.01), base=True)
    yield saved("vit_model_mask", None, transformers.ViTConfig, tiny(), base=True,
                make=lambda c: transformers.ViTModel(c, use_mask_token=True))
    yield saved("vit_model_no_pooler", None, transformers.ViTConfig, tiny(), base=True, pooler=False,
                make=lambda c: transformers.ViTModel(c, add_pooling_layer=False))
    yield saved("msn_classifier", transformers.ViTMSNForImageClassification, transformers.ViTMSNConfig, tiny())
    yield saved("msn_no_eps_key", transformers.ViTMSNForImageClassification, transformers.ViTMSNConfig, tiny(),
                drop=["layer_norm_eps"])
    yield saved("ijepa_classifier", transformers.IJepaForImageClassification, transformers.IJepaConfig, tiny())
    yield saved("ijepa_no_eps_key", transformers.IJepaForImageClassification, transformers.IJepaConfig, tiny(),
                drop=["layer_norm_eps"])


def strange():
    t = transformers
    small = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96, image_size=32,
                 patch_size=8)
    yield refused("act_prelu", t.ViTForImageClassification, lambda: t.ViTConfig(**tiny(hidden_act="prelu")), "hidden_act")
    yield refused("pooler_prelu", t.ViTModel, lambda: t.ViTConfig(**tiny(pooler_act="prelu")), "pooler_act")
    yield refused("masked_vit", t.ViTForMaskedImageModeling, lambda: t.ViTConfig(**tiny(encoder_stride=8)),
                  "masked-image")
    yield refused("masked_deit", t.DeiTForMaskedImageModeling, lambda: t.DeiTConfig(**tiny(encoder_stride=8)),
                  "masked-image")
    swin = dict(image_size=32, patch_size=4, embed_dim=12, depths=[1, 1], num_heads=[2, 2], window_size=4)
    yield refused("swin", t.SwinForImageClassification, lambda: t.SwinConfig(**swin), "Swin")
    yield refused("swinv2", t.Swinv2ForImageClassification, lambda: t.Swinv2Config(**swin), "Swin")
    yield refused("beit", t.BeitForImageClassification, lambda: t.BeitConfig(**small), "BEiT")
    yield refused("beit_relative", t.BeitForImageClassification,
                  lambda: t.BeitConfig(**small, use_relative_position_bias=True), "BEiT")
    yield refused("data2vec", t.Data2VecVisionForImageClassification, lambda: t.Data2VecVisionConfig(**small),
                  "data2vec")
    yield refused("dinov2", t.Dinov2ForImageClassification,
                  lambda: t.Dinov2Config(hidden_size=48, num_hidden_layers=2, num_attention_heads=3, image_size=28,
                                         patch_size=14), "DINOv2")
    yield refused("dinov2_registers", t.Dinov2WithRegistersForImageClassification,
                  lambda: t.Dinov2WithRegistersConfig(hidden_size=48, num_hidden_layers=2, num_attention_heads=3,
                                                      image_size=28, patch_size=14), "DINOv2")
    yield refused("dinov3", t.DINOv3ViTModel,
                  lambda: t.DINOv3ViTConfig(hidden_size=48, num_hidden_layers=2, num_attention_heads=3,
                                            intermediate_size=96, image_size=32, patch_size=16), "DINOv3")
    yield refused("siglip_vision", t.SiglipVisionModel, lambda: t.SiglipVisionConfig(**small), "SigLIP")
    yield refused("clip_vision", t.CLIPVisionModel, lambda: t.CLIPVisionConfig(**small), "CLIP")
    yield refused("dpt", t.DPTForDepthEstimation,
                  lambda: t.DPTConfig(**small, backbone_out_indices=[0, 0, 1, 1], neck_hidden_sizes=[8, 8, 8, 8],
                                      fusion_hidden_size=8), "DPT")
    yield refused("mae", t.ViTMAEForPreTraining,
                  lambda: t.ViTMAEConfig(**small, decoder_hidden_size=24, decoder_num_hidden_layers=1,
                                         decoder_num_attention_heads=2, decoder_intermediate_size=48), "autoencoder")
    yield refused("mae_model", t.ViTMAEModel, lambda: t.ViTMAEConfig(**small), "autoencoder")
    yield refused("yolos", t.YolosForObjectDetection,
                  lambda: t.YolosConfig(**{**small, "image_size": [32, 32]}, num_detection_tokens=4), "YOLOS")
    yield refused("vivit", t.VivitForVideoClassification,
                  lambda: t.VivitConfig(image_size=32, num_frames=4, tubelet_size=[2, 16, 16], hidden_size=48,
                                        num_hidden_layers=1, num_attention_heads=3, intermediate_size=96), "ViViT")
    yield refused("videomae", t.VideoMAEForVideoClassification,
                  lambda: t.VideoMAEConfig(**small, num_frames=4), "VideoMAE")
    yield refused("vitdet", t.VitDetModel,
                  lambda: t.VitDetConfig(hidden_size=48, num_hidden_layers=1, num_attention_heads=3, image_size=32,
                                         patch_size=8), "ViTDet")
    yield refused("segformer", t.SegformerForImageClassification,
                  lambda: t.SegformerConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 16, 16],
                                            num_attention_heads=[1, 1, 2, 2]), "SegFormer")
    yield refused("convnext", t.ConvNextForImageClassification,
                  lambda: t.ConvNextConfig(depths=[1, 1], hidden_sizes=[8, 16], num_stages=2), "convnext")
    yield refused("resnet", t.ResNetForImageClassification,
                  lambda: t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]), "resnet")
    yield refused("levit", t.LevitForImageClassification,
                  lambda: t.LevitConfig(hidden_sizes=[16, 32, 48], num_attention_heads=[1, 2, 3], depths=[1, 1, 1],
                                        key_dim=[8, 8, 8]), "levit")
    yield refused("pvt", t.PvtForImageClassification,
                  lambda: t.PvtConfig(image_size=32, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1],
                                      num_attention_heads=[1, 1, 2, 2]), "pvt")
    yield refused("hiera", t.HieraForImageClassification,
                  lambda: t.HieraConfig(embed_dim=12, image_size=[64, 64], depths=[1, 1, 1, 1],
                                        num_heads=[1, 1, 2, 2]), "hiera")
    yield refused("siglip_classifier", t.SiglipForImageClassification,
                  lambda: t.SiglipConfig(vision_config=small, text_config=dict(hidden_size=16, num_hidden_layers=1,
                                                                               num_attention_heads=2,
                                                                               intermediate_size=16, vocab_size=32)),
                  "SigLIP")
    yield refused("clip_classifier", t.CLIPForImageClassification,
                  lambda: t.CLIPConfig(vision_config=small, text_config=dict(hidden_size=16, num_hidden_layers=1,
                                                                             num_attention_heads=2,
                                                                             intermediate_size=16, vocab_size=32)),
                  "CLIP")


def cases():
    for group in (plain, rarer, missing_keys, images, others, strange):
        yield from group()
