#!/usr/bin/env python3
"""Writes the tables of docs/experiments anew from the studies in docs/experiments/data.  make_experiment_docs.py [--check]

A document marks where a table belongs:
    <!-- study: data/scaling-cpu.json curves strong -->  ...  <!-- end -->
KIND is `machine`, `curves PREFIX` (those whose scaling begins so), `fits`, `messages`, `shares`, `accuracy` or `recommended`.
--check changes nothing and fails where a document is not what its data make."""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "docs" / "experiments"
MARK = re.compile(r"(<!-- study: (\S+) ([^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def seconds(value):
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1, 1e3, "ms"), (120, 1, "s")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 60:.3g} min"


def percent(share):
    return f"{100 * share:.1f} %"


def updates(study):
    return [point for point in study["points"] if point["kind"] != "all-reduce" and point["update_s"]]


def point_of(study, curve, row):
    """The measured point of a curve's row."""
    for point in updates(study):
        batch = point["batch"] if curve["scaling"] == "strong, fixed batch" else point["batch_a_rank"]
        same = point["model"] == curve["model"] and point["device"] == curve["device"] and batch == curve["batch"]
        if same and point["ranks"] == row["ranks"] and point["transport"] in (curve["transport"], "alone"):
            return point
    raise SystemExit(f"no point for {curve['scaling']} {curve['batch']}, {row['ranks']} ranks")


def curves(study, prefix):
    rows = []
    for curve in study["curves"]:
        if not curve["scaling"].startswith(prefix):
            continue
        for row in curve["rows"]:
            point = point_of(study, curve, row)
            total = point["compute_s"] + point["exposed_s"] + point["data_wait_s"]
            spread = point["update_s"]
            rows.append([curve["transport"], curve["batch"], f"{row['ranks']}{' *' if row['oversubscribed'] else ''}",
                         seconds(spread["median"]), percent((spread["max"] - spread["min"]) / spread["median"]),
                         f"{point['images_per_s']['median']:.4g}", percent(point["compute_s"] / total),
                         percent(point["exposed_s"] / total), percent(point["imbalance_s"] / total),
                         percent(point["hidden_s"] / total), seconds(row["epoch_s"]), f"{row['speedup']:.2f}",
                         percent(row["efficiency"]), f"{point['memory_bytes'] / 2**20:.1f} MiB"])
    return table(["transport", "batch", "ranks", "update", "spread", "images/s", "compute", "exposed", "of it imbalance", "hidden",
                  "epoch", "speed-up", "efficiency", "memory a rank"], rows)


def fits(study):
    rows = []
    for curve in study["curves"]:
        fit = curve["amdahl"] or curve["gustafson"]
        if fit and len(curve["rows"]) > 1:
            rows.append([curve["scaling"], curve["transport"], curve["batch"], "Amdahl" if curve["amdahl"] else "Gustafson",
                         percent(fit["serial_share"]), f"{fit['error']:.3f}" if len(curve["rows"]) > 2 else "(two points)"])
    return table(["scaling", "transport", "batch", "law", "share that is not shared out", "off by"], rows)


def messages(study):
    rows = []
    for curve in study.get("all_reduce", []):
        fit = curve.get("fit")
        times = ", ".join(f"{size['megabytes']:g} MB {seconds(size['seconds'])}" for size in curve["sizes"])
        rows.append([curve["transport"], curve["ranks"], times, seconds(fit["alpha_s"]) if fit else "",
                     (f"{fit['bytes_per_s'] / 1e9:.2f} GB/s" if fit["bytes_per_s"] else "not seen") if fit else "", percent(fit["error"]) if fit else ""])
    return table(["all-reduce over", "ranks", "measured", "alpha", "1 / beta", "off by at most"], rows)


def shares(study):
    rows = []
    for point in sorted(updates(study), key=lambda p: (p["ranks"], p["transport"], p["batch_a_rank"])):
        total = point["compute_s"] + point["exposed_s"] + point["data_wait_s"]
        rows.append([point["ranks"], point["transport"], point["batch_a_rank"], percent(point["compute_s"] / total),
                     percent(point["exposed_s"] / total), percent(point["data_wait_s"] / total)])
    return table(["ranks", "transport", "batch a rank", "compute", "exposed communication", "wait for data"], rows)


def accuracy(study):
    rows = []
    for point in sorted(updates(study), key=lambda p: (p["ranks"], p["batch"])):
        if point["top1"]:
            rows.append([point["ranks"], point["batch"], seconds(point["epoch_s"]["median"]), percent(point["top1"]["median"]),
                         f"{point['epochs'][-1]['train_loss']:.3f}"])
    return table(["ranks", "batch", "epoch", "top-1 after the last epoch", "training loss"], rows)


def machine(study):
    config = study["config"]
    return (f"{study['machine']['processor']}, {study['machine']['cores']} cores; Vitrail {study['vitrail']}; {config['repeat']} "
            f"repetitions, {config['threads']} thread{'s' if config['threads'] != 1 else ''} a rank, order by seed {config['seed']}.\n")


KINDS = {"curves": curves, "fits": fits, "messages": messages, "shares": shares, "accuracy": accuracy, "machine": machine,
         "recommended": lambda study: study["recommended"]["why"] + ".\n"}


def filled(text):
    def replace(match):
        kind, *rest = match.group(3).split(maxsplit=1)
        study = json.loads((ROOT / match.group(2)).read_text())
        return match.group(1) + KINDS[kind](study, *rest) + match.group(4)
    return MARK.sub(replace, text)


def main():
    stale = []
    for path in sorted(ROOT.glob("*.md")):
        text = path.read_text()
        made = filled(text)
        if made != text:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(made)
    if stale:
        print(("out of date: " if "--check" in sys.argv else "written: ") + ", ".join(stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
