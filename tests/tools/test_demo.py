"""tools/demo.sh with a program that notes its arguments: the script goes to its end, photograph by photograph."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class DemoTest(unittest.TestCase):
    def test_every_photograph_is_classified_and_explained(self):
        with tempfile.TemporaryDirectory() as folder:
            program, calls = Path(folder, "vitrail"), Path(folder, "calls")
            program.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
            os.chmod(program, 0o755)
            done = subprocess.run([ROOT / "tools/demo.sh", program, folder], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = calls.read_text().splitlines()
        images = [p.name for p in (ROOT / "examples/images").iterdir() if p.suffix in (".png", ".jpg")]
        self.assertGreater(len(images), 1)
        for name in images:
            for command in ("predict", "explain"):
                self.assertTrue(any(line.startswith(command) and name in line for line in lines), (command, name))


if __name__ == "__main__":
    unittest.main()
