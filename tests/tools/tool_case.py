"""A tree of files in a temporary folder, and a tool of tools/ run on it."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"


class ToolCase(unittest.TestCase):
    tool = ""

    def run_on(self, files):
        """(exit code, output) of the tool on a tree {path: text}."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                target = Path(root, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
            done = subprocess.run([sys.executable, TOOLS / self.tool, root], capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

    def check(self, cases):
        """Each case: (name, files, expected exit code, text the output must hold)."""
        for name, files, code, text in cases:
            with self.subTest(name):
                found, output = self.run_on(files)
                self.assertIn(text, output)
                self.assertEqual(found, code, output)
