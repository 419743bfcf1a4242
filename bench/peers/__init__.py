"""The engines Vitrail is compared with: one module each, listed here and nowhere else.

A module gives open(case), which returns an object with
    version, note   text for the table
    run()           one batch forward, or one training step; returns when the result is there
    logits()        inference: of the first image, a list
    first_loss()    training: of the first step, before any update
and runs in a process of its own (worker.py), so that its memory can be read and its threads rest while others run.
"""
from typing import NamedTuple


class Peer(NamedTuple):
    name: str
    module: str
    packages: tuple = ()  # what its Python must have
    onnx: str = ""  # the exported file it reads, a key of timm_model.FORMS
    lacks: dict = {}  # a dtype, or "train" -> why it is left out


NO_TRAINING = "an engine for inference"
NO_BF16 = "its CPU provider has no bf16 kernels"

PEERS = (
    Peer("vitrail", "peers.vitrail"),
    Peer("torch", "peers.torch_eager", ("torch", "timm")),
    Peer("torch-compile", "peers.torch_compiled", ("torch", "timm"),
         lacks={"int8": "its dynamic quantisation is for eager modules"}),
    Peer("onnxruntime", "peers.onnx_runtime", ("onnxruntime",), onnx="whole",
         lacks={"bf16": NO_BF16, "train": NO_TRAINING}),
    Peer("onnxruntime-optimized", "peers.onnx_optimized", ("onnxruntime", "onnx"), onnx="apart",
         lacks={"bf16": NO_BF16, "int8": "quantised from the file as it is exported, see onnxruntime",
                "train": NO_TRAINING}),
    Peer("openvino", "peers.open_vino", ("openvino",), onnx="whole",
         lacks={"int8": "quantises through a tool of its own, with calibration images", "train": NO_TRAINING}),
)
NAMES = tuple(peer.name for peer in PEERS)
OURS = PEERS[0].name
