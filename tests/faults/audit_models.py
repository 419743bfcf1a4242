"""The audit's rows W, R and F: models of timm, transformers and torchvision, read and written as those libraries do."""
import json

from audit_place import CAT, MODELS, expect, read_safetensors, said, write_safetensors
from audit_torch import View, write_torch


def w1(place):
    """timm resizes bilinearly for a crop that is not square."""
    asked = place.probabilities(MODELS / "timm_hub", "--image", "8x32")
    stated = place.model("timm_hub", lambda c: c["pretrained_cfg"].update(interpolation="bilinear"))
    right = place.probabilities(stated, "--image", "8x32")
    expect(asked == right, f"--image 8x32 off by {max(abs(asked[c] - right[c]) for c in right):.4f}: not resized bilinearly")


def w2(place):
    """A Hugging Face config without num_attention_heads means 12."""
    place.ok(*place.training("run", model={"width": 192, "heads": 12, "mlp": 768, "depth": 12}, train={"steps": 1, "eval_every": 1}))
    folder, answers = place.tmp / "hf", []
    place.ok("convert", place.tmp / "run/best", folder, "--to", "hf")
    (folder / "manifest.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    config.pop("vitrail", None)
    for heads in ({"num_attention_heads": 12}, {}):
        config.pop("num_attention_heads", None)
        (folder / "config.json").write_text(json.dumps({**config, **heads}))
        answers.append(place.answer("inspect", folder)["model"]["config"]["heads"])
    expect(answers[1] == 12, f"{answers[1]} heads without the key, transformers takes 12")


def w3(place):
    """One label of a Hugging Face model is a yes or no."""
    folder = place.model("hf_single", lambda c: c.update(id2label={"0": "yes"}, label2id={"yes": 0}))
    tensors, metadata = read_safetensors(folder / "model.safetensors")
    for name, width in (("classifier.weight", 32), ("classifier.bias", 1)):
        dtype, shape, data = tensors[name]
        tensors[name] = dtype, [1, *shape[1:]], data[:4 * width]
    write_safetensors(folder / "model.safetensors", tensors, metadata)
    found = place.probabilities(folder)
    expect(found[0] < 1, f"the probability is {found[0]}, whatever the image")


def w4(place):
    """A checkpoint of timm's training with averaged weights."""
    raw, averaged = bytes(4 * 8), bytes.fromhex("0000803f") * 8  # zeros and ones
    dicts = {key: {"head.weight": View(number, 0, [2, 4])} for number, key in enumerate(("state_dict", "state_dict_ema"))}
    write_torch(place.tmp / "timm.pth", {"epoch": 3, "arch": "vit_tiny_patch16_224", **dicts}, [raw, averaged])
    tensor = place.answer("inspect", place.tmp / "timm.pth", "--stats")["tensors"][0]
    expect(tensor["mean"] == 1, "the raw weights are taken, not the averaged ones")


def converted(place, source, name, to):
    return place.answer("convert", source, place.tmp / name, "--to", to)


def r1(place):
    """An epsilon that the other library will not use."""
    seen, model = [], place.model("hf_single", lambda c: c.update(layer_norm_eps=0.1))
    for to, name in (("timm", "t.safetensors"), ("torchvision", "v.safetensors"), ("google", "g.npz")):
        answer = converted(place, model, name, to)
        seen += [to] * (answer.get("kept", True) or "eps" not in json.dumps(answer.get("not_kept", [])))
    expect(not seen, f"epsilon 0.1 to {', '.join(seen)}: said to be kept")


def r2(place):
    """A crop that is not square, in transformers' terms."""
    place.ok(*place.training("run", model={"image": None, "image_height": 8, "image_width": 16},
                             preprocess={"resize": 9}, data={"train": "synthetic:3x8x16x4x64"}, train={"eval_every": 1}))
    converted(place, place.tmp / "run/best", "hf", "hf")
    size = json.loads((place.tmp / "hf/preprocessor_config.json").read_text())["size"]
    expect(size.get("shortest_edge", 16) >= 16, f"size {size} for a crop of 8 x 16: transformers pads with black")


def torchvision(place):
    """A small file of torchvision's names whose metadata says what it is."""
    place.ok("convert", MODELS / "hf_single", place.tmp / "v.safetensors", "--to", "torchvision")
    return read_safetensors(place.tmp / "v.safetensors")


def r3(place):
    """pre_logits, which timm refuses."""
    tensors, metadata = torchvision(place)
    tensors |= {"heads.pre_logits.weight": ("F32", [32, 32], bytes(4096)), "heads.pre_logits.bias": ("F32", [32], bytes(128))}
    card = json.loads(metadata["vitrail"])
    card["vitrail"]["model"]["pre_logits"] = True
    write_safetensors(place.tmp / "v.safetensors", tensors, {**metadata, "vitrail": json.dumps(card)})
    place.ok("predict", "-m", place.tmp / "v.safetensors", CAT)
    done = place.run("convert", place.tmp / "v.safetensors", place.tmp / "t.safetensors", "--to", "timm")
    expect(done.returncode == 64, f"convert --to timm: exit {done.returncode}, and keys of pre_logits, which timm refuses")


def r4(place):
    """bf16 in an npz, which no numpy reads."""
    place.ok("convert", MODELS / "hf_bf16", place.tmp / "g.npz", "--to", "google")
    types = {tensor["dtype"] for tensor in place.answer("inspect", place.tmp / "g.npz")["tensors"]}
    expect(types == {"f32"}, f"an npz of {', '.join(sorted(types))}")


def r5(place):
    """A folder as timm publishes models."""
    done = place.run("convert", MODELS / "hf_single", place.tmp / "timm", "--to", "timm")
    expect(done.returncode == 0 and (place.tmp / "timm/config.json").exists(), f"convert --to timm FOLDER: {said(done)}")


def f1(place):
    """Forms of models that the libraries read."""
    forms = {"fc_norm without global_pool": lambda c: c["model_args"].update(fc_norm=False),
             "patch_size [4, 4]": lambda c: c["model_args"].update(patch_size=[4, 4]),
             "class_token 1": lambda c: c["model_args"].update(class_token=1),
             "a crop larger than the resized image": lambda c: c["pretrained_cfg"].update(crop_pct=1.25)}
    seen = [name for name, change in forms.items() if place.run("predict", "-m", place.model("timm_hub", change), CAT).returncode]
    tensors, metadata = torchvision(place)
    renames = {"names under net.": lambda n: "net." + n, "names under backbone.": lambda n: "backbone." + n,
               "an exchanged head of torchvision": lambda n: n.replace("heads.head.", "heads.")}
    for name, rename in renames.items():
        write_safetensors(place.tmp / "renamed.safetensors", {rename(key): value for key, value in tensors.items()}, metadata)
        seen += [name] * (place.run("predict", "-m", place.tmp / "renamed.safetensors", CAT).returncode != 0)
    weights = View(0, 0, [2, 4])
    for key in ("ema", "teacher"):
        write_torch(place.tmp / "kept.pth", {key: {"head.weight": weights}, "epoch": 1}, [bytes(32)])
        seen += [f"a checkpoint's key {key}"] * ("head.weight" not in place.run("inspect", place.tmp / "kept.pth", "--json").stdout)
    expect(not seen, f"refused: {', '.join(seen)}")


def f2(place):
    """Models that are no plain ViT are refused by their own name."""
    names = {"swinv2": "Swin", "beit": "BEiT", "siglip_vision_model": "SigLIP", "dinov3_vit": "DINOv3", "dpt": "DPT"}
    seen = []
    for kind, name in names.items():
        done = place.run("predict", "-m", place.model("hf_single", lambda c: c.update(model_type=kind)), CAT)
        seen += [f"{kind}: {said(done)}"] * (done.returncode == 0 or name not in done.stderr)
    for arch, name in {"vitamin_small_224": "ViTamin", "vit_small_patch16_rope_224": "RoPE"}.items():
        done = place.run("predict", "-m", place.model("timm_hub", lambda c: c.update(architecture=arch)), CAT)
        seen += [f"{arch}: {said(done)}"] * (done.returncode == 0 or name not in done.stderr)
    expect(not seen, "; ".join(seen))
