#!/usr/bin/env python3
"""Writes tests/golden/models: small model files and folders as the libraries themselves save them, and beside
each a JSON with its config, what its preprocessing says, and the logits of the file as its own library reads
it back (google: as golden_vit.py computes it, checked against timm's npz loader where that reads the file).

"weights" says what the file holds: "rule", or the rule's values rounded ("rule-f16", "rule-bf16"), or
"rule-cls-plus-row" (the class token comes out as token plus first position row, which the table then lacks).
"""
import shutil

import ml_dtypes
import numpy as np
import safetensors.torch
import timm
import torch
from timm.models import save_for_hf
from transformers import (DeiTForImageClassificationWithTeacher, DeiTImageProcessor, ViTForImageClassification,
                          ViTImageProcessor, ViTModel)

import golden_vit
from golden_libs import Hf, HfBase, HfDeit, Timm, Torchvision, shaped_like, tensors
from golden_npz import flatten, google_tree
from golden_rule import rule_input
from make_goldens import AGREE, GOLDEN, numbers, write_json

OUT = GOLDEN / "models"
SMALL = dict(image_height=16, image_width=16, patch=4, width=32, depth=2, heads=4, mlp=64, classes=5)
HF = dict(norm_eps=1e-12, pos_resize="hf")
TV = dict(pos_resize="torchvision")
JAX = dict(gelu="tanh", pos_resize="jax")
LABELS = ["anemone", "bell tower", "crab", "dune", "elm"]
HALF = [0.5, 0.5, 0.5]


def small(**fields):
    return golden_vit.make_config(**{**SMALL, **fields})


def record(name, path, dialect, config, logits, weights="rule", **more):
    write_json(OUT / f"{name}.json", dict(name=name, model=path, dialect=dialect, weights=weights, config=config,
                                          logits=numbers(logits, 10), **more))
    print(f"{name:24} {path:28} {np.abs(logits).max():6.3f}")


def images(config):
    return rule_input(1, config["channels"], config["image_height"], config["image_width"])


def logits_of(library, state=None):
    """Float64 logits; `state` (as read back from a file) replaces the weights."""
    if state is not None:
        library.model.load_state_dict({key: value.float() for key, value in state.items()})
    return library.run(images(library.config), "f64")[0]


def read_back(path):
    if path.suffix == ".safetensors":
        return safetensors.torch.load_file(path)
    return torch.load(path, weights_only=True)


def timm_files():
    lib = Timm(small())
    state = lib.model.state_dict()
    safetensors.torch.save_file(state, OUT / "timm.safetensors", metadata={"format": "pt"})
    safetensors.torch.save_file({k: v.half() for k, v in state.items()}, OUT / "timm_f16.safetensors")
    torch.save(state, OUT / "timm.pth")
    torch.save({"model": state, "epoch": 3, "best": 71.5, "names": ["a", "b"]}, OUT / "timm_checkpoint.pth")
    torch.save({"epoch": 7, "arch": "vit", "state_dict": {k: v.bfloat16() for k, v in state.items()}},
               OUT / "timm_state_dict_bf16.pth")
    for name, file, key, weights in (("timm", "timm.safetensors", None, "rule"),
                                     ("timm_f16", "timm_f16.safetensors", None, "rule-f16"),
                                     ("timm_pth", "timm.pth", None, "rule"),
                                     ("timm_checkpoint", "timm_checkpoint.pth", "model", "rule"),
                                     ("timm_state_dict_bf16", "timm_state_dict_bf16.pth", "state_dict", "rule-bf16")):
        held = read_back(OUT / file)
        record(name, file, "timm", small(), logits_of(Timm(small()), held[key] if key else held), weights)
    distilled = Timm(small(distilled=True))
    safetensors.torch.save_file(distilled.model.state_dict(), OUT / "timm_distilled.safetensors")
    record("timm_distilled", "timm_distilled.safetensors", "timm", distilled.config, logits_of(distilled))


