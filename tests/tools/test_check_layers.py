import unittest

from tool_case import ToolCase


class CheckLayers(ToolCase):
    tool = "check_layers"

    def test_includes(self):
        ok, bad = "0 faults", "may not include"
        self.check([
            ("down", {"src/graph/a.h": '#include "tensor/b.h"\n'}, 0, ok),
            ("up", {"src/tensor/a.h": '\n#include "graph/b.h"\n'}, 1, 'src/tensor/a.h:2: tensor may not'),
            ("base is open", {"src/models/a.cpp": '#include "base/error.h"\n'}, 0, ok),
            ("base and the public error", {"src/base/a.h": '#include "vitrail/error.h"\n'}, 0, ok),
            ("base and the rest of the API", {"src/base/a.h": '#include "vitrail/model.h"\n'}, 1, bad),
            ("base sees nothing", {"src/base/a.h": '#include "tensor/shape.h"\n'}, 1, bad),
            ("io and the table", {"src/io/a.cpp": '#include "models/vit_config.h"\n'}, 0, ok),
            ("io and the model", {"src/io/a.cpp": '#include "models/vit.h"\n'}, 1, bad),
            ("the interface", {"src/runtime/a.cpp": '#include "backend/backend.h"\n'}, 0, ok),
            ("a backend's insides", {"src/runtime/a.cpp": '#include "backend/cpu/gemm.h"\n'}, 1, bad),
            ("a backend by name", {"src/api/a.cpp": '#include "backend/cpu/kernels.h"\n'}, 1, bad),
            ("the registry", {"src/api/a.cpp": '#include "backend/registry.h"\n'}, 0, ok),
            ("the yardstick", {"src/runtime/a.cpp": '#include "backend/ref/kernels.h"\n'}, 0, ok),
            ("one beside another", {"src/backend/cpu/a.cpp": '#include "backend/ref/kernels.h"\n'}, 0, ok),
            ("a backend's host facts", {"src/plan/a.cpp": '#include "backend/cpu/host/levels.h"\n'}, 0, ok),
            ("launching a trainer", {"src/launch/a.cpp": '#include "train/world.h"\n#include "dist/liveness/watch.h"\n'}, 0, ok),
            ("launch and the commands", {"src/launch/a.cpp": '#include "cli/options.h"\n'}, 1, "launch may not include"),
            ("own subfolder", {"src/backend/cpu/a.cpp": '#include "backend/cpu/isa/gemm.h"\n'}, 0, ok),
            ("the sibling", {"src/backend/cpu/a.cpp": '#include "backend/cuda/gemm.h"\n'}, 1, bad),
            ("the table of backends", {"src/backend/a.cpp": '#include "backend/cpu/kernels.h"\n'}, 0, ok),
            ("cli and the rooms below", {"src/cli/a.cpp": '#include "measure/bench.h"\n#include "vitrail/vitrail.h"\n'}, 0, ok),
            ("cli and a pass", {"src/cli/a.cpp": '#include "passes/fuse.h"\n'}, 1, "cli may not include"),
            ("cli and an op", {"src/cli/a.cpp": '#include "ops/linear.h"\n'}, 1, "cli may not include"),
            ("cli and the graph", {"src/cli/a.h": '#include "graph/op.h"\n'}, 1, "cli may not include"),
            ("cli and the runtime", {"src/cli/a.cpp": '#include "runtime/executor.h"\n'}, 1, "cli may not include"),
            ("cli and a backend", {"src/cli/a.cpp": '#include "backend/cpu/kernels.h"\n'}, 1, "cli may not include"),
            ("measuring by the registry", {"src/measure/a.cpp": '#include "backend/registry.h"\n'}, 0, ok),
            ("measuring a backend by name", {"src/measure/a.cpp": '#include "backend/cpu/host/peak.h"\n'}, 1, bad),
            ("the public face", {"include/vitrail/a.h": '#include "base/error.h"\n'}, 1, bad),
            ("no layer", {"src/misc/a.h": '#include "base/error.h"\n'}, 1, "no layer"),
            ("commented out", {"src/tensor/a.h": '// #include "graph/b.h"\n/*\n#include "graph/b.h"\n*/\n'}, 0, ok),
        ])

    def test_vendor_headers(self):
        self.check([
            ("CUDA at home", {"src/backend/cuda/a.cpp": "#include <cuda_runtime.h>\n"}, 0, "0 faults"),
            ("CUDA elsewhere", {"src/runtime/a.cpp": "#include <cuda_runtime.h>\n"}, 1, "CUDA header"),
            ("MPI", {"src/dist/threads/a.cpp": "#include <mpi.h>\n"}, 1, "MPI header"),
            ("BLAS at home", {"src/backend/cpu/a.cpp": "#include <cblas.h>\n"}, 0, "0 faults"),
            ("BLAS elsewhere", {"src/ops/a.cpp": "#include <cblas.h>\n"}, 1, "BLAS header"),
            ("images", {"src/cli/a.cpp": "#include <png.h>\n"}, 1, "image header"),
        ])

    def test_a_type_has_one_header(self):
        header = "namespace vitrail%s {\n\nstruct Times {\n  int a;\n};\n\n}  // namespace vitrail\n"
        own, other = header % "", header % "::cli"
        self.check([
            ("another namespace", {"src/plan/a.h": own, "src/cli/b.h": other}, 0, "0 faults"),
            ("twice", {"src/plan/a.h": own, "src/train/b.h": own}, 1,
             "src/train/b.h:3: vitrail::Times is defined in src/plan/a.h, too"),
            ("told of beforehand", {"src/plan/a.h": own, "src/train/b.h": "namespace vitrail {\nstruct Times;\n}\n"}, 0, "0 faults"),
            ("specialised", {f"src/{f}/a.h": "template <>\nstruct Names<int> {\n};\n" for f in ("plan", "train")}, 0, "0 faults"),
        ])

    def test_the_kind_of_a_device_is_tested_by_backends_alone(self):
        bad = "src/plan/a.cpp:2: tests the kind of a device"
        tests = ["parse_cuda(name)", "file.is_gpu()", "kind == DeviceKind::kCuda", 'info.backend == "cpu"', 'f("cuda")',
                 '"cpu" != name', "info.compute > 0", "cuda_device(0)", "cuda_report ()", 'options.text("backend") != "ref"', '"ref" == name', 'find_entry("cpu").find({})',
                 'device_here( "cpu", 0, "")']
        self.check([(test, {"src/plan/a.cpp": f"\nbool x = {test};\n"}, 1, bad) for test in tests])
        self.check([
            ("a backend", {"src/backend/a.cpp": "bool x = is_gpu();\n", "src/backend/cuda/a.cpp": 'f("cuda");\n'}, 0, "0 faults"),
            ("DeepSpeed's words", {"src/train/deepspeed/a.cpp": 'bool x = device == "cpu";\n'}, 0, "0 faults"),
            ("facts and names", {"src/plan/a.cpp": 'bool x = row.on_host;  // "cuda" is not\nf("cpu");\n'
                                 'g("needs --device cuda");\nh(device.compute);\n'}, 0, "0 faults"),
        ])

    def test_commands_name_devices_and_backends(self):
        bad = "src/cli/a.cpp:2: reaches past api and plan"
        uses = ["f(find_backend(name))", "find_entry(name).types", "g(BackendEntry())", "parse_device_name(device).entry->on_host",
                "static_cast<const Backend&>(x)", "(const Backend *)x", "plan().program.nodes.size()", "plan->program.nodes", "host_entry().name"]
        self.check([(use, {"src/cli/a.cpp": f"\nauto x = {use};\n"}, 1, bad) for use in uses])
        self.check([
            ("facts", {"src/cli/a.cpp": 'auto x = named_device(d).on_host;\nauto y = plan().node_count();\nauto z = options.text("find_entry");\n'
                       "StudyPlaces p{.program = path};\n"}, 0, "0 faults"),
            ("below", {"src/measure/a.cpp": "auto x = find_backend(name).traits();\nauto n = plan.program.nodes.size();\n"}, 0, "0 faults"),
        ])

    def test_surface(self):
        self.check([
            ("print", {"src/io/a.cpp": 'void f() {\n  printf("x");\n}\n'}, 1, "src/io/a.cpp:2: prints"),
            ("cout", {"src/io/a.cpp": "void f() { std::cout << 1; }\n"}, 1, "prints"),
            ("exit", {"src/plan/a.cpp": "void f() { std::exit(1); }\n"}, 1, "ends the process"),
            ("environment", {"src/base/a.cpp": 'auto x = getenv("X");\n'}, 1, "reads the environment"),
            ("cli may", {"src/cli/a.cpp": 'auto x = getenv("X");\nvoid f() { printf("x"); exit(1); }\n'}, 0, "0 faults"),
            ("launch ends processes", {"src/launch/a.cpp": 'auto x = getenv("X");\nvoid f() { _exit(1); }\n'}, 0, "0 faults"),
            ("launch prints nothing", {"src/launch/a.cpp": 'void f() { printf("x"); }\n'}, 1, "prints: printf"),
            ("likenesses", {"src/base/a.cpp": 'int n = snprintf(b, 1, "printf(");  // exit(1)\n'
                            "int c = exit_code(kind);\n[[gnu::format(printf, 1, 2)]] void strf();\n"}, 0, "0 faults"),
        ])


if __name__ == "__main__":
    unittest.main()
