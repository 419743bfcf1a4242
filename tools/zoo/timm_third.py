"""A third round of models saved by timm: what its arguments do to one another, what was done to a model before it was
saved, and what training programs put beside its weights."""
import argparse
import collections
import functools
import pathlib
import random
import re

import numpy
import timm
import torch
from safetensors.torch import save_file
from timm.models import save_for_hf

from common import Case, Refusal, classifier, example_image
from timm_kinds import answer_of, hub, make, refused, tiny

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = dict(embed_dim=48, depth=2, num_heads=3, num_classes=5, img_size=32)
DEIT = "deit_tiny_distilled_patch16_224"


def embedding():
    for norm in ("layernorm", "LayerNormFp32", "rmsnorm", "simplenorm"):
        yield hub(f"3_embed_{norm}", tiny(embed_norm_layer=norm))
    yield hub("3_embed_norm_pre_norm", tiny(embed_norm_layer="layernorm", pre_norm=True, reg_tokens=2))
    yield hub("3_embed_norm_gap", tiny(embed_norm_layer="layernorm", class_token=False, global_pool="avg"))
    yield hub("3_embed_norm_rms_all", tiny(embed_norm_layer="rmsnorm", norm_layer="rmsnorm", act_layer="silu"))
    yield hub("3_embed_norm_wide", tiny(embed_norm_layer="layernorm", img_size=[24, 40], patch_size=[8, 4]))
    yield hub("3_pad", tiny(img_size=30, dynamic_img_pad=True, dynamic_img_size=True))
    yield hub("3_pad_wide", tiny(img_size=[27, 45], dynamic_img_pad=True, dynamic_img_size=True))
    yield hub("3_pad_no_positions", tiny(img_size=30, dynamic_img_pad=True, pos_embed="none"))
    yield hub("3_pad_larger", tiny(dynamic_img_pad=True, dynamic_img_size=True), cfg=dict(input_size=(3, 45, 45)))
    yield hub("3_pad_registers", tiny(img_size=37, dynamic_img_pad=True, dynamic_img_size=True, reg_tokens=2,
                                      no_embed_class=True))
    yield hub("3_pad_squash", tiny(img_size=29, dynamic_img_pad=True, dynamic_img_size=True),
              cfg=dict(crop_mode="squash", crop_pct=1.0))
    yield hub("3_pad_gap_none", tiny(img_size=[29, 33], dynamic_img_pad=True, pos_embed="none", class_token=False,
                                     global_pool="avg"))
    yield hub("3_dynamic_wide_map", tiny(dynamic_img_size=True, global_pool="map", class_token=False),
              cfg=dict(input_size=(3, 24, 40)))
    yield hub("3_no_blocks", tiny(depth=0))


def crops():
    for pct in (0.7, 0.875, 1.0, 1.2):
        yield hub(f"3_border_{pct}", cfg=dict(crop_mode="border", crop_pct=pct))
    yield hub("3_border_bilinear", cfg=dict(crop_mode="border", interpolation="bilinear", mean=(0.1, 0.5, 0.9)))
    yield hub("3_border_wide", tiny(img_size=[24, 48]), cfg=dict(crop_mode="border", crop_pct=0.9))
    yield hub("3_border_tall", tiny(img_size=[48, 24]), cfg=dict(crop_mode="border", crop_pct=1.0))
    yield hub("3_border_odd", tiny(img_size=33, patch_size=11), cfg=dict(crop_mode="border", crop_pct=0.95))
    yield hub("3_border_grey", tiny(in_chans=1), cfg=dict(crop_mode="border", mean=(0.3,), std=(0.4,)))
    yield hub("3_crop_pct_1.3", cfg=dict(crop_pct=1.3))
    for mode in ("lanczos", "box", "hamming", "nearest"):
        yield hub(f"3_squash_{mode}", cfg=dict(interpolation=mode, crop_mode="squash", crop_pct=0.8))


def layers():
    yield refused("3_prelu_gap", tiny(act_layer="prelu", class_token=False, global_pool="avg"), "act_layer")
    yield hub("3_prr_fc_norm", tiny(global_pool="prr", fc_norm=True))
    yield hub("3_gelu_map_rms", tiny(global_pool="map", class_token=False, norm_layer="rmsnorm", qk_norm=True))
    yield hub("3_every_norm", tiny(pre_norm=True, qk_norm=True, scale_attn_norm=True, scale_mlp_norm=True, fc_norm=True))
    yield hub("3_no_norm_anywhere", tiny(final_norm=False, fc_norm=False, qkv_bias=False, proj_bias=False))
    yield hub("3_map_simple", tiny(global_pool="map", norm_layer="simplenorm"))
    yield hub("3_fc_norm_no_final", tiny(fc_norm=True, final_norm=False))
    yield hub("3_fc_norm_avgmax", tiny(fc_norm=True, global_pool="avgmax", reg_tokens=4, no_embed_class=True))


