"""A third round of models saved by transformers: poolers, image processors of other families and what nulls make of
them, what else configs and folders hold."""
import json
import random
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file

from common import Case, Refusal, scramble, seed_for
from hf_kinds import deit, labels, own_answer, refused, saved, tiny, vit

T = transformers
SQUARE, EDGE = {"height": 32, "width": 32}, {"shortest_edge": 36}


def poolers():
    for act in ("gelu_new", "gelu_10", "gelu_fast", "gelu_pytorch_tanh", "gelu_python", "mish", "leaky_relu", "relu6",
                "hardswish", "laplace", "sqrtsoftplus", "swish"):
        yield saved(f"3_pooler_{act}", T.ViTModel, T.ViTConfig, tiny(pooler_act=act), base=True)
    yield saved("3_pooler_both", T.ViTModel, T.ViTConfig, tiny(pooler_act="gelu_new", pooler_output_size=30,
                                                               hidden_act="relu"), base=True)
    yield saved("3_pooler_same", T.ViTModel, T.ViTConfig, tiny(pooler_act="gelu_new", hidden_act="gelu_new"), base=True)
    yield saved("3_pooler_deit", T.DeiTModel, T.DeiTConfig, tiny(pooler_act="gelu_pytorch_tanh"), base=True)
    yield saved("3_deit_no_pooler", None, T.DeiTConfig, tiny(), base=True, pooler=False,
                make=lambda c: T.DeiTModel(c, add_pooling_layer=False))
    yield saved("3_msn_base", T.ViTMSNModel, T.ViTMSNConfig, tiny(), base=True, pooler=False)
    yield refused("3_act_xielu", T.ViTForImageClassification, lambda: T.ViTConfig(**tiny(hidden_act="xielu")),
                  "hidden_act")


def processors():
    kinds = {"layoutlmv3": (T.LayoutLMv3ImageProcessor, dict(size=SQUARE, apply_ocr=False)),
             "owlvit": (T.OwlViTImageProcessor, dict(size=SQUARE)),
             "flava": (T.FlavaImageProcessor, dict(size={"height": 40, "width": 36}, crop_size=SQUARE)),
             "llava": (T.LlavaImageProcessor, dict(size=EDGE, crop_size=SQUARE)),
             "segformer_labels": (T.SegformerImageProcessor, dict(size=SQUARE, do_reduce_labels=True)),
             "beit_labels": (T.BeitImageProcessor, dict(size=SQUARE, do_reduce_labels=True)),
             "vit_grey": (T.ViTImageProcessor, dict(size=SQUARE, do_convert_rgb=False)),
             "clip_tall": (T.CLIPImageProcessor, dict(size={"height": 40, "width": 36}, crop_size=SQUARE)),
             "poolformer_null": (T.PoolFormerImageProcessor, dict(size=EDGE, crop_size=SQUARE, crop_pct=None)),
             "poolformer_sides": (T.PoolFormerImageProcessor, dict(size=SQUARE, crop_size=SQUARE, crop_pct=0.8))}
    for name in ("CLIP", "Siglip", "Bit", "Levit", "MobileNetV2", "PoolFormer"):
        kinds[f"{name}_default"] = (getattr(T, f"{name}ImageProcessor"), {})
    for name, (kind, settings) in kinds.items():
        config = tiny(image_size=224, patch_size=32) if name.endswith("default") else tiny()
        yield vit(f"3_processor_{name}", config, processor=lambda k=kind, s=settings: k(**s))


