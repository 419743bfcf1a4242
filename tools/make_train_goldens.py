#!/usr/bin/env python3
"""Writes tests/golden/train with torch and timm: learning-rate curves, parameter groups, single updates, and
ten training steps of tiny ViTs.

Weights, images, labels and teachers follow the rule (golden_rule.py), so only what the libraries computed is
stored. A case is NAME.json (settings, losses, gradient norms) and NAME.safetensors (float64: grad/P of the
first step before clipping, weight/P after the last, ema/P).

    python tools/make_train_goldens.py [NAME...]      everything, or the cases named
"""
import fnmatch
import json
import math
import pathlib
import sys

import numpy as np
import timm.optim
import timm.scheduler
import torch
from safetensors.numpy import save_file

from golden_libs import TORCH_TYPES, Timm
from golden_optim import Updater
from golden_rule import counter_hash, counter_uniform, name_key, rule_input
from golden_train_cases import BATCH, CASES, CURVES, GROUPS, STEPS, TOY_PARAMS, TOY_UPDATES

TRAIN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "train"


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n " + ",\n ".join(map(json.dumps, rows)) + "\n]\n")


# Learning-rate curves.


def torch_lrs(make, total):
    param = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([param], lr=1.0)
    scheduler, lrs = make(optimizer), []
    for _ in range(total):
        lrs.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return lrs


def timm_lrs(kind, total, base, **options):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=base)
    scheduler = kind(optimizer, t_in_epochs=False, **options)
    return [scheduler._get_lr(t)[0] for t in range(total)]


def jax_lr(step, base, total, warmup):
    """vit_jax: a cosine after the warm-up, times the warm-up's share; counted from 0."""
    progress = min(max((step - warmup) / (total - warmup), 0.0), 1.0)
    return base * 0.5 * (1 + math.cos(math.pi * progress)) * min(1.0, step / warmup)


def write_curves():
    sources = dict(torch=lambda c: torch_lrs(c["make"], c["total"]),
                   timm=lambda c: timm_lrs(c["make"], c["total"], c["base_lr"], **c["options"]),
                   vit_jax=lambda c: [jax_lr(t, c["base_lr"], c["total"], c["config"]["warmup"])
                                      for t in range(c["total"])])
    rows = [dict(name=name, source=c["source"], base_lr=c["base_lr"], total=c["total"], config=c["config"],
                 lrs=sources[c["source"]](c)) for name, c in CURVES.items()]
    write_rows(TRAIN / "schedules.json", rows)


# Parameter groups.


def timm_groups(model, weight_decay, layer_decay):
    """name -> (lr_scale, weight decay), as timm gives them."""
    names = {id(p): name for name, p in model.named_parameters()}
    found = timm.optim.param_groups_layer_decay(model, weight_decay=weight_decay, layer_decay=layer_decay,
                                                no_weight_decay_list=model.no_weight_decay())
    return {names[id(p)]: (group["lr_scale"], group["weight_decay"]) for group in found for p in group["params"]}


def write_groups():
    rows = []
    for name, (config, layer_decay) in GROUPS.items():
        model = Timm(config).model
        groups = timm_groups(model, 0.05, layer_decay)
        rows.append(dict(name=name, config=config, layer_decay=layer_decay, weight_decay=0.05,
                         groups={key: list(value) for key, value in groups.items()}))
    write_rows(TRAIN / "groups.json", rows)


# Updates of a few parameters from gradients by rule.


def toy_tensor(name, shape, scale, at=0):
    count = math.prod(shape)
    values = scale * counter_uniform(name_key(name), np.arange(at * count, (at + 1) * count))
    return torch.from_numpy(values.reshape(shape))


def toy_update(optim):
    groups = [(torch.nn.Parameter(toy_tensor(name, shape, 1.0)), lr_scale, wd)
              for name, shape, lr_scale, wd in TOY_PARAMS]
    updater, norms = Updater(optim, groups), []
    for step in range(STEPS):
        for (p, _, _), (name, shape, _, _) in zip(groups, TOY_PARAMS):
            p.grad = toy_tensor("grad/" + name, shape, 0.3, step)
        norms.append(updater.step(updater.c["lr"] * (STEPS - step) / STEPS))
    names = [name for name, *_ in TOY_PARAMS]
    values = dict(zip(names, (p.detach().flatten().tolist() for p, _, _ in groups)))
    averages = dict(zip(names, (mean.flatten().tolist() for mean in updater.ema)))
    return dict(norms=norms, weights=values, ema=averages)


def write_updates():
    params = [dict(name=n, shape=list(s), lr_scale=l, weight_decay=w) for n, s, l, w in TOY_PARAMS]
    write_rows(TRAIN / "updates.json", [dict(name=name, params=params, optim=optim, steps=STEPS, **toy_update(optim))
                                        for name, optim in TOY_UPDATES.items()])


# Ten steps of a model.


