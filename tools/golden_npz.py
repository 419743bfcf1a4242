"""Google's npz naming of canonical parameters, in its several dialects (numpy only)."""
import numpy as np


def linear(params, module):
    return {"kernel": params[module + ".weight"].T, "bias": params[module + ".bias"]}


def norm(params, module):
    return {"scale": params[module + ".weight"], "bias": params[module + ".bias"]}


def mlp(params, at):
    return {"Dense_0": linear(params, at + "mlp.fc1"), "Dense_1": linear(params, at + "mlp.fc2")}


def projection(weight, bias, heads):
    return {"kernel": weight.T.reshape(weight.shape[1], heads, -1), "bias": bias.reshape(heads, -1)}


def attention(weights, biases, params, out, heads):
    tree = {name: projection(w, b, heads) for name, w, b in zip(("query", "key", "value"), weights, biases)}
    weight = params[out + ".weight"]
    tree["out"] = {"kernel": weight.T.reshape(heads, -1, len(weight)), "bias": params[out + ".bias"]}
    return tree


def block(params, at, heads, big_vision):
    second, mha, dense = ("LayerNorm_1", "_0", "_0") if big_vision else ("LayerNorm_2", "_1", "_3")
    qkv = (np.split(params[f"{at}attn.qkv.{kind}"], 3) for kind in ("weight", "bias"))
    return {"LayerNorm_0": norm(params, at + "norm1"), second: norm(params, at + "norm2"),
            "MultiHeadDotGemmAttention" + mha: attention(*qkv, params, at + "attn.proj", heads),
            "MlpBlock" + dense: mlp(params, at)}


def map_head(params, heads):
    weights, biases = ([params[f"attn_pool.q.{kind}"], *np.split(params[f"attn_pool.kv.{kind}"], 2)]
                       for kind in ("weight", "bias"))
    return {"probe": params["attn_pool.latent"][None], "LayerNorm_0": norm(params, "attn_pool.norm"),
            "MultiHeadDotGemmAttention_0": attention(weights, biases, params, "attn_pool.proj", heads),
            "MlpBlock_0": mlp(params, "attn_pool.")}


def stack(trees):
    first = trees[0]
    if isinstance(first, dict):
        return {key: stack([tree[key] for tree in trees]) for key in first}
    return np.stack(trees)


def google_tree(params, config, big_vision=False, scanned=False, old_positions=False, inline_map=False):
    """The nested parameters. `old_positions`: big_vision's before 2022, inside Transformer, with a class row.
    `inline_map`: the MAP head's parts at top level, as early files have them."""
    heads = config["heads"]
    tree = {"embedding": {"kernel": params["patch_embed.proj.weight"].transpose(2, 3, 1, 0),
                          "bias": params["patch_embed.proj.bias"]}, "head": linear(params, "head")}
    blocks = [block(params, f"blocks.{i}.", heads, big_vision) for i in range(config["depth"])]
    encoder = {"encoderblock": stack(blocks)} if scanned else {
        f"encoderblock_{i}": b for i, b in enumerate(blocks)}
    tree["Transformer"] = {**encoder, "encoder_norm": norm(params, "norm")}
    if "cls_token" in params:
        tree["cls"] = params["cls_token"][None]
    if "pos_embed" in params:
        table = {"pos_embedding": params["pos_embed"][None]}
        if old_positions:
            tree["Transformer"].update(table)
        elif big_vision:
            tree.update(table)
        else:
            tree["Transformer"]["posembed_input"] = table
    if config["pool"] == "map":
        tree.update(map_head(params, heads) if inline_map else {"MAPHead_0": map_head(params, heads)})
    if config["pre_logits"]:
        tree["pre_logits"] = linear(params, "pre_logits.fc")
    return tree


def flatten(tree, prefix=""):
    if not isinstance(tree, dict):
        return {prefix[:-1]: np.ascontiguousarray(tree)}
    flat = {}
    for key, value in tree.items():
        flat.update(flatten(value, f"{prefix}{key}/"))
    return flat
