import unittest

from tool_case import ToolCase


class CheckPurity(ToolCase):
    tool = "check_purity"

    def test_words(self):
        clean = "#pragma once\nint width = 3;\n"
        self.check([
            ("clean", {"src/models/a.h": clean}, 0, "0/0/0 per 1,000 lines"),
            ("conditional", {"src/models/a.h": "#ifdef X\n#endif\n"}, 1, "500/0/0"),
            ("device", {"src/optim/a.cpp": clean + "auto d = options.gpu_index;\n"}, 1, "src/optim/a.cpp:3: gpu"),
            ("parallel", {"src/models/a.cpp": "int numThreads = 2;\n"}, 1, "0/0/1e+03"),
            ("a header", {"src/models/a.cpp": "#include <thread>\n"}, 1, ":1: thread"),
            ("comments decide nothing", {"src/models/a.h": "// knows no device\n/* nor thread */\n"}, 0, "0/0/0"),
            ("other folders", {"src/backend/a.h": "int device;\n"}, 0, "0/0/0"),
            ("parts of words", {"src/models/a.h": "int deviceless, mesher, cpuid_like;\n"}, 0, "0/0/0"),
        ])


if __name__ == "__main__":
    unittest.main()
