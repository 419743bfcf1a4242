"""Models saved by timm: hub folders of every variation its VisionTransformer takes, bare files, checkpoints."""
import json

import timm
import torch
from safetensors.torch import save_file
from timm.data import create_transform, resolve_model_data_config
from timm.models import save_for_hf

from common import Case, Refusal, classifier, edit_json, example_image, features, scramble, seed_for

TINY = dict(embed_dim=48, depth=2, num_heads=3, img_size=32, patch_size=8, num_classes=5)


def tiny(**changes):
    return {k: v for k, v in {**TINY, **changes}.items() if v != "absent"}


def pixels_for(model, size=None):
    config = resolve_model_data_config(model)
    if size:
        config["input_size"] = (config["input_size"][0], *size)
    image = example_image()
    if config["input_size"][0] == 1:
        image = image.convert("L")
    return create_transform(**config, is_training=False)(image).unsqueeze(0)


def answer_of(model, path=".", args=(), size=None):
    with torch.no_grad():
        out = model.eval().float()(pixels_for(model, size))
    return classifier(path, out, args=args) if model.num_classes else features(path, out, args=args)


def input_size(args):
    size = args.get("img_size", 32)
    sides = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
    return (args.get("in_chans", 3), *sides)


def make(name, arch, args, cfg=None):
    seed_for(name)
    model = scramble(timm.create_model(arch, **args))
    model.pretrained_cfg = {**model.pretrained_cfg, "architecture": arch, "tag": "",
                            "input_size": input_size(args), "num_classes": model.num_classes, **(cfg or {})}
    return model


def hub(name, args=None, arch="vit_base_patch16_224", cfg=None, dtype=None, change=None, say=None, vitrail_args=(),
        size=None, safe=True, **model_config):
    """A folder as push_to_hf_hub writes it, answered by timm loading that folder."""
    args = tiny() if args is None else args

    def build(folder):
        model = make(name, arch, {k: v for k, v in args.items() if v is not None}, cfg)
        if dtype:
            model = model.to(dtype)
        save_for_hf(model, folder, model_config=dict(model_config) or None, model_args=say or args, safe_serialization=safe)
        if change:
            edit_json(folder / "config.json", change)
        own = {"img_size": size} if size else {}
        return answer_of(timm.create_model(f"local-dir:{folder}", pretrained=True, **own), args=vitrail_args, size=size)
    return Case(f"timm_{name}", build)


def refused(name, args, *names, arch="vit_base_patch16_224", **options):
    def build(folder):
        save_for_hf(make(name, arch, args), folder, model_args=args, safe_serialization=True, **options)
        return Refusal(".", names)
    return Case(f"timm_{name}", build)


