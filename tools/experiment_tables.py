"""The tables of docs/experiments, each made from a file of docs/experiments/data: KINDS names them. A kind is a function
of the file's content and the rest of its mark; it returns Markdown."""
import re
import statistics


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def seconds(value):
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 3600:.3g} h"


def percent(share):
    return f"{100 * share:.1f} %"


def size(value):
    return f"{value / 2**20:.1f} MiB" if value < 2**30 else f"{value / 2**30:.3g} GiB"


# How a column's numbers are written, by its unit.
UNITS = {"s": seconds, "ms": lambda value: seconds(value / 1e3), "share": percent, "bytes": size, "count": lambda value: f"{value:,.0f}",
         "rate": lambda value: f"{value:.4g}" if value < 1e4 else f"{value:,.0f}", "times": lambda value: f"{value:.2f}", "top1": lambda value: f"{100 * value:.2f} %",
         "loss": lambda value: f"{value:.3f}", "exact": lambda value: f"{value:.6f}", "error": lambda value: f"{value:.0e}", "difference": lambda value: f"{100 * value:+.1f} %"}


def plain(data, name):
    """A table as a study wrote it: columns with units, rows of numbers and words."""
    made = data["tables"][name]
    columns = [column if isinstance(column, dict) else {"title": column} for column in made["columns"]]

    def cell(column, value):
        if value is None:
            return ""
        return value if isinstance(value, str) else UNITS.get(column.get("unit"), str)(value)
    rows = [[cell(column, value) for column, value in zip(columns, row)] for row in made["rows"]]
    return table([column["title"] for column in columns], rows)


# Of `vitrail scale`.
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
        rate = f"{fit['bytes_per_s'] / 1e9:.2f} GB/s" if fit and fit["bytes_per_s"] else "not seen" if fit else ""
        rows.append([curve["transport"], curve["ranks"], times, seconds(fit["alpha_s"]) if fit else "", rate,
                     percent(fit["error"]) if fit else ""])
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


def settings(study):
    config = study["config"]
    return (f"Vitrail {study['vitrail']}; {config['repeat']} repetitions, {config['threads']} thread"
            f"{'s' if config['threads'] != 1 else ''} a rank, order by seed {config['seed']}.\n")


# Of `vitrail profile --beside seed-000`.
def seed(profile):
    own = {part["name"]: part.get("ms_per_layer", part["ms"]) / 1e3 for part in profile["parts"]}
    rows = []
    for row in profile["seed-000"]["rows"]:
        macs = row["macs"]
        rows.append([row["name"], f"{row['published_s']:g} s", seconds(row["seconds"]), f"{macs / 1e9:.3f}" if macs else "",
                     f"{macs / row['seconds'] / 1e6:.0f}" if macs else "", seconds(own[row["name"]])])
    return table(["one layer", "published", "seed-000 here", "GMAC", "MMAC/s", f"Vitrail {profile['dtype']}"], rows)


def seed_ratios(profile):
    times = profile["seed-000"]
    rows = {row["name"]: row for row in times["rows"]}
    rate = times["mmacs_per_s"] * 1e6

    def ratio(attention, mlp, embeddings):
        return f"{attention / embeddings:.3g} : {mlp / embeddings:.3g} : 1"
    names = ("attention", "MLP", "embeddings")
    computed = (times["predicted_attention_s"], rows["MLP"]["macs"] / rate, rows["embeddings"]["macs"] / rate)
    cores = f"{times['cores']} cores"
    return table(["", "attention : MLP : embeddings"],
                 [["published, 8 cores", ratio(*(rows[name]["published_s"] for name in names))],
                  [f"measured here, {cores}", ratio(*(rows[name]["seconds"] for name in names))],
                  [f"by the arithmetic, {cores}", ratio(*computed)]])


# Of `vitrail profile --sweep`.
def sweep(profile):
    first = profile["sweep"][0]
    axes = list(first)[:list(first).index("ms_median")]
    rows = [[*(row[axis] for axis in axes), seconds(row["ms_median"] / 1e3), seconds(row["ms_min"] / 1e3),
             f"{row['images_per_second'] / first['images_per_second']:.2f}"] for row in profile["sweep"]]
    return table([*axes, "median", "fastest", "speed-up"], rows)


# Of bench/predict_published.py: a study's rows.
def off(row, key="predicted"):
    return abs(row[key] / row["measured"] - 1)