def timm_hub(name, arch, config, model_args, **overlay):
    """A folder as timm pushes it to a hub."""
    args = dict(img_size=16, patch_size=4, embed_dim=32, depth=2, num_heads=4, mlp_ratio=2, **model_args)
    cfg = dict(input_size=(3, 16, 16), num_classes=5, **overlay)
    model = timm.create_model(arch, num_classes=5, pretrained_cfg_overlay=cfg, **args)
    params = tensors(golden_vit.rule_params(config))
    assert set(params) == set(model.state_dict()), set(params) ^ set(model.state_dict())
    model.load_state_dict(shaped_like(model, params))
    descriptions = {label: f"an image of {label}" for label in LABELS}
    save_for_hf(model, OUT / name, safe_serialization=True, model_args=args,
                model_config=dict(label_names=LABELS, label_descriptions=descriptions))
    again = timm.create_model(f"local-dir:{OUT / name}", pretrained=True, **args).eval().double()
    with torch.inference_mode():
        logits = again(torch.from_numpy(images(config)).double()).numpy()
    data = timm.data.resolve_model_data_config(again)
    preprocess = dict(height=16, width=16, mode="shorter_side", resize=int(16 / data["crop_pct"]),
                      interpolation=data["interpolation"], mean=list(data["mean"]), std=list(data["std"]))
    record(name, name, "timm", config, logits, preprocess=preprocess, labels=LABELS)


def hf_settings(model):
    model.config.id2label = dict(enumerate(LABELS))
    model.config.label2id = {label: i for i, label in enumerate(LABELS)}
    return model


def check_hf(name, kind, lib, weights="rule", **more):
    loaded = kind.from_pretrained(OUT / name, dtype=torch.float32)
    logits = logits_of(lib, loaded.state_dict())
    record(name, name, "hf", lib.config, logits, weights, **more)


def hf_folders():
    stretch = dict(height=16, width=16, mode="stretch", interpolation="bilinear", mean=HALF, std=HALF)
    lib = Hf(small(**HF))
    model = hf_settings(lib.model)
    processor = ViTImageProcessor(size={"height": 16, "width": 16})
    for name, options in (("hf_single", {}), ("hf_sharded", dict(max_shard_size="30KB")),
                          ("hf_v5_names", dict(save_original_format=False))):
        model.save_pretrained(OUT / name, **options)
        processor.save_pretrained(OUT / name)
        check_hf(name, ViTForImageClassification, Hf(small(**HF)), preprocess=stretch, labels=LABELS)
    classic = safetensors.torch.load_file(OUT / "hf_single" / "model.safetensors")
    (OUT / "hf_bin").mkdir(exist_ok=True)
    torch.save(classic, OUT / "hf_bin" / "pytorch_model.bin")
    for file in ("config.json", "preprocessor_config.json"):
        shutil.copy(OUT / "hf_single" / file, OUT / "hf_bin")
    check_hf("hf_bin", ViTForImageClassification, Hf(small(**HF)), preprocess=stretch, labels=LABELS)
    hf_settings(Hf(small(**HF)).model).bfloat16().save_pretrained(OUT / "hf_bf16")
    check_hf("hf_bf16", ViTForImageClassification, Hf(small(**HF)), "rule-bf16", labels=LABELS)
    base = HfBase(small(classes=0, pre_logits=True, **HF))
    base.model.save_pretrained(OUT / "hf_base")
    check_hf("hf_base", ViTModel, base)
    deit = HfDeit(small(distilled=True, **HF))
    hf_settings(deit.model).save_pretrained(OUT / "hf_deit")
    DeiTImageProcessor(size={"height": 18, "width": 18}, crop_size={"height": 16, "width": 16}).save_pretrained(
        OUT / "hf_deit")
    stretch_crop = stretch | dict(mode="stretch_crop", resize=18, interpolation="bicubic", odd_margin="down")
    check_hf("hf_deit", DeiTForImageClassificationWithTeacher, deit, preprocess=stretch_crop, labels=LABELS)


