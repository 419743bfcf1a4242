"""Arithmetic of the comparison: spreads, ratios, shares of peak, agreement of logits. Plain Python."""
import math
import statistics

# Largest difference of fp32 results accepted, as a share of the largest logit or of the loss (or of 1 when smaller).
F32_TOLERANCE = 1e-3


def quantile(ordered, share):
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def spread(times):
    """Summarises one round of one peer."""
    ordered = sorted(times)
    return {"median": quantile(ordered, 0.5), "min": ordered[0], "p90": quantile(ordered, 0.9), "max": ordered[-1],
            "count": len(ordered)}


def combine(rounds):
    """Summarises all rounds of a peer: medians of its medians and of its p90s, the least and the most of all runs."""
    return {"median": statistics.median(r["median"] for r in rounds), "min": min(r["min"] for r in rounds),
            "p90": statistics.median(r["p90"] for r in rounds), "max": max(r["max"] for r in rounds),
            "count": sum(r["count"] for r in rounds)}


def speedup(theirs, ours, share=1.0):
    """Returns how many times as fast ours is: over all rounds, and the least and the most of any round. Where ours
    computes only a share of the work that theirs does, `equal_work` is the ratio of work done in the same time."""
    by_round = [t["median"] / o["median"] for t, o in zip(theirs, ours, strict=True)]
    ratio = combine(theirs)["median"] / combine(ours)["median"]
    return {"ratio": ratio, "min": min(by_round), "max": max(by_round), "equal_work": ratio * share}


def fastest(medians, ours):
    """Returns the name of the fastest peer but ours, None without one; `medians` is name -> time."""
    others = {name: time for name, time in medians.items() if name != ours}
    return min(others, key=others.get) if others else None


def peak_share(flops, ms, peak_gflops):
    return flops / (ms * 1e-3) / (peak_gflops * 1e9)


def argmax(values):
    return max(range(len(values)), key=values.__getitem__)


def logit_difference(reference, logits):
    """Returns the largest difference; null, which JSON has for NaN, is infinitely far from everything."""
    apart = [abs(a - b) if b is not None else math.inf for a, b in zip(reference, logits, strict=True)]
    broken = any(math.isnan(a) or math.isinf(a) for a in apart)
    return {"max_difference": math.inf if broken else max(apart), "scale": max(abs(a) for a in reference),
            "same_argmax": not broken and argmax(reference) == argmax(logits)}


def agrees(difference):
    """Whether two sets of fp32 logits come from the same model."""
    return difference["same_argmax"] and near(difference["max_difference"], difference["scale"])


def near(apart, scale):
    return apart <= F32_TOLERANCE * max(1.0, scale)
