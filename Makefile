# Two commands do everything on a fresh Debian machine: `make run` and `make test`.
# `make help` lists the rest. The build itself is CMake's; see CMakePresets.json.

JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local

# `make run RUN="train vgg11 --data synthetic --budget 50%"` runs that instead.
RUN ?=

# What `make gpu-bundle` builds with.
CUDA = 12 installed

sources = $(shell find src cli reproduce examples tests bench -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh')

# Sanitizers of GCC 12 cannot place their shadow memory under the address randomisation of some
# kernels; setarch turns it off where that is permitted.
no_aslr := $(shell setarch --addr-no-randomize true 2> /dev/null && echo setarch --addr-no-randomize)

build_in = cmake --build build/$(1) --parallel $(JOBS) --target $(2)
tests_in = ctest --preset $(1) --parallel $(JOBS)

.DEFAULT_GOAL := help
.NOTPARALLEL:

## run: install what is missing, build the program, train a transformer on text in less memory than it
##   needs, where the kernel ends the same training without Tidepool's plan (as root or under systemd)
.PHONY: run
run: release
	$(if $(RUN),build/release/cli/tidepool $(RUN),scripts/limited_run.sh build/release/cli/tidepool build/spill)

## test: install what is missing, build, pass the tests of the release build
.PHONY: test
test:
	@scripts/in_parts.sh test build-tests run-tests

## check: that, and all others: on the CUDA stand-in, with libtorch, under sanitizers, under the fuzzer,
##   the PyTorch package on a device with CUDA's rules (python/simgpu)
.PHONY: check
check:
	@scripts/install_dependencies.sh --wheel
	@mkdir -p build
	@scripts/torch_environment.sh > build/torch-environment.log 2>&1 & # for run-simgpu, while others build
	@scripts/in_parts.sh check build-tests run-tests build-torch run-torch build-standin run-standin \
	  build-asan-ubsan run-asan-ubsan build-tsan run-tsan run-simgpu

## release: build the program in build/release
.PHONY: release
release:
	@scripts/install_dependencies.sh
	@scripts/configure.sh release
	$(call build_in,release,tidepool)

## torch: install libtorch (450 MB), build the program with the planners dqn and dqn-swap
.PHONY: torch
torch:
	@scripts/install_dependencies.sh --torch
	@scripts/configure.sh release TIDEPOOL_TORCH=ON
	$(call build_in,release,tidepool)

## build-tests, run-tests, ...: one part of `make check` by itself
.PHONY: build-tests run-tests build-torch run-torch build-standin run-standin
build-tests:
	@scripts/install_dependencies.sh --test
	@scripts/configure.sh release BUILD_TESTING=ON
	$(call build_in,release,all_tests)
run-tests:
	$(call tests_in,release)

build-torch:
	@scripts/install_dependencies.sh --test --torch
	@scripts/configure.sh release BUILD_TESTING=ON TIDEPOOL_TORCH=ON
	$(call build_in,release,all_tests)
run-torch:
	$(call tests_in,torch)

# Where nvcc, cuDNN and cuBLAS are installed; elsewhere there is nothing to build.
build-standin:
	@scripts/install_dependencies.sh --test
	@scripts/configure.sh release BUILD_TESTING=ON TIDEPOOL_CUDA=INSTALLED
	$(call build_in,release,standin_tests)
run-standin:
	$(call tests_in,standin)

.PHONY: build-asan-ubsan run-asan-ubsan build-tsan run-tsan
build-asan-ubsan:
	@scripts/install_dependencies.sh --test --clang
	@scripts/configure.sh asan-ubsan
	$(call build_in,asan-ubsan,all_tests fuzz_targets)
build-tsan:
	@scripts/install_dependencies.sh --test
	@scripts/configure.sh tsan
	$(no_aslr) $(call build_in,tsan,all_tests)
run-asan-ubsan run-tsan: run-%:
	$(no_aslr) $(call tests_in,$*)

## check-includes: the include directions between folders, no option names in libraries, lengths, names
.PHONY: check-includes
check-includes:
	python3 tools/check_includes.py
	python3 tools/check_imports.py
	python3 tools/check_messages.py
	python3 tools/check_sizes.py
	python3 tools/check_names.py

## lint: include directions, clang-format and clang-tidy, every finding an error
.PHONY: lint
lint: check-includes
	@scripts/install_dependencies.sh --lint --test
	clang-format --dry-run -Werror $(sources)
	cmake --preset release -B build/lint -D BUILD_TESTING=ON -D TIDEPOOL_BENCHMARKS=ON \
	  -D TIDEPOOL_CUDA=INSTALLED -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON -D TIDEPOOL_UNITY=OFF -D TIDEPOOL_WERROR=OFF
	run-clang-tidy -quiet -j $(JOBS) -p build/lint '$(CURDIR)/(src|cli|reproduce|examples|tests|bench)/.*\.cpp$$'

## format: rewrite all sources in the project's style
.PHONY: format
format:
	@scripts/install_dependencies.sh --lint
	clang-format -i $(sources)

## bench: build and run every benchmark
.PHONY: bench
bench:
	@scripts/install_dependencies.sh --bench
	@scripts/configure.sh release TIDEPOOL_BENCHMARKS=ON
	$(call build_in,release,benchmarks)
	for b in build/release/bench/bench_*; do [ ! -x $$b ] || $$b || exit 1; done

## gpu-bundle: programs and tests for a GPU machine in build/gpu-bundle, under 60 MiB, for CUDA 12
##   (fetched) and the installed CUDA; `make gpu-bundle CUDA=12` or `CUDA=installed` makes one of them,
##   the first also where no CUDA is installed
.PHONY: gpu-bundle
gpu-bundle:
	@scripts/install_dependencies.sh --gpu-bundle --test
	JOBS=$(JOBS) scripts/gpu_bundle.sh build/gpu-bundle $(CUDA)

## torch-wheel: the Python wheel tidepool-torch in build/wheel, for Linux systems with glibc 2.31 or later
.PHONY: torch-wheel
torch-wheel:
	@scripts/install_dependencies.sh --wheel
	JOBS=$(JOBS) scripts/torch_wheel.sh build/wheel
	scripts/torch_wheel_test.sh build/wheel

## torch-gpu-bundle: the wheel and ten minutes of checks for a machine with a GPU and torch, in
##   build/torch-gpu-bundle; there: ./run.sh FOLDER
.PHONY: torch-gpu-bundle
torch-gpu-bundle: torch-wheel
	scripts/torch_gpu_bundle.sh build/torch-gpu-bundle build/wheel

## torch-test: the tests of the Python package with PyPI's torch, in an environment outside the tree, of
##   5 GB, which TIDEPOOL_TORCH_VENV names; `make torch-test TESTS="-k verify"` runs some of them
TESTS ?=
.PHONY: torch-test
torch-test: release
	@scripts/install_dependencies.sh --wheel
	$(call build_in,release,tidepool_shared)
	scripts/torch_test.sh $(TESTS)
	$(if $(TESTS),,TIDEPOOL_ATTACKS=1 scripts/simgpu_test.sh)

# With PyPI's torch, which is fetched once, outside of the tree; the library and the program are those of
# run-tests.
.PHONY: run-simgpu
run-simgpu: release
	@scripts/install_dependencies.sh --wheel
	$(call build_in,release,tidepool_shared)
	scripts/simgpu_test.sh

## torch-native: the Python package's optional native module in build/torch-native, for the torch of that
##   environment
.PHONY: torch-native
torch-native:
	scripts/torch_native.sh build/torch-native

## install: build and install the program and the libraries under PREFIX (/usr/local)
.PHONY: install
install:
	@scripts/install_dependencies.sh
	@scripts/configure.sh release
	$(call build_in,release,install_parts)
	cmake --install build/release --prefix $(PREFIX)

## clean: remove the builds
.PHONY: clean
clean:
	rm -rf build/release build/asan-ubsan build/tsan build/lint build/gpu-* build/wheel build/wheel-tools build/torch-*

.PHONY: help
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)
