"""tools/make_experiment_docs.py: tables follow their data, their source is named, nothing is typed in beside them, figures show
their data, and commits are there."""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools/make_experiment_docs.py"
MARK = "<!-- study: data/a.json table one -->\n<!-- end -->\n"
FACTS = {"experiment": "x", "document": "a.md", "command": "c", "machine": "two cores", "date": "2026-11-17", "commit": "abc", "state": "s"}
DATA = {"tables": {"one": {"columns": ["n", {"title": "time", "unit": "s"}], "rows": [["first", 0.0025], ["second", None]]}}}


class ExperimentDocs(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.folder = self.root / "docs/experiments"
        (self.folder / "data").mkdir(parents=True)
        self.write({"a.json": FACTS}, DATA, MARK)

    def write(self, about, data, text):
        (self.folder / "data/about.json").write_text(json.dumps(about))
        (self.folder / "data/a.json").write_text(json.dumps(data))
        (self.folder / "a.md").write_text(text)

    def run_tool(self, *words):
        return subprocess.run([sys.executable, "-B", TOOL, *words, self.root], capture_output=True, text=True)

    def test_a_table_is_written_with_its_source_and_then_holds(self):
        self.assertEqual(self.run_tool("--check").returncode, 1)
        self.assertEqual(self.run_tool().returncode, 0)
        text = (self.folder / "a.md").read_text()
        self.assertIn("*two cores; 2026-11-17; commit abc*", text)
        self.assertIn("| first | 2.5 ms |\n| second |  |\n", text)
        self.assertEqual(self.run_tool("--check").returncode, 0)

    def test_a_table_that_was_made_at_another_time_says_so(self):
        made = {"machine": "four cores", "date": "2026-11-10", "commit": "def", "note": ""}
        table = DATA["tables"]["one"]
        self.write({"a.json": {**FACTS, "note": "of the file"}}, {"tables": {"one": {"made": made, **table}, "two": table}}, MARK + MARK.replace("one", "two"))
        self.assertEqual(self.run_tool().returncode, 0)
        lines = [line for line in (self.folder / "a.md").read_text().splitlines() if line.startswith("*")]
        self.assertEqual(lines, ["*four cores; 2026-11-10; commit def*", "*two cores; 2026-11-17; commit abc; of the file*"])

    def test_a_figure_that_was_changed_by_hand_is_noticed(self):
        self.run_tool()
        path = self.folder / "a.md"
        path.write_text(path.read_text().replace("2.5 ms", "2.4 ms"))
        done = self.run_tool("--check")
        self.assertEqual((done.returncode, done.stdout), (1, "out of date: a.md\n"))

    def test_a_table_outside_of_marks_is_refused(self):
        self.write({"a.json": FACTS}, DATA, "| n |\n|---|\n| 1 |\n")
        done = self.run_tool("--check")
        self.assertEqual((done.returncode, done.stdout), (1, "a table outside of marks: a.md\n"))

    def test_data_without_a_source_are_refused(self):
        self.write({}, DATA, MARK)
        done = self.run_tool()
        self.assertEqual(done.returncode, 1)
        self.assertIn("says nothing of data/a.json", done.stderr)

    def test_what_was_not_run_yet_says_so_and_needs_no_file(self):
        self.write({"a.json": {**FACTS, "state": "not yet run"}}, DATA, MARK)
        (self.folder / "data/a.json").unlink()
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertIn("*Not yet run: `c`*", (self.folder / "a.md").read_text())

    def test_files_without_raw_output_are_listed(self):
        self.write({"a.json": {**FACTS, "note": "raw output not kept, by hand"}, "b.json": FACTS}, DATA,
                   "<!-- study: data/about.json not-kept -->\n<!-- end -->\n")
        self.run_tool()
        self.assertIn("not kept: `a.json`.", (self.folder / "a.md").read_text())

    def test_a_commit_that_is_not_in_the_history_is_refused(self):
        def git(*words):
            subprocess.run(["git", "-C", self.root, "-c", "user.name=n", "-c", "user.email=e", *words], check=True, capture_output=True)
        self.write({"a.json": {**FACTS, "commit": ""}}, DATA, MARK)
        self.run_tool()
        git("init"), git("add", "."), git("commit", "-m", "all")
        self.assertEqual(self.run_tool("--check").returncode, 0)
        (self.root / "docs/b.md").write_text("Measured at commit 0123abcd.\n")
        done = self.run_tool("--check")
        self.assertEqual((done.returncode, done.stdout), (1, "a commit that is not in the history: 0123abcd\n"))
        (self.root / "docs/b.md").unlink()
        self.write({"a.json": {**FACTS, "commit": ""}}, {"tables": {"one": {"made": {**FACTS, "commit": "4567abcd"}, **DATA["tables"]["one"]}}}, MARK)
        self.run_tool()
        self.assertEqual(self.run_tool("--check").stdout, "a commit that is not in the history: 4567abcd\n")

    def test_a_figure_of_other_values_and_one_without_a_mark_are_refused(self):
        study = {"curves": [{"transport": "threads", "batch": 8, "scaling": "weak", "rows": [{"ranks": 1, "epoch_s": 2}, {"ranks": 2, "epoch_s": 2.5}]}]}
        image, mark = "![x](a.svg)\n", "<!-- figure: data/a.json weak -->\n"
        line = 'data-name="threads, batch 8 a rank" data-values="50.0,1,2;90.0,2,2.5"'
        for text, svg, said in ((mark + image, line, ""), (mark + image, line.replace("2.5", "2.4"), "a figure that is not of its data: a.svg\n"),
                                (image, line, "a figure without a mark: a.svg\n"), ("<!-- figure: not kept -->\n" + image, "", "")):
            self.write({"a.json": FACTS}, study, text)
            (self.folder / "a.svg").write_text(svg)
            done = self.run_tool("--check")
            self.assertEqual((done.returncode, done.stdout), (1 if said else 0, said))

    def test_help_is_told_and_nothing_is_read(self):
        done = self.run_tool("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--check", done.stdout)


if __name__ == "__main__":
    unittest.main()
