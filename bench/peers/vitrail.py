"""Vitrail, through its own `bench` commands: a process a round, started by the comparison itself."""
import json
import os
import subprocess
import tempfile
import time

from peers.sides import Unavailable

FIRST_STEP = ["--steps", "1", "--warmup", "0"]


def arguments(case):
    found = ["--config", case["config"]] if case["config"] else ["--model", case["model"]]
    found += ["--weights", "rule", "--batch", str(case["batch"]), "--dtype", case["dtype"], "--json"]
    found += ["--device", case["device"]] if case.get("device") else ["--threads", str(case["threads"])]
    if case["image"]:
        found += ["--image", str(case["image"])]
    if case["fields"]:  # then the recipe's data need not be opened
        found += ["--classes", str(case["fields"]["classes"])]
    elif case["work"] == "train" and case.get("classes"):
        found += ["--classes", str(case["classes"])]
    if case["work"] == "train":  # one update a batch, as the others do it, whatever a recipe says
        for setting in (f"train.batch={case['batch']}", "optim.name=adamw", f"optim.clip_norm={case['clip']:g}",
                        *case.get("settings", ())):
            found += ["--set", setting]
    return found


class VitrailSide:
    def __init__(self, program, case, more=()):
        if not os.access(program, os.X_OK):
            raise Unavailable(f"no program at {program}")
        self.command = [program, "bench", case["work"], *arguments(case), *more]
        self.peak, self.peak_gflops = 0, []
        start = time.perf_counter()
        self.first = self.call(*(["--seconds", "0", "--logits"] if case["work"] == "infer" else FIRST_STEP))
        self.ready_s = time.perf_counter() - start
        self.note, self.flops = self.first.get("device", ""), self.first["gflops"] * self.first["ms_median"] * 1e6
        self.model_flops = 1e9 * self.first["model_gflop"]  # what the others compute
        self.work_share = self.flops / self.model_flops
        self.starts_by_rule = case["work"] == "infer" or self.first.get("weights") == "rule"
        if not self.starts_by_rule:
            self.note += ", fresh weights of its own"
        self.version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()

    def call(self, *more):
        with tempfile.TemporaryFile(mode="w+") as talk:
            process = subprocess.Popen([*self.command, *more], stdout=subprocess.PIPE, stderr=talk, text=True)
            with process.stdout:
                text = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            talk.seek(0)
            said = talk.read().strip().splitlines()
        if process.returncode != 0:
            errors = [line for line in said if line.startswith("error: ")] or said
            raise Unavailable(errors[0].removeprefix("error: ") if errors else f"exit code {process.returncode}")
        self.peak = max(self.peak, usage.ru_maxrss * 1024)
        return json.loads(text)

    def time(self, seconds):
        found = self.call("--seconds", str(seconds))
        self.peak_gflops.append(found["peak_gflops"])
        return {"median": found["ms_median"], "min": found["ms_min"], "p90": found["ms_p90"],
                "max": found.get("ms_max", found["ms_p90"]), "count": found.get("runs", 1)}

    def logits(self):
        return self.first["logits"]

    def first_loss(self):
        return self.first.get("loss")

    def close(self):
        return self.peak
