#!/usr/bin/env python3
"""Writes tests/golden/rule.json and tests/golden/cases/*.json with timm, transformers, torchvision and JAX.

Weights and inputs follow the rule (golden_rule.py), so no weights are stored. "logits" are the library's in
float64, the better reference; "logits_f32" the same in float32. Every model is also run by golden_vit.py in
float64 from the config as written: if the two disagree the config does not describe the model, and nothing
is written.

    python tools/make_goldens.py [NAME...]      all cases, or those named
"""
import json
import pathlib
import sys

import jax
import numpy as np

import golden_vit
from golden_cases import CASES
from golden_libs import LIBRARIES, VERSIONS
from golden_rule import counter_hash, name_key, rule_input, rule_values

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
AGREE, AGREE_RESIZED = 1e-12, 2e-6  # one library resizes positions in float64, what is compared in float32


def numbers(array, digits=9):
    return [float(f"%.{digits}g" % v) for v in np.asarray(array, np.float64).ravel()]


def tensor(array):
    return {"shape": list(array.shape), "values": numbers(array, 8)}


def write_json(path, fields):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def base_config(config, base):
    if base is None:
        return config
    return {**config, "image_height": base[0], "image_width": base[1]}


def check_config(config, params, images, logits, activations, tolerance):
    """The JAX forward of the written config, against what the library said."""
    mine, acts = golden_vit.forward(config, params, images)
    apart = {"logits": np.abs(mine - logits).max()}
    apart.update({name: np.abs(acts[name] - value).max() for name, value in activations.items() if name in acts})
    worst = max(apart, key=apart.get)
    assert apart[worst] < tolerance, f"{worst} differs by {apart[worst]:.3g}: the config is not the model"
    return max(apart.values())


def run_google(config, base, images, _keep):
    params = golden_vit.rule_params(base)
    if base is not config:
        prefix = golden_vit.pos_rows(base) - (base["image_height"] * base["image_width"]) // base["patch"] ** 2
        params["pos_embed"] = golden_vit.zoom_positions(params["pos_embed"], prefix, golden_vit.grid(config))
    f64, acts = golden_vit.forward(config, params, images)
    f32, _ = golden_vit.forward(config, params, images, np.float32)
    return params, f32, f64, acts


def run_library(kind, config, base, images, keep):
    library = LIBRARIES[kind](config, base)
    f32, _ = library.run(images, "f32")
    f64, acts = library.run(images, "f64", watch=keep == "activations")
    if "norm" in acts:  # Hugging Face takes the pooled row after its norm
        acts["pooled"] = acts.pop("norm")[:, 0]
    params = golden_vit.rule_params(base)
    if base is not config:
        params["pos_embed"] = library.positions()
    return params, f32, f64, acts


def make_case(name, kind, config, options):
    batch, keep = options.get("batch", 1), options.get("keep")
    base = base_config(config, options["base"]) if "base" in options else config
    images = rule_input(batch, config["channels"], config["image_height"], config["image_width"])
    if kind == "google":
        params, f32, f64, acts = run_google(config, base, images, keep)
    else:
        params, f32, f64, acts = run_library(kind, config, base, images, keep)
    apart = check_config(config, params, images, f64, acts, AGREE if base is config else AGREE_RESIZED)
    library = kind.split("_")[0]
    fields = dict(name=name, library=library, version=VERSIONS.get(library, "jax " + jax.__version__), config=config,
                  batch=batch)
    if base is not config:
        fields["base"] = {key: base[key] for key in ("image_height", "image_width")}
    fields.update(max_f32_f64=float("%.3g" % np.abs(f32 - f64).max()), logits=numbers(f64, 10),
                  logits_f32=numbers(f32))
    if keep == "activations":
        kept = {key: value for key, value in acts.items() if not key.startswith("probs") or key == "probs1"}
        fields["activations"] = {key: tensor(value) for key, value in kept.items()}
    if keep == "positions":
        fields["positions"] = tensor(params["pos_embed"])
    write_json(GOLDEN / "cases" / f"{name}.json", fields)
    return fields, apart, f64


def write_rule():
    every = {}
    tiny = dict(image_height=32, image_width=32, patch=8, width=48, depth=2, heads=4, mlp=96, classes=10,
                registers=2, pos_for_prefix=False, qk_norm=True, layer_scale=True, pre_logits=True)
    for extra in (dict(distilled=True), dict(class_token=False, pool="map", norm_place="after_pool")):
        every.update(golden_vit.param_shapes(golden_vit.make_config(**tiny, **extra)))
    every["input"] = (1, 3, 32, 32)
    values = []
    for name, shape in every.items():
        v = rule_values(name, shape)
        values.append(dict(name=name, elems=v.size, first=numbers(v.ravel()[:4]), last=numbers(v.ravel()[-1:])[0]))
    hashes = [dict(name=name, index=index, key=f"{name_key(name):016x}",
                   hash=f"{int(counter_hash(name_key(name), index)):016x}")
              for name in ("", "input", "blocks.11.attn.qkv.weight") for index in (0, 1, 12345678901)]
    lists = {"hashes": hashes, "values": values}
    rows = (f' "{key}": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]" for key, rows in lists.items())
    (GOLDEN / "rule.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


def main():
    names = sys.argv[1:] or list(CASES)
    write_rule()
    print(f"{'case':34} {'library':12} {'|f32-f64|':>10} {'config':>9} {'std':>6} {'max':>6}")
    for name in names:
        fields, apart, logits = make_case(name, *CASES[name])
        print(f"{name:34} {fields['library']:12} {fields['max_f32_f64']:10.2e} {apart:9.1e} {logits.std():6.3f}"
              f" {np.abs(logits).max():6.3f}", flush=True)


if __name__ == "__main__":
    main()
