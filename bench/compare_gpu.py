#!/usr/bin/env python3
"""Vitrail against torch on a GPU, in one run: the same timm model with erf GELU, the same batch and type; rounds
of each in turn, medians, ratios. Training is forward, backward and AdamW on a batch that stays on the card.

    python bench/compare_gpu.py --vitrail build/release/vitrail train:vit_base_patch16_224:256
    python bench/compare_gpu.py infer:vit_base_patch16_224:1 infer:vit_base_patch16_224:256 --json out.json

A case is train|infer:MODEL:BATCH. torch trains under bf16 autocast (f32 residual stream) or, with --pure, all in
bf16; --residual says what Vitrail's residual stream is.
"""
import argparse
import datetime
import gc
import json
import pathlib
import statistics
import subprocess
import sys

from peers.chart import chart

COMPILE = {"train": None, "infer": "reduce-overhead"}  # inference with CUDA graphs


def event_times(step, seconds):
    """Milliseconds of single steps, by CUDA events."""
    import torch
    times, spent = [], 0.0
    while spent < seconds * 1e3 or len(times) < 5:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        step()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
        spent += times[-1]
    return times


def torch_training(model, batch, pure):
    import timm
    import torch
    net = timm.create_model(model, num_classes=1000).cuda().train()
    if pure:
        net = net.bfloat16()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    compiled = torch.compile(net, mode=COMPILE["train"])
    size = net.patch_embed.img_size
    x = torch.randn(batch, 3, *size, device="cuda", dtype=torch.bfloat16 if pure else torch.float32)
    y = torch.randint(0, 1000, (batch,), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=not pure):
            loss = torch.nn.functional.cross_entropy(compiled(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return step


def torch_inference(model, batch):
    import timm
    import torch
    net = timm.create_model(model, num_classes=1000).cuda().bfloat16().eval()
    compiled = torch.compile(net, mode=COMPILE["infer"])
    x = torch.randn(batch, 3, *net.patch_embed.img_size, device="cuda", dtype=torch.bfloat16)

    def step():
        with torch.inference_mode():
            compiled(x)
    return step


def vitrail_run(options, work, model, batch):
    command = [options.vitrail, "bench", work, "--device", "cuda", "--dtype", options.dtype, "-m", model, "--weights",
               "rule", "--batch", str(batch), "--seconds", str(options.seconds), "--warmup", "5", "--json"]
    if work == "train":
        command += ["--classes", "1000", "--set", "optim.name=adamw", "--set", "optim.clip_norm=0"]
        if options.residual != "f32":
            command += ["--set", "train.low_residual=true"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def compare(options, case):
    import torch
    work, model, batch = case.split(":")
    batch = int(batch)
    torch._dynamo.reset()
    gc.collect()  # what the case before held
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    step = torch_training(model, batch, options.pure) if work == "train" else torch_inference(model, batch)
    for _ in range(8):
        step()
    torch.cuda.synchronize()
    theirs, ours = [], []
    for _ in range(options.rounds):
        theirs.append(statistics.median(event_times(step, options.seconds)))
        ours.append(vitrail_run(options, work, model, batch))
    torch_ms = statistics.median(theirs)
    own_ms = statistics.median(run["ms_median"] for run in ours)
    return {"case": case, "torch_ms": torch_ms, "vitrail_ms": own_ms, "ratio": torch_ms / own_ms,
            "torch_img_s": batch / torch_ms * 1e3, "vitrail_img_s": batch / own_ms * 1e3,
            "torch_rounds": theirs, "vitrail_rounds": [run["ms_median"] for run in ours],
            "torch_gib": torch.cuda.max_memory_allocated() / 2**30,
            "vitrail_gib": ours[0]["memory_peak"] / 2**30, "residual": options.residual, "pure": options.pure}


def drawn(row, dtype):
    """A row as peers.chart takes it."""
    work, model, batch = row["case"].split(":")
    peers = [{"peer": "vitrail", "ms": {"median": row["vitrail_ms"]}},
             {"peer": "torch-compile", "ms": {"median": row["torch_ms"]}, "vitrail_speedup": {"ratio": row["ratio"]}}]
    return {"work": work, "model": model, "batch": int(batch), "dtype": dtype, "image": None, "threads": None,
            "rows": peers}


def write_results(options, card, torch_version, rows):
    """After every case, so that a run cut short loses nothing."""
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({"card": card, "torch": torch_version, "rows": rows}, indent=1) + "\n")
    if options.svg:
        caption = f"{card}, torch {torch_version}, {datetime.date.today()}, less is better"
        pathlib.Path(options.svg).write_text(chart([drawn(row, options.dtype) for row in rows], caption))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--vitrail", default="build/release/vitrail")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--residual", choices=("f32", "bf16"), default="bf16")
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("--svg", help="draw them here")
    options = parser.parse_args()
    import timm
    import torch
    torch.set_float32_matmul_precision("high")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, timm {timm.__version__}", flush=True)
    rows = []
    for case in options.cases:
        rows.append(compare(options, case))
        write_results(options, torch.cuda.get_device_name(), torch.__version__, rows)
        r = rows[-1]
        print(f"{case:36s} torch {r['torch_ms']:9.3f} ms {r['torch_img_s']:8.0f}/s {r['torch_gib']:5.1f} GiB  "
              f"Vitrail {r['vitrail_ms']:9.3f} ms {r['vitrail_img_s']:8.0f}/s {r['vitrail_gib']:5.1f} GiB  "
              f"{r['ratio']:.2f}x", flush=True)


if __name__ == "__main__":
    main()
