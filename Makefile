# A thin front for the CMake presets. `make` alone builds; `make help` lists the targets.
# What builds first installs the Debian packages it misses (tools/debian_packages.txt).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: deps build test test-long test-cluster gpu-test demo bench compare package format lint fuzz asan tsan mutate zoo clean help

PROGRAM := build/release/vitrail
# ctest reports what failed and closes with its summary line.
# Some tests wait for processes that they have stopped or killed: one more than there are cores keeps these busy.
CTEST := ctest --output-on-failure -j3
BENCH_ARGS ?= -m deit_tiny_patch16_224
COMPARE_ARGS ?= --model vit_tiny_patch16_224 vit_base_patch16_224 --batch 1
FUZZ_RUNS ?= 100000
MUTATE_ARGS ?=

deps:
	@tools/install_deps.sh build test

build: deps  ## build the program, build/release/vitrail
	cmake --preset release
	cmake --build --preset release --target vitrail_cli

test: deps  ## build everything and run the tests
	@tools/test_python.sh
	cmake --preset release
	cmake --build --preset release
	$(CTEST) --test-dir build/release
	@tools/slow_tests.sh build/release

test-long: deps  ## the tests with their long variants: every file operation disturbed, hundreds of kills
	cmake --preset release
	cmake --build --preset release
	VITRAIL_TEST_LONG=1 $(CTEST) --test-dir build/release

# Minutes, as root: a requeued job waits in Slurm's queue, and the image builds the program anew. What is not installed
# (tools/install_deps.sh cluster) is skipped by name.
CLUSTER_CONFIG := tests/faults/kill_run.json
CHAOS_SEED ?= 1
test-cluster: build  ## Slurm on two nodes, the container on two pods, a short round of faults, where their packages are installed
	cmake --build --preset release --target vitrail_mpi test_dist
	@failed=0; \
	for test in "manifest_test.py $(PROGRAM)" "two_nodes_test.py $(PROGRAM) $(CLUSTER_CONFIG)" \
	    "chaos.py $(PROGRAM) $(CLUSTER_CONFIG) --seed $(CHAOS_SEED)" \
	    "slurm_test.py $(PROGRAM) $(CLUSTER_CONFIG)" "container_test.py $(CLUSTER_CONFIG)"; do \
	  rc=0; python3 -B tests/cluster/$$test || rc=$$?; \
	  [[ $$rc -eq 0 || $$rc -eq 77 ]] || failed=1; \
	done; exit $$failed

gpu-test: deps  ## build everything and run the tests that need a GPU, on a host that has one
	cmake --preset release
	cmake --build --preset release
	tools/gpu_test.sh build/release

demo: build  ## train a small ViT on Fashion-MNIST, then classify photographs with DeiT-Tiny
	@tools/install_deps.sh demo
	tools/demo.sh $(PROGRAM)

bench: build  ## throughput and latency of inference here (BENCH_ARGS="-m MODEL ...")
	$(PROGRAM) bench infer $(BENCH_ARGS)

compare: build  ## against torch, onnxruntime (plain and optimized) and OpenVINO (COMPARE_ARGS="--model ..."; PYTHON: one that has them)
	@python=$$(PYTHON="$(PYTHON)" tools/bench_python.sh); \
	"$$python" bench/compare_peers.py --vitrail $(PROGRAM) $(COMPARE_ARGS)

package: deps  ## relocatable tarball and .deb in dist/
	@tools/install_deps.sh package
	cmake --preset release
	cmake --build --preset release
	cd build/release && cpack -B $(CURDIR)/dist
	rm -rf dist/_CPack_Packages

format:  ## clang-format every source file
	@tools/install_deps.sh lint
	tools/lint.sh format

lint: deps  ## clang-format, clang-tidy and the project's own checks (CHANGED=1: only files changed since HEAD)
	@tools/install_deps.sh lint
	cmake --preset $(if $(CHANGED),lint,lint-whole)
	tools/lint.sh check $(if $(CHANGED),--changed)

fuzz: deps  ## every fuzz target under ASan and UBSan for FUZZ_RUNS inputs
	@tools/install_deps.sh fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz --target fuzzers
	tools/run_fuzz.sh build/fuzz $(FUZZ_RUNS)

# Under sanitizers an allocation that cannot be had fails as it does elsewhere: tests ask for such on purpose. g++'s stack
# for uses after return is aligned too little for AVX-512 (docs/reliability.md).
asan: deps  ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake --preset asan-ubsan
	cmake --build --preset asan-ubsan
	ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=0 $(CTEST) --test-dir build/asan-ubsan

tsan: deps  ## the tests under ThreadSanitizer
	cmake --preset tsan
	cmake --build --preset tsan
	TSAN_OPTIONS=allocator_may_return_null=1 $(CTEST) --test-dir build/tsan

ZOO_PYTHON ?= build/zoo/venv/bin/python
zoo: build  ## 1,308 odd models saved by timm, transformers and torchvision: the same answers? (ZOO_PYTHON: one that has them)
	@test -x $(ZOO_PYTHON) || (python3 -m venv build/zoo/venv && \
	  build/zoo/venv/bin/pip install -q -r tools/zoo/requirements.txt)
	$(ZOO_PYTHON) tools/zoo/make_zoo.py build/zoo/models
	python3 tools/zoo/run_zoo.py build/zoo/models --vitrail $(PROGRAM)

mutate: deps  ## which of the faults in tools/mutate.d the tests notice: hours (MUTATE_ARGS="--only ops --jobs 8")
	tools/mutate build
	tools/mutate run --results build/mutate/results.jsonl $(MUTATE_ARGS)

clean:  ## remove what was built
	rm -rf build dist demo-out

help:  ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
