#!/usr/bin/env python3
"""Writes the tables of docs/experiments anew from docs/experiments/data.  make_experiment_docs.py [--check] [ROOT]

A document marks where a table belongs, and of which data a figure is:
    <!-- study: data/scaling-cpu.json curves strong -->  ...  <!-- end -->
    <!-- figure: data/scaling-cpu.json strong -->
    ![Seconds of an epoch](scaling-cpu-strong.svg)
The kinds of tables are those of tools/experiment_tables.py, `index` (all experiments) and `not-kept` (those whose raw output is gone); the kinds of
figures those of tools/experiment_figures.py, or `not kept` in place of file and kind. data/about.json says of every file by what command, on
what machine, when and at which commit it was made; a table begins with that. One whose state is "not yet run" has no file yet. No table of numbers stands
outside of marks, but in claims.md, whose tables are sentences, and no figure without one. A figure must show what its data say, and a commit
that any document names must be one of this history (not asked where there is no git, or a part of it only). --check changes nothing and
fails where a document is not what its data make."""
import json
import re
import subprocess
import sys
from pathlib import Path

import experiment_figures
import experiment_tables

MARK = re.compile(r"(<!-- study: (\S+) ([^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
TABLE = re.compile(r"^\|[-:|]+\|$", re.MULTILINE)
FIGURE = re.compile(r"(?:<!-- figure: (\S+) (\S+) -->\n)?!\[[^\]]*\]\(([^)]+)\)")
COMMIT = re.compile(r"\b(?:commit|recorded by) ([0-9a-f]{7,40})\b")
OF_WORDS = ("claims.md",)
BARE = ("recommended", "settings")  # kinds that are a sentence beside a table
NOT_RUN = "not yet run"
NOT_KEPT = "raw output not kept"


class Documents:
    def __init__(self, folder):
        self.folder = folder
        self.about = json.loads((folder / "data/about.json").read_text())

    def facts(self, name):
        facts = self.about.get(Path(name).name)
        if facts is None:
            raise SystemExit(f"data/about.json says nothing of {name}")
        return facts

    def source(self, name, of_table=None):
        """Where a file's figures come from, in a line; a table that was made at another time than the file says so itself."""
        facts = {**self.facts(name), **(of_table or {})}
        if facts["state"] == NOT_RUN:
            return f"*Not yet run: `{facts['command']}`*\n"
        words = [facts["machine"], facts["date"], f"commit {facts['commit']}" if facts["commit"] else "commit not kept"]
        return f"*{'; '.join(words + ([facts['note']] if facts.get('note') else []))}*\n\n"

    def index(self):
        rows = [[facts["experiment"], f"[{facts['document']}]({facts['document']})", f"`{facts['command']}`", facts.get("machine", ""),
                 facts.get("date", ""), "; ".join([facts["state"], *([facts["note"]] if "note" in facts else [])])] for facts in self.about.values()]
        rows.sort(key=lambda row: row[0])
        return experiment_tables.table(["experiment", "document", "command", "machine", "date", "state"], rows)

    def not_kept(self):
        names = sorted(name for name, facts in self.about.items() if NOT_KEPT in facts.get("note", ""))
        return f"Files whose raw output was not kept: {', '.join(f'`{name}`' for name in names) or 'none'}.\n"

    def made(self, name, kind, rest):
        if self.facts(name)["state"] == NOT_RUN:
            return self.source(name)
        data = json.loads((self.folder / name).read_text())
        of_table = data["tables"][rest[0]].get("made") if kind == "table" else None
        return ("" if kind in BARE else self.source(name, of_table)) + experiment_tables.KINDS[kind](data, *rest)

    def filled(self, text):
        def replace(match):
            kind, *rest = match.group(3).split(maxsplit=1)
            of_all = {"index": self.index, "not-kept": self.not_kept}.get(kind)
            return match.group(1) + (of_all() if of_all else self.made(match.group(2), kind, rest)) + match.group(4)
        return MARK.sub(replace, text)

    def wrong_figures(self, text):
        """Those of a document that have no mark, or show something else than their data."""
        wrong = []
        for data, kind, name in FIGURE.findall(text):
            if (data, kind) == ("not", "kept"):
                continue
            if not data:
                wrong.append(f"a figure without a mark: {name}")
            elif not experiment_figures.KINDS[kind]((self.folder / name).read_text(), json.loads((self.folder / data).read_text())):
                wrong.append(f"a figure that is not of its data: {name}")
        return wrong


def missing_commits(root):
    """Commits that documents name and that are not in the history of HEAD."""
    def git(*words):
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    if not (root / ".git").exists() or git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        return []
    about = json.loads((root / "docs/experiments/data/about.json").read_text())
    named = {facts["commit"] for facts in about.values() if facts.get("commit")}
    for path in (root / "docs/experiments/data").glob("*.json"):
        data = json.loads(path.read_text())
        tables = data.get("tables", {}) if isinstance(data, dict) else {}
        named |= {one["made"]["commit"] for one in tables.values() if one.get("made", {}).get("commit")}
    for path in (root / "docs").rglob("*.md"):
        named |= set(COMMIT.findall(path.read_text()))
    return sorted(commit for commit in named if git("merge-base", "--is-ancestor", commit, "HEAD").returncode)


def main():
    if {"--help", "-h"} & set(sys.argv):
        print(__doc__)
        return 0
    check = "--check" in sys.argv
    root = next((Path(word) for word in sys.argv[1:] if word != "--check"), Path(__file__).resolve().parent.parent)
    documents = Documents(root / "docs/experiments")
    stale, wrong = [], []
    for path in sorted(documents.folder.glob("*.md")):
        text = path.read_text()
        made = documents.filled(text)
        if made != text:
            stale.append(path.name)
            if not check:
                path.write_text(made)
        if path.name not in OF_WORDS and TABLE.search(MARK.sub("", text)):
            wrong.append(f"a table outside of marks: {path.name}")
        wrong += documents.wrong_figures(text)
    wrong += [f"a commit that is not in the history: {commit}" for commit in missing_commits(root)]
    if stale:
        print(("out of date: " if check else "written: ") + ", ".join(stale))
    for words in wrong:
        print(words)
    return 1 if wrong or (stale and check) else 0


if __name__ == "__main__":
    sys.exit(main())
