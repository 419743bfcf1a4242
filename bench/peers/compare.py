"""The comparison itself: all peers of one case side by side, a round of each in turn."""
import json
import statistics
import subprocess
import sys
import time

from peers import OURS, stats
from peers.sides import Unavailable, WorkerSide, environment, missing_package
from peers.vitrail import VitrailSide

# The pause between two peers lets threads of the last one that still spin for work go to sleep.
REST_SECONDS = 0.3


def prepare(case, folder, forms):
    """Makes the fp32 logits that all are compared with, and the ONNX files needed; by torch, in a process that ends."""
    missing = missing_package(("torch", "timm"))
    if missing:
        return {**case, "reference": None, "no_onnx": f"{missing} is not installed to export the model with"}
    done = subprocess.run([sys.executable, "-m", "peers.timm_model",
                           json.dumps({**case, "forms": forms}), str(folder)],
                          capture_output=True, text=True, env=environment(case["threads"]))
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        return {**case, "reference": None, "no_onnx": f"torch could not make the model: {reason}"}
    return {**case, **json.loads((folder / "prepared.json").read_text())}


def open_side(peer, case, options):
    reason = peer.lacks.get(case["work"]) or peer.lacks.get(case["dtype"])
    if reason:
        raise Unavailable(reason)
    if peer.name == OURS:
        return VitrailSide(options.vitrail, case, options.vitrail_args)
    sent = {key: value for key, value in case.items() if key != "reference"}
    if peer.onnx:
        if case["no_onnx"]:
            raise Unavailable(case["no_onnx"])
        sent["onnx"] = case["onnx"][peer.onnx]
    return WorkerSide(peer, sent)


def open_all(peers, case, options, say):
    """Name -> side, and name -> why it is missing."""
    sides, missing = {}, {}
    for peer in peers:
        try:
            sides[peer.name] = open_side(peer, case, options)
        except Unavailable as reason:
            missing[peer.name] = str(reason)
            say(f"  {peer.name}: none, {reason}")
    return sides, missing


def order(names, number):
    """Returns the order of a round: all peers, each round starting with the next one."""
    at = number % max(1, len(names))
    return names[at:] + names[:at]


def run_rounds(sides, missing, options, say, rest=time.sleep, clock=time.monotonic):
    """Name -> its rounds; none is begun after options.limit seconds but the first. A peer that fails on the way is
    missing from then on."""
    rounds = {name: [] for name in sides}
    start = clock()
    for number in range(options.rounds):
        if number > 0 and options.limit and clock() - start > options.limit:
            say(f"  {number} of {options.rounds} rounds, then the time was over")
            break
        for name in order([name for name in sides if name not in missing], number):
            rest(REST_SECONDS)
            try:
                rounds[name].append(sides[name].time(options.seconds))
            except Unavailable as reason:
                missing[name] = str(reason)
                say(f"  {name}: none, {reason}")
    return {name: found for name, found in rounds.items() if name not in missing}


def check_results(sides, case):
    """Name -> {"logits": difference from torch's in fp32, or from the first peer's where there is no torch},
    or {"first_loss", "starts_by_rule"} in training."""
    if case["work"] == "train":
        return {name: {"first_loss": side.first_loss(), "starts_by_rule": side.starts_by_rule}
                for name, side in sides.items()}
    found = {name: side.logits() for name, side in sides.items()}
    reference = case["reference"] or next(iter(found.values()), None)
    return {name: {"logits": stats.logit_difference(reference, logits)} for name, logits in found.items()}


def disagreeing(rows):
    """Returns the peers whose fp32 results differ from the others': logits, or the first loss where all start alike."""
    losses = [row["first_loss"] for row in rows if row.get("starts_by_rule")]
    return [row["peer"] for row in rows if "logits" in row and not stats.agrees(row["logits"])
            or row.get("starts_by_rule") and not stats.near(abs(row["first_loss"] - losses[-1]), abs(losses[-1]))]


def row_of(name, all_rounds, ours, peak_gflops, batch):
    rounds = all_rounds[name]
    times = stats.combine(rounds)
    row = {"peer": name, "ms": times, "rounds": rounds, "img_per_s": 1e3 * batch / times["median"]}
    if ours:
        flops = ours.flops if name == OURS else ours.model_flops
        row["vitrail_speedup"] = stats.speedup(rounds, all_rounds[OURS], ours.work_share)
        row["peak_share"] = stats.peak_share(flops, times["median"], peak_gflops)
    return row


def measure(sides, missing, case, options, say):
    checked = check_results(sides, case)
    rounds = run_rounds(sides, missing, options, say)
    ours = sides.get(OURS) if OURS in rounds else None
    peak = statistics.median(ours.peak_gflops) if ours else None
    rows = [row_of(name, rounds, ours, peak, case["batch"]) for name in rounds]
    for row in rows:
        side = sides[row["peer"]]
        row.update(version=side.version, note=side.note, ready_s=side.ready_s, peak_rss_bytes=side.close(),
                   **checked[row["peer"]])
    medians = {row["peer"]: row["ms"]["median"] for row in rows}
    return {"rows": rows, "peak_gflops": peak, "fastest_peer": stats.fastest(medians, OURS)}


def compare(peers, case, options, folder, say):
    """Runs one case; missing peers are named, those that disagree are in `disagree`."""
    if case["work"] == "infer":
        case = prepare(case, folder, sorted({p.onnx for p in peers if p.onnx and case["dtype"] not in p.lacks}))
    sides, missing = open_all(peers, case, options, say)
    result = measure(sides, missing, case, options, say)
    kept = ("work", "model", "image", "batch", "threads", "dtype", "clip")
    result = {**{key: case[key] for key in kept}, **result, "missing": missing}
    result["disagree"] = disagreeing(result["rows"]) if case["dtype"] == "f32" else []
    return result
