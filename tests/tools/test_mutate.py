"""tools/mutate on synthetic sources and test programs."""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
sys.path.insert(0, str(TOOLS))
import mutate_list  # noqa: E402
import mutate_run  # noqa: E402

LIST = """# a layer
programs: test_toy
filter: *-Slow*
file: toy.cpp
sum-less: return a [-+ b-]{+- b+};
half: int half(int a) { return [-a / 2-]{+a / 3+}; }
never: [-count += 1;-]{+;+}
table: {[-7-]{+8+}, 9}
~ constexpr int kTable[] => const int kTable[]
"""
TOY = """#include <cstdio>
constexpr int kTable[] = {7, 9};
int sum(int a, int b) { return (a
   + b); }
int half(int a) { return a / 2; }
int count = 0;
int main() {
  count += 1;
  std::printf("%d %d %d %d", sum(1, 2), half(6), count, kTable[0]);
}
"""


def layers_of(text, name="toy"):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{name}.txt").write_text(text)
        return mutate_list.load(Path(folder))


class Lists(unittest.TestCase):
    def refused(self, text, reason, source=TOY):
        with self.assertRaisesRegex(mutate_list.ListError, reason):
            mutate_list.planted("toy.cpp", source, layers_of(text))

    def test_refuses_what_does_not_fit(self):
        head = "programs: test_toy\nfile: toy.cpp\n"
        self.refused(head + "gone: return [-a * b-]{+a+};\n", "found 0 times")
        self.refused(head + "both: [-int-]{+long+}\n", "found .* times, expected once")
        self.refused(head + "a: [-a / 2-]{+a+}\nb: return [-a / 2;-]{+;+}\n", "overlap")
        self.refused(head + "a: [-a / 2-]{+a+}\na: [-count += 1;-]{+;+}\n", "named twice: a")
        self.refused(head + "a: a / 2\n", "expected one")
        self.refused(head + "a: a [-/ 2-]{+/ 3+}\n", "whole expressions")
        self.refused(head + "a: a [-+ 2-]{+ +}\n", "whole expressions")
        self.refused("file: toy.cpp\n", "no line says which programs")
        self.refused(head + "~ constexpr\n", "expected ~ FROM => TO")

    def test_one_build_holds_all_faults(self):
        text = LIST.replace("sum-less: return a [-+ b-]{+- b+};", "sum-less: (a\\n   + [-b-]{+-b+})")
        source = mutate_list.planted("toy.cpp", TOY, layers_of(text))
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder, "base")
            base.mkdir()
            for name in ("vt_fault.h", "vt_fault.cpp"):
                shutil.copy(TOOLS / "mutate.d" / name, base / name)
            Path(folder, "toy.cpp").write_text(source)
            compiler = os.environ.get("CXX", "c++")
            subprocess.run([compiler, "-std=c++20", f"-I{folder}", "-o", f"{folder}/toy", f"{folder}/toy.cpp",
                            base / "vt_fault.cpp"], check=True)
            for fault, expected, reached in [(0, "3 3 1 7", False), (1, "-1 3 1 7", True), (2, "3 2 1 7", True),
                                             (3, "3 3 0 7", True), (4, "3 3 1 8", True), (5, "3 3 1 7", False)]:
                mark = Path(folder, f"mark-{fault}")
                done = subprocess.run([f"{folder}/toy"], capture_output=True, text=True, check=True,
                                      env={"VT_FAULT": str(fault), "VT_FAULT_REACHED": str(mark)})
                self.assertEqual(done.stdout, expected, f"fault {fault}")
                self.assertEqual(mark.exists(), reached, f"fault {fault}")


# Passes but for fault 1 (fails), 2 (dies), 3 (hangs) and 5 (a test fails now and then); 6 is never reached.
PROGRAM = """#!/bin/sh
echo "$VT_FAULT $*" >>calls
if [ "$VT_FAULT" != 6 ] && [ "$VT_FAULT_REACHED" ]; then touch "$VT_FAULT_REACHED"; fi
fail() { echo "[ RUN      ] Toy.$1"; echo "[  FAILED  ] Toy.$1, where GetParam() = 1 (0 ms)"; exit 1; }
case "$*" in *filter=Toy.Flaky*) fail Flaky;; esac
case "$BROKEN$*" in 1*filter=Toy.Sum*|1*-Slow?:Toy.Broken*) ;; 1*) fail Broken;; esac
case "$VT_FAULT" in
  1) fail Sum;;
  2) echo "[ RUN      ] Toy.Dies"; exit 139;;
  3) echo "[ RUN      ] Toy.Hangs"; exec sleep 60;;
  5) fail Flaky;;
esac
exit 0
"""


