"""What every kind of model in the zoo shares: cases, random weights, the image, the library's own answer."""
import dataclasses
import json
import zlib
from pathlib import Path

import torch
from PIL import Image

IMAGE = Path(__file__).resolve().parents[2] / "examples" / "images" / "chelsea.png"


@dataclasses.dataclass
class Case:
    """A model to be saved. `make(folder)` saves it and returns what it should be answered with."""
    name: str
    make: callable


@dataclasses.dataclass
class Answer:
    """What the library answers: logits and probabilities of a classifier, or features of a model without one."""
    model: str                # path within the case's folder
    logits: list | None = None
    probabilities: list | None = None
    features: list | None = None
    args: tuple = ()          # further arguments of `vitrail predict`


@dataclasses.dataclass
class Refusal:
    """No plain ViT, and the words of which a refusal must hold one."""
    model: str
    names: tuple
    args: tuple = ()


def seed_for(name):
    torch.manual_seed(zlib.crc32(name.encode()))


@torch.no_grad()
def scramble(model, scale=0.15):
    """Random weights under which every parameter counts: fresh biases, registers and norms would not show."""
    for name, value in model.named_parameters():
        if value.dtype.is_floating_point:
            fan_in = value[0].numel() if value.dim() > 1 else 1
            spread = min(scale * 3, 1.5 / fan_in**0.5) if value.dim() > 1 else scale
            value.copy_(torch.randn_like(value) * spread)
            if value.dim() == 1 and name.endswith("weight"):
                value.add_(1)
    return model.eval()


def example_image():
    return Image.open(IMAGE).convert("RGB")


def numbers(tensor):
    return [float(v) for v in tensor.detach().double().flatten()]


def classifier(model_path, logits, sigmoid=False, args=()):
    logits = logits.detach().double().flatten()
    scores = logits.sigmoid() if sigmoid else logits.softmax(0)
    return Answer(model_path, numbers(logits), numbers(scores), args=tuple(args))


def features(model_path, values, args=()):
    return Answer(model_path, features=numbers(values), args=tuple(args))


def edit_json(path, change):
    data = json.loads(Path(path).read_text())
    change(data)
    Path(path).write_text(json.dumps(data, indent=2))
