"""tools/gpu_test.sh with stand-ins for the test programs."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent.parent / "tools" / "gpu_test.sh"


def program(summary, status=0, listed="Suite.\n  CudaThing\n"):
    """Lists its tests when asked to, else prints and ends as told."""
    return (f'#!/bin/sh\ncase "$*" in *list_tests*) printf \'{listed}\'; exit 0;; esac\n'
            f"cat <<'END'\n{summary}\nEND\nexit {status}\n")


PASSED = "[==========] 5 tests ran.\n[  PASSED  ] 5 tests."
FAILED = "[  FAILED  ] Suite.CudaThing (3 ms)\n[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:"
SKIPPED = ("x.cpp:3: Skipped\nno usable NVIDIA GPU: there is no NVIDIA driver\n[  PASSED  ] 1 test.\n"
           "[  SKIPPED ] 4 tests, listed below:")
OTHER_GPU = ("x.cpp:3: Skipped\nneeds compute capability 9.0\n\n[  SKIPPED ] A (0 ms)\n"
              "y.cpp:9: Skipped\nneeds compute capability 9.0\n\n[  SKIPPED ] B (0 ms)\n"
              "[  PASSED  ] 3 tests.\n[  SKIPPED ] 2 tests, listed below:")
ONE_MORE = "z.cpp:5: Skipped\nneeds compute capability 9.0 or a driver\n" + OTHER_GPU.replace("2 tests", "3 tests")


class GpuTest(unittest.TestCase):
    def run_with(self, programs, **settings):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in programs.items():
                Path(folder, name).write_text(text)
                os.chmod(Path(folder, name), 0o755)
            done = subprocess.run([SCRIPT, folder], capture_output=True, text=True, env={**os.environ, **settings})
            return done.returncode, done.stdout

    def test_summary(self):
        none_listed = program(FAILED, 1, listed="")
        for name, programs, code, summary in [
            ("all pass", {"test_a": program(PASSED), "test_b": program(PASSED)}, 0, "10 passed, 0 failed, 0 skipped"),
            ("one fails", {"test_a": program(PASSED), "test_b": program(FAILED, 1)}, 1,
             "7 passed, 1 failed, 0 skipped"),
            ("one dies", {"test_a": program("[ RUN      ] Suite.CudaThing", 139)}, 1, "0 passed, 1 failed, 0 skipped"),
            ("a sanitizer finds something", {"test_a": program(PASSED, 86)}, 1, "5 passed, 1 failed, 0 skipped"),
            ("no GPU", {"test_a": program(SKIPPED)}, 1, "1 passed, 0 failed, 4 skipped"),
            ("another GPU", {"test_a": program(PASSED), "test_b": program(OTHER_GPU)}, 0,
             "8 passed, 0 failed, 0 skipped, 2 for another GPU"),
            ("another GPU and another reason", {"test_a": program(ONE_MORE)}, 1,
             "3 passed, 0 failed, 1 skipped, 2 for another GPU"),
            ("no such test", {"test_a": program(PASSED), "test_b": none_listed}, 0, "5 passed, 0 failed, 0 skipped"),
            ("nothing at all", {}, 1, "0 passed, 0 failed, 0 skipped"),
        ]:
            with self.subTest(name):
                found, output = self.run_with(programs)
                self.assertEqual(output.splitlines()[-1], "gpu-test: " + summary)
                self.assertEqual(found, code, output)

    def test_says_why(self):
        self.assertIn("skipped: no usable NVIDIA GPU", self.run_with({"test_a": program(SKIPPED)})[1])
        self.assertIn("skipped: needs compute capability 9.0 or", self.run_with({"test_a": program(ONE_MORE)})[1])
        self.assertNotIn("skipped: ", self.run_with({"test_a": program(OTHER_GPU)})[1])
        self.assertIn("ended with status 139", self.run_with({"test_a": program("", 139)})[1])
        self.assertIn("Suite.CudaThing", self.run_with({"test_a": program(FAILED, 1)})[1])

    def test_tells_the_least_margins_of_all_shards(self):
        shards = ('case $GTEST_SHARD_INDEX in 0) echo "margin cuda  bf16: 2.10 (a)"; echo "margin cuda  f16: 9.5 (a)";;\n'
                  '*) echo "margin cuda  bf16: 10.02 (b)"; echo "margin cuda  f16: 2.61 (b)";; esac\n')
        text = program(PASSED).replace("cat <<'END'", shards + "cat <<'END'")
        output = self.run_with({"test_a": text}, SHARDS="2")[1].splitlines()
        self.assertEqual([line for line in output if line.startswith("margin")],
                         ["margin cuda  bf16: 2.10 (a)", "margin cuda  f16: 2.61 (b)"])


if __name__ == "__main__":
    unittest.main()
