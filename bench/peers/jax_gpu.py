"""timm's ViT written in JAX, compiled by XLA, with cuDNN's attention where JAX has it: the same weights and images, f32
master weights, products in bf16, and a residual stream of the case's type."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the other sides need the GPU too

import functools

import jax
import jax.numpy as jnp

from peers.timm_model import images, make_model

HALF = jnp.bfloat16
BETAS, EPS, RATE, DECAY = (0.9, 0.999), 1e-8, 1e-6, 0.05


def linear(p, name, x):
    return x.astype(HALF) @ p[f"{name}.weight"].astype(HALF).T + p[f"{name}.bias"].astype(HALF)


def norm(p, name, x):
    x = x.astype(jnp.float32)
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-6)
    return scaled * p[f"{name}.weight"] + p[f"{name}.bias"]


def attend(x, heads, implementation):
    """Softmax attention of packed queries, keys and values [B N 3D]."""
    q, k, v = jnp.moveaxis(x.reshape(*x.shape[:2], 3, heads, -1), 2, 0)
    return jax.nn.dot_product_attention(q, k, v, implementation=implementation).reshape(*x.shape[:2], -1)


def forward(p, x, shape, implementation):
    patch, heads, depth, stream = shape
    b, c, h, w = x.shape
    x = x.reshape(b, c, h // patch, patch, w // patch, patch).transpose(0, 2, 4, 1, 3, 5).reshape(b, -1, c * patch * patch)
    x = x.astype(HALF) @ p["patch_embed.proj.weight"].reshape(p["cls_token"].shape[-1], -1).astype(HALF).T
    x = x + p["patch_embed.proj.bias"].astype(HALF)
    first = jnp.broadcast_to(p["cls_token"].astype(x.dtype), (b, 1, x.shape[-1]))
    x = (jnp.concatenate([first, x], 1) + p["pos_embed"].astype(HALF)).astype(stream)
    for i in range(depth):
        block = f"blocks.{i}"
        mixed = attend(linear(p, f"{block}.attn.qkv", norm(p, f"{block}.norm1", x)), heads, implementation)
        x = x + linear(p, f"{block}.attn.proj", mixed).astype(stream)
        hidden = jax.nn.gelu(linear(p, f"{block}.mlp.fc1", norm(p, f"{block}.norm2", x)), approximate=False)
        x = x + linear(p, f"{block}.mlp.fc2", hidden).astype(stream)
    return linear(p, "head", norm(p, "norm", x)[:, 0]).astype(jnp.float32)


def adamw(p, m, v, g, step):
    m = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, m, g)
    v = jax.tree.map(lambda v, g: BETAS[1] * v + (1 - BETAS[1]) * g * g, v, g)
    first, second = (1 - beta ** step for beta in BETAS)

    def moved(p, m, v):
        return p * (1 - RATE * DECAY) - RATE * (m / first) / (jnp.sqrt(v / second) + EPS)

    return jax.tree.map(moved, p, m, v), m, v


class OnGpu:
    def __init__(self, case):
        model = make_model(case)
        stream = jnp.float32 if case["stream"] == "f32" else HALF
        self.shape = (model.patch_embed.patch_size[0], model.blocks[0].attn.num_heads, len(model.blocks), stream)
        self.params = {name: jnp.asarray(value.numpy()) for name, value in model.state_dict().items()}
        self.images = jnp.asarray(images(case))
        weights = "f32" if case["work"] == "train" else "bf16"
        self.version, self.note = jax.__version__, f"XLA, {weights} weights, {case['stream']} stream"
        self.compile(case)

    def compile(self, case):
        """Takes cuDNN's attention, or XLA's own where that refuses the GPU or the shape."""
        for implementation in ("cudnn", "xla"):
            try:
                self.build(case, implementation)
                self.run()
                self.note += f", attention by {implementation}"
                return
            except Exception:
                if implementation == "xla":
                    raise

    def peak_bytes(self):
        return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)


class Inference(OnGpu):
    def build(self, case, implementation):
        half = jax.tree.map(lambda p: p.astype(HALF), self.params)
        self.model = functools.partial(
            jax.jit(lambda p, x: forward(p, x, self.shape, implementation)), half, self.images)

    def run(self):
        return self.model().block_until_ready()

    def logits(self):
        return [float(x) for x in self.run()[0]]


class Training(OnGpu):
    """Forward, cross-entropy, backward, AdamW in one compiled step; the batch stays on the GPU."""

    def build(self, case, implementation):
        classes = self.params["head.bias"].shape[0]
        labels = jnp.arange(case["batch"]) % classes
        self.state = tuple(jax.tree.map(like, self.params) for like in (jnp.copy, jnp.zeros_like, jnp.zeros_like))
        self.step = 0

        def loss(p, x):
            scores = jax.nn.log_softmax(forward(p, x, self.shape, implementation))
            return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

        def update(p, m, v, x, step):
            value, g = jax.value_and_grad(loss)(p, x)
            return adamw(p, m, v, g, step), value

        self.update = jax.jit(update, donate_argnums=(0, 1, 2))  # the state is handed from step to step

    def run(self):
        self.step += 1
        self.state, loss = self.update(*self.state, self.images, jnp.float32(self.step))
        loss.block_until_ready()


def open(case):
    return Training(case) if case["work"] == "train" else Inference(case)
