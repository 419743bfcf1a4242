"""The published libraries behind one face: build a model from a Vitrail config, give it weights by their own
names, run it in float32 or float64, and watch its activations.

Each adapter maps canonical parameters to its library's names by itself; load_state_dict(strict=True) says
that nothing is missing or left over.
"""
import timm
import torch
import torchvision
import transformers
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer
from transformers import (DeiTConfig, DeiTForImageClassificationWithTeacher, ViTConfig,
                          ViTForImageClassification, ViTModel)

from golden_vit import grid, patch_columns, rule_params

TORCH_TYPES = {"f32": torch.float32, "f64": torch.float64}
VERSIONS = {"timm": timm.__version__, "hf": transformers.__version__, "torchvision": torchvision.__version__}


def tensors(params):
    return {name: torch.from_numpy(value) for name, value in params.items()}


def shaped_like(model, state):
    """Libraries keep tokens and positions as [1, N, D]; canonically they are [N, D]."""
    return {name: state[name].reshape(value.shape) for name, value in model.state_dict().items()}


class Watch:
    """Records what named modules put out during one forward."""

    def __init__(self, modules):
        self.seen = {}
        self.hooks = [module.register_forward_hook(self.hook(name, take)) for name, (module, take) in modules.items()]

    def hook(self, name, take):
        def record(_module, inputs, output):
            self.seen[name] = take(inputs, output).detach().double().numpy()
        return record

    def close(self):
        for hook in self.hooks:
            hook.remove()
        return self.seen


def first_input(inputs, _output):
    return inputs[0]


def output(_inputs, out):
    return out[0] if isinstance(out, tuple) else out


class Library:
    """One model. `base` is the config whose position table the weights hold, `config` the one that runs."""

    def __init__(self, config, base=None):
        self.config, self.base = config, base or config
        self.model = self.build(self.base).eval()
        self.load(rule_params(self.base))

    def load(self, params):
        state = self.rename(tensors(params), self.base)
        assert set(state) == set(self.model.state_dict()), set(state) ^ set(self.model.state_dict())
        self.model.load_state_dict(shaped_like(self.model, state))
        if self.base is not self.config:
            self.resize()

    def run(self, images, kind, watch=False):
        model = self.model.to(TORCH_TYPES[kind])
        watcher = Watch(self.watched(model) if watch else {})
        with torch.inference_mode():
            logits = self.logits(model, torch.from_numpy(images).to(TORCH_TYPES[kind]))
        self.model.float()
        return logits.double().numpy(), watcher.close()


class Timm(Library):
    name = "timm"

    def build(self, c):
        if c["arch"]:
            return timm.create_model(c["arch"], pretrained=False, num_classes=c["classes"])
        kind = VisionTransformerDistilled if c["distilled"] else VisionTransformer
        return kind(
            img_size=(c["image_height"], c["image_width"]), patch_size=(c["patch"], patch_columns(c)), in_chans=c["channels"],
            num_classes=c["classes"], embed_dim=c["width"], depth=c["depth"], num_heads=c["heads"],
            mlp_ratio=c["mlp"] / c["width"], qkv_bias=c["qkv_bias"], qk_norm=c["qk_norm"],
            init_values=1.0 if c["layer_scale"] else None, class_token=c["class_token"],
            no_embed_class=not c["pos_for_prefix"], reg_tokens=c["registers"],
            pool_include_prefix=c["pool_prefix"],
            global_pool={"cls": "token", "mean": "avg", "mean_max": "avgmax"}.get(c["pool"], c["pool"]),
            fc_norm=c["norm_place"] == "after_pool", final_norm=c["norm_place"] != "none", pre_norm=c["pre_norm"],
            pos_embed="none" if c["pos"] == "none" else "learn", norm_layer=c["norm"] + "norm", act_layer=self.act(c))

    def act(self, c):
        return "gelu_tanh" if c["activation"] == "gelu" and c["gelu"] == "tanh" else c["activation"]

    def rename(self, state, c):
        return state

    def resize(self):
        self.model.set_input_size(img_size=(self.config["image_height"], self.config["image_width"]))

    def positions(self):
        return self.model.pos_embed[0].detach().numpy()

    def logits(self, model, x):
        return model(x)

    def watched(self, m):
        for block in m.blocks:
            block.attn.fused_attn = False  # so that the probabilities exist
        seen = {"embed": (m.blocks[0], first_input)}
        for i, block in enumerate(m.blocks):
            seen[f"block{i}"] = (block, output)
            seen[f"probs{i}"] = (block.attn.attn_drop, output)
        seen["pooled"] = (m.head, first_input)
        return seen


def split_qkv(state, at, target, names):
    for kind in ("weight", "bias"):
        fused = state.get(f"{at}attn.qkv.{kind}")
        if fused is not None:
            yield from zip((target.format(name) + kind for name in names), fused.chunk(3))


