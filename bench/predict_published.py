#!/usr/bin/env python3
"""Sets `vitrail plan --cluster` against published runs: the T4 epochs of Trinh et al. (Scaling ViTs with
DeepSpeed), weak scaling of Megatron-LM on 512 V100 (arXiv 1909.08053) and on 256 A100 (arXiv 2104.04473).
Of each study one measured figure alone is given, the smallest run's; the rest is predicted.

    bench/predict_published.py [--vitrail build/release/vitrail] [--json FILE] [--only t4|v100|a100]

Takes some seconds. Needs no device. docs/experiments/cluster-simulation.md has the results."""
import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import experiment_tables  # noqa: E402: it lies in tools
IMAGES, MICRO = 50000, 64  # CIFAR-100, images a GPU
WORDS = 51200              # of Megatron-LM's padded vocabulary
T4_ONE = 1813.4            # seconds an epoch on one GPU
T4_EPOCHS = [  # (nodes, GPUs a node, seconds an epoch): seed 003's CSV files, means of their epochs
    (1, 2, 892.2), (1, 4, 465.3), (1, 8, 244.9), (2, 1, 869.3), (8, 1, 238.1), (16, 1, 122.5), (32, 1, 61.3)]


class Planner:
    def __init__(self, vitrail):
        self.vitrail = vitrail

    def row(self, network, nodes, devices, device, mesh, settings, one_device_s=0.0):
        command = [self.vitrail, "plan", "--cluster", network, "--nodes", str(nodes), "--devices", str(devices),
                   "--target", device, "--mesh", mesh, "--one-device-s", repr(one_device_s), "--json", *settings]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        return json.loads(done.stdout)["meshes"][0]


def t4_epochs(planner):
    """Data parallelism as DeepSpeed's stage 0 has it: one all-reduce behind the backward half."""
    settings = ["-m", "vit_base_patch16_224", "--batch", str(MICRO), "--classes", "100", "--set", "mesh.bucket_mb=4000"]
    one = T4_ONE / math.ceil(IMAGES / MICRO)
    rows = []
    for nodes, devices, measured in T4_EPOCHS:
        ranks = nodes * devices
        row = planner.row("t4-vaughan", nodes, devices, "t4", f"dp={ranks}", settings, one)
        predicted = row["update_s"] * math.ceil(IMAGES / (MICRO * ranks))
        rows.append({"case": f"{nodes} x {devices} T4", "measured": measured, "predicted": predicted,
                     "t1/n": T4_ONE / ranks, "exposed_s": row["exposed_s"], "slowest_s": row["slowest_s"]})
    return rows


def with_half_the_bytes(network, folder):
    """Megatron-LM sums gradients in fp16 where Vitrail does in f32, and they alone pass between nodes: links of twice the
    bandwidth there are the same."""
    file = json.loads((ROOT / f"configs/networks/{network}.json").read_text())
    file["levels"][1]["bandwidth_gbps"] *= 2
    path = Path(folder) / f"{network}-half.json"
    path.write_text(json.dumps(file))
    return str(path)


def gpt_settings(hidden, heads, layers, height, width, micro, batch):
    """Blocks of a GPT of so many tokens as a ViT of as many patches; the words' head has no counterpart, and its time is added by
    its FLOPs. Gradients are summed behind the backward half, as Megatron-LM did."""
    return ["-m", "vit_base_patch16_224", "--classes", "1000", "--batch", str(micro), "--dtype", "f16",
            "--recompute", "block", "--set", f"train.batch={batch}", "--set", "train.low_residual=true", "--set", "mesh.bucket_mb=100000",
            *[f"--set=model.{key}={value}" for key, value in
              {"width": hidden, "heads": heads, "depth": layers, "mlp": 4 * hidden,
               "image_height": height, "image_width": width}.items()]]


def flops(hidden, layers, tokens, sequences):
    """(of the blocks, of the head over words) of an update, the blocks' forward half computed twice: the formula of arXiv
    2104.04473, section 3.3: 96 B s l h^2 (1 + s / 6h + V / 16lh)."""
    unit = 96 * sequences * tokens * layers * hidden**2
    return unit * (1 + tokens / (6 * hidden)), unit * WORDS / (16 * layers * hidden)