def clip():
    """What an argument replaces of an architecture that has its own: CLIP's epsilon is 1e-5, that of named norms not."""
    arch = "vit_base_patch16_clip_224"

    def low(name, **args):  # of so little variance that epsilon shows
        def build(folder):
            model = make(name, arch, {**SMALL, **args})
            with torch.no_grad():
                for part in (model.patch_embed, model.cls_token, model.pos_embed, model.norm_pre):
                    for value in part.parameters() if isinstance(part, torch.nn.Module) else [part]:
                        value.mul_(0.005)
            save_for_hf(model, folder, model_args={**SMALL, **args}, safe_serialization=True)
            return answer_of(timm.create_model(f"local-dir:{folder}", pretrained=True))
        return Case(f"timm_{name}", build)
    yield low("3_clip_low")
    for norm in ("layernorm", "rmsnorm", ""):
        yield low(f"3_clip_low_{norm or 'empty'}", norm_layer=norm)
    yield low("3_clip_low_embed", embed_norm_layer="layernorm")
    yield hub("3_quickgelu_act_empty", {**SMALL, "act_layer": ""}, arch="vit_base_patch32_clip_quickgelu_224")
    yield hub("3_rms_arch_norm_empty", {**SMALL, "norm_layer": ""}, arch="test_vit4")


def distilled():
    yield hub("3_distilled_registers", tiny(reg_tokens=2), arch=DEIT)
    yield hub("3_distilled_registers_4", tiny(reg_tokens=4, init_values=0.1), arch=DEIT)
    yield hub("3_distilled_fc_norm", tiny(fc_norm=True), arch=DEIT)
    yield hub("3_distilled_no_final", tiny(final_norm=False), arch=DEIT)
    yield hub("3_distilled_no_positions", tiny(pos_embed="none"), arch=DEIT)
    yield hub("3_distilled_bare", tiny(num_classes=0, pre_norm=True), arch=DEIT)
    yield hub("3_distilled_rms", tiny(norm_layer="rmsnorm", act_layer="silu"), arch=DEIT)
    yield hub("3_distilled_no_biases", tiny(proj_bias=False, qkv_bias=False), arch=DEIT)
    yield hub("3_distilled_embed_norm", tiny(embed_norm_layer="layernorm"), arch=DEIT)
    yield hub("3_distilled_pad", tiny(img_size=27, dynamic_img_size=True, dynamic_img_pad=True), arch=DEIT)
    yield hub("3_distilled_border", tiny(), arch=DEIT, cfg=dict(crop_mode="border"))
    yield hub("3_distilled_grey", tiny(in_chans=1), arch=DEIT, cfg=dict(mean=(0.5,), std=(0.5,)))


def changed():
    """Models that were changed between being made and being saved."""
    def after(name, change, args=None, arch="vit_base_patch16_224", cfg=None, say=None):
        def build(folder):
            args_ = tiny() if args is None else args
            model = make(name, arch, args_, cfg)
            change(model)
            save_for_hf(model, folder, model_args=say or args_, safe_serialization=True)
            return answer_of(timm.create_model(f"local-dir:{folder}", pretrained=True))
        return Case(f"timm_{name}", build)
    yield after("3_reset_head", lambda m: m.reset_classifier(9), say=tiny(num_classes=9))
    yield after("3_reset_pool", lambda m: m.reset_classifier(4, "avg"), say=tiny(num_classes=4, global_pool="avg", fc_norm=False))
    yield after("3_set_input", lambda m: m.set_input_size((48, 48)), say=tiny(img_size=48), cfg=dict(input_size=(3, 48, 48)))
    yield after("3_set_patch", lambda m: m.set_input_size((32, 32), (4, 4)), say=tiny(patch_size=4))
    yield after("3_pruned", lambda m: m.prune_intermediate_layers([0], prune_head=False), say=tiny(depth=1))
    yield after("3_half_norms", lambda m: [b.mlp.half() for b in m.blocks] and None)
    yield after("3_eval_frozen", lambda m: m.requires_grad_(False))


