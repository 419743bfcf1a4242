"""The model of a case in timm, with rule weights, and its images; and the ONNX files other engines read.

    python -m peers.timm_model CASE FOLDER     writes FOLDER/FORM.onnx of each form the case names, and prepared.json
"""
import json
import pathlib
import sys

from golden_rule import rule_input, rule_values

OPSET = 17


def from_config(fields, image):
    """Returns a timm VisionTransformer of Vitrail's model fields."""
    from timm.models.vision_transformer import VisionTransformer
    width = fields["width"]
    pool = {"cls": "token", "mean": "avg", "map": "map"}[fields.get("pool", "cls")]
    return VisionTransformer(
        img_size=image or fields["image"], patch_size=fields["patch"], in_chans=fields.get("channels", 3),
        num_classes=fields["classes"], embed_dim=width, depth=fields["depth"], num_heads=fields["heads"],
        mlp_ratio=fields["mlp"] / width, class_token=fields.get("class_token", True), global_pool=pool,
        fc_norm=fields.get("norm_place", "before_pool") == "after_pool", qkv_bias=fields.get("qkv_bias", True))


def make_model(case):
    """Fills weights in place, one at a time: no second copy counts against torch's memory."""
    import timm
    import torch
    if case["fields"]:
        model = from_config(case["fields"], case["image"])
    else:
        more = {"img_size": case["image"]} if case["image"] else {}
        if case.get("classes"):
            more["num_classes"] = case["classes"]
        model = timm.create_model(case["model"], pretrained=False, **more)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            value.copy_(torch.from_numpy(rule_values(name, tuple(value.shape))))
    return model


def image_shape(case):
    """Channels, rows, columns."""
    fields = case["fields"]
    if fields:
        size = case["image"] or fields["image"]
        return fields.get("channels", 3), size, size
    import timm
    channels, *size = timm.get_pretrained_cfg(case["model"]).input_size
    return channels, *([case["image"]] * 2 if case["image"] else size)


def images(case, batch=None):
    return rule_input(batch or case["batch"], *image_shape(case))


def separate_gemms(model):
    """Computes queries, keys and values each by a GEMM of its own: the form in which onnxruntime's transformer
    optimizer recognises attention. It does not recognise timm's one GEMM for all three."""
    import torch

    class Attention(torch.nn.Module):
        def __init__(self, joint):
            super().__init__()
            self.heads, self.proj = joint.num_heads, joint.proj
            self.parts = torch.nn.ModuleList(torch.nn.Linear(joint.qkv.in_features, joint.qkv.out_features // 3)
                                             for _ in range(3))
            for part, weight, bias in zip(self.parts, joint.qkv.weight.chunk(3), joint.qkv.bias.chunk(3), strict=True):
                part.weight.data, part.bias.data = weight.data.clone(), bias.data.clone()

        def forward(self, x, **_):
            batch, tokens, width = x.shape
            size = width // self.heads
            q, k, v = (part(x).view(batch, tokens, self.heads, size).permute(0, 2, 1, 3) for part in self.parts)
            weights = (torch.matmul(q, k.transpose(-1, -2)) / size**0.5).softmax(-1)
            return self.proj(torch.matmul(weights, v).permute(0, 2, 1, 3).reshape(batch, tokens, width))

    for block in model.blocks:
        block.attn = Attention(block.attn)
    return model


# The ONNX files there are: timm's model as it is, and in the form above.
FORMS = {"whole": lambda model: model, "apart": separate_gemms}


def export(model, x, path):
    """Exports with fixed shapes, with which the engines can optimise most."""
    import torch
    with torch.no_grad():
        torch.onnx.export(model, x, path, dynamo=False, opset_version=OPSET, input_names=["images"],
                          output_names=["logits"])


def main():
    import torch
    case, folder = json.loads(sys.argv[1]), pathlib.Path(sys.argv[2])
    torch.set_num_threads(case["threads"])
    model = make_model(case).eval()
    with torch.inference_mode():
        logits = model(torch.from_numpy(images(case, 1)))[0].tolist()
    made = {"reference": logits, "shape": image_shape(case), "no_onnx": "",
            "onnx": {form: str(folder / f"{form}.onnx") for form in case["forms"]}}
    try:
        for form in (form for form in FORMS if form in case["forms"]):  # what changes the model comes last
            export(FORMS[form](model), torch.from_numpy(images(case)), made["onnx"][form])
    except Exception as error:  # of torch's version, or of a package it wants
        made["no_onnx"] = f"torch could not export the model: {error}".splitlines()[0]
    (folder / "prepared.json").write_text(json.dumps(made))


if __name__ == "__main__":
    main()
