"""timm's model on a GPU through torch.compile. The case names the mode and the type of the residual stream: f32 is
bf16 autocast over f32 weights, bf16 is weights and everything else in bf16."""
import torch

from peers.timm_model import make_model, images

# The modes that are compared: inductor as it comes, with CUDA graphs, and with graphs and kernels chosen by timing.
MODES = {"default": None, "graphs": "reduce-overhead", "autotune": "max-autotune"}


class OnGpu:
    def __init__(self, case):
        torch.set_float32_matmul_precision("high")
        self.autocast = case["stream"] == "f32"
        self.mode = MODES[case["mode"]]
        self.version, self.note = torch.__version__, "autocast, f32 weights" if self.autocast else "all in bf16"
        self.images = self.placed(torch.from_numpy(images(case)))
        self.net = self.placed(make_model(case))
        self.model = torch.compile(self.net, mode=self.mode)

    def placed(self, what):
        return what.cuda() if self.autocast else what.to("cuda", torch.bfloat16)

    def forward(self):
        torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            return self.model(self.images)

    def peak_bytes(self):
        return torch.cuda.max_memory_allocated()


class Inference(OnGpu):
    def __init__(self, case):
        super().__init__(case)
        self.net.eval()

    def run(self):
        with torch.inference_mode():
            answer = self.forward()
        torch.cuda.synchronize()
        return answer

    def logits(self):
        return self.run()[0].float().tolist()


class Training(OnGpu):
    """Forward, cross-entropy, backward, AdamW; one batch that stays on the GPU. The rate is too small to move the
    synthetic weights far: numbers that overflow would change the GPU's power and so its clocks."""

    def __init__(self, case):
        super().__init__(case)
        self.net.train()
        self.labels = torch.arange(case["batch"], device="cuda") % self.net.num_classes
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-6, weight_decay=0.05, fused=True,
                                           capturable=self.mode is not None)

    def run(self):
        loss = torch.nn.functional.cross_entropy(self.forward().float(), self.labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()


def open(case):
    return Training(case) if case["work"] == "train" else Inference(case)