def truths():
    """What Python makes of null, 0 and 1; transformers takes a null for None, and a key left out for its default."""
    def cropping(name, **changes):
        return vit(f"3_{name}", change_images=lambda c: c.update(changes), processor=lambda: T.DeiTImageProcessor(
            size={"height": 40, "width": 40}, crop_size=SQUARE))
    for key in ("do_normalize", "do_rescale", "do_resize"):
        for name, value in (("null", None), ("false", False), ("zero", 0), ("one", 1)):
            yield cropping(f"{key}_{name}", **{key: value})
    yield cropping("crop_of_one", do_center_crop=1)
    yield vit("3_clip_as_it_is", change_images=lambda c: c.update(do_resize=False),
              processor=lambda: T.CLIPImageProcessor(size=EDGE, crop_size=SQUARE))
    yield vit("3_larger_than_the_image", tiny(image_size=[320, 480], patch_size=160),
              change_images=lambda c: c.update(do_resize=False),
              processor=lambda: T.DeiTImageProcessor(crop_size={"height": 320, "width": 480}))
    yield vit("3_processor_pil_name", change_images=lambda c: c.update(image_processor_type="ViTImageProcessorPil"))
    yield vit("3_processor_with_class", change_images=lambda c: c.update(processor_class="ViTProcessor"))
    yield vit("3_processor_nulls", change_images=lambda c: c.update(
        device=None, return_tensors=None, data_format="channels_first", disable_grouping=None, input_data_format=None,
        pad_size=None, do_convert_rgb=None))
    yield vit("3_rescale_factor", change_images=lambda c: c.update(rescale_factor=1 / 256))
    yield vit("3_crop_number", change_images=lambda c: c.update(size={"height": 48, "width": 48}, do_center_crop=True,
                                                                crop_size=32))


def configs():
    yield vit("3_old_keys", change=lambda c: c.update(
        _name_or_path="google/vit", _num_labels=2, output_attentions=False, output_hidden_states=False,
        return_dict=True, torchscript=False, pruned_heads={}, tie_word_embeddings=True, is_decoder=False,
        chunk_size_feed_forward=0, attn_implementation="eager", initializer_range=0.02, use_bfloat16=False))
    yield vit("3_sdpa", change=lambda c: c.update(_attn_implementation="sdpa", attn_implementation="sdpa"))
    yield vit("3_labels_only_count", tiny(num_labels=3), change=lambda c: (
        [c.pop(k, None) for k in ("id2label", "label2id")], c.update(num_labels=3)))
    yield vit("3_two_classes", drop=["id2label", "label2id"])
    yield vit("3_architectures_of_base", change=lambda c: c.update(architectures=["ViTModel"]))
    yield vit("3_eps_zero", tiny(layer_norm_eps=0.0))
    yield deit("3_deit_square_list", tiny(image_size=[32, 32], patch_size=[4, 4]))
    for name, kind in (("deit", T.DeiTForImageClassification), ("teacher", T.DeiTForImageClassificationWithTeacher)):
        yield deit(f"3_{name}_multi", {**labels(3), "problem_type": "multi_label_classification"}, model_class=kind)


def folders():
    """What else a folder may hold, and how the weights may lie in it."""
    def folder(name, change):
        def build(path):
            seed_for(name)
            scramble(T.ViTForImageClassification(T.ViTConfig(**labels(4)))).save_pretrained(path)
            T.ViTImageProcessor(size=SQUARE).save_pretrained(path)
            answer = own_answer(path)
            change(path, path / "model.safetensors")
            return answer
        return Case(f"hf_3_{name}", build)

    def trainer(path, weights):
        for file in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
            torch.save({"state": {0: torch.ones(3)}}, path / file)
        (path / "trainer_state.json").write_text(json.dumps({"epoch": 1.0, "log_history": []}))
        (path / "checkpoint-5").mkdir()
        shutil.copy(path / "config.json", path / "checkpoint-5")
    yield folder("trainer", trainer)
    yield folder("no_format", lambda path, weights: save_file(load_file(weights), weights))
    yield folder("both_formats", lambda path, weights: torch.save(load_file(weights), path / "pytorch_model.bin"))

    def more(path, weights, **tensors):
        save_file({**load_file(weights), **{k.replace("__", "."): v for k, v in tensors.items()}}, weights,
                  metadata={"format": "pt"})
    yield folder("position_ids", lambda *at: more(*at, vit__embeddings__position_ids=torch.arange(17)))
    yield folder("pooler_left_over", lambda *at: more(*at, vit__pooler__dense__weight=torch.randn(48, 48),
                                                      vit__pooler__dense__bias=torch.randn(48)))

    def other_frameworks(path, weights):
        (path / "flax_model.msgpack").write_bytes(b"\x80")
        (path / "tf_model.h5").write_bytes(b"\x89HDF")
    yield folder("other_frameworks", other_frameworks)

    def one_shard(path, weights):
        names = list(load_file(weights))
        weights.rename(path / "model-00001-of-00001.safetensors")
        (path / "model.safetensors.index.json").write_text(json.dumps({
            "metadata": {"total_size": 1}, "weight_map": {k: "model-00001-of-00001.safetensors" for k in names}}))
    yield folder("one_shard", one_shard)

    def quantized(path):
        seed_for("quantized")
        scramble(T.ViTForImageClassification(T.ViTConfig(**labels(4)))).save_pretrained(path)
        state = load_file(path / "model.safetensors")
        key = next(k for k in state if k.endswith("intermediate.dense.weight"))
        save_file({**state, key: (state[key] * 100).to(torch.int8)}, path / "model.safetensors")
        return Refusal(".", ("i8",))
    yield Case("hf_3_quantized", quantized)


