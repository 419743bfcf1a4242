#!/usr/bin/env python3
"""Writes the tables of docs/experiments anew from docs/experiments/data.  make_experiment_docs.py [--check] [ROOT]

A document marks where a table belongs:
    <!-- study: data/scaling-cpu.json curves strong -->  ...  <!-- end -->
The kinds are those of tools/experiment_tables.py, and `index`: all experiments. data/about.json says of every file by what command, on
what machine, when and at which commit it was made; a table begins with that. No table of numbers stands outside of marks,
but in claims.md, whose tables are sentences. --check changes nothing and fails where a document is not what its data make."""
import json
import re
import sys
from pathlib import Path

import experiment_tables

MARK = re.compile(r"(<!-- study: (\S+) ([^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
TABLE = re.compile(r"^\|[-:|]+\|$", re.MULTILINE)
OF_WORDS = ("claims.md",)
BARE = ("recommended", "settings")  # kinds that are a sentence beside a table


class Documents:
    def __init__(self, folder):
        self.folder = folder
        self.about = json.loads((folder / "data/about.json").read_text())

    def source(self, name):
        """Where a file's figures come from, in a line."""
        facts = self.about.get(Path(name).name)
        if facts is None:
            raise SystemExit(f"data/about.json says nothing of {name}")
        words = [facts["machine"], facts["date"], f"commit {facts['commit']}" if facts["commit"] else "commit not kept"]
        return f"*{'; '.join(words + ([facts['note']] if 'note' in facts else []))}*\n\n"

    def index(self):
        rows = [[facts["experiment"], f"[{facts['document']}]({facts['document']})", f"`{facts['command']}`", facts["machine"], facts["date"],
                 "; ".join([facts["state"], *([facts["note"]] if "note" in facts else [])])] for facts in self.about.values()]
        rows.sort(key=lambda row: row[0])
        return experiment_tables.table(["experiment", "document", "command", "machine", "date", "state"], rows)

    def filled(self, text):
        def replace(match):
            kind, *rest = match.group(3).split(maxsplit=1)
            if kind == "index":
                return match.group(1) + self.index() + match.group(4)
            data = json.loads((self.folder / match.group(2)).read_text())
            made = experiment_tables.KINDS[kind](data, *rest)
            return match.group(1) + ("" if kind in BARE else self.source(match.group(2))) + made + match.group(4)
        return MARK.sub(replace, text)


def main():
    if {"--help", "-h"} & set(sys.argv):
        print(__doc__)
        return 0
    check = "--check" in sys.argv
    roots = [Path(word) for word in sys.argv[1:] if word != "--check"] or [Path(__file__).resolve().parent.parent]
    documents = Documents(roots[0] / "docs/experiments")
    stale, typed = [], []
    for path in sorted(documents.folder.glob("*.md")):
        text = path.read_text()
        made = documents.filled(text)
        if made != text:
            stale.append(path.name)
            if not check:
                path.write_text(made)
        if path.name not in OF_WORDS and TABLE.search(MARK.sub("", text)):
            typed.append(path.name)
    if stale:
        print(("out of date: " if check else "written: ") + ", ".join(stale))
    if typed:
        print("a table outside of marks: " + ", ".join(typed))
    return 1 if typed or (stale and check) else 0


if __name__ == "__main__":
    sys.exit(main())
