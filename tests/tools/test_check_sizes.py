import unittest

from tool_case import ToolCase


def lines(count):
    return "int x;\n" * count


def function(count, opening="int f(int a) {"):
    """A function of `count` lines."""
    return opening + "\n" + "  if (a) { a = 1; }\n" * (count - 2) + "}\n"


class CheckSizes(ToolCase):
    tool = "check_sizes"

    def with_tests(self, text):
        return {"src/base/a.h": text, "tests/base/a.cpp": lines(300)}

    def test_files(self):
        self.check([
            ("small", self.with_tests(lines(300)), 0, "median of src/ 300 lines, tests/source 1.00, 0 faults"),
            ("too large", self.with_tests(lines(301)), 1, "src/base/a.h: the file has 301 lines, at most 300"),
            ("a large test", {"tests/a.cpp": lines(300)}, 0, "0 faults"),
            ("too large a test", {"tests/a.cpp": lines(301)}, 1, "tests/a.cpp: the file has 301 lines, at most 300"),
            ("too large a bench", {"bench/a.cpp": lines(301)}, 1, "bench/a.cpp: the file has 301 lines, at most 300"),
            ("untested", {"src/base/a.h": lines(100), "tests/a.cpp": lines(44)}, 1, "tests have 0.44 lines"),
            ("tested", {"src/base/a.h": lines(100), "tests/a.cpp": lines(45)}, 0, "tests/source 0.45"),
        ])

    def test_crumbs(self):
        def some(count, length):
            files = {f"src/base/a{i}.cpp": "// A reason.\n" + lines(length - 1) for i in range(count)}
            return {**files, **{f"tests/a{i}.cpp": lines(300) for i in range(6)}}

        self.check([
            ("a few", some(93, 29), 0, "93 of src/ under 30 lines"),
            ("too many", some(94, 29), 1, "94 files of src/ have fewer than 30 lines, at most 93"),
            ("long enough", some(94, 30), 0, "0 of src/ under 30 lines"),
            ("no reason", {"src/base/a.cpp": lines(9), "tests/a.cpp": lines(9)}, 1, "src/base/a.cpp: 9 lines, and no comment"),
            ("half of a pair", {"src/base/a.cpp": lines(9), "src/base/a.h": lines(30), "tests/a.cpp": lines(30)}, 0, "1 of src/ under"),
            ("a pair", {"src/base/a.cpp": lines(9), "src/base/a.h": lines(29), "tests/a.cpp": lines(30)}, 1, "src/base/a.cpp: 9 lines, and"),
        ])

    def test_a_source_without_a_header_says_what_it_holds(self):
        def source(path, head=""):
            return {path: head + lines(40), "tests/a.cpp": lines(60)}

        bad = "no header has its name, and no comment at its head says what it holds"
        self.check([
            ("silent", source("src/passes/a.cpp"), 1, "src/passes/a.cpp: " + bad),
            ("of CUDA", source("src/backend/cuda/device/a.cu"), 1, "src/backend/cuda/device/a.cu: " + bad),
            ("an include first", source("src/passes/a.cpp", '#include "passes/passes.h"\n// Late.\n'), 1, bad),
            ("an empty comment", source("src/passes/a.cpp", "//\n"), 1, bad),
            ("said", source("src/passes/a.cpp", "// What it holds.\n"), 0, "0 faults"),
            ("in its header", {**source("src/passes/a.cpp"), "src/passes/a.h": lines(40)}, 0, "0 faults"),
            ("in another folder's", {**source("src/passes/a.cpp"), "src/plan/a.h": lines(40)}, 1, bad),
            ("a command", source("src/cli/cmd_a.cpp"), 0, "0 faults"),
            ("what commands share", source("src/cli/a.cpp"), 1, bad),
        ])

    def test_rooms(self):
        def commands(lines_each):
            return {**{f"src/cli/a{i}.h": lines(lines_each) for i in range(20)}, **{f"tests/a{i}.cpp": lines(300) for i in range(10)}}

        self.check([
            ("full", commands(275), 0, "0 faults"),
            ("a library in the commands", commands(276), 1, "src/cli: the folder has 5520 lines, at most 5500"),
            ("elsewhere", {name.replace("cli", "train"): text for name, text in commands(276).items()}, 0, "0 faults"),
        ])

    def test_functions(self):
        long = "f() has 81 lines, at most 80"
        self.check([
            ("short", self.with_tests(function(40)), 0, "0 faults"),
            ("long", self.with_tests(function(41)), 0, "src/base/a.h:1: warning: f() has 41 lines"),
            ("too long", self.with_tests(function(81)), 1, long),
            ("many short ones", self.with_tests(function(30) * 9), 0, "0 faults"),
            ("in a namespace", self.with_tests("namespace a {\n\n" + function(81) + "}\n"), 1, "a.h:3: " + long),
            ("a method", self.with_tests("class A : public B {\n public:\n" + function(81) + "};\n"), 1, "a.h:3: f()"),
            ("qualified", self.with_tests(function(81, "auto A::f(int a) const -> int {")), 1, "A::f() has 81"),
            ("a template", self.with_tests(function(81, "template <class T = int> T f(T a = {}) {")), 1, "has 81"),
            ("a constructor", self.with_tests(function(81, "A::A(int a) : x_{a}, y_(a), z_{a} {")), 1, "A::A() has 81"),
            ("an operator", self.with_tests(function(81, "bool operator==(const A& a) {")), 1, "has 81"),
            ("extern C", self.with_tests(function(81, 'extern "C" int f(int a) {')), 1, long),
            ("a table", self.with_tests("const int kRows[] = {\n" + "  1,\n" * 90 + "};\n"), 0, "0 faults"),
            ("a struct", self.with_tests("struct A {\n" + lines(90) + "};\n"), 0, "0 faults"),
            ("braces in text", self.with_tests('const char* a = "{(";\n// f() {\n' + lines(90)), 0, "0 faults"),
            ("a macro", self.with_tests("#define F(x) \\\n  do { \\\n  } while (x)\n" + lines(90)), 0, "0 faults"),
        ])


if __name__ == "__main__":
    unittest.main()
