#!/usr/bin/env python3
"""Draws the test accuracy of finished runs against their seconds of training, as one chart.

    python bench/draw_runs.py --svg curves.svg "from scratch=runs/a" "fine-tuned=runs/c"

Reads RUN/metrics.jsonl, or the file itself where one is named. Seconds are those of the training steps: evaluation and
checkpoints are not in them.
"""
import argparse
import json
import pathlib
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 56, 190, 20, 44
COLOURS = ["#0b6e4f", "#b5651d", "#3b5b92", "#8a2d5c", "#6b6b6b"]


def curve(path):
    """Returns pairs of seconds and percent."""
    path = pathlib.Path(path)
    path = path / "metrics.jsonl" if path.is_dir() else path
    seconds, points = 0.0, []
    for row in map(json.loads, path.read_text().splitlines()):
        if row["kind"] == "train":
            seconds += row["interval_s"]
        elif row["kind"] == "eval" and row["top1"] is not None:
            points.append((seconds, 100 * row["top1"]))
    return points


def step_of(span, most):
    return next(s for s in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 1e9) if span / s <= most)


def axes(place, last, low, high):
    parts = []
    for second in range(0, int(last) + 1, int(step_of(last, 9))):
        x, y = place(second, low)
        parts.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{second}</text>')
    for percent in range(low, high + 1, int(step_of(high - low, 8))):
        x, y = place(0, percent)
        parts += [f'<line x1="{x}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
                  f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>']
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">seconds of training steps</text>')
    return parts


def line(place, points, colour):
    at = [place(*point) for point in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in at]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def key(names, runs):
    """Draws the runs' names beside the chart, from the best down."""
    parts, order = [], sorted(range(len(runs)), key=lambda i: -runs[i][-1][1])
    for place, i in enumerate(order):
        y = TOP + 14 + 36 * place
        x = WIDTH - RIGHT + 12
        parts += [f'<text x="{x}" y="{y}" fill="{COLOURS[i % len(COLOURS)]}" font-weight="bold">{escape(names[i])}</text>',
                  f'<text x="{x}" y="{y + 15}" fill="#555">{runs[i][-1][1]:.2f} % in {runs[i][-1][0]:.0f} s</text>']
    return parts


def image(names, runs):
    low = int(min(p for run in runs for _, p in run)) // 10 * 10
    last = max(s for run in runs for s, _ in run)

    def place(seconds, percent):
        return (LEFT + (WIDTH - LEFT - RIGHT) * seconds / last,
                TOP + (HEIGHT - TOP - BOTTOM) * (100 - percent) / (100 - low))
    parts = axes(place, last, low, 100)
    for i, run in enumerate(runs):
        parts += line(place, run, COLOURS[i % len(COLOURS)])
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
                      f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
                      f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts, *key(names, runs), "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--svg", required=True, help="write the image here")
    options = parser.parse_args()
    unnamed = [run for run in options.runs if "=" not in run]
    if unnamed:
        parser.error(f"expected NAME=RUN, not {unnamed[0]}")
    try:
        names, runs = zip(*((name, curve(path)) for name, path in (run.split("=", 1) for run in options.runs)))
    except (OSError, ValueError, KeyError) as fault:
        parser.error(f"no metrics.jsonl of a run: {fault}")
    empty = [name for name, run in zip(names, runs) if not run]
    if empty:
        parser.error(f"no evaluation in {', '.join(empty)}")
    pathlib.Path(options.svg).write_text(image(names, runs))


if __name__ == "__main__":
    main()
