"""onnxruntime's CPU provider on the exported model; int8 through its own dynamic quantisation.

    python -m peers.onnx_runtime IN OUT     quantises, outside the process whose memory is measured
"""
import pathlib
import subprocess
import sys

import onnxruntime
from golden_rule import rule_input


def converted(module, path, kind):
    """Returns the file that `module` makes of one in a process of its own, and the last line it printed."""
    target = path.replace(".onnx", f"-{kind}.onnx")
    done = subprocess.run([sys.executable, "-m", module, path, target], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{kind} failed: " + (done.stderr.strip().splitlines() or ["without a word"])[-1])
    return target, (done.stdout.strip().splitlines() or [""])[-1]


def quantised(path):
    return converted("peers.onnx_runtime", path, "int8")[0]


class Session:
    def __init__(self, case, path, note=""):
        self.version, self.note = onnxruntime.__version__, note
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = case["threads"]
        self.session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        self.feed = {"images": rule_input(case["batch"], *case["shape"])}

    def run(self):
        return self.session.run(None, self.feed)

    def logits(self):
        return self.run()[0][0].tolist()


def open(case):
    if case["dtype"] == "int8":
        return Session(case, quantised(case["onnx"]), "quantize_dynamic, per channel")
    return Session(case, case["onnx"])


if __name__ == "__main__":
    from onnxruntime.quantization import QuantType, quantize_dynamic
    # Without dot-product instructions its 8-bit dot products saturate unless weights keep to 7 bits.
    quantize_dynamic(sys.argv[1], sys.argv[2], weight_type=QuantType.QInt8, per_channel=True,
                     reduce_range="vnni" not in pathlib.Path("/proc/cpuinfo").read_text())
