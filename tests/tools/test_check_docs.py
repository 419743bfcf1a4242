import unittest

from tool_case import ToolCase

TESTS = {"tests/a/b_test.cpp": "TEST(Suite, HoldsWater) {}\nTEST_F(\n    Other, FloatsToo) {}\n",
         "tests/cli/c.py": "class Outputs(Contract):\n    def test_a_link(self):\n        pass\n"}


def page(named, table="| what | shown by |\n|---|---|\n"):
    return {**TESTS, "docs/reliability.md": f"{table}| it holds | {named} |\n"}


def audit(named):
    return page(f"{named} | seen: exit 0", "| | now | shown by | at 19057f3 |\n|---|---|---|---|\n| D1 ")


def architecture(folders="cli, io", drawn="cli, io", said="2 files, 1 of them of `cli`.", walk="`cli/run` → `io/open`",
                 there=("cli/run.cpp", "io/open.h")):
    table = "".join(f"| `{name}` | things |\n" for name in folders.split(", "))
    boxes = "".join(f'<text x="1">{name}</text>' for name in drawn.split(", "))
    return {**TESTS, **{f"src/{name}": "" for name in there}, "docs/images/architecture.svg": f"<svg>{boxes}</svg>",
            "docs/architecture.md": f"## Folders\n{table}\n## The way of one image\n| it goes | {walk} |\n\n{said}\n\n"
                                    "## Types\n| `io/else` |\n"}


def long_walk(count, of_cli):
    names = [f"cli/a{i}" for i in range(of_cli)] + [f"io/b{i}" for i in range(count - of_cli)]
    return architecture(said=f"{count} files, {of_cli} of them of `cli`.", walk=" → ".join(f"`{n}`" for n in names),
                        there=[n + ".cpp" for n in names])


HEADER = """/// \\file
#pragma once

namespace vitrail {

/// A box.
class VITRAIL_API Box {
 public:
  /// Makes one.
  Box(int side);
  Box(double side);
  ~Box();
  Box(Box&& other) noexcept;
  Box& operator=(const Box&) = delete;
  const char* what() const noexcept override { return "box"; }
  /// Returns
  /// the sides.
  std::vector<int> sides(std::span<const int> some = {},
                         int more = 3) const {
    if (more) return {};
    return {};
  }
  int side() const { return side_; }  ///< of it

 private:
  int side_ = 0;
};

struct Parts;  // elsewhere

/// How it is.
enum class State {
  kOpen,  ///< one can look in
  kShut   ///< one cannot
};

/// What it can be told.
struct Hooks {
  std::function<void(int)> on_open = {};  ///< at once
  std::function<void(int)> on_shut = {};  ///< later
};

/// Opens it.
VITRAIL_API void open(const Box& box,
                      bool wide = false);

}  // namespace vitrail
"""


def header(was="", now=""):
    assert was in HEADER
    return {**TESTS, "include/vitrail/box.h": HEADER.replace(was, now, 1)}


class CheckDocs(ToolCase):
    tool = "check_docs"

    def test_public_headers(self):
        self.check([
            ("all described", header(), 0, "agree"),
            ("a class", header("/// A box.\n"), 1, "include/vitrail/box.h:6: no comment describes class VITRAIL_API Box {"),
            ("a constructor", header("  /// Makes one.\n"), 1, "box.h:9: no comment describes Box(int side);"),
            ("a function with a body", header("  /// Returns\n  /// the sides.\n", "\n"), 1, "box.h:17: no comment describes std::vector<int> sides("),
            ("an accessor", header("  ///< of it"), 1, "box.h:23: no comment describes int side() const"),
            ("a comment that Doxygen leaves out", header("///< of it", "// of it"), 1, "int side() const"),
            ("an enum", header("/// How it is.\n"), 1, "enum class State {"),
            ("a value of an enum", header("  ///< one can look in"), 1, "kOpen,"),
            ("the last value of an enum", header("   ///< one cannot"), 1, "kShut"),
            ("a field behind one of its type", header("  ///< later"), 1, "on_shut"),
            ("a free function", header("/// Opens it.\n"), 1, "VITRAIL_API void open("),
            ("another function under one comment", header("  Box(double side);", "  int more() const;"), 1, "box.h:11: no comment describes int more() const;"),
            ("what is private", header(" private:\n", " private:\n  int more() const;\n"), 0, "agree"),
        ])

    def test_names_of_tests(self):
        self.check([
            ("all there", page("Suite.HoldsWater, Other.*, Suite.Holds*; c: Outputs.test_a_link, test_a_link"), 0, "agree"),
            ("no such test", page("Suite.HoldsWine"), 1, "docs/reliability.md:3: no test is called Suite.HoldsWine"),
            ("of another suite", page("Other.HoldsWater"), 1, "Other.HoldsWater"),
            ("no such suite", page("Suit.*"), 1, "Suit.*"),
            ("no such beginning", page("Suite.Floats*"), 1, "Suite.Floats*"),
            ("no such script's test", page("Outputs.test_a_pipe"), 1, "Outputs.test_a_pipe"),
            ("no such test of any class", page("c test_a_pipe"), 1, "test_a_pipe"),
            ("of four columns the third", audit("Suite.HoldsWine"), 1, "docs/reliability.md:3: no test is called Suite.HoldsWine"),
            ("a script's test in the third", audit("c: Outputs.test_a_pipe"), 1, "Outputs.test_a_pipe"),
            ("all of the third there", audit("Suite.HoldsWater; c: Outputs.test_a_link"), 0, "agree"),
            ("a program of tests", audit("`test_a --gtest_filter='*Water*'`"), 0, "agree"),
            ("no such program of tests", audit("`test_b --gtest_filter='*Water*'`"), 1, "no test is called test_b"),
            ("files and numbers are no tests", page("tests/faults/kill.py, 1.5, docs/Other.md"), 0, "agree"),
        ])

    def test_tables(self):
        self.check([
            ("a cell too many", {**TESTS, "docs/a.md": "| a | b |\n|---|---|---|\n"}, 1, "docs/a.md:2: 3 cells under a header of 2"),
            ("a cell too few", {**TESTS, "README.md": "| a | b |\n|---|\n"}, 1, "README.md:2: 1 cells"),
            ("bars in code", {**TESTS, "docs/a.md": "| `a|b` | b |\n|:---|---:|\n"}, 0, "agree"),
        ])

    def test_architecture(self):
        self.check([
            ("all there", architecture(), 0, "agree"),
            ("no row of a folder", architecture(folders="cli"), 1, "the table of folders has no row io"),
            ("no box of a folder", architecture(drawn="io"), 1, "architecture.svg has no box cli"),
            ("a file that is gone", architecture(there=("cli/run.cpp", "io/a.h")), 1, "docs/architecture.md:5: there is no src/io/open"),
            ("one more than it says", architecture(said="1 files, 1 of them of `cli`."), 1, "lists 2 files, 1 of cli"),
            ("another number of cli", architecture(said="2 files, 2 of them of `cli`."), 1, "lists 2 files, 1 of cli"),
            ("no number", architecture(said="Few files."), 1, "the walk says nothing and lists 2 files"),
            ("as long as may be", long_walk(30, 6), 0, "agree"),
            ("too long", long_walk(31, 6), 1, "the walk has 31 files, 6 of cli; at most 30 and 6"),
            ("too much of cli", long_walk(30, 7), 1, "the walk has 30 files, 7 of cli"),
        ])


if __name__ == "__main__":
    unittest.main()