def variations():
    yield hub("plain")
    yield hub("gap", tiny(class_token=False, global_pool="avg"))
    yield hub("gap_with_class", tiny(global_pool="avg"))
    yield hub("gap_norm_before", tiny(global_pool="avg", fc_norm=False))
    yield hub("gap_no_class_norm_before", tiny(global_pool="avg", fc_norm=False, class_token=False))
    yield hub("token_fc_norm", tiny(fc_norm=True))
    yield hub("fc_norm_false", tiny(fc_norm=False))
    yield hub("map", tiny(class_token=False, global_pool="map"))
    yield hub("map_with_class", tiny(global_pool="map"))
    yield hub("map_all_tokens", tiny(global_pool="map", pool_include_prefix=True))
    yield hub("map_fc_norm", tiny(class_token=False, global_pool="map", fc_norm=True))
    yield hub("gap_all_tokens", tiny(global_pool="avg", pool_include_prefix=True))
    for count in (1, 4, 7):
        yield hub(f"registers_{count}", tiny(reg_tokens=count, no_embed_class=True))
        yield hub(f"registers_{count}_positions", tiny(reg_tokens=count))
        yield hub(f"registers_{count}_gap", tiny(reg_tokens=count, no_embed_class=True, class_token=False,
                                                 global_pool="avg"))
        yield hub(f"registers_{count}_gap_positions", tiny(reg_tokens=count, class_token=False, global_pool="avg"))
    yield hub("registers_map", tiny(reg_tokens=2, class_token=False, global_pool="map"))
    yield hub("registers_map_all", tiny(reg_tokens=2, class_token=False, global_pool="map", pool_include_prefix=True))
    yield hub("no_embed_class", tiny(no_embed_class=True))
    yield hub("no_qkv_bias", tiny(qkv_bias=False))
    yield hub("qk_norm", tiny(qk_norm=True))
    yield hub("layer_scale", tiny(init_values=0.1))
    yield hub("layer_scale_zero", tiny(init_values=0))
    yield hub("layer_scale_null", tiny(init_values=None), arch="vit_base_patch16_224")
    yield hub("deit3_layer_scale_null", tiny(init_values=None), arch="vit_small_patch16_224",
              say=tiny(init_values=None))
    yield hub("no_proj_bias", tiny(proj_bias=False))
    yield hub("no_biases", tiny(proj_bias=False, qkv_bias=False))
    for ratio in (1, 2, 2.5, 3.7):
        yield hub(f"mlp_{ratio}", tiny(mlp_ratio=ratio))
    yield hub("heads_6", tiny(num_heads=6))
    yield hub("heads_1", tiny(num_heads=1))
    yield hub("depth_1", tiny(depth=1))
    yield hub("grey", tiny(in_chans=1), cfg=dict(mean=(0.4,), std=(0.3,)))
    for classes in (0, 1, 2, 1000):
        yield hub(f"classes_{classes}", tiny(num_classes=classes))
    yield hub("wide", tiny(img_size=[24, 48]))
    yield hub("tall", tiny(img_size=[48, 16]))
    yield hub("wide_squash", tiny(img_size=[24, 48]), cfg=dict(crop_mode="squash"))
    yield hub("patch_list", tiny(patch_size=[8, 8]))
    yield hub("class_token_1", tiny(class_token=1))
    yield hub("qkv_bias_0", tiny(qkv_bias=0))
    yield hub("dropouts", tiny(drop_rate=0.2, attn_drop_rate=0.1, proj_drop_rate=0.1, drop_path_rate=0.3,
                               pos_drop_rate=0.1, patch_drop_rate=0.2))
    yield hub("init_words", tiny(weight_init="jax", fix_init=True))
    yield hub("dynamic", tiny(dynamic_img_size=True))
    yield hub("dynamic_larger", tiny(dynamic_img_size=True), cfg=dict(input_size=(3, 48, 48)))
    yield hub("dynamic_wide", tiny(dynamic_img_size=True), cfg=dict(input_size=(3, 24, 56)))
    yield hub("positions_of_another_size", change=lambda c: (
        c["pretrained_cfg"].update(input_size=[3, 48, 48]), c["model_args"].update(img_size=48)))
    yield hub("positions_of_another_shape", change=lambda c: (
        c["pretrained_cfg"].update(input_size=[3, 24, 56]), c["model_args"].update(img_size=[24, 56])))
    yield hub("registers_another_size", tiny(reg_tokens=3), change=lambda c: (
        c["pretrained_cfg"].update(input_size=[3, 40, 40]), c["model_args"].update(img_size=40)))
    yield hub("act_gelu_tanh", tiny(act_layer="gelu_tanh"))
    yield hub("act_gelu", tiny(act_layer="gelu"))
    yield hub("norm_layer_named", tiny(norm_layer="layernorm"))
    yield hub("defaults_spelled_out", tiny(pre_norm=False, final_norm=True, pos_embed="learn", reg_tokens=0,
                                           pool_include_prefix=False, scale_attn_norm=False, scale_mlp_norm=False))
    yield hub("distilled", tiny(), arch="deit_tiny_distilled_patch16_224")
    yield hub("distilled_no_head", tiny(num_classes=0), arch="deit_tiny_distilled_patch16_224")


