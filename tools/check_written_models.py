#!/usr/bin/env python3
"""Loads a model that Vitrail wrote in each dialect with the library the dialect belongs to, strictly, and
compares every tensor and the logits with the timm original. Run where timm, transformers and torchvision are
installed.

    python tools/check_written_models.py ORIGINAL HF_FOLDER TIMM_FILE TORCHVISION_FILE NPZ_FILE

ORIGINAL is a bare timm .safetensors of a plain ViT with a class token; the HF folder's config.json says its
size. The erf GELU and an epsilon of 1e-6 are expected everywhere (the original's numerics are kept).
"""
import json
import pathlib
import sys

import torch
import torchvision
from safetensors.torch import load_file
from timm.models.vision_transformer import VisionTransformer
from transformers import AutoImageProcessor, ViTForImageClassification


def build_timm(c):
    model = VisionTransformer(img_size=c["image_size"], patch_size=c["patch_size"], embed_dim=c["hidden_size"],
                              depth=c["num_hidden_layers"], num_heads=c["num_attention_heads"],
                              mlp_ratio=c["intermediate_size"] / c["hidden_size"], num_classes=len(c["id2label"]))
    return model.eval()


def build_torchvision(c):
    model = torchvision.models.VisionTransformer(
        image_size=c["image_size"], patch_size=c["patch_size"], num_layers=c["num_hidden_layers"],
        num_heads=c["num_attention_heads"], hidden_dim=c["hidden_size"], mlp_dim=c["intermediate_size"],
        num_classes=len(c["id2label"]))
    return model.eval()


def main():
    original, folder, timm_file, tv_file, npz_file = sys.argv[1:]
    c = json.loads((pathlib.Path(folder) / "config.json").read_text())
    reference = build_timm(c)
    reference.load_state_dict(load_file(original), strict=True)

    timm_model = build_timm(c)
    timm_model.load_state_dict(load_file(timm_file), strict=True)
    google = build_timm(c)
    google.load_pretrained(npz_file)
    for name, model in (("timm", timm_model), ("google through timm", google)):
        for key, value in reference.state_dict().items():
            assert torch.equal(value, model.state_dict()[key]), f"{name}: {key} differs"
        print(f"{name}: {len(reference.state_dict())} tensors equal")

    torchvision_model = build_torchvision(c)
    torchvision_model.load_state_dict(load_file(tv_file), strict=True)
    hf, info = ViTForImageClassification.from_pretrained(folder, output_loading_info=True)
    assert not any(info[key] for key in info), info
    print("processor:", type(AutoImageProcessor.from_pretrained(folder)).__name__)

    torch.manual_seed(0)
    x = torch.randn(2, c["num_channels"], c["image_size"], c["image_size"])
    with torch.inference_mode():
        expected = reference(x)
        for name, logits in (("torchvision", torchvision_model(x)), ("hf", hf.eval()(x).logits)):
            apart = (logits - expected).abs().max().item()
            print(f"{name}: logits differ by at most {apart:.2e}")
            assert apart < 1e-4


if __name__ == "__main__":
    main()