def draw(number):
    """A processor of any family in front of a model of any class, with settings of its own."""
    r = random.Random(300 + number)
    height, width = r.choice(((24, 24), (32, 32), (16, 40), (40, 24)))
    crop, edge = {"height": height, "width": width}, {"shortest_edge": max(height, width) + r.choice((0, 1, 5, 10))}
    larger = {"height": height + r.choice((0, 3, 8)), "width": width + r.choice((0, 4, 9))}
    own = dict(image_mean=[r.random() for _ in range(3)], image_std=[0.1 + r.random() for _ in range(3)],
               resample=r.choice(range(6)), do_normalize=False, rescale_factor=r.choice((1 / 127.5, 1 / 256)))
    own = {key: value for key, value in own.items() if r.random() < 0.25}
    name, sizes = r.choice([(name, dict(size=crop)) for name in ("ViT", "Siglip", "Blip", "Pvt", "DPT", "OwlViT")] +
                           [(name, dict(size=larger, crop_size=crop, do_center_crop=True)) for name in (
                               "ViT", "DeiT", "CLIP", "Beit", "Flava", "EfficientNet", "Levit")] +
                           [(name, dict(size=edge, crop_size=crop)) for name in (
                               "CLIP", "Bit", "ChineseCLIP", "MobileNetV1", "Llava", "Levit", "PoolFormer")])
    heads, count = r.choice((1, 2, 3)), r.choice((1, 2, 5))
    config = dict(hidden_size=heads * r.choice((8, 16)), num_attention_heads=heads, num_hidden_layers=r.choice((1, 2)),
                  intermediate_size=r.choice((8, 50)), patch_size=r.choice((4, 8, [8, 4])), image_size=[height, width],
                  layer_norm_eps=r.choice((1e-12, 1e-2)), qkv_bias=r.random() < 0.7,
                  id2label={i: f"thing {i}" for i in range(count)}, label2id={f"thing {i}": i for i in range(count)},
                  hidden_act=r.choice(("gelu", "gelu_new", "silu", "gelu_10", "hardswish")))
    kind, config_kind = r.choice(((T.ViTForImageClassification, T.ViTConfig), (T.ViTModel, T.ViTConfig),
                                  (T.DeiTForImageClassificationWithTeacher, T.DeiTConfig),
                                  (T.ViTMSNForImageClassification, T.ViTMSNConfig),
                                  (T.IJepaForImageClassification, T.IJepaConfig), (T.DeiTModel, T.DeiTConfig)))
    base = kind in (T.ViTModel, T.DeiTModel)
    if base:
        config["pooler_act"] = r.choice(("tanh", "gelu_new", "relu6"))
    return saved(f"3_draw_{number:02}", kind, config_kind, config, base=base,
                 processor=lambda: getattr(T, f"{name}ImageProcessor")(**sizes, **own))


def cases():
    for group in (poolers, processors, truths, configs, folders):
        yield from group()
    for number in range(60):
        yield draw(number)
