"""onnxruntime's CPU provider on the exported model; int8 through its own dynamic quantisation.

    python -m peers.onnx_runtime IN OUT     quantises, apart from the process whose memory is read
"""
import pathlib
import subprocess
import sys

import onnxruntime
from golden_rule import rule_input


def quantised(path):
    target = path.replace(".onnx", "-int8.onnx")
    done = subprocess.run([sys.executable, "-m", "peers.onnx_runtime", path, target], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError("quantize_dynamic failed: " + done.stderr.strip().splitlines()[-1])
    return target


class Session:
    def __init__(self, case):
        self.version, self.note, path = onnxruntime.__version__, "", case["onnx"]
        if case["dtype"] == "int8":
            path, self.note = quantised(path), "quantize_dynamic, per channel"
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = case["threads"]
        self.session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        self.feed = {"pictures": rule_input(case["batch"], *case["shape"])}

    def run(self):
        return self.session.run(None, self.feed)

    def logits(self):
        return self.run()[0][0].tolist()


def open(case):
    return Session(case)


if __name__ == "__main__":
    from onnxruntime.quantization import QuantType, quantize_dynamic
    # Without dot-product instructions its 8-bit products saturate unless weights keep to 7 bits.
    quantize_dynamic(sys.argv[1], sys.argv[2], weight_type=QuantType.QInt8, per_channel=True,
                     reduce_range="vnni" not in pathlib.Path("/proc/cpuinfo").read_text())
