import unittest

from tool_case import ToolCase

TESTS = {"tests/a/b_test.cpp": "TEST(Suite, HoldsWater) {}\nTEST_F(\n    Other, FloatsToo) {}\n",
         "tests/cli/c.py": "class Outputs(Contract):\n    def test_a_link(self):\n        pass\n"}


def page(named, table="| what | shown by |\n|---|---|\n"):
    return {**TESTS, "docs/reliability.md": f"{table}| it holds | {named} |\n"}


class CheckDocs(ToolCase):
    tool = "check_docs"

    def test_names_of_tests(self):
        self.check([
            ("all there", page("Suite.HoldsWater, Other.*, Suite.Holds*; c: Outputs.test_a_link, test_a_link"), 0, "agree"),
            ("no such test", page("Suite.HoldsWine"), 1, "docs/reliability.md:3: no test is called Suite.HoldsWine"),
            ("of another suite", page("Other.HoldsWater"), 1, "Other.HoldsWater"),
            ("no such suite", page("Suit.*"), 1, "Suit.*"),
            ("no such beginning", page("Suite.Floats*"), 1, "Suite.Floats*"),
            ("no such script's test", page("Outputs.test_a_pipe"), 1, "Outputs.test_a_pipe"),
            ("no such test of any class", page("c test_a_pipe"), 1, "test_a_pipe"),
            ("files and numbers are no tests", page("tests/faults/kill.py, 1.5, docs/Other.md"), 0, "agree"),
        ])

    def test_tables(self):
        self.check([
            ("a cell too many", {**TESTS, "docs/a.md": "| a | b |\n|---|---|---|\n"}, 1, "docs/a.md:2: 3 cells under a header of 2"),
            ("a cell too few", {**TESTS, "README.md": "| a | b |\n|---|\n"}, 1, "README.md:2: 1 cells"),
            ("bars in code", {**TESTS, "docs/a.md": "| `a|b` | b |\n|:---|---:|\n"}, 0, "agree"),
        ])


if __name__ == "__main__":
    unittest.main()
