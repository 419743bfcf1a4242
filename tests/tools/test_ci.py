"""`.ci/run` on a small repository with stand-ins for what it calls: what fails there fails all of it."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class Ci(unittest.TestCase):
    def ci(self, commits=2, lint=0, tests=0, **variables):
        """(exit code, output) of .ci/run where `make test` and tools/lint.sh end with these exit codes."""
        with tempfile.TemporaryDirectory() as folder:
            root, programs = Path(folder, "repository"), Path(folder, "programs")
            for path, code in [(programs / "make", tests), (programs / "cmake", 0), (root / "tools/install_deps.sh", 0),
                               (root / "tools/lint.sh", lint)]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f'#!/bin/bash\necho "{path.name} $*"\nexit {code}\n')
                path.chmod(0o755)
            (root / ".ci").mkdir()
            shutil.copy(ROOT / ".ci/run", root / ".ci/run")
            git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
            for command in [["init", "-q"], ["add", "."]] + [["commit", "-qm", "One", "--allow-empty"]] * commits:
                subprocess.run(git + command, check=True)
            kept = {name: value for name, value in os.environ.items() if name != "CI_WITHOUT_LINT"}
            done = subprocess.run([root / ".ci/run"], capture_output=True, text=True,
                                  env={**kept, **variables, "PATH": f"{programs}:{os.environ['PATH']}"})
            return done.returncode, done.stdout + done.stderr

    def test_lint_is_part_of_it(self):
        code, output = self.ci()
        self.assertEqual(code, 0, output)
        self.assertIn("make test", output)
        self.assertIn("lint.sh check --since HEAD~1", output)
        self.assertNotEqual(self.ci(lint=1)[0], 0)

    def test_a_commit_without_one_before_it_is_linted(self):
        code, output = self.ci(commits=1)
        self.assertEqual(code, 0, output)
        self.assertIn("lint.sh check --since HEAD\n", output)
        self.assertNotEqual(self.ci(commits=1, lint=1)[0], 0)

    def test_lint_is_left_out_on_request_alone(self):
        code, output = self.ci(lint=1, CI_WITHOUT_LINT="1")
        self.assertEqual(code, 0, output)
        self.assertIn("lint was left out", output)
        self.assertNotIn("lint.sh", output)
        self.assertNotEqual(self.ci(tests=1, CI_WITHOUT_LINT="1")[0], 0)


if __name__ == "__main__":
    unittest.main()
