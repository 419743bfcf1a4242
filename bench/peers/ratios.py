"""Draws how much faster Vitrail is than torch's fastest mode, against the number of tokens and against the batch. SVG."""
import math
import re
from html import escape

from peers import OURS

PANEL, HEIGHT, LEFT, TOP, BOTTOM, GAP = 340, 316, 48, 60, 56, 60
# Colours that differ for colour-blind readers too, and a shape each.
SERIES = {"train, f32 stream": ("#0072b2", "circle"), "train, bf16 stream": ("#d55e00", "square"),
          "inference, bf16": ("#009e73", "diamond")}


def tokens(result):
    """Returns patches and class token of a case, by its model's name."""
    patch, size = re.search(r"patch(\d+)(?:_\D*(\d+))?", result["model"]).groups()
    return (int(result["image"] or size or 224) // int(patch)) ** 2 + 1


def points(results):
    """Returns (series, tokens, batch, ratio, label) of every case that has a ratio."""
    found = []
    for result in results:
        row = next((row for row in result["rows"] if row["peer"] == OURS and "speedup" in row), None)
        if row:
            work = f"train, {result['stream']} stream" if result["work"] == "train" else "inference, bf16"
            found.append((work, tokens(result), result["batch"], row["speedup"]["ratio"],
                          f"{result['model']}, batch {result['batch']}, {tokens(result)} tokens"))
    return found


def mark(shape, x, y, colour, title):
    drawn = {"circle": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5"', "square": f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"',
             "diamond": f'<path d="M{x:.1f} {y - 6:.1f} l6 6 l-6 6 l-6 -6 z"'}[shape]
    return f'{drawn} fill="{colour}" fill-opacity="0.85"><title>{escape(title)}</title>{"</circle>" if shape == "circle" else "</rect>" if shape == "square" else "</path>"}'


def ticks(values):
    """Returns powers of four that span the values."""
    low, high = math.floor(math.log(min(values), 4)), math.ceil(math.log(max(values), 4))
    return [4**power for power in range(low, max(high, low + 1) + 1)]


def panel(found, at, left, name, top):
    """Draws the ratios against the coordinate at index `at` of each point, on a logarithmic axis."""
    marks = ticks([point[at] for point in found])
    span = math.log(marks[-1] / marks[0])

    def place(value, ratio):
        return (left + PANEL * math.log(value / marks[0]) / span, TOP + (HEIGHT - TOP - BOTTOM) * (1 - ratio / top))

    parts = [f'<text x="{left}" y="{TOP - 12}" font-weight="bold">against the {name}</text>']
    for step in range(int(top / 0.5) + 1):
        y = place(marks[0], step * 0.5)[1]
        parts.append(f'<line x1="{left}" x2="{left + PANEL}" y1="{y:.1f}" y2="{y:.1f}" stroke="{"#333" if step == 2 else "#ddd"}"/>'
                     f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{step * 0.5:.1f}</text>')
    parts += [f'<text x="{place(m, 0)[0]:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{m:,}</text>' for m in marks]
    for point in found:
        colour, shape = SERIES[point[0]]
        parts.append(mark(shape, *place(point[at], point[3]), colour, f"{point[4]}: {point[3]:.2f}x"))
    return parts


def legend(y):
    parts, x = [], LEFT
    for name, (colour, shape) in SERIES.items():
        parts += [mark(shape, x + 6, y - 4, colour, name), f'<text x="{x + 18}" y="{y}">{name}</text>']
        x += 170
    return parts


def ratio_plot(results, caption):
    found = points(results)
    if not found:
        return ""
    top = math.ceil(2 * max(point[3] for point in found)) / 2
    width = LEFT + 2 * PANEL + GAP + 20
    parts = [f'<text x="{LEFT}" y="18">Vitrail\'s speed over that of torch.compile\'s fastest mode, {escape(caption)}</text>',
             *panel(found, 1, LEFT, "number of tokens", top), *panel(found, 2, LEFT + PANEL + GAP, "batch", top), *legend(HEIGHT - 10)]
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}" '
                      f'font-family="sans-serif" font-size="12"><rect width="{width}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>"]) + "\n"
