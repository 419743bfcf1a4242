"""tools/mutate sweep on synthetic sources and test programs."""
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

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
sys.path.insert(0, str(TOOLS))
import mutate_run  # noqa: E402
import mutate_sweep  # noqa: E402
import sweep_faults  # noqa: E402
import sweep_run  # noqa: E402

# Each line of a body holds the faults that EXPECTED names, and comments, literals and constants none.
TOY = """#include <algorithm>
#include <cstdio>
#include <string>
constexpr int kLimit = 3 + 4;
constexpr int doubled(int a) {
  return a * 2;
}
template <int n = 2>
int kept() {
  return n;
}
#define VT_CHECK(condition, ...) if (!(condition)) return -1
int toy(int a, int b) {
  int sum = 0;
  // a < b
  static_assert(kLimit > 2);
  std::string text = "1 + 1";
  if (a < b) sum += b;
  sum += std::min<int>(a, b);
  VT_CHECK(a >= 0, "a + b");
  for (int i = kept<2>(); i != b; ++i) {
    if (i == a)
      break;
    std::swap(sum, b), std::swap(sum, b);
  }
  switch (b) {
    case 5: text.clear();
  }
  return !text.empty() && a > -7 ? sum : b;
}
int main() {
  std::printf("%d", toy(2, 4));
}
"""
EXPECTED = {  # (line, kind, what it was): what the program prints with it, 6 as it is
    (18, "relation", "<"): "6", (18, "if", "a < b"): "2", (18, "statement", "sum += b;"): "2",
    (18, "sum", "+="): "6", (19, "sum", "+="): "2", (19, "extreme", "std::min"): "8", (14, "constant", "0"): "7",
    (20, "relation", ">="): "6", (20, "check", "a >= 0"): "6", (21, "equality", "!="): "6",
    (22, "equality", "=="): "6", (23, "jump", "break;"): "6", (27, "statement", "text.clear();"): "6",
    (29, "operand", "!text.empty() &&"): "6", (29, "operand", "&& a > -7"): "6", (29, "not", "!"): "4",
    (29, "choice", "!text.empty() && a > -7"): "4", (29, "relation", ">"): "6", (29, "constant", "7"): "6"}


class Faults(unittest.TestCase):
    def test_finds_what_may_be_wrong_and_nothing_else(self):
        found = {(fault.line, fault.kind, fault.before) for fault in sweep_faults.candidates("toy.cpp", TOY)}
        self.assertLessEqual(set(EXPECTED), found)
        places = {line for line, _, _ in found}
        self.assertFalse(places & {4, 6, 8, 10, 12, 15, 16, 17}, found)
        self.assertNotIn((27, "constant", "5"), found)
        self.assertNotIn((21, "constant", "2"), found)

    def test_draws_the_same_again(self):
        def lines(seed):
            return [(fault.line, fault.kind) for fault in sweep_faults.drawn("toy.cpp", TOY * 9, 20, seed)]
        self.assertEqual(lines(1), lines(1))
        self.assertNotEqual(lines(1), lines(2))
        self.assertAlmostEqual(len(lines(1)), TOY.count("\n") * 9 / 20, delta=4)

    def test_a_sample_is_so_many_of_all(self):
        faults = sweep_faults.drawn("toy.cpp", TOY * 9, 20, 1)
        for number, fault in enumerate(faults, 1):
            fault.number = number
        few = mutate_sweep.sampled(faults, 3, 1)
        self.assertEqual([fault.number for fault in few], sorted({fault.number for fault in few}))
        self.assertEqual(len(few), 3)
        self.assertEqual(mutate_sweep.sampled(faults, 3, 1), few)
        self.assertNotEqual(mutate_sweep.sampled(faults, 3, 2), few)
        self.assertEqual(mutate_sweep.sampled(faults, None, 1), faults)

    def test_one_build_holds_faults_inside_each_other(self):
        faults = [fault for fault in sweep_faults.candidates("toy.cpp", TOY)
                  if (fault.line, fault.kind, fault.before) in EXPECTED]
        for number, fault in enumerate(faults, 1):
            fault.number = number
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder, "base")
            base.mkdir()
            for suffix in ("h", "cpp"):
                shutil.copy(TOOLS / "mutate.d" / f"sweep_fault.{suffix}", base / f"vt_fault.{suffix}")
            Path(folder, "toy.cpp").write_text(sweep_faults.planted(TOY, faults))
            subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", f"-I{folder}", "-o", f"{folder}/toy",
                            f"{folder}/toy.cpp", base / "vt_fault.cpp"], check=True)

            def printed(number):
                return subprocess.run([f"{folder}/toy"], capture_output=True, text=True, check=True,
                                      env={"VT_FAULT": str(number)}).stdout
            self.assertEqual(printed(0), "6")
            for fault in faults:
                self.assertEqual(printed(fault.number), EXPECTED[fault.line, fault.kind, fault.before], fault)

    def test_a_list_takes_the_place_of_a_draw(self):
        root = TOOLS.parent
        layers, faults = mutate_sweep.listed(root, ["fresh6_i*", "backend_cuda"])
        self.assertEqual([layer.name for layer in layers], ["fresh6_io"])  # those of GPUs need another build
        self.assertEqual([fault.number for fault in faults], [1, 2])
        with self.assertRaises(SystemExit):
            mutate_sweep.listed(root, ["nosuch*", "backend_cuda"])
        file = faults[0].file
        self.assertRegex(mutate_sweep.name_of(faults[0]), r"^io/[\w/]+\.cpp:\d+:fresh6-")
        planted = mutate_sweep.files_of(root, [file, "cmake/layers.cmake"], faults[:1], layers)[file].decode()
        self.assertIn(f"(::vt_fault(1) ? ({faults[0].after}) : ({faults[0].before}))", planted)

    def test_the_compiler_names_what_to_leave_out(self):
        faults = [sweep_faults.Fault("relation", "src/a.cpp", line, "<", "<=", [], line) for line in (3, 9, 20)]
        log = "../../src/a.cpp:10:7: error: no\n/x/src/a.cpp:4:1:   required from here\n/x/src/a.cpp:21:2: warning: y\n"
        self.assertEqual(mutate_sweep.blamed(faults, log), {3, 9})