def files():
    """What lies beside the weights in checkpoints of training programs; `--arch` says what they are."""
    def file(name, wrap, args=("--arch", "test_vit"), ending="pth", save=torch.save, halved=None):
        def build(folder):
            model = make(name, "test_vit", dict(num_classes=6), cfg=dict(input_size=(3, 160, 160)))
            path = folder / f"weights.{ending}"
            if halved:
                model.load_state_dict(halved(model.state_dict()))
            save(wrap(model.state_dict()), path)
            return answer_of(model, path.name, args=args)
        return Case(f"timm_3_file_{name}", build)

    def named(d, change):
        return {change(k): v for k, v in d.items()}
    yield file("namespace", lambda d: {"model": d, "args": argparse.Namespace(lr=0.1, out=pathlib.PurePosixPath("/x"))})
    yield file("posix_path", lambda d: {"model": d, "out": pathlib.PosixPath("/tmp/x")})
    yield file("numpy_scalar", lambda d: {"state_dict": d, "best": numpy.float64(0.5), "n": numpy.int64(3)})
    yield file("rng_states", lambda d: {"state_dict": d, "rng": torch.get_rng_state(),
                                        "numpy": numpy.random.get_state(), "python": random.getstate()})
    yield file("defaultdict", lambda d: {"state_dict": d, "history": collections.defaultdict(list, loss=[1.0])})
    yield file("counter", lambda d: {"state_dict": d, "seen": collections.Counter("abc"), "set": {1, 2}})
    yield file("device_dtype", lambda d: {"state_dict": d, "device": torch.device("cpu"), "dtype": torch.float32,
                                          "size": torch.Size([1, 2])})
    yield file("partial", lambda d: {"model": d, "make": functools.partial(dict, a=1)})
    yield file("scheduler", lambda d: {"model": d, "scheduler": {"last_epoch": 3, "_step_count": 4, "lambdas": [None]},
                                       "scaler": {"scale": 65536.0}, "epoch": 3})
    for key in ("ema_state_dict", "model_weights", "params_ema", "params", "weights", "network", "module", "student",
                "ema_model", "encoder", "backbone", "model_ema_state_dict", "generator", "best_model"):
        yield file(f"under_{key}", lambda d, key=key: {key: d, "iter": 4})
    yield file("ddp_compiled", lambda d: named(d, lambda k: "_orig_mod.module." + k))
    yield file("checkpoint_wrapped", lambda d: named(d, lambda k: k.replace("blocks.0.", "blocks.0._checkpoint_wrapped_module.")
                                                     .replace("blocks.1.", "blocks.1._checkpoint_wrapped_module.")))
    yield file("fsdp", lambda d: named(d, lambda k: "_fsdp_wrapped_module." + k.replace(
        "attn.", "attn._fsdp_wrapped_module.")))
    yield file("compiled_blocks", lambda d: named(d, lambda k: k.replace("mlp.", "mlp._orig_mod.")))
    yield file("student_teacher", lambda d: {"student": {k: torch.randn_like(v) for k, v in d.items()}, "teacher": d},)
    def matrices_f16(d):
        return {k: v.half() if v.dim() > 1 else v for k, v in d.items()}

    def vectors_bf16(d):
        return {k: v.bfloat16() if v.dim() == 1 else v for k, v in d.items()}
    yield file("matrices_f16", matrices_f16, halved=matrices_f16)
    yield file("vectors_bf16", vectors_bf16, halved=vectors_bf16)
    yield file("expanded", lambda d: {k: v.clone() for k, v in d.items()}, ending="pt")
    yield file("ckpt", lambda d: {"state_dict": d, "hyper_parameters": {"lr": 0.1}, "callbacks": {}}, ending="ckpt")
    yield file("bin", lambda d: d, ending="bin")
    yield file("tar", lambda d: {"epoch": 1, "arch": "vit", "state_dict": named(d, lambda k: "module." + k)},
               ending="pth.tar")
    yield file("metadata", lambda d: d, ending="safetensors",
               save=lambda d, p: save_file(d, p, metadata={"format": "pt", "note": "x"}))
    yield file("on_gpu", lambda d: named(d, str))
    yield file("criterion", lambda d: {"state_dict": {**named(d, lambda k: "model." + k),
                                                      "criterion.weight": torch.ones(6)}})

    def scripted(folder):
        model = make("scripted", "test_vit", dict(num_classes=6), cfg=dict(input_size=(3, 160, 160)))
        torch.jit.trace(model, torch.zeros(1, 3, 160, 160)).save(folder / "weights.pt")
        return Refusal("weights.pt", ("TorchScript", "script"), args=("--arch", "test_vit"))
    yield Case("timm_3_file_scripted", scripted)

    def pickled(folder):
        torch.save(make("pickled", "test_vit", dict(num_classes=6)), folder / "weights.pt")
        return Refusal("weights.pt", ("module", "timm.models"), args=("--arch", "test_vit"))
    yield Case("timm_3_file_pickled", pickled)


