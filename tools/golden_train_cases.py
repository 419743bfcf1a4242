"""The list of training goldens: curves, parameter groups, updates, and runs of tiny ViTs. Data only."""
import timm.scheduler as timm_schedules
import torch.optim.lr_scheduler as torch_schedules

from golden_vit import make_config

STEPS, BATCH = 10, 8

TINY = dict(image_height=16, image_width=16, patch=4, width=16, depth=2, heads=2, mlp=40, classes=10)


def tiny(**fields):
    return make_config(**{**TINY, **fields})


CLS = tiny()
MEAN = tiny(pool="mean", norm_place="after_pool", class_token=False)
MAP = tiny(pool="map", class_token=False)
EVERYTHING = tiny(qk_norm=True, layer_scale=True, registers=2, pos_for_prefix=False, qkv_bias=False, gelu="tanh")
DISTILLED = tiny(distilled=True)
RARER = tiny(norm="rms", pre_norm=True, activation="silu", pool="mean_max", norm_place="after_pool", image_height=18,
             patch_width=8)

GROUPS = {
    "cls": (CLS, 0.75),
    "mean": (MEAN, 0.65),
    "map": (MAP, 0.9),
    "everything": (tiny(qk_norm=True, layer_scale=True, registers=2, pos_for_prefix=False, depth=4), 0.8),
    "distilled": (DISTILLED, 0.7),
    "rarer": (RARER, 0.8),
    "no_layer_decay": (CLS, 1.0),
}

# Parameters of the single updates: name, shape, lr_scale, weight decay.
TOY_PARAMS = [("wide.weight", (5, 3), 1.0, 0.05), ("deep.weight", (4, 4), 0.75, 0.05), ("wide.bias", (5,), 0.5, 0.0)]

TOY_UPDATES = {
    "sgd": dict(name="sgd", lr=0.1, momentum=0),
    "sgd_momentum": dict(name="sgd", lr=0.1),
    "sgd_nesterov_clip": dict(name="sgd", lr=0.1, nesterov=True, clip_norm=0.5),
    "sgd_decoupled": dict(name="sgd", lr=0.1, decay="decoupled"),
    "sgd_bf16_moment": dict(name="sgd", lr=0.1, moment_dtype="bf16", clip_norm=1),
    "adam": dict(name="adam", lr=0.01),
    "adam_by_schedule_bf16": dict(name="adam", lr=0.01, decay="schedule", moment_dtype="bf16"),
    "adamw": dict(name="adamw", lr=0.01),
    "adamw_betas_clip_ema": dict(name="adamw", lr=0.02, beta1=0.8, beta2=0.95, eps=1e-6, clip_norm=0.3,
                                 ema_decay=0.9),
    "adamw_ema_warmup": dict(name="adamw", lr=0.02, ema_decay=0.5, ema_warmup=True),
    "adamw_by_schedule": dict(name="adamw", lr=0.01, decay="schedule"),
    "lamb": dict(name="lamb", lr=0.01),
    "lamb_some": dict(name="lamb", lr=0.01, adapt_all=False, clip_norm=0.5),
    "lion": dict(name="lion", lr=0.01),
}

SOFTMAX, SMOOTH = dict(kind="softmax"), dict(kind="softmax", smoothing=0.1)
COSINE = dict(schedule=dict(kind="cosine", warmup=3), total=20)


def case(model, optim, loss=SOFTMAX, accumulate=1, **more):
    return dict(model=model, optim=optim, loss=loss, accumulate=accumulate, **COSINE, **more)


CASES = {
    "sgd_momentum": case(CLS, dict(name="sgd", lr=0.05, weight_decay=0.01, clip_norm=1), accumulate=4),
    "sgd_nesterov": case(CLS, dict(name="sgd", lr=0.02, weight_decay=0.01, nesterov=True), SMOOTH),
    "adam_bce_mean": case(MEAN, dict(name="adam", lr=0.003, weight_decay=0.01), dict(kind="bce_mean", smoothing=0.1)),
    "adamw_all": case(CLS, dict(name="adamw", lr=0.003, weight_decay=0.05, clip_norm=1, ema_decay=0.9), SMOOTH,
                      accumulate=4, layer_decay=0.75),
    "adamw_bce_sum_mean_pool": case(MEAN, dict(name="adamw", lr=0.002, weight_decay=0.1, clip_norm=1),
                                    dict(kind="bce_sum")),
    "adamw_everything": case(EVERYTHING, dict(name="adamw", lr=0.003, weight_decay=0.05), SMOOTH, accumulate=2),
    "adamw_rarer": case(RARER, dict(name="adamw", lr=0.003, weight_decay=0.05), SMOOTH, accumulate=2),
    "adamw_map_pool": case(MAP, dict(name="adamw", lr=0.002, weight_decay=0.05, clip_norm=0.5), SMOOTH),
    "adamw_distilled": case(DISTILLED, dict(name="adamw", lr=0.002, weight_decay=0.05),
                            dict(kind="softmax", smoothing=0.1, alpha=0.5, temperature=3.0), accumulate=2),
    "adamw_soft_teacher": case(MEAN, dict(name="adamw", lr=0.002, weight_decay=0.05),
                               dict(kind="softmax", alpha=0.3, temperature=2.0)),
    "augreg_adam": case(CLS, dict(name="adam", lr=0.003, weight_decay=1e-3, clip_norm=1, decay="schedule",
                                  moment_dtype="bf16"), dict(kind="bce_sum")),
    "lamb": case(CLS, dict(name="lamb", lr=0.01, weight_decay=0.02, clip_norm=1), SMOOTH, accumulate=4,
                 layer_decay=0.8),
    "lion": case(CLS, dict(name="lion", lr=0.0005, weight_decay=0.5, clip_norm=1), SMOOTH, accumulate=2),
    "frozen": case(CLS, dict(name="sgd", lr=0.05, weight_decay=0.01, clip_norm=1), SMOOTH,
                   freeze=["*_embed*", "cls_token", "blocks.0.*", "!blocks.0.norm1.*", "norm.bias"]),
    "linear_probe": case(CLS, dict(name="sgd", lr=0.1, weight_decay=0, momentum=0.9), linear_probe=True),
}