def targets_of(loss, classes):
    """One-hot by rule, smoothed, as float32; [STEPS * BATCH, classes]."""
    labels = (counter_hash(name_key("labels"), np.arange(STEPS * BATCH)) % np.uint64(classes)).astype(int)
    smooth = loss.get("smoothing", 0.0)
    dense = np.full((len(labels), classes), smooth / classes)
    dense[np.arange(len(labels)), labels] += 1 - smooth
    return torch.from_numpy(dense.astype(np.float32))


def teacher_of(classes):
    """Probabilities by rule as float32: uniform numbers over their row's sum."""
    u = counter_uniform(name_key("teacher"), np.arange(STEPS * BATCH * classes)).reshape(-1, classes) + 1.0625
    return torch.from_numpy((u / u.sum(1, keepdims=True)).astype(np.float32))


def loss_sum(loss, outputs, targets, teacher):
    """Summed over images. Distilling: labels teach the class head, the teacher the other head, if any."""
    logits, student = outputs if isinstance(outputs, tuple) else (outputs, outputs)
    if loss["kind"] == "softmax":
        own = -(targets * logits.log_softmax(-1)).sum()
    else:
        own = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        own = own / (logits.shape[-1] if loss["kind"] == "bce_mean" else 1)
    if not loss.get("alpha"):
        return own
    alpha, tau = loss["alpha"], loss["temperature"]
    theirs = torch.nn.functional.kl_div((student / tau).log_softmax(-1), teacher, reduction="sum")
    return (1 - alpha) * own + alpha * tau * tau * theirs


def is_frozen(name, case):
    patterns = ["*", "!head.*", "!head_dist.*"] if case.get("linear_probe") else case.get("freeze", [])
    frozen = False
    for pattern in patterns:
        if fnmatch.fnmatchcase(name, pattern.removeprefix("!")):
            frozen = not pattern.startswith("!")
    return frozen


def scheduled(case):
    total, warmup, base = case["total"], case["schedule"]["warmup"], case["optim"]["lr"]
    return [jax_lr(t, base, total, warmup) for t in range(STEPS)]


class Run:
    def __init__(self, case, dtype):
        self.case, self.dtype = case, TORCH_TYPES[dtype]
        self.model = Timm(case["model"]).model.to(self.dtype).train()
        if case["model"]["distilled"]:
            self.model.set_distilled_training(True)
        for name, p in self.model.named_parameters():
            p.requires_grad_(not is_frozen(name, case))
        groups = timm_groups(self.model, case["optim"]["weight_decay"], case.get("layer_decay", 1.0))
        self.named = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self.updater = Updater(case["optim"], [(p, *groups[n]) for n, p in self.named.items()])
        c = case["model"]
        self.images = torch.from_numpy(rule_input(STEPS * BATCH, c["channels"], c["image_height"], c["image_width"]))
        self.targets, self.teacher = targets_of(case["loss"], c["classes"]), teacher_of(c["classes"])
        self.losses, self.norms, self.first_grads = [], [], {}

    def step(self, number, lr):
        size, total = BATCH // self.case["accumulate"], 0.0
        self.model.zero_grad()
        for first in range(number * BATCH, (number + 1) * BATCH, size):
            x, t, teacher = (values[first:first + size].to(self.dtype)
                             for values in (self.images, self.targets, self.teacher))
            loss = loss_sum(self.case["loss"], self.model(x), t, teacher) / BATCH
            loss.backward()
            total += float(loss.detach())
        if number == 0:
            self.first_grads = {n: p.grad.detach().clone() for n, p in self.named.items()}
        self.losses.append(total)
        self.norms.append(self.updater.step(lr))


def make_case(name, case):
    runs = {dtype: Run(case, dtype) for dtype in ("f64", "f32")}
    lrs = scheduled(case)
    for run in runs.values():
        for number in range(STEPS):
            run.step(number, lrs[number])
    run = runs["f64"]
    kept = {"grad/" + n: g for n, g in run.first_grads.items()}
    kept.update({"weight/" + n: p.detach() for n, p in run.named.items()})
    kept.update({"ema/" + n: mean for n, mean in zip(run.named, run.updater.ema)})
    TRAIN.mkdir(parents=True, exist_ok=True)
    save_file({key: np.ascontiguousarray(value.numpy()) for key, value in kept.items()},
              TRAIN / f"{name}.safetensors")
    fields = dict(name=name, batch=BATCH, steps=STEPS, **case, lrs=lrs, losses=run.losses,
                  losses_f32=runs["f32"].losses, norms=run.norms)
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items())
    (TRAIN / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    apart = max(abs(a / b - 1) for a, b in zip(runs["f32"].losses, run.losses))
    print(f"{name:28} loss {run.losses[0]:8.5f} -> {run.losses[-1]:8.5f}  norm {run.norms[0]:8.4f}"
          f"  f32 apart {apart:.1e}", flush=True)


def main():
    torch.set_num_threads(1)
    if not sys.argv[1:]:
        write_curves()
        write_groups()
        write_updates()
    for name in sys.argv[1:] or CASES:
        make_case(name, CASES[name])


if __name__ == "__main__":
    main()
