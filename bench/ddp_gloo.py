#!/usr/bin/env python3
"""Training updates of a ViT by torch DistributedDataParallel over gloo, one thread a rank: the peer of
`vitrail bench train --ranks`. Prints one JSON line.  bench/ddp_gloo.py --ranks 16 --batch 64 [--model NAME]"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, args, port, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    import timm
    if args.ranks > 1:
        dist.init_process_group("gloo", rank=rank, world_size=args.ranks)
    model = timm.create_model(args.model, img_size=args.image, patch_size=args.patch, num_classes=args.classes)
    if args.ranks > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05)
    first, last = rank * args.batch // args.ranks, (rank + 1) * args.batch // args.ranks
    images, labels = torch.randn(last - first, 3, args.image, args.image), torch.arange(last - first) % args.classes
    seconds = []
    for step in range(args.warmup + args.updates):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
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
    context = mp.get_context("spawn")
    out = context.SimpleQueue()
    mp.spawn(run, args=(args, 29500 + os.getpid() % 1000, out), nprocs=args.ranks)
    median = out.get()
    print(json.dumps({"ranks": args.ranks, "batch": args.batch, "update_s": median,
                      "images_per_second": args.batch / median, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