def rarer():
    """What timm's VisionTransformer also takes: other pooling, activations and norms, odd sizes."""
    for pool in ("max", "avgmax"):
        yield hub(f"pool_{pool}", tiny(global_pool=pool))
        yield hub(f"pool_{pool}_no_class", tiny(global_pool=pool, class_token=False))
        yield hub(f"pool_{pool}_norm_before", tiny(global_pool=pool, fc_norm=False))
        yield hub(f"pool_{pool}_all_tokens", tiny(global_pool=pool, pool_include_prefix=True, reg_tokens=2))
    for act in ("relu", "relu6", "leaky_relu", "elu", "silu", "swish", "mish", "quick_gelu", "hard_swish", "hardswish",
                "tanh", "sigmoid"):
        yield hub(f"act_{act}", tiny(act_layer=act))
    yield hub("act_relu_map", tiny(act_layer="relu", class_token=False, global_pool="map"))
    yield hub("act_relu_distilled", tiny(act_layer="relu"), arch="deit_tiny_distilled_patch16_224")
    for norm in ("rmsnorm", "rmsnormfp32", "layernormfp32"):
        yield hub(f"norm_{norm}", tiny(norm_layer=norm))
    yield hub("rmsnorm_gap", tiny(norm_layer="rmsnorm", class_token=False, global_pool="avg"))
    yield hub("rmsnorm_map", tiny(norm_layer="rmsnorm", class_token=False, global_pool="map"))
    yield hub("rmsnorm_scaled", tiny(norm_layer="rmsnorm", init_values=0.1, qkv_bias=False, reg_tokens=1))
    yield hub("pre_norm", tiny(pre_norm=True))
    yield hub("pre_norm_gap", tiny(pre_norm=True, class_token=False, global_pool="avg", no_embed_class=True))
    yield hub("pre_norm_rms", tiny(pre_norm=True, norm_layer="rmsnorm", act_layer="quick_gelu"))
    yield hub("no_final_norm", tiny(final_norm=False))
    yield hub("no_final_norm_gap", tiny(final_norm=False, class_token=False, global_pool="avg"))
    yield hub("no_final_norm_map", tiny(final_norm=False, class_token=False, global_pool="map"))
    yield hub("no_final_norm_bare", tiny(final_norm=False, num_classes=0))
    yield hub("no_positions", tiny(pos_embed="none"))
    yield hub("no_positions_empty", tiny(pos_embed=""))
    yield hub("no_positions_gap", tiny(pos_embed="none", class_token=False, global_pool="avg", reg_tokens=2))
    yield hub("no_positions_resized", tiny(pos_embed="none"), vitrail_args=("--image", "48"), size=(48, 48))
    yield hub("tall_patches", tiny(patch_size=[8, 4]))
    yield hub("wide_patches", tiny(patch_size=[4, 16], img_size=[24, 48]))
    yield hub("tall_patches_another_size", tiny(patch_size=[8, 4], img_size=[32, 16]), change=lambda c: (
        c["pretrained_cfg"].update(input_size=[3, 48, 48]), c["model_args"].update(img_size=48)))
    yield hub("uncovered", tiny(img_size=30))
    yield hub("named_full_test_vit4", {}, arch="test_vit4", cfg=dict(input_size=(3, 160, 160)))
    yield hub("pad_of_whole_patches", tiny(dynamic_img_pad=True))
    yield hub("uncovered_wide", tiny(img_size=[31, 45]))
    yield hub("uncovered_squash", tiny(img_size=39), cfg=dict(crop_mode="squash", crop_pct=1.0))
    yield hub("uncovered_positions", change=lambda c: (
        c["pretrained_cfg"].update(input_size=[3, 53, 53]), c["model_args"].update(img_size=53)))
    yield hub("all_at_once", tiny(img_size=[31, 45], patch_size=[8, 6], norm_layer="rmsnorm", act_layer="silu",
                                  global_pool="avgmax", pos_embed="none", reg_tokens=1, init_values=0.2))


def preprocessing():
    for mode in ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"):
        yield hub(f"interpolation_{mode}", cfg=dict(interpolation=mode))
    for pct in (0.5, 0.875, 0.9, 0.95, 1.0, 1.25):
        yield hub(f"crop_{pct}", cfg=dict(crop_pct=pct))
        yield hub(f"squash_{pct}", cfg=dict(crop_pct=pct, crop_mode="squash"))
    yield hub("colours", cfg=dict(mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6)))
    yield hub("wide_crop", tiny(img_size=[32, 48]), cfg=dict(crop_pct=0.8, interpolation="bicubic"))
    yield hub("silent_cfg", change=lambda c: [c["pretrained_cfg"].pop(k, None)
                                              for k in ("mean", "std", "crop_pct", "interpolation", "crop_mode")])
    yield hub("old_single_dict", {}, arch="test_vit", cfg=dict(input_size=(3, 160, 160)), change=lambda c: (
        c.update(c.pop("pretrained_cfg")), [c.pop(k, None) for k in ("model_args", "global_pool")]))
    yield hub("resized_wide", vitrail_args=("--image", "24x48"), size=(24, 48))
    yield hub("resized_tall", vitrail_args=("--image", "56x24"), size=(56, 24))
    yield hub("resized_square", vitrail_args=("--image", "48"), size=(48, 48))
    yield hub("wide_larger", tiny(img_size=[24, 48], dynamic_img_size=True), cfg=dict(input_size=(3, 32, 64)))
    yield hub("wide_to_square", tiny(img_size=[24, 48], dynamic_img_size=True), cfg=dict(input_size=(3, 32, 32)))
    yield hub("label_names", label_names=[f"thing {i}" for i in range(5)])
    yield hub("label_dict", label_names={str(i): f"thing {i}" for i in range(5)})
    yield hub("label_dict_gaps", label_names={"1": "one", "3": "three"})
    yield hub("informational_pool", change=lambda c: c.update(global_pool="avg"))


