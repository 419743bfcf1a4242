#!/usr/bin/env python3
"""A CNN timed beside a ViT on one GPU: torchvision's ResNets and timm's ViTs through torch.compile, and the same ViTs in
Vitrail; the same images (3 x 224 x 224, a batch that stays on the GPU), bf16 products over f32 weights, AdamW. torch has a
process a model, which compile at once and then wait for their turns; rounds alternate, medians. Prints the step, images a
second, multiplications of an image, the share of them that is computed (Vitrail leaves out what nothing reads of the last
block) and the time of an epoch of 50,000.

    python bench/cnn_beside_vit.py --vitrail build/release/vitrail [--batch 128] [--rounds 3] [--models NAME ...] [--json FILE]
"""
import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

CNNS = ("resnet18", "resnet34", "resnet50", "resnet101")
VITS = ("vit_base_patch32_224", "vit_small_patch16_224", "vit_base_patch16_224")
EPOCH = 50000


def torch_step(name, batch, seconds):
    """Runs in a process of its own: prints what the model is, then the time of each turn, a JSON object a line."""
    import torch
    import torch.utils.flop_counter
    torch.set_float32_matmul_precision("high")
    if name in CNNS:
        import torchvision
        net = torchvision.models.get_model(name, num_classes=10).cuda().train().to(memory_format=torch.channels_last)
    else:
        import timm
        net = timm.create_model(name, num_classes=10).cuda().train()
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    if name in CNNS:
        images = images.to(memory_format=torch.channels_last)
    labels = torch.arange(batch, device="cuda") % 10
    counter = torch.utils.flop_counter.FlopCounterMode(display=False)
    with counter, torch.no_grad():
        net(images[:2])
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-6, fused=True)
    model = torch.compile(net)

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images).float(), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()

    for _ in range(8):
        step()
    print(json.dumps({"gmacs": counter.get_total_flops() / 4e9, "parameters": sum(p.numel() for p in net.parameters()),
                      "bytes": torch.cuda.max_memory_allocated()}), flush=True)
    for _ in sys.stdin:  # a line is a turn
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - start))
        print(json.dumps({"ms": statistics.median(times)}), flush=True)


class TorchModel:
    """A process that has compiled a model and times it when asked."""

    def __init__(self, name, args):
        command = [sys.executable, __file__, "--worker", name, "--batch", str(args.batch), "--seconds", str(args.seconds)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a torch process ended: see its words above")
        return json.loads(line)

    def ready(self):
        self.facts = self.read()
        return self

    def ms(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.read()["ms"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class VitrailModel:
    """A run of `vitrail bench train` each time it is asked."""

    def __init__(self, name, args):
        self.command = [args.vitrail, "bench", "train", "-m", name, "--device", "cuda", "--dtype", "bf16", "--classes", "10",
                        "--batch", str(args.batch), "--set", "optim.name=adamw", "--set", "optim.clip_norm=0", "--seconds",
                        str(args.seconds), "--json", "--quiet"]
        self.facts = {}

    def ms(self):
        found = json.loads(subprocess.run(self.command, capture_output=True, text=True, check=True).stdout)
        self.facts = {"bytes": found["memory_peak"],
                      "work_share": found["gflops"] * 1e-3 * found["ms_median"] / found["model_gflop"]}
        return found["ms_median"]

    def end(self):
        pass


def rows_of(sides, seen, args):
    rows = []
    for (who, name), side in sides.items():
        known = sides["torch", name].facts
        ms = statistics.median(seen[who, name])
        rows.append({"by": who, "model": name, "ms": ms, "least_ms": min(seen[who, name]), "img_per_s": 1e3 * args.batch / ms,
                     "gmacs": known["gmacs"], "work_share": side.facts.get("work_share", 1.0), "parameters": known["parameters"],
                     "epoch_s": EPOCH / (1e3 * args.batch / ms), "gib": side.facts["bytes"] / 2**30})
    return rows


def print_table(rows):
    print("| by | model | parameters, M | GMAC an image | of it computed | step, ms | images a second | epoch of 50,000, s | GiB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['by']} | {row['model']} | {row['parameters'] / 1e6:.1f} | {row['gmacs']:.2f} | "
              f"{row['work_share']:.3f} | {row['ms']:.2f} | {row['img_per_s']:.0f} | {row['epoch_s']:.1f} | {row['gib']:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(Path(__file__).resolve().parent.parent / "build/release/vitrail"))
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="of each side a round")
    parser.add_argument("--models", nargs="+", default=CNNS + VITS, choices=CNNS + VITS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return torch_step(args.worker, args.batch, args.seconds)
    workers = {("torch", name): TorchModel(name, args) for name in args.models}
    sides = {key: worker.ready() for key, worker in workers.items()}
    sides.update({("vitrail", name): VitrailModel(name, args) for name in args.models if name not in CNNS})
    seen = {key: [] for key in sides}
    for number in range(args.rounds):
        for key in list(sides) if number % 2 == 0 else reversed(list(sides)):
            seen[key].append(sides[key].ms())
            print(f"round {number + 1}: {' '.join(key)} {seen[key][-1]:.2f} ms", file=sys.stderr, flush=True)
        rows = rows_of(sides, seen, args)
        if args.json:  # after every round, so that what was measured is kept
            args.json.write_text(json.dumps({"batch": args.batch, "rounds": number + 1, "rows": rows}, indent=1) + "\n")
    for side in sides.values():
        side.end()
    print_table(rows)


if __name__ == "__main__":
    main()
