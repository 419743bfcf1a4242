"""What the contract tests share: running the real program as a user would, and what every refusal looks like."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "tests/golden/models/hf_single"
CAT = ROOT / "examples/images/chelsea.png"
SMALL = ["--model", "vit_tiny_patch16_224", "--weights", "rule", "--image", "32", "--seconds", "0", "--threads", "1"]


def vitrail(*arguments, env=None, stdin="", cwd=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("VITRAIL_")}
    clean["XDG_CONFIG_HOME"] = "/nonexistent"  # what was tuned on this machine is no part of a test
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, input=stdin, cwd=cwd,
                          env={**clean, **(env or {})}, timeout=120)


class Contract(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vitrail-contract-")
        self.addCleanup(folder.cleanup)
        self.tmp = pathlib.Path(folder.name)

    def ok(self, *arguments, **more):
        done = vitrail(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def json(self, *arguments, **more):
        return json.loads(self.ok(*arguments, "--json", **more).stdout)

    def refused(self, code, text, *arguments, **more):
        done = vitrail(*arguments, **more)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
        self.assertRegex(done.stderr, text)
        self.assertTrue(done.stderr.startswith("error: "), done.stderr)
        self.assertEqual(done.stdout, "", "an error must leave stdout clean")
        self.assertLess(len(done.stderr.splitlines()), 20, "one screen")
        return done
