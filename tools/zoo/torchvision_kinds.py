"""Models saved by torchvision: state dicts, as its users save them after fine-tuning. A state dict does not say how
many heads there are, so these have the proportions of ViT-Ti."""
import argparse

import torch
import torchvision
from safetensors.torch import save_file
from torch import nn
from torchvision.models.vision_transformer import ConvStemConfig, VisionTransformer
from torchvision.transforms._presets import ImageClassification

from common import Case, Refusal, classifier, example_image, features, scramble, seed_for

WIDTH = 192


def vit(**changes):
    return VisionTransformer(**{**dict(image_size=64, patch_size=16, num_layers=12, num_heads=3, hidden_dim=WIDTH,
                                       mlp_dim=768, num_classes=10), **changes})


def file(name, change=None, wrap=lambda d: d, save=torch.save, ending="pth", bare=False, **options):
    def build(folder):
        seed_for(name)
        model = vit(**options)
        if change:
            change(model)
        scramble(model)
        path = folder / f"weights.{ending}"
        save(wrap(model.state_dict()), path)
        side = options.get("image_size", 64)
        pixels = ImageClassification(crop_size=side, resize_size=side * 256 // 224)(example_image()).unsqueeze(0)
        with torch.no_grad():
            out = model(pixels)
        return features(path.name, out) if bare else classifier(path.name, out)
    return Case(f"torchvision_{name}", build)


def refused(name, model, *names):
    def build(folder):
        torch.save(model().state_dict(), folder / "weights.pth")
        return Refusal("weights.pth", names)
    return Case(f"torchvision_{name}", build)


def set_heads(heads):
    return lambda model: setattr(model, "heads", heads())


def set_head(head):
    return lambda model: setattr(model.heads, "head", head())


def cases():
    yield file("plain")
    yield file("safetensors", save=save_file, ending="safetensors")
    yield file("thousand", num_classes=1000)
    yield file("patch_32", patch_size=32)
    yield file("pre_logits", representation_size=WIDTH)
    yield file("pre_logits_narrow", representation_size=64)
    yield file("pre_logits_wide", representation_size=300)
    yield file("heads_linear", set_heads(lambda: nn.Linear(WIDTH, 7)))
    yield file("heads_sequential", set_heads(lambda: nn.Sequential(nn.Linear(WIDTH, 7))))
    yield file("heads_dropout", set_heads(lambda: nn.Sequential(nn.Dropout(0.2), nn.Linear(WIDTH, 7))))
    yield file("heads_softmax", set_heads(lambda: nn.Sequential(nn.Linear(WIDTH, 7), nn.Identity())))
    yield file("head_dropout", set_head(lambda: nn.Sequential(nn.Dropout(0.2), nn.Linear(WIDTH, 7))))
    yield file("head_linear", set_head(lambda: nn.Linear(WIDTH, 4)))
    yield file("head_no_bias", set_head(lambda: nn.Linear(WIDTH, 4, bias=False)))
    yield file("heads_identity", set_heads(nn.Identity), bare=True)
    yield file("data_parallel", wrap=lambda d: {"module." + k: v for k, v in d.items()})
    yield file("net_prefix", wrap=lambda d: {"net." + k: v for k, v in d.items()})
    yield file("lightning", wrap=lambda d: {"state_dict": {"model." + k: v for k, v in d.items()}, "epoch": 1})
    yield file("checkpoint", wrap=lambda d: {"model": d, "optimizer": {"state": {}, "param_groups": []}})
    yield file("reference_ema", wrap=lambda d: {
        "model": {k: torch.randn_like(v) for k, v in d.items()},
        "model_ema": {"n_averaged": torch.tensor(7), **{"module." + k: v for k, v in d.items()}}})
    yield file("f64", wrap=lambda d: {k: v.double() for k, v in d.items()})
    yield file("namespace", wrap=lambda d: {"model": d, "args": argparse.Namespace(model="vit_b_16"), "epoch": 1})
    yield file("patch_8", patch_size=8, image_size=32)
    yield file("one_class", num_classes=1)
    yield file("image_96", image_size=96, dropout=0.1, attention_dropout=0.1)
    yield refused("conv_stem", lambda: vit(conv_stem_configs=[ConvStemConfig(8, 3, 4)] * 2), "conv")
    yield refused("rms", lambda: vit(norm_layer=nn.RMSNorm), "lacks")
    yield refused("heads_two_layers", lambda: changed(lambda: nn.Sequential(
        nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, 7))), "head")
    yield refused("heads_norm", lambda: changed(lambda: nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 7))),
                  "head")
    models = torchvision.models
    small = dict(patch_size=[4, 4], embed_dim=12, depths=[1, 1], num_heads=[2, 2], window_size=[4, 4])
    yield refused("swin", lambda: models.swin_transformer.SwinTransformer(**small), "Swin")
    yield refused("swinv2", lambda: models.swin_transformer.SwinTransformer(
        **small, block=models.swin_transformer.SwinTransformerBlockV2,
        downsample_layer=models.swin_transformer.PatchMergingV2), "Swin")
    yield refused("maxvit", lambda: models.maxvit.MaxVit(
        input_size=(56, 56), stem_channels=8, partition_size=7, block_channels=[8, 16], block_layers=[1, 1],
        head_dim=4, stochastic_depth_prob=0.0), "MaxViT")
    yield refused("resnet", lambda: models.resnet18(num_classes=5), "not named as")


def changed(heads):
    model = vit()
    model.heads = heads()
    return model
