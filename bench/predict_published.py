#!/usr/bin/env python3
"""Sets `vitrail plan --cluster` against published runs: the T4 epochs of Trinh et al. (Scaling ViTs with
DeepSpeed), weak scaling of Megatron-LM on 512 V100 (arXiv 1909.08053) and on 256 A100 (arXiv 2104.04473).
Of each study one measured figure alone is given, the smallest run's; the rest is predicted.

    bench/predict_published.py [--vitrail build/release/vitrail] [--json FILE] [--only t4|v100|a100|sensitivity] [--keep]

"sensitivity" repeats the T4 epochs with each number of the network file that nobody published changed by itself. --keep writes
docs/experiments/data/cluster-simulation.json. Takes some seconds. Needs no device. docs/experiments/cluster-simulation.md has the results."""
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import experiment_tables  # noqa: E402: it lies in tools
import study  # noqa: E402: it lies in bench

IMAGES, MICRO = 50000, 64  # CIFAR-100, images a GPU
WORDS = 51200              # of Megatron-LM's padded vocabulary
T4_ONE = 1813.4            # seconds an epoch on one GPU
T4_EPOCHS = [  # (nodes, GPUs a node, seconds an epoch): seed 003's CSV files, means of their epochs
    (1, 2, 892.2), (1, 4, 465.3), (1, 8, 244.9), (2, 1, 869.3), (8, 1, 238.1), (16, 1, 122.5), (32, 1, 61.3)]
T4_CHANGES = {  # what is assumed of that cluster, otherwise: jitter, Gbit/s of PCIe, Gbit/s between nodes
    "as shipped": {}, "jitter 0 %": {"jitter": 0}, "jitter 1 %": {"jitter": 0.01}, "jitter 2.5 %": {"jitter": 0.025},
    "jitter 3 %": {"jitter": 0.03}, "PCIe 10 GB/s": {"pcie": 80}, "PCIe 6 GB/s": {"pcie": 48},
    "PCIe 15.75 GB/s, Ethernet 100 Gbit/s": {"pcie": 126, "ethernet": 100}, "Ethernet 24 Gbit/s": {"ethernet": 24},
    "Ethernet 9.6 Gbit/s": {"ethernet": 9.6}}


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


def t4_epochs(planner, network="t4-vaughan"):
    """Data parallelism as DeepSpeed's stage 0 has it: one all-reduce behind the backward half."""
    settings = ["-m", "vit_base_patch16_224", "--batch", str(MICRO), "--classes", "100", "--set", "mesh.bucket_mb=4000"]
    one = T4_ONE / math.ceil(IMAGES / MICRO)
    rows = []
    for nodes, devices, measured in T4_EPOCHS:
        ranks = nodes * devices
        row = planner.row(network, nodes, devices, "t4", f"dp={ranks}", settings, one)
        predicted = row["update_s"] * math.ceil(IMAGES / (MICRO * ranks))
        rows.append({"case": f"{nodes} x {devices} T4", "measured": measured, "predicted": predicted,
                     "t1/n": T4_ONE / ranks, "exposed_s": row["exposed_s"], "slowest_s": row["slowest_s"]})
    return rows


def t4_network(folder, jitter=None, pcie=None, ethernet=None):
    """The path of the T4 cluster's network file with other numbers."""
    file = json.loads((ROOT / "configs/networks/t4-vaughan.json").read_text())
    for level, rate in zip(file["levels"], (pcie, ethernet)):
        level["bandwidth_gbps"] = rate or level["bandwidth_gbps"]
    if jitter is not None:
        file["jitter"] = jitter
    path = Path(folder) / "t4-changed.json"
    path.write_text(json.dumps(file))
    return str(path)


def mean_error(rows, key="predicted"):
    return statistics.fmean(experiment_tables.off(row, key) for row in rows)


def jitter_of_one_node(planner, folder):
    """The jitter by which the epochs of 2, 4 and 8 GPUs in one node are met best (least squares of relative errors). A prediction is
    linear in it, so two of each are enough."""
    low, high = (t4_epochs(planner, t4_network(folder, jitter=jitter))[:3] for jitter in (0, 0.01))
    slopes = [(b["predicted"] - a["predicted"]) / 0.01 / a["measured"] for a, b in zip(low, high)]
    missing = [1 - a["predicted"] / a["measured"] for a in low]
    return max(0.0, sum(s * m for s, m in zip(slopes, missing)) / sum(s * s for s in slopes))


def t4_sensitivity(planner, folder):
    """How far the mean error of the T4 epochs hangs on what is assumed."""
    rows = []
    for name, change in T4_CHANGES.items():
        found = t4_epochs(planner, t4_network(folder, **change))
        rows.append({"case": name, "of": "all", "error": mean_error(found), "t1/n": mean_error(found, "t1/n")})
    fitted = jitter_of_one_node(planner, folder)
    for name, change in (("as shipped", {}), (f"jitter {100 * fitted:.2f} %, fitted to the one node", {"jitter": fitted})):
        found = t4_epochs(planner, t4_network(folder, **change))[3:]
        rows.append({"case": name, "of": "several nodes", "error": mean_error(found), "t1/n": mean_error(found, "t1/n")})
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


def studies_of(planner, folder):
    half = {network: with_half_the_bytes(network, folder) for network in ("dgx-2", "dgx-a100")}
    return {"t4": ("seconds an epoch", lambda: t4_epochs(planner)),
            "v100": ("TFLOP/s a GPU", lambda: weak_scaling(planner, half["dgx-2"], 16, "v100", 1024, (512, 512), V100_GIVEN, V100)),
            "a100": ("TFLOP/s a GPU", lambda: weak_scaling(planner, half["dgx-a100"], 8, "a100", 2048, (1024, 512), A100_GIVEN, A100)),
            "sensitivity": ("mean error", lambda: t4_sensitivity(planner, folder))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--json")
    parser.add_argument("--only", choices=["t4", "v100", "a100", "sensitivity"])
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (unit, rows) in studies_of(Planner(arguments.vitrail), folder).items():
            if arguments.only not in (None, name):
                continue
            results[name] = {"what": name, "unit": unit, "rows": rows()}
            kind = experiment_tables.sensitivity if name == "sensitivity" else experiment_tables.published
            print("\n" + kind({"studies": results}, name))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"studies": results}, indent=1) + "\n")
    if arguments.keep and not arguments.only:
        study.keep("cluster-simulation.json", {"experiment": "003: published runs on GPUs, simulated", "document": "cluster-simulation.md",
                                               "command": "bench/predict_published.py --keep", "state": "simulated"}, {"studies": results})


if __name__ == "__main__":
    main()