def arrays():
    """Google's npz, of timm's weights under Google's names, as timm reads it."""
    def npz(name, save=numpy.savez, prefix="", change=None, cls=True, dtype=None):
        def build(folder):
            classes = 7
            arch = "vit_tiny_patch16_224"
            model = make(name, arch, dict(num_classes=classes))
            flat = {prefix + k: v.astype(dtype) if dtype else v for k, v in google(model.state_dict(), 3).items()}
            save(folder / "weights.npz", **(change(flat) if change else flat))
            own = timm.create_model(arch, num_classes=classes, act_layer="gelu_tanh")
            own.load_pretrained(str(folder / "weights.npz"), prefix=prefix)
            # Google's programs resize bilinearly without antialias and use the tanh form of the GELU.
            pixels = torch.tensor(numpy.array(example_image())).permute(2, 0, 1)[None].float()
            pixels = torch.nn.functional.interpolate(pixels, (224, 224), mode="bilinear") / 127.5 - 1
            with torch.no_grad():
                return classifier("weights.npz", own.eval()(pixels))
        return Case(f"timm_3_npz_{name}", build)
    yield npz("plain")
    yield npz("compressed", numpy.savez_compressed)
    yield npz("f64", dtype=numpy.float64)
    yield npz("f16", dtype=numpy.float16)
    yield npz("opt_target", prefix="opt/target/")
    yield npz("fortran", change=lambda d: {k: numpy.asfortranarray(v) for k, v in d.items()})


