#!/usr/bin/env python3
"""A CNN timed beside a ViT on one GPU: torchvision's ResNets and timm's ViTs through torch.compile, and the same ViTs in
Vitrail; the same images (3 x 224 x 224, a batch that stays on the GPU), bf16 products over f32 weights, AdamW. A process a
side, rounds alternate, medians. Prints the step, images a second, FLOPs of an image and the time of an epoch of 50,000.

    python bench/cnn_beside_vit.py --vitrail build/release/vitrail [--batch 128] [--rounds 3] [--json FILE]
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
    """Runs in a process of its own; prints one JSON object."""
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
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({"ms": statistics.median(times), "gmacs": counter.get_total_flops() / 4e9,
                      "parameters": sum(p.numel() for p in net.parameters()),
                      "bytes": torch.cuda.max_memory_allocated()}))


def run_torch(name, args):
    command = [sys.executable, __file__, "--worker", name, "--batch", str(args.batch), "--seconds", str(args.seconds)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run_vitrail(name, args):
    command = [args.vitrail, "bench", "train", "-m", name, "--weights", "rule", "--device", "cuda", "--dtype", "bf16",
               "--classes", "10", "--batch", str(args.batch), "--set", "optim.name=adamw", "--set", "optim.clip_norm=0",
               "--seconds", str(args.seconds), "--json", "--quiet"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {"ms": found["ms_median"], "gmacs": None, "parameters": None, "bytes": found["memory_peak"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrail", default=str(Path(__file__).resolve().parent.parent / "build/release/vitrail"))
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="of each side a round")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return torch_step(args.worker, args.batch, args.seconds)
    # torch keeps what it compiles on disk: all at once, before anything is timed.
    for process in [subprocess.Popen([sys.executable, __file__, "--worker", name, "--batch", str(args.batch), "--seconds",
                                      "0.1"], stdout=subprocess.DEVNULL) for name in CNNS + VITS]:
        process.wait()
    sides = [("torch", name, run_torch) for name in CNNS + VITS] + [("vitrail", name, run_vitrail) for name in VITS]
    seen = {(who, name): [] for who, name, _ in sides}
    for number in range(args.rounds):
        for who, name, run in sides if number % 2 == 0 else reversed(sides):
            seen[who, name].append(run(name, args))
            print(f"round {number + 1}: {who} {name} {seen[who, name][-1]['ms']:.2f} ms", file=sys.stderr, flush=True)
    rows = []
    for (who, name), found in seen.items():
        known = seen["torch", name][0]
        ms = statistics.median(one["ms"] for one in found)
        rows.append({"by": who, "model": name, "ms": ms, "img_per_s": 1e3 * args.batch / ms, "gmacs": known["gmacs"],
                     "parameters": known["parameters"], "epoch_s": EPOCH / (1e3 * args.batch / ms),
                     "gib": found[0]["bytes"] / 2**30})
    print("| by | model | parameters, M | GMACs an image | step, ms | images a second | epoch of 50,000, s | GiB |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['by']} | {row['model']} | {row['parameters'] / 1e6:.1f} | {row['gmacs']:.2f} | {row['ms']:.2f} | "
              f"{row['img_per_s']:.0f} | {row['epoch_s']:.1f} | {row['gib']:.1f} |")
    if args.json:
        args.json.write_text(json.dumps({"batch": args.batch, "rounds": args.rounds, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
