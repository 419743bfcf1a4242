"""OpenVINO's CPU plugin on the exported model."""
import openvino
from golden_rule import rule_input


class Request:
    def __init__(self, case):
        self.version = openvino.__version__
        model = openvino.Core().compile_model(case["onnx"], "CPU", {
            "INFERENCE_NUM_THREADS": case["threads"], "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": case["dtype"]})
        runs_in = model.get_property("INFERENCE_PRECISION_HINT").to_string()
        wanted = {"f32": "f32", "bf16": "bf16"}[case["dtype"]]
        self.note = "" if runs_in == wanted else f"runs in {runs_in} here"
        self.request = model.create_infer_request()
        self.images = rule_input(case["batch"], *case["shape"])

    def run(self):
        return self.request.infer({0: self.images}, share_inputs=True)

    def logits(self):
        return self.run()[0][0].tolist()


def open(case):
    return Request(case)