def google(state, heads):
    s = {k: v.double().numpy().astype(numpy.float32) for k, v in state.items()}
    out = {"cls": s["cls_token"], "embedding/kernel": s["patch_embed.proj.weight"].transpose(2, 3, 1, 0),
           "embedding/bias": s["patch_embed.proj.bias"], "Transformer/posembed_input/pos_embedding": s["pos_embed"],
           "Transformer/encoder_norm/scale": s["norm.weight"], "Transformer/encoder_norm/bias": s["norm.bias"],
           "head/kernel": s["head.weight"].T, "head/bias": s["head.bias"]}
    width = s["norm.weight"].shape[0]
    for i in range(sum(k.endswith("norm1.weight") for k in s)):
        at, b = f"Transformer/encoderblock_{i}/", f"blocks.{i}."
        q = s[b + "attn.qkv.weight"].reshape(3, heads, width // heads, width)
        qb = s[b + "attn.qkv.bias"].reshape(3, heads, width // heads)
        for n, which in enumerate(("query", "key", "value")):
            out[at + f"MultiHeadDotProductAttention_1/{which}/kernel"] = q[n].transpose(2, 0, 1)
            out[at + f"MultiHeadDotProductAttention_1/{which}/bias"] = qb[n]
        out[at + "MultiHeadDotProductAttention_1/out/kernel"] = s[b + "attn.proj.weight"].reshape(
            width, heads, width // heads).transpose(1, 2, 0)
        out[at + "MultiHeadDotProductAttention_1/out/bias"] = s[b + "attn.proj.bias"]
        for n, own in ((0, "norm1"), (2, "norm2")):
            out[at + f"LayerNorm_{n}/scale"], out[at + f"LayerNorm_{n}/bias"] = s[b + own + ".weight"], s[b + own + ".bias"]
        for n in (0, 1):
            out[at + f"MlpBlock_3/Dense_{n}/kernel"] = s[b + f"mlp.fc{n + 1}.weight"].T
            out[at + f"MlpBlock_3/Dense_{n}/bias"] = s[b + f"mlp.fc{n + 1}.bias"]
    return out


def draw(number):
    r = random.Random(3000 + number)
    arch = r.choice(("vit_base_patch16_224",) * 3 + ("vit_base_patch16_clip_224", DEIT, "deit3_small_patch16_224"))
    heads = r.choice((1, 2, 3, 5))
    patch = r.choice((4, 8, [8, 4], [5, 6], 7))
    sides = patch if isinstance(patch, list) else [patch, patch]
    token = arch == DEIT
    pool = "token" if token else r.choice(("token", "avg", "map", "max", "avgmax"))
    args = dict(embed_dim=heads * r.choice((8, 12, 20)), num_heads=heads, depth=r.choice((1, 2)), patch_size=patch,
                img_size=[sides[0] * r.choice((2, 3)), sides[1] * r.choice((2, 4))], num_classes=r.choice((0, 2, 9)),
                global_pool=pool, class_token=True if pool == "token" else r.random() < 0.5)
    may = dict(qkv_bias=False, proj_bias=False, qk_norm=True, init_values=0.3, pre_norm=True, mlp_ratio=3,
               fc_norm=r.random() < 0.5, embed_norm_layer=r.choice(("layernorm", "rmsnorm")), scale_attn_norm=True,
               dynamic_img_size=True, act_layer=r.choice(("relu", "gelu_tanh", "elu", "mish", "quick_gelu", "silu")),
               norm_layer=r.choice(("rmsnorm", "layernorm")), reg_tokens=r.choice((1, 3)))
    args.update({key: value for key, value in may.items() if r.random() < 0.25})
    if not token and r.random() < 0.2:
        args["no_embed_class"] = True
    if args.get("dynamic_img_size") and r.random() < 0.6:
        args.update(dynamic_img_pad=True, img_size=[s + r.choice((0, 1, 3)) for s in args["img_size"]])
    cfg = dict(crop_pct=r.choice((0.8, 0.9, 1.0)), interpolation=r.choice(("bicubic", "bilinear")),
               crop_mode=r.choice(("center", "squash", "border")))
    return hub(f"3_draw_{number:02}", args, arch=arch, cfg=cfg, safe=r.random() < 0.7,
               dtype=r.choice((None, None, torch.bfloat16, torch.float16)))


def architectures():
    """Every architecture that Vitrail knows and timm has."""
    names = re.findall(r'{"(\w+)",', (ROOT / "src" / "models" / "zoo_rows.h").read_text())
    return [name for name in names if timm.is_model(name)]


def across(arch):
    """A draw of arguments in the place of an architecture's own, nulls among them, under which epsilon shows."""
    r = random.Random(f"3 {arch}")
    patch = r.choice((4, 8, [8, 4]))
    sides = patch if isinstance(patch, list) else [patch, patch]
    args = dict(embed_dim=48, depth=2, num_heads=3, num_classes=5, patch_size=patch,
                img_size=[sides[0] * r.choice((2, 4)), sides[1] * 4])
    may = dict(qkv_bias=r.random() < 0.5, qk_norm=True, init_values=r.choice((None, 0.2)), pre_norm=r.random() < 0.6,
               mlp_ratio=r.choice((1.5, 4.0)), norm_layer=r.choice(("layernorm", "rmsnorm", "simplenorm", "", None)),
               act_layer=r.choice(("gelu", "relu", "", None)), no_embed_class=r.random() < 0.5,
               embed_norm_layer=r.choice(("layernorm", None)), scale_mlp_norm=True)
    args.update({key: value for key, value in may.items() if r.random() < 0.3})
    if "distilled" in arch:  # which timm itself cannot run so
        args.pop("no_embed_class", None)
    scale = r.choice((1, 0.02, 0.003))

    def build(folder):
        cfg = {k: v for k, v in timm.get_pretrained_cfg(arch).to_dict().items()
               if k in ("crop_pct", "crop_mode", "interpolation", "mean", "std") and v is not None}
        # create_model drops what is None; timm's loader takes a null of the file for it.
        made = {k: ("" if k.endswith("_layer") else 0) if v is None else v for k, v in args.items()}
        model = make(f"3_{arch}", arch, made, cfg)
        with torch.no_grad():
            for name, value in model.named_parameters():
                if name.startswith(("patch_embed.proj", "cls_token", "pos_embed", "reg_token", "norm_pre")):
                    value.mul_(scale)
        save_for_hf(model, folder, model_args=args, safe_serialization=True)
        return answer_of(timm.create_model(f"local-dir:{folder}", pretrained=True))
    return Case(f"timm_3_{arch}", build)


def cases():
    for group in (embedding, crops, layers, clip, distilled, changed, files, arrays):
        yield from group()
    for number in range(30):
        yield draw(number)
    for arch in architectures():
        yield across(arch)