def torch_curve(make, total, base_lr, config):
    return dict(source="torch", make=make, total=total, base_lr=base_lr, config=config)


def timm_curve(make, total, base_lr, config, **options):
    return dict(source="timm", make=make, total=total, base_lr=base_lr, config=config, options=options)


def after_warmup(optimizer, curve, warmup, start):
    rise = torch_schedules.LinearLR(optimizer, start_factor=start, total_iters=warmup)
    return torch_schedules.SequentialLR(optimizer, [rise, curve], milestones=[warmup])


CURVES = {
    "constant": torch_curve(lambda o: torch_schedules.ConstantLR(o, factor=1.0), 8, 1.0, dict(kind="constant")),
    "cosine_min": torch_curve(lambda o: torch_schedules.CosineAnnealingLR(o, T_max=25, eta_min=0.1), 25, 1.0,
                              dict(kind="cosine", min_lr=0.1)),
    "cosine_after_warmup": torch_curve(
        lambda o: after_warmup(o, torch_schedules.CosineAnnealingLR(o, T_max=20, eta_min=0.05), 5, 0.01), 25, 1.0,
        dict(kind="cosine", min_lr=0.05, warmup=5, warmup_lr=0.01)),
    "linear": torch_curve(lambda o: torch_schedules.LinearLR(o, start_factor=1.0, end_factor=0.2, total_iters=12), 12,
                          1.0, dict(kind="linear", min_lr=0.2)),
    "linear_after_warmup": torch_curve(
        lambda o: after_warmup(o, torch_schedules.LinearLR(o, 1.0, 1e-9, total_iters=16), 4, 0.25), 20, 1.0,
        dict(kind="linear", min_lr=1e-9, warmup=0.2, warmup_lr=0.25)),
    "polynomial": torch_curve(lambda o: torch_schedules.PolynomialLR(o, total_iters=15, power=2.5), 15, 1.0,
                              dict(kind="polynomial", power=2.5)),
    "milestones": torch_curve(lambda o: torch_schedules.MultiStepLR(o, milestones=[6, 9, 15], gamma=0.3), 20, 1.0,
                              dict(kind="step", milestones=[6, 0.45, 15], gamma=0.3)),
    "every": torch_curve(lambda o: torch_schedules.StepLR(o, step_size=4, gamma=0.5), 18, 1.0,
                         dict(kind="step", every=4, gamma=0.5)),
    "one_cycle": torch_curve(lambda o: torch_schedules.OneCycleLR(o, max_lr=1.0, total_steps=30), 30, 1.0,
                             dict(kind="one_cycle")),
    "one_cycle_steep": torch_curve(
        lambda o: torch_schedules.OneCycleLR(o, max_lr=1.0, total_steps=17, pct_start=0.1, div_factor=5,
                                             final_div_factor=100), 17, 1.0,
        dict(kind="one_cycle", peak_at=0.1, start_divisor=5, end_divisor=100)),
    "timm_cosine": timm_curve(timm_schedules.CosineLRScheduler, 40, 5e-4,
                              dict(kind="cosine", warmup=6, warmup_lr=1e-6, min_lr=1e-5, warmup_inside=True),
                              t_initial=40, warmup_t=6, warmup_lr_init=1e-6, lr_min=1e-5),
    "timm_cosine_prefix": timm_curve(timm_schedules.CosineLRScheduler, 40, 5e-4,
                                     dict(kind="cosine", warmup=8, warmup_lr=1e-6, min_lr=1e-5),
                                     t_initial=32, warmup_t=8, warmup_lr_init=1e-6, lr_min=1e-5, warmup_prefix=True),
    "timm_poly": timm_curve(timm_schedules.PolyLRScheduler, 24, 0.01,
                            dict(kind="polynomial", power=0.5, warmup=4, min_lr=1e-4, warmup_inside=True),
                            t_initial=24, warmup_t=4, lr_min=1e-4),
    "vit_jax": dict(source="vit_jax", total=50, base_lr=0.03, config=dict(kind="cosine", warmup=5)),
}