def weak_scaling(planner, network, per_node, device, tokens, size, given, cases):
    """`given` and `cases`: (tp, dp, hidden, heads, layers, batch, micro-batch, TFLOP/s a GPU, or several that were published). The
    first sets the pace of compute, for all of them. Published rates count the head over words; it is taken to run at the pace of
    the blocks, cut over tp as Megatron-LM does."""
    def settings(case):
        tp, dp, hidden, heads, layers, batch, micro = case[:7]
        return gpt_settings(hidden, heads, layers, *size, micro, batch)

    def work(case):
        return flops(case[2], case[4], tokens, case[5])

    def seconds(case):  # that the paper's rate means
        return sum(work(case)) / (case[7] * 1e12 * case[0] * case[1])

    def whole(case, row):  # an update with its head
        blocks, head = work(case)
        return row["update_s"] + row["compute_s"] * head / blocks

    def predicted(case, factor):
        tp, dp = case[:2]
        alone = planner.row(network, 1, 1, device, "dp=1", settings((1, 1, *case[2:5], case[5] // dp, case[6])))
        devices = min(per_node, tp * dp)
        return planner.row(network, tp * dp // devices, devices, device, f"dp={dp},tp={tp}", settings(case),
                           alone["update_s"] * factor)

    factor = 1.0
    for _ in range(3):  # what is exposed does not scale with the pace
        row = predicted(given, factor)
        factor *= 1 + (seconds(given) - whole(given, row)) / (whole(given, row) - row["update_s"] + row["compute_s"])
    rows = []
    for case in cases:
        row = predicted(case, factor)
        tp, dp, hidden, heads, layers, batch, micro, rate, *others = case
        update = whole(case, row)
        rows.append({"case": f"{tp * dp} GPUs, tp {tp} x dp {dp}, width {hidden}, {layers} blocks", "measured": rate,
                     "predicted": sum(work(case)) / update / (tp * dp) / 1e12, "exposed_s": row["exposed_s"], "update_s": update})
        if others:
            rows[-1]["also_published"] = others
    return rows


# Shoeybi et al.: 1.2 G parameters on one V100 at 39 TFLOP/s; efficiencies of figure 5 by that. NVIDIA's page on the project
# (nv-adlr.github.io/MegatronLM) has 77 % for 8 and 74 % for 512 GPUs in its text, and 76 % with 15.1 PFLOP/s for 512 at its head.
V100_GIVEN = (1, 1, 1536, 16, 40, 8, 8, 39.0)
V100 = [(tp, dp, hidden, heads, layers, 8 * dp, 8, 39.0 * share) for tp, dp, hidden, heads, layers, share in
        [(2, 1, 1920, 20, 54, 0.95), (4, 1, 2304, 24, 64, 0.82), (8, 1, 3072, 32, 72, 0.77),
         (1, 64, 1536, 16, 40, 0.96), (2, 64, 1920, 20, 54, 0.83), (4, 64, 2304, 24, 64, 0.79), (8, 64, 3072, 32, 72, 0.74)]]
V100[-1] += (15100 / 512,)
# Narayanan et al., table 1: the rows without a pipeline. It names no micro-batches: 16 for all, which fits each GPU.
A100_GIVEN = (1, 32, 2304, 24, 24, 512, 16, 137.0)
A100 = [(2, 32, 3072, 32, 30, 512, 16, 138.0), (4, 32, 4096, 32, 36, 512, 16, 142.0), (8, 32, 6144, 48, 40, 1024, 16, 135.0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--json")
    parser.add_argument("--only", choices=["t4", "v100", "a100"])
    arguments = parser.parse_args()
    planner, folder = Planner(arguments.vitrail), tempfile.TemporaryDirectory()
    half = {network: with_half_the_bytes(network, folder.name) for network in ("dgx-2", "dgx-a100")}
    studies = {"t4": ("seconds an epoch", lambda: t4_epochs(planner)),
               "v100": ("TFLOP/s a GPU", lambda: weak_scaling(planner, half["dgx-2"], 16, "v100", 1024, (512, 512), V100_GIVEN, V100)),
               "a100": ("TFLOP/s a GPU", lambda: weak_scaling(planner, half["dgx-a100"], 8, "a100", 2048, (1024, 512), A100_GIVEN, A100))}
    results = {}
    for name, (unit, study) in studies.items():
        if arguments.only not in (None, name):
            continue
        results[name] = {"what": name, "unit": unit, "rows": study()}
        print("\n" + experiment_tables.published({"studies": results}, name))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"studies": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