class Runs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "bin").mkdir()
        for name in ("test_toy", "test_far"):
            (self.folder / "bin" / name).write_text(PROGRAM)
            (self.folder / "bin" / name).chmod(0o755)
        faults = [{"number": n, "name": f"f{n}", "layer": "toy", "file": "toy.cpp", "line": n, "from": "a", "to": "b"}
                  for n in range(1, 7)]
        layer = {"programs": ["test_toy", "test_far"], "filter": "*-Slow*"}
        (self.folder / "faults.json").write_text(json.dumps({"faults": faults, "layers": {"toy": layer}}))

    def run_it(self, *options, environment=None, command="run"):
        arguments = ["mutate_run.py", command, str(self.folder), "--results", str(self.folder / "results"), *options]
        said = io.StringIO()
        with mock.patch.object(sys, "argv", arguments), mock.patch.object(mutate_run, "LEAST_SECONDS", 1), \
                mock.patch.dict(os.environ, environment or {}), contextlib.redirect_stdout(said):
            code = mutate_run.main()
        return code, said.getvalue(), mutate_run.read_results(self.folder / "results")

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()

    def test_what_is_caught(self):
        code, said, (faults, baseline) = self.run_it()
        found = {name: (row["result"], row["by"]) for name, row in faults.items()}
        self.assertEqual(found["f1"], ("caught", "test_toy: Toy.Sum"))
        self.assertEqual(found["f2"], ("caught", "test_toy: Toy.Dies ended with status 139"))
        self.assertEqual(found["f3"], ("caught", "test_toy: Toy.Hangs still ran after 1 s"))
        self.assertEqual(found["f4"], ("survived", ""))
        self.assertEqual(found["f5"], ("survived", ""))
        self.assertEqual(found["f6"], ("not reached", ""))
        self.assertEqual({row["result"] for row in baseline.values()}, {"passes"})
        self.assertEqual(code, 1)
        self.assertIn("Toy.Flaky fails now and then", said)
        self.assertIn("mutate: 3 of 6 faults caught (50 %), 0 not tried", said)
        self.assertIn("toy: f4 survived: toy.cpp:4: a became b", said)

    def test_goes_on_where_it_stopped(self):
        self.run_it("--only", "f1", "f4")
        before = len(self.calls())
        code, said, _ = self.run_it("--only", "f1", "f4")
        self.assertEqual(len(self.calls()), before)
        self.assertIn("mutate: 1 of 2 faults caught (50 %), 4 not tried", said)
        self.run_it("--only", "f1", "f4", "--again")
        tried = [line.split()[0] for line in self.calls()[before:]]
        self.assertEqual(tried, ["4", "4"])

    def test_tables(self):
        self.run_it("--only", "f1", "f4", "f6")
        said = self.run_it(command="table")[1]
        self.assertIn("| toy | 6 | 1 | 1 | 1 | 3 |\n", said)
        self.assertIn("| toy | f1 | caught | test_toy Toy.Sum |\n", said)
        self.assertIn("| toy | f2 | not tried |  |\n", said)

    def test_nearest_programs_and_no_time(self):
        self.run_it("--only", "f4", "--nearest", "1")
        self.assertEqual([line.split()[0] for line in self.calls()], ["0", "4"])
        said = self.run_it("--only", "f1", "--minutes", "0")[1]
        self.assertIn("0 of 1 faults caught (0 %), 5 not tried", said)

    def test_all_caught(self):
        self.assertEqual(self.run_it("--only", "f1", "f2")[0], 0)

    def test_a_failing_baseline_is_told_and_left_out(self):
        code, said, (faults, _) = self.run_it("--only", "f1", "f4", environment={"BROKEN": "1"})
        self.assertIn("left out, since they fail without a fault: Toy.Broken", said)
        self.assertEqual(faults["f4"]["result"], "survived")
        self.assertEqual(faults["f1"]["by"], "test_toy: Toy.Sum")

    def test_a_dead_baseline_ends_it(self):
        (self.folder / "bin" / "test_far").write_text("#!/bin/sh\nexit 3\n")
        with self.assertRaisesRegex(SystemExit, "nothing can be said"):
            self.run_it()


if __name__ == "__main__":
    unittest.main()