def storage():
    yield hub("bf16", dtype=torch.bfloat16)
    yield hub("f16", dtype=torch.float16)
    yield hub("f64", dtype=torch.float64)
    yield hub("bin", safe=False)
    yield hub("both", safe="both")
    yield hub("bf16_bin", safe=False, dtype=torch.bfloat16)


def named():
    """Every plain architecture of timm at a size of its own, so that each name's traits are held."""
    small = dict(embed_dim=48, depth=2, num_heads=3, num_classes=5, img_size=32)
    names = ["vit_tiny_patch16_224", "vit_small_patch32_224", "vit_base_patch8_224", "vit_base_patch16_224_miil",
             "vit_base_patch16_gap_224", "vit_base_patch16_plus_240", "vit_base_patch16_reg4_gap_256",
             "vit_betwixt_patch16_reg4_gap_256", "vit_giant_patch16_gap_224", "vit_huge_patch14_gap_224",
             "vit_large_patch14_224", "vit_little_patch16_reg1_gap_256", "vit_medium_patch16_gap_384",
             "vit_mediumd_patch16_reg4_gap_256", "vit_small_patch16_36x1_224", "vit_wee_patch16_reg1_gap_256",
             "vit_so150m_patch16_reg4_gap_256", "vit_so150m_patch16_reg4_map_256",
             "vit_so150m2_patch16_reg1_gap_256", "vit_so150m2_patch16_reg1_gap_448", "flexivit_small",
             "flexivit_base", "flexivit_large", "vit_small_patch14_dinov2", "vit_base_patch14_reg4_dinov2",
             "vit_base_patch14_reg1_tipsv2", "eva_large_patch14_196", "eva_large_patch14_336", "deit3_base_patch16_224",
             "deit3_small_patch16_384", "deit_tiny_patch16_224", "deit_small_distilled_patch16_224",
             "vit_base_patch16_siglip_224", "vit_base_patch16_siglip_gap_224", "vit_base_patch32_siglip_256",
             "vit_so400m_patch14_siglip_gap_224", "test_vit", "test_vit2", "test_vit3", "test_vit4",
             "vit_intern300m_patch14_448", "vit_so400m_patch14_siglip_384", "vit_so400m_patch14_siglip_gap_384"]
    for name in names:
        patch = 14 if "patch14" in name else 32 if "patch32" in name else 8 if "patch8" in name else 16
        args = {**small, "img_size": 2 * patch}
        default = {k: v for k, v in timm.get_pretrained_cfg(name).to_dict().items()
                   if k in ("crop_pct", "crop_mode", "interpolation", "mean", "std") and v is not None}
        yield hub(f"named_{name}", args, arch=name, cfg=default)
    yield hub("named_full_test_vit", {}, arch="test_vit", cfg=dict(input_size=(3, 160, 160)))
    yield hub("named_full_test_vit2", {}, arch="test_vit2", cfg=dict(input_size=(3, 160, 160)))
    yield hub("named_full_test_vit3", {}, arch="test_vit3", cfg=dict(input_size=(3, 160, 160)))
    yield hub("flexivit_resized", {**small, "img_size": 64}, arch="flexivit_small", vitrail_args=("--image", "96"),
              size=(96, 96))