def published(data, name):
    study = data["studies"][name]
    ideal = any("t1/n" in row for row in study["rows"])
    rows = []
    for row in study["rows"]:
        others = row.get("also_published", [])  # the same run, counted otherwise
        rows.append([row["case"], ", also ".join(f"{rate:.1f}" for rate in [row["measured"], *others]), f"{row['predicted']:.1f}",
                     ", ".join(percent(abs(row["predicted"] / rate - 1)) for rate in [row["measured"], *others])])
        if ideal:
            rows[-1] += [f"{row['t1/n']:.1f}", percent(off(row, "t1/n"))]
    errors = [off(row) for row in study["rows"]]
    text = table([f"{study['what']}: {study['unit']}", "published", "predicted", "off"] + (["t1/n", "off"] if ideal else []), rows)
    text += f"\nMean {100 * sum(errors) / len(errors):.2f} %, worst {percent(max(errors))}"
    if ideal:
        text += f"; of t1/n {100 * sum(off(row, 't1/n') for row in study['rows']) / len(errors):.2f} %"
    return text + ".\n"


def sensitivity(data, name="sensitivity"):
    rows = [[row["case"], row["of"], percent(row["error"]), percent(row["t1/n"]), f"{row['error'] / row['t1/n']:.3f}"]
            for row in data["studies"][name]["rows"]]
    return table(["the network file", "epochs", "mean error", "of t1/n", "error over that of t1/n"], rows)


# Of bench/predict_ranks.py.
def ranks(data):
    rows = [[row["case"], row["ranks"], seconds(row["predicted_s"]), seconds(row["measured_s"]),
             percent(row["off"])] for row in data["rows"]]
    errors = [row["off"] for row in data["rows"]]
    last = f"\nMedian {percent(statistics.median(errors))}, worst {percent(max(errors))}.\n" if errors else ""
    return table(["", "ranks", "predicted", "measured", "off"], rows) + last


# Of bench/compare_ranks.py.
def compared(data):
    rows = []
    for one in data["comparisons"]:
        speeds = {name: row["images_per_second"] for name, row in one["rows"].items()}

        def times(name, peer):
            return f"{speeds[name] / speeds[peer]:.2f}" if peer in speeds else ""
        for name, row in one["rows"].items():
            shares = [percent(row[key]) if key in row else "" for key in ("exposed_share", "waited_share")]
            rows.append([f"{one['ranks']} ranks, {one['kind']}", name.replace("_zero", ", ZeRO 1").replace("_", ", "), row["rounds"], f"{speeds[name]:.0f}",
                         times(name, "torch"), times(name, "accelerate"), times(name, "copies"), *shares])
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    titles = ["", "by", "rounds", "images a second", "times torch", "times Accelerate", "times copies", "communication", "of it waiting"]
    return table(titles, rows) + (f"\nWith {versions}.\n" if versions else "")


# Of bench/mixed_ranks.py.
def mixed(data):
    def row(name, speed, shares):
        return [name, f"{speed:.1f}", f"{speed / data['sum']:.2f}", f"{speed / data['even']:.2f}", shares]
    rows = [row("the ranks alone, added up", data["sum"], ", ".join(f"{speed:.1f}" for speed in data["alone"]) + " img/s"),
            row("even cut", data["even"], ""), row("auto", data["auto"], ", ".join(map(str, data["auto_shares"]))),
            row("best by hand", data["best_by_hand"], ", ".join(map(str, data["best_shares"])))]
    text = table([f"threads {data['threads']}, {data['batch']} images", "images a second", "of the sum", "of even", "shares"], rows)
    return text + (f"\nMedians of {data['rounds']} rounds. `auto` is {data['auto_of_best']:.3f} of the best by hand, its shares {percent(data['furthest_share'])} away at most; "
                   f"ten losses differ from one rank's by {data['worst_loss']:.1e} at most.\n")


# Of bench/predict_steps.py --together.
def set_name(one):
    """Which cases of bench/predict_steps.py a set has: the device file, the threads, fixed or drawn, the types."""
    where = one["target"].rsplit("/", 1)[-1].removesuffix(".json")
    threads = f", {one['threads']} threads" if one["device"] == "cpu" else ""
    types = list(dict.fromkeys(row["case"].rsplit(", ", 1)[1] for row in one["cases"]))
    words = [f"{where}{threads}", "fixed" if one["seed"] is None else f"drawn by seed {one['seed']}", *one.get("set", []), *types]
    return ", ".join(words)


def case_facts(name):
    """(model, pixels, images, whether it trains) of a case by its name: "Ti 224 px, batch 1, infer, f32"."""
    model, pixels, images, work = re.match(r"(\S+) (\d+) px, batch (\d+), (\w+)", name).groups()
    return model, int(pixels), int(images), work == "train"


