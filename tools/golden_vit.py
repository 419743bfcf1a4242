"""A ViT in JAX over canonical (timm) parameter names, from the fields of a Vitrail config.

The reference for google files (tanh GELU, layernorm variance as E[x^2] - E[x]^2 in Flax's manner), and the
cross-check that the config written into a golden describes the model the other library ran.
"""
import jax
import jax.numpy as jnp
import numpy as np
from scipy import ndimage

from golden_rule import rule_values

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")

DEFAULTS = dict(
    arch="", image_height=224, image_width=224, patch=16, channels=3, width=768, depth=12, heads=12, mlp=3072,
    classes=1000, pool="cls", norm_place="before_pool", pool_prefix=False, class_token=True, distilled=False, registers=0,
    pos_for_prefix=True, pos="learned", qkv_bias=True, qk_norm=False, layer_scale=False, pre_logits=False,
    norm_eps=1e-6, gelu="erf", pos_resize="timm", patch_width=0, representation=0, pre_norm=False, norm="layer",
    activation="gelu")
ACTIVATIONS = {
    "relu": jax.nn.relu, "relu6": jax.nn.relu6, "leaky_relu": jax.nn.leaky_relu, "elu": jax.nn.elu,
    "silu": jax.nn.silu, "mish": jax.nn.mish, "quick_gelu": lambda x: x * jax.nn.sigmoid(1.702 * x),
    "hard_swish": jax.nn.hard_swish, "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid}


def make_config(**fields):
    unknown = set(fields) - set(DEFAULTS)
    assert not unknown, f"unknown config fields {unknown}"
    return {**DEFAULTS, **fields}


def grid(c):
    return c["image_height"] // c["patch"], c["image_width"] // patch_columns(c)


def patch_columns(c):
    return c["patch_width"] or c["patch"]


def norm_shapes(c, at):
    shapes = {f"{at}.weight": (c["width"],), f"{at}.bias": (c["width"],)}
    return shapes if c["norm"] == "layer" else {f"{at}.weight": (c["width"],)}


def pos_rows(c):
    rows, cols = grid(c)
    prefix = c["class_token"] + c["distilled"] + c["registers"] if c["pos_for_prefix"] else 0
    return prefix + rows * cols


def block_shapes(c, at):
    d, f, e = c["width"], c["mlp"], c["width"] // c["heads"]
    shapes = {**norm_shapes(c, f"{at}norm1"), f"{at}attn.qkv.weight": (3 * d, d)}
    if c["qkv_bias"]:
        shapes[f"{at}attn.qkv.bias"] = (3 * d,)
    if c["qk_norm"]:
        for norm in ("q_norm", "k_norm"):
            shapes.update({f"{at}attn.{norm}.weight": (e,), f"{at}attn.{norm}.bias": (e,)})
    shapes.update({f"{at}attn.proj.weight": (d, d), f"{at}attn.proj.bias": (d,)})
    if c["layer_scale"]:
        shapes.update({f"{at}ls1.gamma": (d,), f"{at}ls2.gamma": (d,)})
    shapes.update(norm_shapes(c, f"{at}norm2"))
    return {**shapes, **mlp_shapes(at, d, f)}


def mlp_shapes(at, d, f):
    return {f"{at}mlp.fc1.weight": (f, d), f"{at}mlp.fc1.bias": (f,),
            f"{at}mlp.fc2.weight": (d, f), f"{at}mlp.fc2.bias": (d,)}


def head_shapes(c):
    d, k, shapes = c["width"], c["classes"], {}
    for norm, place in (("norm", "before_pool"), ("fc_norm", "after_pool")):
        if c["norm_place"] == place:
            shapes.update(norm_shapes(c, norm))
    if c["pool"] == "map":
        shapes.update({"attn_pool.latent": (1, d), "attn_pool.q.weight": (d, d), "attn_pool.q.bias": (d,),
                       "attn_pool.kv.weight": (2 * d, d), "attn_pool.kv.bias": (2 * d,),
                       "attn_pool.proj.weight": (d, d), "attn_pool.proj.bias": (d,),
                       **norm_shapes(c, "attn_pool.norm")})
        shapes.update(mlp_shapes("attn_pool.", d, c["mlp"]))
    if c["pre_logits"]:
        out = c["representation"] or d
        shapes.update({"pre_logits.fc.weight": (out, d), "pre_logits.fc.bias": (out,)})
        d = out
    for head in ("head", "head_dist")[: (1 + c["distilled"]) if k else 0]:
        shapes.update({f"{head}.weight": (k, d), f"{head}.bias": (k,)})
    return shapes


def param_shapes(c):
    """Canonical name -> shape as libraries see it (linear weights two-dimensional)."""
    d = c["width"]
    shapes = {"patch_embed.proj.weight": (d, c["channels"], c["patch"], patch_columns(c))}
    if not c["pre_norm"]:
        shapes["patch_embed.proj.bias"] = (d,)
    if c["class_token"]:
        shapes["cls_token"] = (1, d)
    if c["distilled"]:
        shapes["dist_token"] = (1, d)
    if c["registers"]:
        shapes["reg_token"] = (c["registers"], d)
    if c["pos"] == "learned":
        shapes["pos_embed"] = (pos_rows(c), d)
    if c["pre_norm"]:
        shapes.update(norm_shapes(c, "norm_pre"))
    for i in range(c["depth"]):
        shapes.update(block_shapes(c, f"blocks.{i}."))
    return {**shapes, **head_shapes(c)}


def rule_params(c):
    return {name: rule_values(name, shape) for name, shape in param_shapes(c).items()}


def zoom_positions(table, prefix, new_grid):
    """vit_jax and big_vision: scipy zoom of order 1 over a square grid; the prefix rows stay."""
    side = int(round((len(table) - prefix) ** 0.5))
    old = table[prefix:].reshape(side, side, -1)
    new = ndimage.zoom(old, (new_grid[0] / side, new_grid[1] / side, 1), order=1)
    assert new.shape[:2] == tuple(new_grid)
    return np.concatenate([table[:prefix], new.reshape(-1, table.shape[1])])


def sincos2d(rows, cols, width):
    y, x = np.mgrid[:rows, :cols]
    omega = 10000.0 ** -(np.arange(width // 4) / (width // 4 - 1))
    y, x = np.outer(y.ravel(), omega), np.outer(x.ravel(), omega)
    return np.concatenate([np.sin(x), np.cos(x), np.sin(y), np.cos(y)], axis=1)


def layernorm(x, p, at, eps):
    mean = x.mean(-1, keepdims=True)
    var = (x * x).mean(-1, keepdims=True) - mean * mean
    return (x - mean) / jnp.sqrt(var + eps) * p[at + ".weight"] + p[at + ".bias"]


def norm(x, p, at, c):
    if c["norm"] == "layer":
        return layernorm(x, p, at, c["norm_eps"])
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + c["norm_eps"]) * p[at + ".weight"]


def linear(x, p, at):
    y = x @ p[at + ".weight"].T
    return y + p[at + ".bias"] if at + ".bias" in p else y


def mlp(x, p, at, c):
    x = linear(x, p, at + "mlp.fc1")
    act = ACTIVATIONS.get(c["activation"])
    return linear(act(x) if act else jax.nn.gelu(x, approximate=c["gelu"] == "tanh"), p, at + "mlp.fc2")


def split_heads(x, heads):  # [B N D] -> [B H N E]
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def attend(q, k, v):
    probs = jax.nn.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), axis=-1)
    y = (probs @ v).transpose(0, 2, 1, 3)
    return y.reshape(*y.shape[:2], -1), probs


