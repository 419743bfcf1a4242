"""bench/study.py with a program that answers by its arguments: every case runs, medians and ratios are right, failures are told."""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import kept_files  # noqa: E402: it lies in bench
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
        program = self.program.read_text()
        self.program.write_text(program + "# another build")
        self.assertIn("another config and program", self.run_study().stderr)
        self.program.write_text(program)
        journal.write_text("\n".join([json.dumps({**json.loads(kept[0]), "config": study.read_config(config)}),
                                      json.dumps([["t", 0, "bench", 0], {"t": {"median": 77}}])]) + '\n[["t", 0, "be')
        self.assertEqual(self.run_study().returncode, 0)
        rows = json.loads(self.program.with_name("out.json").read_text())["tables"]["t"]["rows"]
        self.assertEqual([row[2] for row in rows], [77, 4])  # the answer that was there, and one anew
        self.assertFalse(journal.exists())

    def opened(self, content=None):
        """A journal of a study, and what is said of what lay in its file."""
        path = self.program.with_name("j.jsonl")
        if content is not None:
            path.write_bytes(content)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            journal = kept_files.Journal(path, {"config": 1, "machine": "m"})
        self.addCleanup(journal.close)
        return journal, said.getvalue()

    def test_a_damaged_journal_is_refused_by_name_and_stays(self):
        whose, path = b'{"config": 1, "machine": "m"}\n', self.program.with_name("j.jsonl")
        good = b'[["t", 0, "bench", 0], {"t": 1}]\n'
        for content, said in ((whose + good[:9] + b"\n" + good, "line 2 is damaged"), (whose + b"\0" * 20 + b"\n" + good, "line 2 is damaged"),
                              (whose + good + b'{"t": 1}\n' + good, "line 3 is damaged"), (whose + b"[[[]], {}]\n" + good, "line 2 is damaged"),
                              (whose + b"[1, {}]\n" + good, "line 2 is damaged"), (whose + b"[[1], 2]\n" + good, "line 2 is damaged"),
                              (b"my notes\n", "is no journal of a study"), (b"my notes", "is no journal of a study"),
                              (b"\xff\n" + good, "is no journal of a study"), (b"[1]\n" + good, "is no journal of a study"),
                              (whose.replace(b'"m"', b'"n"') + good, "holds answers of another machine"),
                              (b'{"config": 2}\n' + good, "holds answers of another config and machine")):
            with self.assertRaisesRegex(SystemExit, said):
                self.opened(content)
            self.assertEqual(path.read_bytes(), content)

    def test_a_damaged_last_line_is_dropped_with_a_word(self):
        whose, path = b'{"config": 1, "machine": "m"}\n', self.program.with_name("j.jsonl")
        good = b'[["t", 0], {"t": 1}]\n'
        for cut in (good[:9], good[:-1], b"\0" * 30, b"\xff\n", good[:9] + b"\n"):
            journal, said = self.opened(whose + good + cut)
            self.assertEqual(said, f"{path}: its last line is damaged and dropped\n")
            self.assertEqual(path.read_bytes(), whose + good)
            journal.answer(("t", 0), self.fail), journal.answer(("t", 1), dict)
            self.assertEqual(path.read_bytes(), whose + good + b'[["t", 1], {}]\n')
            journal.close()
        for cut in (b"", whose[:9], whose[:-1], None):  # killed within the first line, or before it
            journal, said = self.opened(cut)
            self.assertEqual((journal.known, path.read_bytes()), ({}, whose))
            journal.close()
            path.unlink()
        self.assertEqual(self.opened()[1], "")

    def test_a_journal_that_another_process_writes_is_refused(self):
        first, _ = self.opened()
        with self.assertRaisesRegex(SystemExit, "another process writes it"):
            self.opened()
        first.answer(("t", 0), dict)
        self.assertEqual(first.path.read_text().splitlines()[1:], ['[["t", 0], {}]'])

    def test_no_start_of_a_study_writes_its_journal_anew(self):
        journal, _ = self.opened()
        journal.answer(("t", 0), dict)
        journal.close()
        before = journal.path.stat()
        again, _ = self.opened()
        self.assertEqual((again.known, journal.path.stat().st_mtime_ns, journal.path.stat().st_ino), ({("t", 0): {}}, before.st_mtime_ns, before.st_ino))

    def test_a_journal_goes_with_its_last_table(self):
        journal, _ = self.opened()
        journal.answer(("one", 0), dict), journal.answer(("two", 0), dict)
        journal.end(["one"])
        again, _ = self.opened()
        self.assertEqual(again.known, {("two", 0): {}})
        again.end(["one", "two"])
        self.assertFalse(journal.path.exists())

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


