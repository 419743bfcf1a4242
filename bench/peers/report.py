"""A comparison as text: one table a case."""
from peers import OURS

COLUMNS = ("peer", "median", "min", "p90", "max", "img/s", "Vitrail is", "equal work", "of peak", "peak RSS")
CHECKED = {"infer": "logits off by", "train": "first loss"}


def title(result):
    words = {"infer": "inference", "train": "training step"}[result["work"]]
    size = f" at {result['image']}" if result["image"] else ""
    images = "1 image" if result["batch"] == 1 else f"{result['batch']} images"
    where = f", {threads(result['threads'])}" if result["threads"] else ""
    return f"{result['model']}{size}, {words}, {result['dtype']}, {images}{where}"


def threads(count):
    return "1 thread" if count == 1 else f"{count} threads"


def time_text(ms):
    return f"{ms:.2f}" if ms < 100 else f"{ms:.1f}"


def cells(row):
    speed, share = row.get("vitrail_speedup"), row.get("peak_share")
    ratios = [f"{speed[key]:.2f}x" if speed and row["peer"] != OURS else "" for key in ("ratio", "equal_work")]
    return [row["peer"], *(time_text(row["ms"][key]) for key in ("median", "min", "p90", "max")),
            f"{row['img_per_s']:.1f}", *ratios, f"{100 * share:.1f} %" if share else "",
            f"{row['peak_rss_bytes'] / 2**20:.0f} MiB", checked_text(row), row["note"]]


def checked_text(row):
    if "logits" not in row:
        return f"{row['first_loss']:.4f}" if row.get("first_loss") is not None else ""
    difference = row["logits"]
    text = f"{difference['max_difference']:.1e}"
    return text if difference["same_argmax"] else text + ", another class"


def aligned(rows):
    """Aligns the first and last column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = {0, len(widths) - 1}
    return ["  ".join(cell.ljust(w) if i in left else cell.rjust(w)
                      for i, (cell, w) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]


def verdict(result):
    """Returns the sentence under the table; empty where there is nothing to compare."""
    name = result["fastest_peer"]
    row = next((r for r in result["rows"] if r["peer"] == name and "vitrail_speedup" in r), None)
    if row is None:
        return ""
    s = row["vitrail_speedup"]
    return (f"Vitrail is {s['ratio']:.2f} times as fast as the fastest peer, {name} "
            f"({s['min']:.2f} to {s['max']:.2f} by round), {s['equal_work']:.2f} times at equal work")


def table(result):
    lines = [title(result)]
    if result["rows"]:
        head = [*COLUMNS, CHECKED[result["work"]], ""]
        lines += ["  " + line for line in aligned([head, *map(cells, result["rows"])])]
    lines += [f"  {name}: none, {reason}" for name, reason in result["missing"].items()]
    runs = sorted({row["ms"]["count"] for row in result["rows"]})
    if runs:
        measured = result["peak_gflops"]
        peak = f"; peak {measured:.1f} GFLOP/s, f32 multiply-adds, median of the rounds" if measured else ""
        lines.append(f"  times in ms over {runs[0]} to {runs[-1]} runs{peak}")
    if verdict(result):
        lines.append("  " + verdict(result))
    if result["disagree"]:
        lines.append(f"  RESULTS DIFFER: {', '.join(result['disagree'])}")
    return "\n".join(lines)
