"""Optimizers of the published libraries behind one face, from the fields of Vitrail's OptimConfig.

torch gives SGD, Adam and AdamW, timm Lion. LAMB is written out here and checked against timm's on every step.
What no library has (a first moment stored in bfloat16, decay by the schedule alone) is written out too.
"""
import copy

import timm.optim
import torch

DEFAULTS = dict(name="adamw", lr=1e-3, momentum=0.9, nesterov=False, beta1=-1, beta2=-1, eps=-1, weight_decay=0,
                decay="usual", clip_norm=0, moment_dtype="master", adapt_all=True, ema_decay=0, ema_warmup=False)
USUAL = dict(sgd=("coupled", 0, 0, 0), adam=("coupled", 0.9, 0.999, 1e-8), adamw=("decoupled", 0.9, 0.999, 1e-8),
             lamb=("coupled", 0.9, 0.999, 1e-6), lion=("decoupled", 0.9, 0.99, 0))


def resolved(fields):
    unknown = set(fields) - set(DEFAULTS)
    assert not unknown, f"unknown optimizer fields {unknown}"
    c = {**DEFAULTS, **fields}
    usual = dict(zip(("decay", "beta1", "beta2", "eps"), USUAL[c["name"]]))
    return {**c, **{key: value for key, value in usual.items() if c[key] in (-1, "usual")}}


def library_optimizer(c, groups):
    """groups: (parameter, lr_scale, weight_decay); the decay given to the library is what it can do itself."""
    own = {"sgd": "coupled", "adam": "coupled", "adamw": "decoupled", "lamb": "coupled", "lion": "decoupled"}
    within = c["decay"] == own[c["name"]]
    dicts = [dict(params=[p], lr=c["lr"], weight_decay=wd if within else 0.0) for p, _, wd in groups]
    betas, eps = (c["beta1"], c["beta2"]), c["eps"]
    if c["name"] == "sgd":
        return torch.optim.SGD(dicts, lr=c["lr"], momentum=c["momentum"], nesterov=c["nesterov"]), within
    if c["name"] == "lion":
        return timm.optim.Lion(dicts, lr=c["lr"], betas=betas, foreach=False), within
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[c["name"]]
    return kind(dicts, lr=c["lr"], betas=betas, eps=eps, foreach=False), within


class Written:
    """SGD, Adam and LAMB written out, with the first moment stored as the config says."""

    def __init__(self, c, groups):
        self.c, self.groups, self.step_count = c, groups, 0
        stored = torch.bfloat16 if c["moment_dtype"] == "bf16" else groups[0][0].dtype
        self.m = [torch.zeros_like(p, dtype=stored) for p, _, _ in groups]
        self.v = [torch.zeros_like(p) for p, _, _ in groups]

    def step(self, lr):
        c, t = self.c, self.step_count + 1
        self.step_count = t
        for i, (p, lr_scale, wd) in enumerate(self.groups):
            g, m = p.grad, self.m[i].to(p.dtype)
            if c["name"] == "sgd":
                m = g + wd * p + c["momentum"] * m
                direction, ratio = m, 1.0
            else:
                m = c["beta1"] * m + (1 - c["beta1"]) * g
                self.v[i] = c["beta2"] * self.v[i] + (1 - c["beta2"]) * g * g
                direction = m / (1 - c["beta1"] ** t) / ((self.v[i] / (1 - c["beta2"] ** t)).sqrt() + c["eps"])
                ratio = 1.0
            if c["name"] == "lamb":
                direction = direction + wd * p
                norms = p.norm(), direction.norm()
                if all(n > 0 for n in norms) and (c["adapt_all"] or wd != 0):
                    ratio = norms[0] / norms[1]
            elif c["decay"] == "schedule":
                p.mul_(1 - lr / c["lr"] * wd)
            p.sub_(lr * lr_scale * ratio * direction)
            self.m[i] = m.to(self.m[i].dtype)


class CheckedLamb:
    """The written formula and timm's, side by side."""

    def __init__(self, c, groups):
        self.written, self.groups = Written(c, groups), groups
        self.twins = [p.detach().clone() for p, _, _ in groups]
        dicts = [dict(params=[q], weight_decay=wd) for q, (_, _, wd) in zip(self.twins, groups)]
        self.timm = timm.optim.Lamb(dicts, lr=c["lr"], betas=(c["beta1"], c["beta2"]), eps=c["eps"],
                                    max_grad_norm=None, always_adapt=c["adapt_all"])

    def step(self, lr):
        for group, q, (p, lr_scale, _) in zip(self.timm.param_groups, self.twins, self.groups):
            group["lr"], q.grad = lr * lr_scale, p.grad.clone()
        self.timm.step()
        self.written.step(lr)
        for q, (p, _, _) in zip(self.twins, self.groups):
            assert (p - q).abs().max() <= (1e-5 if p.dtype == torch.float32 else 1e-13)


class FromLibrary:
    def __init__(self, c, groups):
        self.c, self.groups = c, groups
        self.optimizer, self.decays = library_optimizer(c, groups)

    def step(self, lr):
        for group, (p, lr_scale, wd) in zip(self.optimizer.param_groups, self.groups):
            group["lr"] = lr * lr_scale
            if not self.decays:
                assert self.c["decay"] in ("decoupled", "schedule")
                p.mul_(1 - wd * (lr * lr_scale if self.c["decay"] == "decoupled" else lr / self.c["lr"]))
        self.optimizer.step()


class Updater:
    """What happens from gradients to new weights: clipping, the optimizer, the moving average."""

    def __init__(self, fields, groups):
        self.c, self.groups, self.count = resolved(fields), groups, 0
        written = self.c["moment_dtype"] == "bf16"
        kind = CheckedLamb if self.c["name"] == "lamb" and not written else Written if written else FromLibrary
        self.optimizer = kind(self.c, groups)
        self.ema = [copy.deepcopy(p.detach()) for p, _, _ in groups] if self.c["ema_decay"] else []

    @torch.no_grad()
    def step(self, lr):
        """Returns the norm of all gradients before clipping."""
        params = [p for p, _, _ in self.groups]
        limit = self.c["clip_norm"] or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(params, limit, foreach=False)
        self.optimizer.step(lr)
        self.count += 1
        d = self.c["ema_decay"]
        if self.c["ema_warmup"]:
            d = min(d, (1 + self.count) / (10 + self.count))
        for mean, p in zip(self.ema, params):
            mean.lerp_(p, 1 - d)
        return float(norm)
