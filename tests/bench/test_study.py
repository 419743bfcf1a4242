"""bench/study.py with a program that answers by its arguments: every case runs, medians and ratios are right, failures are told."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import random_memory  # noqa: E402: it lies in bench
import study  # noqa: E402

PROGRAM = """#!/usr/bin/env python3
import json, pathlib, sys
log = pathlib.Path(__file__).with_suffix(".log")
seen = log.read_text().splitlines() if log.exists() else []
words = " ".join(sys.argv[1:])
log.write_text("\\n".join([*seen, words]))
if words == "--version":
    sys.exit(0)
n = int(words.split("--n ")[1].split()[0])
if n == 13:
    sys.exit("error: thirteen is refused")
print(json.dumps([{"peak": 100 * n}] if "plan" in words else {"t": {"median": n + (0, 5, 1)[seen.count(words)]}}))
"""
SPEC = {"run": {"plan": "plan --n {n}", "bench": "bench --n {n}"}, "axes": {"kind": ["a", "b"], "n": [2, 4]},
        "columns": [{"title": "n", "text": "{kind}{n}"}, {"title": "peak", "path": "plan.rows.0.peak", "unit": "bytes"},
                    {"title": "t", "path": "bench.t.median", "unit": "s"},
                    {"title": "of first", "path": "bench.t.median", "against_first": True, "cut": "kind"},
                    {"title": "peak over t", "path": "plan.rows.0.peak", "minus": "bench.t.median", "over": "bench.t.median", "times": 3}]}


class StudyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name, "vitrail")
        self.program.write_text(PROGRAM)
        os.chmod(self.program, 0o755)

    def made(self, spec, repeat=1):
        table = study.Table("t", spec, 0)
        return table.made(table.measure(str(self.program), repeat))

    def test_every_combination_has_a_row_of_medians_and_ratios(self):
        spec = {**SPEC, "axes": {"kind": ["a"], "n": [2, 4]}}
        rows = self.made(spec, repeat=3)["rows"]  # the third run of three is the median: 1 more
        self.assertEqual(rows, [["a2", 200, 3, 1.0, 197 / 3 * 3], ["a4", 400, 5, 5 / 3, 395 / 5 * 3]])

    def test_ratios_are_within_rows_of_one_value(self):
        rows = self.made(SPEC)["rows"]
        self.assertEqual([row[0] for row in rows], ["a2", "a4", "b2", "b4"])
        self.assertEqual([rows[0][3], rows[2][3]], [1.0, 1.0])

    def test_a_failure_ends_the_study_unless_it_may_happen(self):
        spec = {**SPEC, "axes": {"kind": ["a"], "n": [13]}}
        with self.assertRaisesRegex(SystemExit, "thirteen is refused"):
            self.made(spec)
        spec = {**spec, "may_fail": ["plan", "bench"], "columns": SPEC["columns"][:3]}
        self.assertEqual(self.made(spec)["rows"], [["a13", "error: thirteen is refused", "error: thirteen is refused"]])

    def run_study(self, *words):
        script = [sys.executable, "-B", str(ROOT / "bench/study.py"), str(self.program.with_name("c.json")), "--vitrail", str(self.program)]
        files = ["--json", str(self.program.with_name("out.json")), "--journal", str(self.program.with_name("j.jsonl"))]
        return subprocess.run([*script, *files, *words], capture_output=True, text=True)

    def test_a_study_that_was_cut_off_goes_on_and_another_one_is_refused(self):
        config, journal = (self.program.with_name(name) for name in ("c.json", "j.jsonl"))
        config.write_text(json.dumps({"tables": {"t": {**SPEC, "axes": {"kind": ["a"], "n": [2, 4, 13]}}}}))
        self.assertIn("thirteen is refused", self.run_study().stderr)
        kept = journal.read_text().splitlines()
        self.assertGreaterEqual(len(kept), 1)
        journal.write_text("\n".join(kept) + '\n[["t", 0, "be')  # killed in the middle of a line
        config.write_text(json.dumps({"tables": {"t": {**SPEC, "axes": {"kind": ["a"], "n": [2, 4]}}}}))
        self.assertIn("another config", self.run_study().stderr)
        journal.write_text("\n".join([json.dumps({**json.loads(kept[0]), "config": study.read_config(config)}),
                                      json.dumps([["t", 0, "bench", 0], {"t": {"median": 77}}])]) + '\n[["t", 0, "be')
        self.assertEqual(self.run_study().returncode, 0)
        rows = json.loads(self.program.with_name("out.json").read_text())["tables"]["t"]["rows"]
        self.assertEqual([row[2] for row in rows], [77, 4])  # the answer that was there, and one anew
        self.assertFalse(journal.exists())

    def test_every_config_names_its_document_and_is_readable(self):
        for path in sorted((ROOT / "configs/studies").glob("*.json")):
            config = study.read_config(path)
            if "tables" in config:
                self.assertTrue((ROOT / "docs/experiments" / config["document"]).exists(), path.name)
                for spec in config["tables"].values():
                    self.assertTrue(study.Table("t", spec, 0).cases)
        about = json.loads((ROOT / "docs/experiments/data/about.json").read_text())
        self.assertEqual({name for name, facts in about.items() if facts["state"] != "not yet run"},
                         {path.name for path in (ROOT / "docs/experiments/data").glob("*.json") if path.name != "about.json"})


class RandomMemoryTest(unittest.TestCase):
    def test_a_row_of_a_gpu_takes_the_place_of_another_name_of_it(self):
        known = [["processor, few", 300, 901, 0], ["H200, many", 100, 304, 0]]
        for rows, expected in (([["NVIDIA H200, many", 7, 7, 0]], [known[0], ["NVIDIA H200, many", 7, 7, 0]]),
                               ([["processor, few", 7, 7, 0]], [["processor, few", 7, 7, 0], known[1]])):
            self.assertEqual(random_memory.with_known(rows, known), expected)


if __name__ == "__main__":
    unittest.main()