# Three tests. Fault 1 makes Toy.A fail, 2 hangs Toy.B, 3 changes nothing, 4 is not met, 5 fails a test that is flaky.
PROGRAM = """#!/bin/sh
echo "$VT_FAULT $*" >>calls
case "$*" in *list_tests*) printf 'Toy.\\n  A\\n  B  # GetParam() = 1\\n  C\\n'; exit;; esac
if [ "$VT_FAULT_REACHED" ]; then
  printf 'Toy.A passed 0.1 1 3\\nToy.B passed 5.0 2 3\\nToy.C failed 0.1 4\\nToy.D passed 0.1 5\\n' >"$VT_FAULT_REACHED"
fi
case "$VT_FAULT $*" in
  "1 "*Toy.A*) echo "[  FAILED  ] Toy.A (0 ms)"; exit 1;;
  "2 "*Toy.B*) echo "[ RUN      ] Toy.B"; exit 139;;
  *Toy.D*) echo "[  FAILED  ] Toy.D (0 ms)"; exit 1;;
esac
"""


class Runs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "test_toy").write_text(PROGRAM)
        (self.folder / "bin" / "test_toy").chmod(0o755)
        faults = [{"number": n, "name": f"f{n}", "layer": "toy", "near": "test_toy", "file": "toy.cpp", "line": n,
                   "from": "a", "to": "b", "text": "x = a;"} for n in range(1, 6)]
        (self.folder / "faults.json").write_text(
            json.dumps({"faults": faults, "layers": {"toy": {"programs": ["test_toy"], "filter": "*"}}}))

    def call(self, command, *options):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            sweep_run.main([command, str(self.folder), "--jobs", "1", "--reach", str(self.folder / "reach.json"),
                            *(["--results", str(self.folder / "results")] if command != "reach" else []), *options])
        return said.getvalue()

    def test_each_fault_is_tried_with_what_meets_it(self):
        self.assertIn("4 tests, 5 s", self.call("reach"))
        self.call("run")
        rows = mutate_run.read_results(self.folder / "results")[0]
        self.assertEqual({name: row["result"] for name, row in rows.items()},
                         {"f1": "caught", "f2": "caught", "f3": "survived", "f4": "not reached", "f5": "survived"})
        self.assertEqual(rows["f2"]["by"], "test_toy: Toy.B ended with status 139")
        before = (self.folder / "calls").read_text()
        self.assertIn("3 --gtest_filter=Toy.A:Toy.B", before)
        self.call("run")
        self.assertEqual((self.folder / "calls").read_text(), before)

    def test_a_budget_takes_the_quickest(self):
        self.call("reach")
        self.call("run", "--budget", "1", "--only", "f3")
        said = self.call("report", "--survivors", str(self.folder / "lists"))
        self.assertIn("| toy | 5 | 0 | 0 | 1 | 4 |", said)
        self.assertEqual((self.folder / "lists" / "toy.txt").read_text(),
                         "survived (only 1 tried): toy.cpp:3: a => b   in: x = a; [met by 2: test_toy Toy.A, "
                         "test_toy Toy.B]\n")
        self.call("run", "--only", "f3", "--again")
        self.assertIn("\n3 --gtest_filter=Toy.B --", (self.folder / "calls").read_text())
        self.assertIn("survived: toy.cpp:3", self.call("report", "--survivors", str(self.folder / "lists")) +
                      (self.folder / "lists" / "toy.txt").read_text())

    def test_calls_grow_from_the_nearest_on(self):
        tests = [("far", "x", 0.2), ("near", "a", 0.9), ("near", "b", 0.3), ("far", "y", 9.0), ("far", "z", 90.0)]
        self.assertEqual(sweep_run.calls_of(tests, "near", 20),
                         [("near", ["b", "a"], 1.2), ("far", ["x", "y"], 9.2)])


if __name__ == "__main__":
    unittest.main()
