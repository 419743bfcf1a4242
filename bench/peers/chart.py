"""Draws a comparison as a chart: one group of bars a case, each group on its own scale. SVG, no dependency."""
from html import escape

from peers import OURS
from peers.report import time_text, title

WIDTH, LABEL, BAR_MOST = 880, 130, 420
BAR, GAP, GROUP_HEAD, HEAD, FOOT = 18, 6, 34, 16, 30
COLOURS = {OURS: "#0b6e4f"}
OTHERS = "#9aa5b1"


def ratio_text(row):
    """How much faster Vitrail is than this peer; at equal work, too, where it computes less than the peer does."""
    speed = row.get("vitrail_speedup")
    if not speed or row["peer"] == OURS:
        return ""
    equal = speed.get("equal_work", speed["ratio"])
    more = f", {equal:.2f}x at equal work" if f"{equal:.2f}" != f"{speed['ratio']:.2f}" else ""
    return f"  (Vitrail {speed['ratio']:.2f}x{more})"


def bar(row, longest, y):
    length = max(1.0, BAR_MOST * row["ms"]["median"] / longest)
    middle = y + BAR * 0.72
    return [f'<text x="{LABEL - 8}" y="{middle:.1f}" text-anchor="end">{escape(row["peer"])}</text>',
            f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" '
            f'fill="{COLOURS.get(row["peer"], OTHERS)}"/>',
            f'<text x="{LABEL + length + 6:.1f}" y="{middle:.1f}">'
            f'{escape(time_text(row["ms"]["median"]))} ms{escape(ratio_text(row))}</text>']


def group(result, y):
    """Returns the elements of a group, and where the next group starts."""
    parts = [f'<text x="{HEAD}" y="{y + 20}" font-weight="bold">{escape(title(result))}</text>']
    y += GROUP_HEAD
    rows = sorted(result["rows"], key=lambda row: row["ms"]["median"])
    for row in rows:
        parts += bar(row, rows[-1]["ms"]["median"], y)
        y += BAR + GAP
    return parts, y


def chart(results, caption):
    parts, y = [], HEAD
    for result in results:
        if result["rows"]:
            more, y = group(result, y)
            parts += more
    height = y + FOOT
    parts.append(f'<text x="{HEAD}" y="{y + 20}" fill="#555">{escape(caption)}</text>')
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                      f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
                      f'<rect width="{WIDTH}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"
