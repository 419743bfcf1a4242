"""Writes the tables of settings in docs/training.md from `vitrail train --help`, so that they cannot disagree.
make_config_docs.py PROGRAM [--check]: --check changes nothing and fails when the file is out of date."""
import pathlib
import re
import subprocess
import sys

DOC = pathlib.Path(__file__).resolve().parents[1] / "docs/training.md"
BEGIN, END = "<!-- settings: written by tools/make_config_docs.py -->\n", "<!-- end of settings -->\n"
SECTIONS = {
    "model": "What is trained. With `model.init` only `image`, `patch`, `norm_eps`, `gelu` and `pos_resize` may differ "
             "from the file; otherwise the rest is the architecture's (`model.arch`), or ViT-B/16's.",
    "preprocess": "How images become input; the model's own unless given ([images](images.md)).",
    "data": "Which images ([datasets](datasets.md)).",
    "augment": "How training images are varied ([augmentation](augmentation.md)).",
    "loader": "How they are read.",
    "train": "The run.",
    "optim": "The optimizer.",
    "params": "Which parameters learn, and how fast ([fine-tuning](finetuning.md)).",
    "schedule": "The learning rate over time; lengths in updates, or below 1 as a share of the run.",
    "loss_scale": "For f16.",
    "distill": "Learning from a teacher too ([fine-tuning](finetuning.md)).",
    "lora": "Low-rank adapters ([fine-tuning](finetuning.md)).",
    "checkpoint": "What is kept ([checkpoints](checkpoints.md)).",
    "mesh": "How ranks share the run ([ranks](parallel.md)).",
}


def settings(page):
    """(key, help) of every setting; a help may go on in indented lines."""
    block = page.split("Settings (", 1)[1].split("\n\n", 1)[0].split("\n")[1:]
    rows = []
    for line in block:
        start = re.match(r"  ([a-z_]+\.[a-z_0-9]+)=\S+(.*)", line)
        if start:
            rows.append([start[1], start[2].strip()])
        else:
            rows[-1][1] = (rows[-1][1] + " " + line.strip()).strip()
    return rows


def table(section, rows):
    lines = [f"### {section}", SECTIONS[section], "", "| key | default | meaning |", "|---|---|---|"]
    for key, text in rows:
        told = re.search(r" \(default: (.*)\)$", text)
        meaning = text[:told.start()] if told else text
        default = f"`{told[1]}`" if told else ""
        lines.append(f"| `{key}` | {default} | {meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def main(program, check):
    page = subprocess.run([program, "train", "--help"], capture_output=True, text=True, check=True).stdout
    by_section = {name: [] for name in SECTIONS}
    for key, text in settings(page):
        by_section[key.split(".")[0]].append((key, text))
    wanted = "\n".join(table(name, rows) for name, rows in by_section.items())
    document = DOC.read_text()
    head, rest = document.split(BEGIN, 1)
    fresh = head + BEGIN + wanted + END + rest.split(END, 1)[1]
    if check:
        return 0 if fresh == document else f"{DOC.name} is out of date: tools/make_config_docs.py PROGRAM writes it anew"
    DOC.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--check" in sys.argv[2:]))
