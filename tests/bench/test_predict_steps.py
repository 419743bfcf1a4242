"""bench/predict_steps.py with a program that answers by its arguments: all is planned before anything runs, draws that do not
fit or take too long are replaced, errors and tables are right."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import experiment_tables  # noqa: E402: it lies in tools

# A step of n images is predicted to take n ms and takes 1.25 n; more than 64 do not fit, H is refused when it runs.
PROGRAM = """#!/usr/bin/env python3
import json, sys
words = sys.argv[1:]
n = int(words[words.index("--batch") + 1])
with open(__file__ + ".log", "a") as log:
    log.write(words[0] + "\\\\n")
if words[0] == "plan":
    print(json.dumps({"update_s": n / 1e3, "run_s": n / 1e3, "memory": {"peak": n}, "memory_available": 72}))
elif "vit_huge_patch14_224" in words:
    sys.exit("error: refused")
else:
    print(json.dumps({"ms_median": 1.25 * n, "ms_min": 1.0 * n, "peak_gflops": 7}))
""".replace("\\\\n", "\\n")


class PredictStepsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.program = cls.folder / "vitrail"
        cls.program.write_text(PROGRAM)
        os.chmod(cls.program, 0o755)
        cls.found = cls.drawn("a.json")
        cls.log = Path(str(cls.program) + ".log").read_text().split()

    @classmethod
    def run_script(cls, *words):
        command = [sys.executable, "-B", str(ROOT / "bench/predict_steps.py"), "--vitrail", str(cls.program), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    @classmethod
    def drawn(cls, name, *words):
        cls.run_script("--target", "desk.json", "--seed", "3", "--cases", "8", "--longest", "0.04", "--jobs", "3",
                       "--out", str(cls.folder / name), *words)
        return json.loads((cls.folder / name).read_text())

    def test_all_is_planned_before_anything_runs(self):
        self.assertGreaterEqual(self.log.count("plan"), 8)
        self.assertNotIn("plan", self.log[self.log.index("bench"):])

    def test_draws_fit_and_are_short_and_errors_are_of_the_median(self):
        found = self.found
        batches = [int(row["case"].split("batch ")[1].split(",")[0]) for row in found["cases"]]
        self.assertLessEqual(max(batches), 40)
        self.assertGreater(found["count"], 4)  # those of H are left out
        self.assertFalse([row for row in found["cases"] if row["case"].startswith("H ")])
        self.assertAlmostEqual(found["worst_error"], 0.2)
        self.assertAlmostEqual(found["median_spread"], 0.25)
        self.assertEqual(len({row["case"] for row in found["cases"]}), found["count"])

    def test_another_order_of_planning_draws_the_same(self):
        self.assertEqual(self.found["cases"], self.drawn("b.json", "--jobs", "1")["cases"])

    def test_settings_make_trainings_of_all_cases_and_are_named(self):
        found = self.drawn("set.json", "--set", "train.low_residual=true")
        self.assertTrue(found["cases"])
        for row in found["cases"]:
            self.assertIn(", train, train.low_residual=true, f32", row["case"])
        self.assertIn("seed 3, train.low_residual=true, f32", experiment_tables.set_name(found))

    def test_a_case_may_be_measured_in_several_processes(self):
        found = self.drawn("twice.json", "--processes", "2")
        self.assertEqual([row["case"] for row in found["cases"]], [row["case"] for row in self.found["cases"]])
        for row in found["cases"]:
            self.assertEqual(row["medians_s"], [row["median_s"]] * 2)

    def test_together_names_the_worst_of_all_sets(self):
        found = json.loads((self.folder / "a.json").read_text())
        found["cases"][0]["error"], found["device"] = -0.5, "cuda"
        (self.folder / "gpu.json").write_text(json.dumps(found))
        files = [str(self.folder / name) for name in ("a.json", "gpu.json")]
        data = json.loads(self.run_script("--together", *files, "--json").stdout)
        self.assertEqual(len(data["sets"]), 2)
        table = self.run_script("--together", *files).stdout
        self.assertEqual(table.strip(), experiment_tables.step_errors(data).strip())
        last = table.strip().splitlines()[-1]
        self.assertIn(f"| all | {2 * found['count']} | 20.0 % | 50.0 % | {found['cases'][0]['case']} |", last)


if __name__ == "__main__":
    unittest.main()
