"""The figures of docs/experiments, held against a file of docs/experiments/data: KINDS names what each draws. A figure that Vitrail
drew keeps its values as text (`data-values` of a line, the title of a bar), so that what it shows is compared with what the data say."""
import re

LINE = re.compile(r'data-name="([^"]*)" data-values="([^"]*)"')
TITLE = re.compile(r"<title>([^<]*)</title>")


def drawn_lines(svg):
    """The points of every line as they are written: {name: [(x, y)]}."""
    return {name: [tuple(point.split(",")[1:]) for point in values.split(";")] for name, values in LINE.findall(svg)}


def drawn_bars(svg):
    """The titles of the bars; the first title is the figure's."""
    return TITLE.findall(svg)[1:]


def same_lines(svg, lines):
    """`lines`: {name: [(x, y)]} as numbers."""
    return drawn_lines(svg) == {name: [(f"{x:g}", f"{y:.5g}") for x, y in points] for name, points in lines.items()}


def same_bars(svg, bars):
    """`bars`: [(group, series, value, unit)]."""
    return drawn_bars(svg) == [f"{group}: {series} {value:.4g} {unit}" for group, series, value, unit in bars]


# Of `vitrail scale`: src/measure/study/study_figures.cpp and scaling_figures.cpp draw them.
def curve_name(curve):
    return f"{curve['transport']}, batch {curve['batch']}{'' if curve['scaling'] == 'strong, fixed batch' else ' a rank'}"


def curves(study, weak):
    return [curve for curve in study["curves"] if (curve["scaling"] == "weak") == weak and len(curve["rows"]) > 1]


def over_ranks(study, weak, key):
    return {curve_name(curve): [(row["ranks"], row[key]) for row in curve["rows"]] for curve in curves(study, weak)}


def speedup(svg, study):
    ranks = sorted({row["ranks"] for curve in study["curves"] for row in curve["rows"]})
    return same_lines(svg, {**over_ranks(study, False, "speedup"), "ideal": [(n, n) for n in ranks]})


def updates(study):
    found = [point for point in study["points"] if point["kind"] != "all-reduce" and point["update_s"]]
    return sorted(found, key=lambda point: (point["ranks"], point["batch_a_rank"]))


def point_name(point):
    return f"{point['ranks']} x {point['batch_a_rank']}{' ' + point['transport'] if point['ranks'] > 1 else ''}"


def sync_share(svg, study):
    bars = []
    for point in updates(study):
        total = point["compute_s"] + point["exposed_s"] + point["data_wait_s"]
        waited = min(point["imbalance_s"], point["exposed_s"])
        parts = {"compute": point["compute_s"], "exposed communication": point["exposed_s"] - waited, "wait for the slowest": waited,
                 "wait for data": point["data_wait_s"]}
        bars += [(point_name(point), part, 100 * seconds / total, "% of an update") for part, seconds in parts.items()]
    return same_bars(svg, bars)


def all_reduce(svg, study):
    lines = {}
    for curve in study["all_reduce"]:
        name, fit = f"{curve['transport']}, {curve['ranks']} ranks", curve["fit"]
        lines[name] = [(size["megabytes"], 1e3 * size["seconds"]) for size in curve["sizes"]]
        lines["fit: " + name] = [(size["megabytes"], 1e3 * (fit["alpha_s"] + fit["beta_s_per_byte"] * 1e6 * size["megabytes"]))
                                 for size in curve["sizes"]]
    return same_lines(svg, lines)


def transports(svg, study):
    """The largest batch alone, a group for each number of ranks."""
    largest = max(curve["batch"] for curve in study["curves"])
    chosen = [curve for curve in study["curves"] if curve["batch"] == largest and curve["scaling"] == study["curves"][0]["scaling"]]
    bars = []
    for ranks in sorted({row["ranks"] for curve in chosen for row in curve["rows"]}):
        for curve in chosen:
            point = next(point for point in updates(study) if point["ranks"] == ranks and point["batch_a_rank"] == largest
                         and point["transport"] in (curve["transport"], "alone"))
            bars.append((ranks, curve["transport"], point["images_per_s"]["median"], "images a second"))
    return same_bars(svg, bars)


def accuracy_batch(svg, study):
    lines = {}
    for point in updates(study):
        name = "1 rank" if point["ranks"] == 1 else f"{point['ranks']} ranks, {point['transport']}"
        lines.setdefault(name, []).append((point["batch"], 100 * point["top1"]["median"]))
    return same_lines(svg, lines)


def accuracy_epoch(svg, study):
    return same_lines(svg, {point_name(point): [(epoch["epoch"] + 1, 100 * epoch["top1"]) for epoch in point["epochs"]]
                            for point in updates(study)})


# Of `vitrail plan --figure`: the rows of f32 in configs/studies/memory-before-training.json.
def memory(svg, study):
    bars = []
    for model, dtype, needed, available, *_ in study["tables"]["memory"]["rows"]:
        if dtype == "f32":
            name = f"vit_base_patch{model.removeprefix('B/')}_224"
            bars += [(name, "needed", needed / 2**30, "GiB"), (name, "available", available / 2**30, "GiB")]
    return same_bars(svg, bars)


# A kind says whether an SVG shows the data.
KINDS = {"strong": lambda svg, study: same_lines(svg, over_ranks(study, False, "epoch_s")),
         "weak": lambda svg, study: same_lines(svg, over_ranks(study, True, "epoch_s")),
         "speedup": speedup, "sync-share": sync_share, "all-reduce": all_reduce, "transports": transports,
         "accuracy-batch": accuracy_batch, "accuracy-epoch": accuracy_epoch, "memory": memory}
