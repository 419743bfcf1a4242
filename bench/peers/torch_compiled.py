"""torch.compile of the same model; inference with frozen weights, which inductor may then lay out as it likes."""
import torch
import torch._inductor.config

from peers import torch_eager


def open(case):
    peer = torch_eager.open(case)
    if case["work"] == "infer":
        torch._inductor.config.freezing = True
    peer.model = torch.compile(peer.model)
    return peer
