#!/usr/bin/env python3
"""Vitrail against torch eager (timm) on this machine, in one run: rounds alternate between the two, so that a
slow minute hits both. Same architecture, same weights (both by rule), same threads; says whether the logits
agree. Without a vitrail program it times torch alone.

    python bench/compare_torch.py --vitrail build/release/vitrail --model vit_base_patch16_224 --batch 1 8
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))


# --- torch, in a process of its own so that its memory can be read ---------------------------------------

def torch_worker(name, threads):
    """Answers one JSON line per request line: {"batch", "seconds"} times, {"logits"} computes."""
    import timm
    import torch
    from golden_rule import rule_input, rule_values

    torch.set_num_threads(threads)
    model = timm.create_model(name, pretrained=False).eval()
    model.load_state_dict({key: torch.from_numpy(rule_values(key, tuple(value.shape)))
                           for key, value in model.state_dict().items()})
    _, height, width = model.pretrained_cfg["input_size"]

    def run(batch):
        with torch.inference_mode():
            return model(torch.from_numpy(rule_input(batch, 3, height, width)))

    def time_batch(batch, seconds):
        x = torch.from_numpy(rule_input(batch, 3, height, width))
        times = []
        with torch.inference_mode():
            model(x)
            start = time.perf_counter()
            while len(times) < 3 or time.perf_counter() - start < seconds:
                t = time.perf_counter()
                model(x)
                times.append(1e3 * (time.perf_counter() - t))
        return times

    for line in sys.stdin:
        request = json.loads(line)
        answer = run(1)[0].tolist() if "logits" in request else time_batch(request["batch"], request["seconds"])
        print(json.dumps(answer), flush=True)


class Torch:
    def __init__(self, name, threads):
        env = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen([sys.executable, __file__, "--worker", name, "--threads", str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self):
        """Ends the worker; its peak resident memory in bytes."""
        self.process.stdin.close()
        return wait_for_peak(self.process)


def wait_for_peak(process):
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024


# --- vitrail ---------------------------------------------------------------------------------------------

class Vitrail:
    def __init__(self, program, name, threads):
        self.base = [program, "bench", "infer", "--model", name, "--weights", "rule", "--threads", str(threads),
                     "--json"]
        self.peak_bytes = {}

    def call(self, batch, *more):
        process = subprocess.Popen([*self.base, "--batch", str(batch), *more], stdout=subprocess.PIPE, text=True)
        text = process.stdout.read()
        peak = wait_for_peak(process)
        if process.returncode != 0:
            return None
        self.peak_bytes[batch] = max(peak, self.peak_bytes.get(batch, 0))
        return json.loads(text)

    def logits(self):
        answer = self.call(1, "--logits")
        return answer.get("logits") if answer else None


def first_answer_ms(program, model, image, repeats):
    """Start of the program to its exit with an answer, wall time."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        done = subprocess.run([program, "predict", "-m", model, image, "--json"], capture_output=True)
        times.append(1e3 * (time.perf_counter() - start))
        if done.returncode != 0:
            return None
    return summary(times)


# --- comparison ------------------------------------------------------------------------------------------

def summary(times):
    times = sorted(times)
    return {"median": statistics.median(times), "min": times[0], "p90": times[int(0.9 * (len(times) - 1))],
            "max": times[-1], "count": len(times)}


def say(label, s):
    print(f"  {label:8} {s['median']:9.2f} ms median {s['min']:9.2f} min {s['p90']:9.2f} p90  ({s['count']})", flush=True)


def compare_logits(torch_side, vitrail):
    theirs, ours = torch_side.ask(logits=True), vitrail.logits()
    if ours is None:
        print("  logits: not compared, this vitrail prints none")
        return None
    apart = max(abs(a - b) for a, b in zip(theirs, ours, strict=True))
    same = max(range(len(ours)), key=ours.__getitem__) == max(range(len(theirs)), key=theirs.__getitem__)
    print(f"  logits: largest difference {apart:.2e}, {'same' if same else 'DIFFERENT'} argmax")
    return {"max_difference": apart, "same_argmax": same}


def compare_batch(torch_side, vitrail, batch, options):
    print(f" batch {batch}")
    theirs, ours, ours_min = [], [], []
    for _ in range(options.rounds):
        theirs += torch_side.ask(batch=batch, seconds=options.seconds)
        answer = vitrail.call(batch) if vitrail else None
        if answer:
            ours.append(answer["ms_median"])
            ours_min.append(answer.get("ms_min", answer["ms_median"]))
    result = {"batch": batch, "torch_ms": summary(theirs)}
    say("torch", result["torch_ms"])
    if ours:
        result["vitrail_ms"] = {**summary(ours), "min": min(ours_min)}
        result["ratio"] = result["vitrail_ms"]["median"] / result["torch_ms"]["median"]
        say("vitrail", result["vitrail_ms"])
        print(f"  vitrail takes {result['ratio']:.3f} of torch's time")
    return result


def compare_model(name, options):
    print(name)
    torch_side = Torch(name, options.threads)
    vitrail = Vitrail(options.vitrail, name, options.threads) if options.vitrail else None
    result = {"model": name}
    if vitrail and vitrail.call(1) is None:
        print("  this vitrail cannot run `bench infer --weights rule`; torch alone")
        vitrail = None
    if vitrail:
        result["logits"] = compare_logits(torch_side, vitrail)
    result["batches"] = [compare_batch(torch_side, vitrail, batch, options) for batch in options.batch]
    result["torch_peak_rss_bytes"] = torch_side.close()
    print(f"  peak RSS: torch {result['torch_peak_rss_bytes'] / 2**20:.0f} MiB", end="")
    if vitrail:
        result["vitrail_peak_rss_bytes"] = vitrail.peak_bytes
        print("".join(f", vitrail batch {b} {v / 2**20:.0f} MiB" for b, v in vitrail.peak_bytes.items()), end="")
    print(flush=True)
    return result


def cpu_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def parse_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--vitrail", help="the program; without it torch is timed alone")
    p.add_argument("--model", nargs="+", default=["vit_base_patch16_224"], help="timm names")
    p.add_argument("--batch", nargs="+", type=int, default=[1, 8])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=3.0, help="of torch per round and batch")
    p.add_argument("--first-answer", nargs=2, metavar=("MODEL", "IMAGE"),
                   default=[str(ROOT / "models/deit_tiny_patch16_224"), str(ROOT / "examples/images/chelsea.png")])
    p.add_argument("--json", help="write the results here")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    return p.parse_args()


def main():
    options = parse_options()
    if options.worker:
        return torch_worker(options.worker, options.threads)
    if options.vitrail and not os.access(options.vitrail, os.X_OK):
        print(f"{options.vitrail}: no such program; torch alone")
        options.vitrail = None
    result = {"cpu": cpu_name(), "threads": options.threads, "date": time.strftime("%Y-%m-%d"),
              "command": sys.argv, "load_before": os.getloadavg()[0]}
    print(f"{result['cpu']}, {options.threads} threads, load {result['load_before']:.2f}")
    result["models"] = [compare_model(name, options) for name in options.model]
    if options.vitrail:
        result["first_answer_ms"] = first_answer_ms(options.vitrail, *options.first_answer, repeats=7)
        if result["first_answer_ms"]:
            say("first answer", result["first_answer_ms"])
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
