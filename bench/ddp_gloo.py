#!/usr/bin/env python3
"""Training updates of a ViT by torch DistributedDataParallel over gloo, or by Hugging Face Accelerate over the same, one
thread a rank: the peers of `vitrail bench train --ranks`. Prints one JSON line.
    bench/ddp_gloo.py --ranks 16 --batch 64 [--by accelerate] [--model NAME]"""
import argparse
import importlib.metadata
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def by_torch(model, make_optimizer, rank, ranks):
    """(the model on its rank, its optimizer, what computes gradients)."""
    if ranks > 1:
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
        model = torch.nn.parallel.DistributedDataParallel(model)
    return model, make_optimizer(model), torch.Tensor.backward


def by_accelerate(model, make_optimizer, rank, ranks):
    import accelerate
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                      ACCELERATE_USE_CPU="true")
    accelerator = accelerate.Accelerator(cpu=True)
    if accelerator.num_processes != ranks:
        raise SystemExit(f"Accelerate has {accelerator.num_processes} processes, not {ranks}")
    model, optimizer = accelerator.prepare(model, make_optimizer(model))
    return model, optimizer, accelerator.backward


def run(rank, args, port, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(args.threads)  # before the model is made: all ranks would do so with all cores
    torch.manual_seed(0)
    import timm
    model = timm.create_model(args.model, img_size=args.image, patch_size=args.patch, num_classes=args.classes)
    model, optimizer, backward = {"torch": by_torch, "accelerate": by_accelerate}[args.by](
        model, lambda m: torch.optim.AdamW(m.parameters(), lr=1e-4, weight_decay=0.05), rank, args.ranks)
    torch.set_num_threads(args.threads)
    first, last = rank * args.batch // args.ranks, (rank + 1) * args.batch // args.ranks
    images, labels = torch.randn(last - first, 3, args.image, args.image), torch.arange(last - first) % args.classes
    seconds = []
    for step in range(args.warmup + args.updates):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        backward(torch.nn.functional.cross_entropy(model(images), labels))
        optimizer.step()
        if step >= args.warmup:
            seconds.append(time.perf_counter() - start)
    if rank == 0:
        out.put(statistics.median(seconds))
    if args.ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", choices=["torch", "accelerate"], default="torch")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of a rank")
    parser.add_argument("--batch", type=int, default=64, help="of all ranks")
    parser.add_argument("--model", default="vit_tiny_patch16_224")
    parser.add_argument("--image", type=int, default=64)
    parser.add_argument("--patch", type=int, default=8)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--updates", type=int, default=20)
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # of the ranks, which import torch anew
    context = mp.get_context("spawn")
    out = context.SimpleQueue()
    mp.spawn(run, args=(args, 29500 + os.getpid() % 1000, out), nprocs=args.ranks)
    median = out.get()
    names = ("torch", "timm", *(["accelerate"] if args.by == "accelerate" else []))
    print(json.dumps({"ranks": args.ranks, "batch": args.batch, "update_s": median, "images_per_second": args.batch / median,
                      "versions": {name: importlib.metadata.version(name) for name in names}}))


if __name__ == "__main__":
    main()
