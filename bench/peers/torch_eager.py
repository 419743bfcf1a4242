"""torch as it runs a timm model line by line, and the training step that torch.compile shares."""
import time

import torch

from peers.timm_model import make_model, images


class Inference:
    def __init__(self, case):
        torch.set_num_threads(case["threads"])
        self.version, self.note, self.mixed = torch.__version__, "", False
        self.images = torch.from_numpy(images(case))
        self.model = make_model(case).eval()
        if case["dtype"] == "bf16":
            self.use_bf16(case)
        elif case["dtype"] == "int8":
            self.use_int8()

    def use_bf16(self, case):
        """Chooses the faster of the two usual ways: autocast, or everything in bf16."""
        self.mixed, self.note = True, "autocast"
        mixed, images_f32 = self.seconds(), self.images
        self.mixed, self.images = False, images_f32.bfloat16()
        self.model.bfloat16()
        if self.seconds() < mixed:
            self.note = "all in bf16"
            return
        self.model = None  # before the next: one model at a time in memory
        self.model, self.mixed, self.images = make_model(case).eval(), True, images_f32

    def use_int8(self):
        from torch.ao.quantization import quantize_dynamic
        self.model = quantize_dynamic(self.model, {torch.nn.Linear}, dtype=torch.qint8)
        self.note = f"quantize_dynamic ({torch.backends.quantized.engine})"

    def seconds(self):
        self.run()
        start = time.perf_counter()
        self.run()
        return time.perf_counter() - start

    def run(self):
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self.mixed):
            return self.model(self.images)

    def logits(self):
        return self.run()[0].float().tolist()


class Training:
    """Forward, cross-entropy, backward, AdamW; one batch that stays in memory."""

    def __init__(self, case):
        torch.set_num_threads(case["threads"])
        self.mixed, self.clip = case["dtype"] == "bf16", case["clip"]
        self.version, self.note = torch.__version__, "autocast" if self.mixed else ""
        self.losses = []
        self.images = torch.from_numpy(images(case))
        self.model = make_model(case).train()
        self.labels = torch.arange(case["batch"]) % self.model.num_classes
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)

    def run(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.mixed):
            loss = torch.nn.functional.cross_entropy(self.model(self.images), self.labels)
        loss.backward()
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        self.losses.append(loss.item())

    def first_loss(self):
        return self.losses[0]


def open(case):
    return Training(case) if case["work"] == "train" else Inference(case)