def attention(x, p, at, c):
    q, k, v = (split_heads(t, c["heads"]) for t in jnp.split(linear(x, p, at + "qkv"), 3, axis=-1))
    if c["qk_norm"]:
        q, k = layernorm(q, p, at + "q_norm", c["norm_eps"]), layernorm(k, p, at + "k_norm", c["norm_eps"])
    y, probs = attend(q, k, v)
    return linear(y, p, at + "proj"), probs


def embed(p, images, c):
    b, (rows, cols), s, t = len(images), grid(c), c["patch"], patch_columns(c)
    covered = images[:, :, :rows * s, :cols * t]
    patches = covered.reshape(b, c["channels"], rows, s, cols, t).transpose(0, 2, 4, 1, 3, 5)
    x = patches.reshape(b, rows * cols, -1) @ p["patch_embed.proj.weight"].reshape(c["width"], -1).T
    if not c["pre_norm"]:
        x = x + p["patch_embed.proj.bias"]
    pos = {"learned": lambda: p["pos_embed"], "none": lambda: jnp.zeros((rows * cols, 1), x.dtype),
           "sincos2d": lambda: jnp.asarray(sincos2d(rows, cols, c["width"]), x.dtype)}[c["pos"]]()
    named = [p[n] for n, on in (("cls_token", c["class_token"]), ("dist_token", c["distilled"])) if on]
    if c["registers"]:
        named.append(p["reg_token"])
    prefix = jnp.concatenate([jnp.zeros((0, c["width"]), x.dtype), *named])
    lead = len(pos) - rows * cols
    x = x + pos[lead:]
    if lead:
        prefix = prefix + pos[:lead]
    x = jnp.concatenate([jnp.broadcast_to(prefix, (b, *prefix.shape)), x], axis=1)
    return norm(x, p, "norm_pre", c) if c["pre_norm"] else x