def bare_files():
    """Weights without a config: nothing but --arch, or tensors that fit one architecture alone."""
    def file(name, wrap=lambda d: d, save=torch.save, ending="pth", arch="test_vit", args=("--arch", "test_vit"),
             load=None, classes=1000):
        def build(folder):
            seed_for(name)
            model = scramble(timm.create_model(arch, num_classes=classes))
            path = folder / f"weights.{ending}"
            save(wrap(model.state_dict()), path)
            if load:
                load(model, path)
            return answer_of(model, path.name, args=args)
        return Case(f"timm_file_{name}", build)

    def prefixed(prefix):
        return lambda d: {prefix + k: v for k, v in d.items()}

    def other(d):
        return {k: torch.randn_like(v) for k, v in d.items()}

    yield file("pth")
    yield file("pth_no_arch", args=())
    yield file("safetensors", save=save_file, ending="safetensors")
    yield file("ten_classes", classes=10)
    yield file("bf16", wrap=lambda d: {k: v.bfloat16() for k, v in d.items()},
               load=lambda m, p: m.load_state_dict({k: v.float() for k, v in torch.load(p).items()}))
    for prefix in ("module.", "model.", "_orig_mod.", "net.", "backbone.", "module.model.", "model._orig_mod.",
                   "_orig_mod.module.", "encoder.", "vit.", "model.backbone.", "base_model.model.", "student.",
                   "teacher.", "network.", "net.module."):
        yield file("prefix_" + prefix.replace(".", "_").strip("_"), prefixed(prefix))
    for key in ("model", "state_dict", "model_state_dict", "model_ema", "state_dict_ema", "ema", "teacher", "student",
                "net", "network", "weights", "params", "ema_state_dict", "module", "whatever"):
        yield file(f"key_{key}", lambda d, key=key: {key: d, "epoch": 3, "lr": 0.1})
    yield file("timm_training", lambda d: {"epoch": 9, "arch": "test_vit", "state_dict": other(d), "optimizer": {
        "state": {0: {"step": torch.tensor(3.0), "exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 0.1}]},
        "version": 2, "state_dict_ema": d, "metric": 71.2, "args": __import__("argparse").Namespace(lr=0.1)},
        load=lambda m, p: timm.models.load_checkpoint(m, p, weights_only=False))
    yield file("deit_training", lambda d: {"model": other(d), "optimizer": {"state": {}, "param_groups": []},
                                           "lr_scheduler": {"last_epoch": 3}, "epoch": 3, "model_ema": d,
                                           "scaler": {"scale": 1.0}},
               load=lambda m, p: timm.models.load_checkpoint(m, p, weights_only=False))
    yield file("model_and_ema", lambda d: {"model": d, "ema": other(d)},
               load=lambda m, p: timm.models.load_checkpoint(m, p, weights_only=False))
    yield file("state_dict_null_ema", lambda d: {"state_dict": d, "state_dict_ema": None})
    yield file("lightning", lambda d: {"epoch": 1, "global_step": 5, "pytorch-lightning_version": "2.5.0",
                                       "state_dict": {f"model.{k}": v for k, v in d.items()}, "loops": {},
                                       "callbacks": {"ModelCheckpoint{'monitor': None}": {"best_model_score": None}},
                                       "optimizer_states": [{"state": {}, "param_groups": []}], "lr_schedulers": [],
                                       "hparams_name": "kwargs", "hyper_parameters": {"lr": 0.1}})
    yield file("lightning_loss", lambda d: {"state_dict": {
        **{f"net.{k}": v for k, v in d.items()}, "criterion.weight": torch.ones(1000)}})
    yield file("nested", lambda d: {"state": {"model": d}})
    yield file("ema_nested", lambda d: {"ema": {"state_dict": d, "decay": 0.99}})
    yield file("swa", lambda d: {"n_averaged": torch.tensor(5), **{f"module.{k}": v for k, v in d.items()}})
    yield file("parameters", lambda d: {k: torch.nn.Parameter(v) for k, v in d.items()})
    yield file("ordered", lambda d: __import__("collections").OrderedDict(d))
    yield file("protocol_4", save=lambda d, p: torch.save(d, p, pickle_protocol=4))
    yield file("legacy", save=lambda d, p: torch.save(d, p, _use_new_zipfile_serialization=False))

    def flat(d):
        storage = torch.cat([v.flatten() for v in d.values()])
        out, at = {}, 0
        for k, v in d.items():
            out[k] = storage[at:at + v.numel()].view(v.shape)
            at += v.numel()
        return out
    yield file("views", flat)
    yield file("transposed", lambda d: {k: v.t().contiguous().t() if v.dim() == 2 else v for k, v in d.items()})
    yield file("dropout_head", lambda d: {("head.1." + k[5:] if k.startswith("head.") else k): v
                                          for k, v in d.items()})
    yield file("linear_in_head", lambda d: {("head.fc." + k[5:] if k.startswith("head.") else k): v
                                            for k, v in d.items()})

    def no_bias(name):
        def build(folder):
            seed_for(name)
            model = timm.create_model("test_vit", num_classes=7)
            model.head = torch.nn.Linear(64, 7, bias=False)
            scramble(model)
            torch.save(model.state_dict(), folder / "weights.pth")
            return answer_of(model, "weights.pth", args=("--arch", "test_vit"))
        return Case(f"timm_file_{name}", build)
    yield no_bias("head_without_bias")

    def deep_head(name):
        def build(folder):
            model = timm.create_model("test_vit", num_classes=7)
            model.head = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 7))
            torch.save(model.state_dict(), folder / "weights.pth")
            return Refusal("weights.pth", ("head",), args=("--arch", "test_vit"))
        return Case(f"timm_file_{name}", build)
    yield deep_head("head_of_two_layers")

    def two_models(name):
        def build(folder):
            d = timm.create_model("test_vit").state_dict()
            torch.save({**{f"student.{k}": v for k, v in d.items()}, **{f"teacher.{k}": v for k, v in d.items()}},
                       folder / "weights.pth")
            return Refusal("weights.pth", ("models",), args=("--arch", "test_vit"))
        return Case(f"timm_file_{name}", build)
    yield two_models("student_and_teacher_flat")

    def dino(name):
        def build(folder):
            seed_for(name)
            model = scramble(timm.create_model("test_vit", num_classes=0))
            d = model.state_dict()
            head = {"head.mlp.0.weight": torch.randn(8, 64), "head.mlp.0.bias": torch.randn(8),
                    "head.last_layer.weight_g": torch.randn(4, 1), "head.last_layer.weight_v": torch.randn(4, 8)}
            torch.save({"student": {**{f"module.backbone.{k}": torch.randn_like(v) for k, v in d.items()},
                                    **{f"module.{k}": v for k, v in head.items()}},
                        "teacher": {**{f"backbone.{k}": v for k, v in d.items()}, **head}, "epoch": 3,
                        "dino_loss": {"center": torch.zeros(1, 4)}}, folder / "weights.pth")
            return answer_of(model, "weights.pth", args=("--arch", "test_vit"))
        return Case(f"timm_file_{name}", build)
    yield dino("dino_training")


def strange():
    yield hub("pool_prr", tiny(global_pool="prr"))
    yield refused("act_prelu", tiny(act_layer="prelu"), "act_layer")
    yield refused("uncovered_dynamic", tiny(img_size=30, dynamic_img_size=True), "dynamic_img_size")
    yield refused("padded", tiny(img_size=30, dynamic_img_pad=True), "dynamic_img_pad")
    small = dict(embed_dim=48, depth=2, num_heads=3, num_classes=5, img_size=32)
    yield refused("rpn", small, "rpn", arch="vit_base_patch16_rpn_224")
    yield refused("parallel", small, "18x2", arch="vit_small_patch16_18x2_224")
    yield refused("xp", small, "xp", arch="vit_base_patch16_xp_224")
    yield refused("dinov2_giant", {**small, "img_size": 28}, "DINOv2", arch="vit_giant_patch14_dinov2")
    yield refused("aimv2", {**small, "img_size": 28}, "AIMv2", arch="aimv2_large_patch14_224")
    yield refused("beit3", small, "BEiT", arch="beit3_base_patch16_224")
    yield refused("beit", small, "BEiT", arch="beit_base_patch16_224")
    yield refused("beitv2", small, "BEiT", arch="beitv2_base_patch16_224")
    yield refused("eva02", {**small, "img_size": 28, "embed_dim": 48}, "EVA", arch="eva02_tiny_patch14_224")
    yield refused("rope", small, "RoPE", "rotary", arch="vit_small_patch16_rope_224")
    yield refused("rope_mixed", small, "RoPE", "rotary", arch="vit_small_patch16_rope_mixed_224")
    yield refused("dinov3", small, "DINOv3", arch="vit_small_patch16_dinov3")
    swin = dict(img_size=64, patch_size=4, embed_dim=12, depths=(1, 1), num_heads=(2, 2), window_size=4, num_classes=5)
    yield refused("swin", swin, "Swin", arch="swin_tiny_patch4_window7_224")
    yield refused("swinv2", swin, "Swin", arch="swinv2_tiny_window8_256")
    yield refused("vitamin", {"num_classes": 5}, "ViTamin", arch="vitamin_small_224")
    yield refused("cait", dict(embed_dim=48, depth=2, num_heads=4, img_size=32, num_classes=5), "cait",
                  arch="cait_xxs24_224")
    yield refused("convit", dict(embed_dim=48, depth=2, num_heads=4, img_size=32, num_classes=5), "convit",
                  arch="convit_tiny")
    yield refused("xcit", dict(embed_dim=48, depth=2, num_heads=4, img_size=32, num_classes=5), "xcit",
                  arch="xcit_nano_12_p16_224")
    yield refused("hybrid", dict(num_classes=5), "hybrid", arch="vit_tiny_r_s16_p8_224")
    yield refused("maxvit", dict(num_classes=5), "MaxViT", arch="maxvit_tiny_rw_224")
    yield refused("resnet", dict(num_classes=5), "resnet", arch="resnet10t")
    yield refused("convnext", dict(num_classes=5), "convnext", arch="convnext_atto")
    yield refused("levit", dict(num_classes=5), "levit", arch="levit_128s")
    yield refused("mixer", dict(num_classes=5), "mixer", arch="mixer_s16_224")
    yield refused("volo", dict(num_classes=5), "volo", arch="volo_d1_224")

    def bare(name, arch, args, *names):
        def build(folder):
            torch.save(timm.create_model(arch, **args).state_dict(), folder / "weights.pth")
            return Refusal("weights.pth", names)
        return Case(f"timm_bare_{name}", build)
    yield bare("swin", "swin_tiny_patch4_window7_224", swin, "Swin")
    yield bare("swinv2", "swinv2_tiny_window8_256", swin, "Swin")
    yield bare("beit", "beit_base_patch16_224", small, "BEiT")
    yield bare("eva02", "eva02_tiny_patch14_224", {**small, "img_size": 28}, "EVA", "SwiGLU")
    yield bare("rope", "vit_small_patch16_rope_224", small, "RoPE", "rotary")
    yield bare("dinov3", "vit_small_patch16_dinov3", small, "RoPE", "rotary", "DINOv3")
    yield bare("maxvit", "maxvit_tiny_rw_224", dict(num_classes=5), "MaxViT")
    yield bare("vitamin", "vitamin_small_224", dict(num_classes=5), "ViTamin")
    yield bare("hybrid", "vit_tiny_r_s16_p8_224", dict(num_classes=5), "hybrid")
    yield bare("clip", "vit_base_patch16_clip_224", small, "CLIP")
    yield bare("resnet", "resnet10t", dict(num_classes=5), "not named as")
    yield bare("cait", "cait_xxs24_224", dict(embed_dim=48, depth=2, num_heads=4, img_size=32, num_classes=5), "CaiT")
    yield bare("rmsnorm", "vit_base_patch16_224", tiny(norm_layer="rmsnorm"), "lacks", "preprocessing", "RMSNorm")
    yield bare("rpn", "vit_base_patch16_rpn_224", small, "preprocessing")
    yield bare("unknown_size", "vit_base_patch16_224", tiny(), "preprocessing")
    yield bare("parallel", "vit_small_patch16_18x2_224", small, "parallel", "unexpected")


def wrapped():
    """timm's models saved by transformers."""
    import transformers

    def build(folder):
        seed_for("wrapper")
        args = tiny()
        said = {k: v for k, v in args.items() if k != "num_classes"}
        config = transformers.TimmWrapperConfig(architecture="vit_base_patch16_224", model_args=said, num_labels=5,
                                                pretrained_cfg=dict(input_size=[3, 32, 32], crop_pct=0.9,
                                                                    interpolation="bicubic", mean=[0.5] * 3,
                                                                    std=[0.5] * 3, fixed_input_size=True,
                                                                    num_classes=5))
        model = scramble(transformers.TimmWrapperForImageClassification(config))
        model.save_pretrained(folder)
        plain = timm.create_model("vit_base_patch16_224", **args)
        plain.load_state_dict({k.removeprefix("timm_model."): v for k, v in model.state_dict().items()})
        plain.pretrained_cfg = {**plain.pretrained_cfg, **json.loads((folder / "config.json").read_text())
                                ["pretrained_cfg"]}
        return answer_of(plain)
    yield Case("timm_wrapper", build)


def cases():
    for group in (variations, rarer, preprocessing, storage, named, bare_files, strange, wrapped):
        yield from group()