def coverage(data):
    """What was run: models, images and pixels, and how long the steps took."""
    rows = []
    for where, chosen in (("GPU", lambda one: one["device"] != "cpu"), ("processors", lambda one: one["device"] == "cpu")):
        cases = [row for one in data["sets"] if chosen(one) for row in one["cases"]]
        facts = [case_facts(row["case"]) for row in cases]

        def span(values):
            return f"{min(values):,} to {max(values):,}" if values else "none"
        rows.append([where, ", ".join(sorted({model for model, *_ in facts}, key=["Ti", "S", "S/32", "B", "B/32", "L", "H"].index)),
                     span([images for _, _, images, _ in facts]), *(span([pixels for _, pixels, _, trains in facts if trains == kind]) for kind in (False, True)),
                     f"{seconds(min(row['median_s'] for row in cases))} to {seconds(max(row['median_s'] for row in cases))}"])
    return table(["on", "models", "images", "pixels, inference", "pixels, training", "steps"], rows)


def errors_row(name, cases):
    worst = max(cases, key=lambda row: abs(row["error"]))
    return [name, len(cases), percent(statistics.median(abs(row["error"]) for row in cases)), percent(abs(worst["error"])),
            worst["case"], percent(statistics.median(row["spread"] for row in cases))]


def step_errors(data):
    """How far predictions are off: each set, those of a kind together, and all."""
    sets = data["sets"]
    rows = [errors_row(set_name(one), one["cases"]) for one in sets]
    for name, chosen in (("all on a GPU", lambda one: one["device"] != "cpu"), ("all on processors", lambda one: one["device"] == "cpu"),
                         ("all that were drawn", lambda one: one["seed"] is not None), ("all", lambda one: True)):
        cases = [row for one in sets if chosen(one) for row in one["cases"]]
        if cases:
            rows.append(errors_row(name, cases))
    return table(["cases", "number", "median error", "worst", "which", "spread of a case's runs, median"], rows)


def steps(data):
    """Every case of every set."""
    rows = [[set_name(one).split(",")[0], row["case"], seconds(row["predicted_s"]), seconds(row["median_s"]), seconds(row["min_s"]),
             f"{100 * row['error']:+.1f} %"] for one in data["sets"] for row in one["cases"]]
    return table(["file", "step", "predicted", "measured", "fastest", "off"], rows)


# Of `vitrail profile --beside cuda`: Table I on a processor and a GPU.
def beside(profile):
    published = {"embeddings": 1.19, "layer norm 1": 0.024, "attention": 21.22, "residual 1": 0.001, "layer norm 2": 0.024,
                 "MLP": 9.602, "residual 2": 0.002, "last layer norm": 0.0231}
    sides = [{part["name"]: part for part in side["parts"]} for side in (profile, profile["beside"])]

    def took(part):
        return part.get("ms_per_layer", part["ms"]) / 1e3
    rows = [[name, f"{value:g} s", *(seconds(took(side[name])) for side in sides),
             f"{took(sides[0][name]) / took(sides[1][name]):.1f}"] for name, value in published.items()]
    return table(["one layer", "published", f"{profile['device']}, {profile['dtype']}", f"{profile['beside']['device']}, {profile['dtype']}",
                  "times as fast"], rows)


# Of bench/cnn_beside_vit.py.
def cnn(data):
    rows = [[row["by"], row["model"], f"{row['parameters'] / 1e6:.1f}", f"{row['gmacs']:.2f}", f"{row['work_share']:.3f}", f"{row['ms']:.2f}",
             f"{row['least_ms']:.2f}", f"{row['img_per_s']:.0f}", f"{row['gmacs'] * row['work_share'] * row['img_per_s'] / 1e3:.1f}",
             f"{row['epoch_s']:.1f}", f"{row['gib']:.1f}"] for row in data["rows"]]
    return table(["by", "model", "parameters, M", "GMAC an image", "of it computed", "step, ms", "fastest", "images a second",
                  "TMAC a second, forward, of those computed", "epoch of 50,000, s", "GiB"], rows)


KINDS = {"table": plain, "curves": curves, "fits": fits, "messages": messages, "shares": shares, "accuracy": accuracy,
         "settings": settings, "seed": seed, "seed-ratios": seed_ratios, "sweep": sweep, "published": published, "sensitivity": sensitivity, "ranks": ranks,
         "compared": compared, "mixed": mixed, "steps": steps, "coverage": coverage, "step-errors": step_errors, "beside": beside, "cnn": cnn, "recommended": lambda study: study["recommended"]["why"] + ".\n"}