class KeptTest(unittest.TestCase):
    """docs/experiments/data, in a folder of the test's own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program, self.config = self.folder / "vitrail", self.folder / "c.json"
        self.program.write_text(PROGRAM)
        os.chmod(self.program, 0o755)
        table = {**SPEC, "axes": {"kind": ["a"], "n": [2]}}
        self.config.write_text(json.dumps({"experiment": "x", "tables": {"one": table, "two": {**table, "axes": {"kind": ["b"], "n": [4]}}}}))
        (self.folder / "data").mkdir()
        self.write("about.json", {"other.json": {"state": "s"}})
        patch = mock.patch.object(study, "DATA", self.folder / "data")
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, value):
        (self.folder / "data" / name).write_text(json.dumps(value))

    def read(self, name):
        return json.loads((self.folder / "data" / name).read_text())

    def run_study(self, *words):
        arguments = ["study.py", str(self.config), "--vitrail", str(self.program), "--journal", str(self.folder / "j.jsonl"), *words]
        with mock.patch.object(sys, "argv", arguments), mock.patch.object(study, "load", return_value=0), mock.patch.object(sys, "stderr"):
            study.main()

    def test_one_table_is_put_beside_those_that_are_kept(self):
        self.run_study("--keep")
        whole = self.read("c.json")
        self.assertEqual([list(whole["tables"]), "made" in whole["tables"]["one"]], [["one", "two"], False])
        about = self.read("about.json")
        about["c.json"].update(machine="another", commit="0123abcd", note="busy")
        self.write("about.json", about)
        self.run_study("--keep", "--only", "one")
        merged = self.read("c.json")
        then = {"machine": "another", "date": about["c.json"]["date"], "commit": "0123abcd", "note": "busy"}
        self.assertEqual(list(merged["tables"]), ["one", "two"])
        self.assertEqual(merged["tables"]["two"], {"made": then, **whole["tables"]["two"]})
        self.assertNotIn("made", merged["tables"]["one"])
        self.assertNotIn("tables_of_all", merged)
        self.assertEqual(self.read("about.json")["c.json"]["machine"], study.machine())
        self.run_study("--keep", "--only", "one")
        self.assertEqual(self.read("c.json")["tables"]["two"]["made"], then)
        self.assertEqual(self.read("about.json")["other.json"], {"state": "s"})

    def test_a_part_made_elsewhere_is_taken_beside_what_is_kept(self):
        self.run_study("--keep")
        about = self.read("about.json")
        about["c.json"]["document"] = "c.md"
        self.write("about.json", about)
        self.run_study("--only", "two", "--json", str(self.folder / "two.json"))
        study.take(self.folder / "two.json", "c.json")
        self.assertEqual(list(self.read("c.json")["tables"]), ["one", "two"])

    def test_what_cannot_be_kept_is_refused_before_anything_runs(self):
        with self.assertRaisesRegex(SystemExit, "has no table three; it has one, two"):
            self.run_study("--keep", "--only", "three")
        for damaged in ('{"tables": ', "[]", '{"rows": 1}', '{"tables": {"one": 7}}'):
            (self.folder / "data/c.json").write_text(damaged)
            with self.assertRaisesRegex(SystemExit, "c.json holds no tables that others could be kept beside"):
                self.run_study("--keep", "--only", "one")
            self.assertEqual((self.folder / "data/c.json").read_text(), damaged)
        self.assertFalse(self.program.with_suffix(".log").exists())

    def test_a_kill_leaves_the_old_content_or_the_new(self):
        """A process that ends at each call of the system on its way through keep()."""
        self.write("c.json", {"tables": {}, "old": True})
        script = ("import os, sys, pathlib; sys.path.insert(0, sys.argv[1]); import study; study.DATA = pathlib.Path(sys.argv[2])\n"
                  "left = int(sys.argv[3])\n"
                  "def counted(call):\n"
                  "    def at(*words):\n"
                  "        global left; left -= 1\n"
                  "        return call(*words) if left >= 0 else os._exit(9)\n"
                  "    return at\n"
                  "os.fsync, os.replace = counted(os.fsync), counted(os.replace)\n"
                  "study.keep('c.json', {'state': 'new'}, {'tables': {}, 'made': {}})\n")
        seen = []
        for calls in range(20):
            done = subprocess.run([sys.executable, "-B", "-c", script, str(ROOT / "bench"), str(self.folder / "data"), str(calls)])
            seen.append(("old" in self.read("c.json"), "c.json" in self.read("about.json")))
            if done.returncode == 0:
                break
        self.assertEqual(seen, [(True, False)] * 2 + [(False, False)] * 3 + [(False, True)] * 2)

    def test_a_failure_leaves_the_file_and_nothing_beside_it(self):
        for call in ("fsync", "replace"):
            with mock.patch.object(kept_files.os, call, side_effect=OSError("full")), self.assertRaises(OSError):
                kept_files.write_whole(self.folder / "data/about.json", "new")
            self.assertEqual(self.read("about.json"), {"other.json": {"state": "s"}})
            self.assertEqual([path.name for path in (self.folder / "data").iterdir()], ["about.json"])


class RandomMemoryTest(unittest.TestCase):
    def test_a_row_of_a_gpu_takes_the_place_of_another_name_of_it(self):
        known = [["processor, few", 300, 901, 0], ["H200, many", 100, 304, 0]]
        for rows, expected in (([["NVIDIA H200, many", 7, 7, 0]], [known[0], ["NVIDIA H200, many", 7, 7, 0]]),
                               ([["processor, few", 7, 7, 0]], [["processor, few", 7, 7, 0], known[1]])):
            self.assertEqual(random_memory.with_known(rows, known), expected)


if __name__ == "__main__":
    unittest.main()