def torchvision_files():
    lib = Torchvision(small(**TV))
    state = lib.model.state_dict()
    old = {key.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."): v for key, v in state.items()}
    safetensors.torch.save_file(state, OUT / "torchvision.safetensors")
    torch.save(state, OUT / "torchvision.pth")
    torch.save(old, OUT / "torchvision_old_names.pth")
    for name, file in (("torchvision", "torchvision.safetensors"), ("torchvision_pth", "torchvision.pth"),
                       ("torchvision_old_names", "torchvision_old_names.pth")):
        record(name, file, "torchvision", lib.config, logits_of(Torchvision(lib.config), read_back(OUT / file)))
    deep = Torchvision(small(pre_logits=True, **TV))
    safetensors.torch.save_file(deep.model.state_dict(), OUT / "torchvision_pre_logits.safetensors")
    record("torchvision_pre_logits", "torchvision_pre_logits.safetensors", "torchvision", deep.config, logits_of(deep))


def timm_reads(path, config, gelu):
    """The same file through timm's npz loader."""
    model = Timm({**config, "gelu": gelu, "pre_logits": False}).model
    with torch.no_grad():
        model.load_pretrained(str(path))
    with torch.inference_mode():
        return model.double()(torch.from_numpy(images(config)).double()).numpy()


def bf16_as_void(key, value):
    """numpy files know no bfloat16: it appears as <V2 or, from elsewhere, as |V2; here both."""
    return value if key.endswith("kernel") else value.view("V2")


def google_file(name, config, prefix="", weights="rule", timm_too=True, compressed=False, **tree_options):
    params = golden_vit.rule_params(config)
    held = params
    if weights == "rule-cls-plus-row":  # the file has the row, the model as loaded does not
        table = golden_vit.rule_params({**config, "pos_for_prefix": True})["pos_embed"]
        held = {**params, "pos_embed": table}
        params = {**params, "cls_token": params["cls_token"] + table[:1], "pos_embed": table[1:]}
    flat = flatten(google_tree(held, config, **tree_options))
    if weights == "rule-bf16":
        flat = {key: bf16_as_void(key, value.astype(ml_dtypes.bfloat16)) for key, value in flat.items()}
        params = {key: value.astype(ml_dtypes.bfloat16).astype(np.float32) for key, value in params.items()}
    path = OUT / f"{name}.npz"
    (np.savez_compressed if compressed else np.savez)(path, **{prefix + key: value for key, value in flat.items()})
    tanh, _ = golden_vit.forward(config, params, images(config))
    erf, _ = golden_vit.forward({**config, "gelu": "erf"}, params, images(config))
    if timm_too:
        for gelu, mine in (("tanh", tanh), ("erf", erf)):
            apart = np.abs(timm_reads(path, config, gelu) - mine).max()
            assert apart < AGREE, f"{name}: timm's loader with {gelu} differs by {apart:.3g}"
    record(name, path.name, "google", config, tanh, weights, logits_erf=numbers(erf, 10), timm_agrees=timm_too)


def google_files():
    mean = dict(pool="mean", class_token=False)
    google_file("google_vit_jax", small(**JAX))
    google_file("google_opt_target", small(pre_logits=True, **JAX), prefix="opt/target/", timm_too=False)
    google_file("google_bf16", small(**JAX), weights="rule-bf16", timm_too=False)
    google_file("google_mean", small(**mean, **JAX), compressed=True)
    google_file("big_vision_map", small(pool="map", class_token=False, **JAX), prefix="params/", big_vision=True)
    google_file("big_vision_map_inline", small(pool="map", class_token=False, **JAX), big_vision=True,
                inline_map=True, timm_too=False)
    google_file("big_vision_scanned", small(**mean, **JAX), prefix="params/img/", big_vision=True, scanned=True)
    google_file("big_vision_cls", small(pos_for_prefix=False, **JAX), prefix="params/", big_vision=True)
    google_file("big_vision_old_cls", small(pos_for_prefix=False, **JAX), weights="rule-cls-plus-row",
                big_vision=True, old_positions=True, timm_too=False)
    google_file("big_vision_sincos2d", small(pos="sincos2d", **mean, **JAX), prefix="params/", big_vision=True,
                timm_too=False)
    # Read by nobody here: a ResNet stem in front, to be refused by name.
    stem = {"conv_root/kernel": np.zeros((7, 7, 3, 4), np.float32), "gn_root/scale": np.ones((1, 1, 1, 4), np.float32),
            "gn_root/bias": np.zeros((1, 1, 1, 4), np.float32), "embedding/kernel": np.zeros((1, 1, 4, 8), np.float32),
            "embedding/bias": np.zeros(8, np.float32), "cls": np.zeros((1, 1, 8), np.float32)}
    np.savez(OUT / "google_hybrid.npz", **stem)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    torch.manual_seed(0)
    timm_files()
    timm_hub("timm_hub", "vit_tiny_patch16_224", small(), {})
    timm_hub("timm_hub_reg_gap", "vit_base_patch16_reg4_gap_256",
             small(pool="mean", norm_place="after_pool", class_token=False, registers=2, pos_for_prefix=False),
             dict(reg_tokens=2), crop_pct=0.95, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    hf_folders()
    torchvision_files()
    google_files()
    total = sum(path.stat().st_size for path in OUT.rglob("*") if path.is_file())
    print(f"{total / 1e6:.2f} MB, largest file "
          f"{max(p.stat().st_size for p in OUT.rglob('*') if p.is_file()) / 1e3:.0f} KB")


if __name__ == "__main__":
    main()