def map_pool(x, p, c):
    q = linear(jnp.broadcast_to(p["attn_pool.latent"], (len(x), 1, c["width"])), p, "attn_pool.q")
    k, v = jnp.split(linear(x, p, "attn_pool.kv"), 2, axis=-1)
    y, _ = attend(*(split_heads(t, c["heads"]) for t in (q, k, v)))
    y = linear(y, p, "attn_pool.proj")
    return (y + mlp(norm(y, p, "attn_pool.norm", c), p, "attn_pool.", c))[:, 0]


def pool(x, p, c):
    patches = x if c["pool_prefix"] else x[:, x.shape[1] - grid(c)[0] * grid(c)[1]:]
    return {"cls": lambda: x[:, 0], "mean": lambda: patches.mean(1), "map": lambda: map_pool(patches, p, c),
            "max": lambda: patches.max(1), "mean_max": lambda: (patches.mean(1) + patches.max(1)) / 2}[c["pool"]]()


def head(x, p, c, name="head"):
    if c["pre_logits"]:
        x = jnp.tanh(linear(x, p, "pre_logits.fc"))
    return linear(x, p, name) if c["classes"] else x


def forward(c, params, images, dtype=np.float64):
    """Logits and the activations on the way: embed, block i, attention probabilities i, pooled."""
    p = {name: jnp.asarray(value, dtype) for name, value in params.items()}
    x = embed(p, jnp.asarray(images, dtype), c)
    acts = {"embed": x}
    for i in range(c["depth"]):
        at = f"blocks.{i}."
        y, acts[f"probs{i}"] = attention(norm(x, p, at + "norm1", c), p, at + "attn.", c)
        x = x + (y * p[at + "ls1.gamma"] if c["layer_scale"] else y)
        y = mlp(norm(x, p, at + "norm2", c), p, at, c)
        x = acts[f"block{i}"] = x + (y * p[at + "ls2.gamma"] if c["layer_scale"] else y)
    if c["norm_place"] == "before_pool":
        x = norm(x, p, "norm", c)
    features = pool(x, p, c)
    if c["norm_place"] == "after_pool":
        features = norm(features, p, "fc_norm", c)
    acts["pooled"] = features
    logits = head(features, p, c)
    if c["distilled"]:
        logits = (logits + head(x[:, 1], p, c, "head_dist")) / 2
    return np.asarray(logits), {name: np.asarray(a) for name, a in acts.items()}
