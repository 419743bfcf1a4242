import unittest

from tool_case import ToolCase

COMMA, QUESTION = "a comma joins two statements", "?: stands for an if"


class CheckStatements(ToolCase):
    tool = "check_statements"

    def inside(self, *statements):
        return {"src/base/a.cpp": "void f(int a) {\n  " + "\n  ".join(statements) + "\n}\n"}

    def test_faults(self):
        for statement, said in [
            ("a = 1, b = 2;", COMMA),
            ("x.a = p[0], x.b = f(1, 2);", COMMA),
            ("call->rows = n, call->width = g<int, 2>(n);", COMMA),
            ("if (a) b = 1, c = 2;", COMMA),
            ("for (int i = 0; i < 3; ++i) s += i, ++n;", COMMA),
            ("else\n    ++n, s = 2;", COMMA),
            ("f(), g();", COMMA),
            ("*p = 1, q[2] = 3;", COMMA),
            ("++a, --b;", COMMA),
            ("return f(a), true;", COMMA),
            ("const auto h = [&] { f(), g(); };", COMMA),
            ("run([&](int i) { s[i] = 1, t[i] = 2; });", COMMA),
            ("case 3: a = 1, b = 2;", COMMA),
            ("a ? f() : g();", QUESTION),
            ("for (int i : all)\n    seen(i) ? f(i) : g(i);", QUESTION),
            ("r % 2 ? odd = v : even = v;", QUESTION),
            ("default:\n    control ? out += 1 : out += 2;", QUESTION),
        ]:
            with self.subTest(statement):
                code, output = self.run_on(self.inside(statement))
                self.assertIn("src/base/a.cpp:2: " + said, output)
                self.assertEqual(code, 1)

    def test_what_is_no_fault(self):
        for statement in [
            "int a = 1, b = 2;",
            "const double x = f(1, 2), y = g<int, 2>(x);",
            "std::map<std::string, std::vector<int>, std::less<>> names, more;",
            "float *low, *high;",
            "static constexpr int kA = 1, kB = 2;",
            "for (int i = 0, j = 9; i < j; ++i, --j) f(i, j);",
            "x = {1, 2, 3};",
            "f({1, 2}, [&](int a, int b) { return a + b; }, 3);",
            "struct { int a, b; } one{1, 2}, two{};",
            "x = a ? f() : g();",
            "const int y = a ? 1 : 2;",
            "return a ? f(1, 2) : g();",
            "out << (a ? 1 : 2);",
            'say("one, two ? three : four");',
            "kernel<<<blocks, threads, 0, stream>>>(call);",
            "auto [a, b] = f();",
            "throw Error(kind, text);",
            "f();  // so, it is ? yes : no",
        ]:
            with self.subTest(statement):
                code, output = self.run_on(self.inside(statement))
                self.assertEqual(code, 0, output)

    def test_where(self):
        comma = "void f() {\n  a = 1, b = 2;\n}\n"
        self.check([
            ("examples", {"examples/a.cpp": comma}, 1, "examples/a.cpp:2"),
            ("headers", {"include/vitrail/a.h": comma}, 1, "include/vitrail/a.h:2"),
            ("kernels of a GPU", {"src/backend/cuda/device/a.cuh": comma}, 0, "0 faults"),
            ("kernels of a processor", {"src/backend/cpu/gemm/isa/a.h": comma}, 1, "src/backend/cpu/gemm/isa/a.h:2"),
            ("launches", {"src/backend/cpu/gemm/a.cpp": comma, "src/backend/cuda/b.cpp": comma}, 1, "2 faults"),
            ("members and initializers",
             {"src/base/a.h": "class A {\n public:\n  A() : a_(1), b_(2) {}\n  enum class E { kA, kB };\n\n private:\n  int a_, b_;\n};\n"},
             0, "1 files, 0 faults"),
        ])


if __name__ == "__main__":
    unittest.main()