class Hf(Library):
    name, prefix = "hf", "vit."
    plain = {"patch_embed.proj": "embeddings.patch_embeddings.projection", "cls_token": "embeddings.cls_token",
             "dist_token": "embeddings.distillation_token", "pos_embed": "embeddings.position_embeddings",
             "norm": "layernorm", "pre_logits.fc": "pooler.dense"}
    in_block = {"norm1": "layernorm_before", "norm2": "layernorm_after", "attn.proj": "attention.o_proj",
                "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"}
    heads = {"head": "classifier"}

    def settings(self, c):
        square = c["image_height"] == c["image_width"]
        return dict(
            image_size=c["image_height"] if square else [c["image_height"], c["image_width"]],
            patch_size=c["patch"], num_channels=c["channels"], hidden_size=c["width"], num_hidden_layers=c["depth"],
            num_attention_heads=c["heads"], intermediate_size=c["mlp"], num_labels=c["classes"],
            qkv_bias=c["qkv_bias"], layer_norm_eps=c["norm_eps"],
            hidden_act="gelu" if c["gelu"] == "erf" else "gelu_pytorch_tanh")

    def build(self, c):
        return ViTForImageClassification(ViTConfig(**self.settings(c)))

    def backbone(self, model):
        return model.vit

    def rename(self, state, c):
        out = {}
        for name, value in state.items():
            module, _, kind = name.rpartition(".") if name.endswith((".weight", ".bias")) else (name, "", "")
            suffix = f".{kind}" if kind else ""
            if module in self.plain:
                out[self.prefix + self.plain[module] + suffix] = value
            elif module in self.heads:
                out[self.heads[module] + suffix] = value
            else:
                _, i, rest = module.split(".", 2)
                if rest in self.in_block:
                    out[f"{self.prefix}layers.{i}.{self.in_block[rest]}{suffix}"] = value
        for i in range(c["depth"]):
            at = f"{self.prefix}layers.{i}.attention.{{}}_proj."
            out.update(split_qkv(state, f"blocks.{i}.", at, "qkv"))
        return out

    def resize(self):
        pass  # done in the forward

    def positions(self):
        c, embeddings = self.config, self.backbone(self.model).embeddings
        rows, cols = grid(c)
        like = torch.zeros(1, rows * cols + 1 + c["distilled"], c["width"])
        return embeddings.interpolate_pos_encoding(like, c["image_height"], c["image_width"])[0].detach().numpy()

    def logits(self, model, x):
        # Eager attention takes its softmax in float32 even of float64 scores.
        self.model.set_attn_implementation("eager" if x.dtype == torch.float32 else "sdpa")
        return model(x, interpolate_pos_encoding=self.base is not self.config).logits

    def watched(self, m):
        body = self.backbone(m)
        seen = {"embed": (body.embeddings, output)}
        for i, layer in enumerate(body.layers):
            seen[f"block{i}"] = (layer, output)
        seen["norm"] = (body.layernorm, output)
        return seen


class HfBase(Hf):
    """ViTModel: no classifier; its pooler is Vitrail's pre_logits, its output the model's."""
    prefix = ""

    def build(self, c):
        return ViTModel(ViTConfig(**self.settings(c)))

    def backbone(self, model):
        return model

    def logits(self, model, x):
        self.model.set_attn_implementation("sdpa")
        return model(x).pooler_output


class HfDeit(Hf):
    prefix, heads = "deit.", {"head": "cls_classifier", "head_dist": "distillation_classifier"}

    def build(self, c):
        return DeiTForImageClassificationWithTeacher(DeiTConfig(**self.settings(c)))

    def backbone(self, model):
        return model.deit


class Torchvision(Library):
    name = "torchvision"
    plain = {"patch_embed.proj": "conv_proj", "cls_token": "class_token", "pos_embed": "encoder.pos_embedding",
             "norm": "encoder.ln", "pre_logits.fc": "heads.pre_logits", "head": "heads.head"}
    in_block = {"norm1": "ln_1", "norm2": "ln_2", "attn.proj": "self_attention.out_proj", "mlp.fc1": "mlp.0",
                "mlp.fc2": "mlp.3"}

    def build(self, c):
        assert c["channels"] == 3 and c["image_height"] == c["image_width"] and c["qkv_bias"]
        return torchvision.models.VisionTransformer(
            image_size=c["image_height"], patch_size=c["patch"], num_layers=c["depth"], num_heads=c["heads"],
            hidden_dim=c["width"], mlp_dim=c["mlp"], num_classes=c["classes"],
            representation_size=(c["representation"] or c["width"]) if c["pre_logits"] else None)

    def rename(self, state, _c):
        out = {}
        for name, value in state.items():
            module, _, kind = name.rpartition(".") if name.endswith((".weight", ".bias")) else (name, "", "")
            suffix = f".{kind}" if kind else ""
            if module in self.plain:
                out[self.plain[module] + suffix] = value
                continue
            _, i, rest = module.split(".", 2)
            layer = f"encoder.layers.encoder_layer_{i}."
            out[f"{layer}self_attention.in_proj_{kind}" if rest == "attn.qkv" else
                layer + self.in_block[rest] + suffix] = value
        return out

    def resize(self):
        state = torchvision.models.vision_transformer.interpolate_embeddings(
            self.config["image_height"], self.config["patch"], self.model.state_dict())
        self.model = self.build(self.config).eval()
        self.model.load_state_dict(state)

    def positions(self):
        return self.model.encoder.pos_embedding[0].detach().numpy()

    def logits(self, model, x):
        torch.backends.mha.set_fastpath_enabled(False)
        return model(x)

    def watched(self, m):
        seen = {f"block{i}": (layer, output) for i, layer in enumerate(m.encoder.layers)}
        seen["embed"] = (m.encoder.layers[0], first_input)
        seen["pooled"] = (m.heads, first_input)
        return seen


LIBRARIES = {"timm": Timm, "hf": Hf, "hf_base": HfBase, "hf_deit": HfDeit, "torchvision": Torchvision}
