"""tools/lint.sh on a small tree: clean code passes, and each kind of fault that it is for makes it fail."""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import tidy_whole  # noqa: E402

CHECKS = ["check_layers", "check_purity", "check_sizes", "check_statements", "check_docs"]
CLEAN = "// A reason.\nnamespace vitrail {\n\nint twice(int value) {\n  return 2 * value;\n}\n\n}  // namespace vitrail\n"
TESTS = CLEAN + "// A line.\n" * 250  # as many lines as check_sizes wants beside any of the sources here


def tool(name):
    return shutil.which(name + "-14") or shutil.which(name)


class Lint(unittest.TestCase):
    def lint(self, files, subject=None, changed=None, merged=False, later=0, since="HEAD~1"):
        """(exit code, output) of lint.sh check on a tree of sources that a compiler is said to have built; with a subject,
        of what a commit of that subject changed: nothing, or those files; it may be one of a branch that was merged, and
        there may be later ones."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in [".clang-format", ".clang-tidy", "tools/lint.sh", "tools/cpp_text.py", "tools/tidy_whole.py"] + ["tools/" + c for c in CHECKS]:
                (root / name).parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, root / name)
            for folder in ["src", "include", "tests", "fuzz", "bench", "examples", "docs", "build/lint", "build/lint-whole"]:
                (root / folder).mkdir(parents=True)
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            united = "build/lint-whole/unity_0_cxx.cxx"  # as CMake writes them
            (root / united).write_text("".join(f'#include "{root / path}"\n' for path in files if path.startswith("src/")))
            for database, paths in ("lint", files), ("lint-whole", [united]):
                built = [{"directory": str(root), "file": str(root / path), "command": f"c++ -std=c++20 -I{root}/src -c {path}"}
                         for path in paths]
                (root / "build" / database / "compile_commands.json").write_text(json.dumps(built))
            words = ["check"]
            if subject:
                git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
                for command in [["init", "-q"], ["add", "."], ["commit", "-qm", "First"]]:
                    subprocess.run(git + command, check=True)
                for path, text in (changed or {}).items():
                    (root / path).write_text(text)
                commit = ["commit", "-aqm", subject, "--allow-empty"]
                merge = [["checkout", "-q", "-"], ["merge", "-q", "--no-ff", "-m", "Merge", "side"]]
                rest = [["commit", "-qm", "Later", "--allow-empty"]] * later
                for command in ([["checkout", "-qb", "side"], commit, *merge] if merged else [commit]) + rest:
                    subprocess.run(git + command, check=True)
                words += ["--since", since]
            done = subprocess.run([root / "tools/lint.sh", *words], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_a_clean_tree_and_planted_faults(self):
        inner = "namespace vitrail {\n\n%s\n}  // namespace vitrail\n"
        for name, path, text, said in [
            ("clean", "src/base/a.cpp", CLEAN, ""),
            ("style", "src/base/a.cpp", CLEAN.replace("2 * value", "2*value"), "clang-format-violations"),
            ("style of CUDA", "src/backend/a.cu", CLEAN.replace("2 * value", "2*value"), "clang-format-violations"),
            ("style of CUDA's headers", "src/backend/a.cuh", CLEAN.replace("2 * value", "2*value"), "clang-format-violations"),
            ("a name", "src/base/a.cpp", CLEAN.replace("twice", "Twice"), "readability-identifier-naming"),
            ("a bug", "src/base/a.cpp", inner % "int first(const int* p) {\n  return p ? 0 : *p;\n}\n", "clang-analyzer-core.NullDereference"),
            ("a layer", "src/base/a.cpp", '#include "cli/b.h"\n', "base may not include"),
            ("purity", "src/models/a.cpp", CLEAN.replace("value", "threads"), "src/models/a.cpp:4: threads"),
            ("size", "src/base/a.cpp", CLEAN + "// A line.\n" * 300, "at most 300"),
            ("a comma", "src/base/a.cpp", CLEAN.replace("  return", "  ++value, --value;\n  return"), "src/base/a.cpp:5: a comma"),
        ]:
            with self.subTest(name):
                code, output = self.lint({path: text, "tests/base/a.cpp": TESTS})
                self.assertIn(said, output)
                self.assertEqual(code == 0, name == "clean", output)

    def test_of_sources_read_as_one_the_right_one_is_named(self):
        wrong = CLEAN.replace("twice", "Thrice")
        code, output = self.lint({"src/base/a.cpp": CLEAN, "src/base/b.cpp": wrong, "src/base/c.cpp": CLEAN.replace("twice", "again"),
                                  "tests/base/a.cpp": TESTS})
        self.assertNotEqual(code, 0)
        self.assertIn("src/base/b.cpp:4:5: error: invalid case style for function 'Thrice'", output)

    def test_an_include_may_stand_in_each_source_but_once(self):
        once = CLEAN.replace("namespace vitrail {\n\n", "#include <cstdint>\n\nnamespace vitrail {\n\n", 1)
        rest = {"src/base/b.cpp": once.replace("twice", "again"), "tests/base/a.cpp": TESTS}
        code, output = self.lint({"src/base/a.cpp": once, **rest})
        self.assertEqual(code, 0, output)
        code, output = self.lint({"src/base/a.cpp": once.replace("#include <cstdint>\n", "#include <cstdint>\n" * 2), **rest})
        self.assertNotEqual(code, 0)
        self.assertIn("src/base/a.cpp: error: <cstdint> is included twice", output)

    def test_what_was_clean_is_read_again_once_it_or_a_header_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            shutil.copy(ROOT / ".clang-tidy", root)
            log, tidy = root / "log", root / "tidy"
            tidy.write_text(f'#!/bin/sh\necho read >> {log}\nexec {tool("clang-tidy")} "$@"\n')
            tidy.chmod(0o755)
            (root / "a.h").write_text("#pragma once\n// A reason.\n")
            (root / "a.cpp").write_text('#include "a.h"\n' + CLEAN)
            built = {"directory": str(root), "file": str(root / "a.cpp"), "command": f"c++ -std=c++20 -c {root}/a.cpp"}
            (root / "compile_commands.json").write_text(json.dumps([built]))

            def read(*words):
                """(exit code, how often clang-tidy has been started)."""
                done = subprocess.run([sys.executable, ROOT / "tools/tidy_whole.py", root, "--tidy", tidy, *words], cwd=root)
                return done.returncode, log.read_text().count("read")

            self.assertEqual(read(), (0, 1))
            self.assertEqual(read(), (0, 1))
            self.assertEqual(read("--again"), (0, 2))
            (root / "a.h").write_text("#pragma once\n#define TWO 2\n")
            self.assertEqual(read(), (0, 3))
            (root / ".clang-tidy").write_text((root / ".clang-tidy").read_text() + "# A comment.\n")
            self.assertEqual(read(), (0, 4))
            (root / "a.cpp").write_text(CLEAN.replace("twice", "Twice"))
            self.assertEqual(read(), (1, 5))
            self.assertEqual(read(), (1, 6))  # what was found is told again

    def test_what_counts_as_a_change_of_a_file(self):
        text = "// A reason.\nint twice(int value) {\n  // %s\n  return 2 * value;  // %s\n}\n"
        before = text % ("Two.", "Twice.")
        with tempfile.TemporaryDirectory() as folder:
            for name, after, counts in [
                ("a comment on its own line", before.replace("Two.", "Thrice as much."), False),
                ("where it begins", before.replace("  // Two.", "    //   Two."), False),
                ("another line of a comment", before.replace("// Two.", "// Two.\n  // Three."), True),
                ("one behind code", before.replace("Twice.", "Two times."), True),
                ("one that silences a check", before.replace("Two.", "NOLINTNEXTLINE(bugprone-*)"), True),
                ("one that takes in the next line", before.replace("Two.", "Two.\\"), True),
                ("code", before.replace("2 *", "3 *"), True),
            ]:
                with self.subTest(name):
                    paths = [Path(folder) / f"{name} {i}.cpp" for i in range(2)]
                    for path, written in zip(paths, [before, after]):
                        path.write_text(written)
                    self.assertEqual(len({tidy_whole.file_hash(path) for path in paths}) == 2, counts)
            silent = [text % (f"NOLINTNEXTLINE({check})", "") for check in ("bugprone-*", "misc-*")]
            for path, written in zip(paths, silent):
                path.write_text(written)
            tidy_whole.file_hash.cache_clear()
            self.assertEqual(len({tidy_whole.file_hash(path) for path in paths}), 2)

    def test_a_file_that_changed_is_read_by_itself(self):
        wrong = CLEAN.replace("twice", "Twice")
        tree = {"src/base/a.cpp": CLEAN, "tests/base/a.cpp": TESTS}
        self.assertEqual(self.lint(tree, "Second", {"src/base/a.cpp": CLEAN.replace("twice", "thrice")})[0], 0)
        code, output = self.lint(tree, "Second", {"src/base/a.cpp": wrong})
        self.assertNotEqual(code, 0)
        self.assertIn("readability-identifier-naming", output)

    def test_a_subject_of_a_commit_is_short(self):
        tree = {"src/base/a.cpp": CLEAN, "tests/base/a.cpp": TESTS}
        self.assertEqual(self.lint(tree, "s" * 71)[0], 0)
        code, output = self.lint(tree, "s" * 72)
        self.assertNotEqual(code, 0)
        self.assertIn("not as in:\n" + "s" * 72, output)

    def test_subjects_of_all_that_lands_are_short_however_it_is_called(self):
        tree = {"src/base/a.cpp": CLEAN, "tests/base/a.cpp": TESTS}
        for later, since, fine in [(29, "HEAD~1", False), (30, "HEAD~1", True), (31, "HEAD~31", True), (31, "HEAD~32", False)]:
            with self.subTest(f"{later} commits later, since {since}"):
                code, output = self.lint(tree, "s" * 72, later=later, since=since)
                self.assertEqual(code == 0, fine, output)

    def test_a_subject_of_a_merged_branch_is_short(self):
        tree = {"src/base/a.cpp": CLEAN, "tests/base/a.cpp": TESTS}
        self.assertEqual(self.lint(tree, "s" * 71, merged=True)[0], 0)
        code, output = self.lint(tree, "s" * 72, merged=True)
        self.assertNotEqual(code, 0)
        self.assertIn("not as in:\n" + "s" * 72, output)


if __name__ == "__main__":
    if not (tool("clang-format") and tool("clang-tidy")):
        sys.exit(77)
    unittest.main()
