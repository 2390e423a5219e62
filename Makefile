# Two commands do everything on a fresh Debian machine: `make run` and `make test`.
# `make help` lists the rest. The build itself is CMake's; see CMakePresets.json.

JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local

# `make run RUN="train vgg11 --budget 50%"` runs that instead.
RUN ?=

# What `make gpu-bundle` builds with.
CUDA = 12 installed

sources = $(shell find src cli examples tests bench -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh')

# Sanitizers of GCC 12 cannot place their shadow memory under the address randomisation of some
# kernels; setarch turns it off where that is permitted.
no_aslr := $(shell setarch --addr-no-randomize true 2> /dev/null && echo setarch --addr-no-randomize)
asan-ubsan tsan fuzz test-asan-ubsan test-tsan test-fuzz: wrap = $(no_aslr)

.DEFAULT_GOAL := help
.NOTPARALLEL:

## run: install what is missing, build, train a transformer on text in less memory than it needs, where
##   the kernel ends the same training without Tidepool's plan (as root or under systemd)
.PHONY: run
run: release
	$(if $(RUN),build/release/cli/tidepool $(RUN),scripts/limited_run.sh build/release/cli/tidepool build/spill)

## test: install what is missing, build, pass all tests: release, asan-ubsan, tsan, fuzz
.PHONY: test
test: test-release test-asan-ubsan test-tsan test-fuzz
	@echo "passed: release, asan-ubsan, tsan, fuzz"

## test-release, test-asan-ubsan, test-tsan, test-fuzz: one build and its tests
.PHONY: test-release test-asan-ubsan test-tsan test-fuzz
test-release test-asan-ubsan test-tsan test-fuzz: test-%: %
	$(wrap) ctest --preset $* --parallel $(JOBS)

## release, asan-ubsan, tsan, fuzz: build only, in build/<name>
.PHONY: release asan-ubsan tsan fuzz fuzz-dependencies
fuzz: fuzz-dependencies
fuzz-dependencies:
	@scripts/install_dependencies.sh --fuzz
release asan-ubsan tsan fuzz: %: dependencies build/%/build.ninja
	$(wrap) cmake --build --preset $@ --parallel $(JOBS)

build/%/build.ninja: CMakePresets.json
	cmake --preset $*
	@touch $@

## dependencies: install missing Debian packages (as root or with sudo)
.PHONY: dependencies
dependencies:
	@scripts/install_dependencies.sh

## check-includes: the include directions between folders, no option names in libraries, lengths, names
.PHONY: check-includes
check-includes:
	python3 tools/check_includes.py
	python3 tools/check_messages.py
	python3 tools/check_sizes.py
	python3 tools/check_names.py

## lint: include directions, clang-format and clang-tidy, every finding an error
.PHONY: lint
lint: check-includes
	@scripts/install_dependencies.sh --lint
	clang-format --dry-run -Werror $(sources)
	cmake --preset release -B build/lint \
	  -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON -D TIDEPOOL_UNITY=OFF -D TIDEPOOL_WERROR=OFF
	run-clang-tidy -quiet -j $(JOBS) -p build/lint '$(CURDIR)/(src|cli|examples|tests|bench)/.*\.cpp$$'

## format: rewrite all sources in the project's style
.PHONY: format
format:
	@scripts/install_dependencies.sh --lint
	clang-format -i $(sources)

## bench: build and run every benchmark
.PHONY: bench
bench: release
	for b in build/release/bench/bench_*; do [ ! -x $$b ] || $$b || exit 1; done

## gpu-bundle: programs and tests for a GPU machine in build/gpu-bundle, under 60 MiB, for CUDA 12
##   (fetched) and the installed CUDA; `make gpu-bundle CUDA=12` or `CUDA=installed` makes one of them,
##   the first also where no CUDA is installed
.PHONY: gpu-bundle
gpu-bundle:
	@scripts/install_dependencies.sh --gpu-bundle
	JOBS=$(JOBS) scripts/gpu_bundle.sh build/gpu-bundle $(CUDA)

## install: install the program under PREFIX (/usr/local)
.PHONY: install
install: release
	cmake --install build/release --prefix $(PREFIX)

## clean: remove the builds
.PHONY: clean
clean:
	rm -rf build/release build/asan-ubsan build/tsan build/fuzz build/lint build/gpu-*

.PHONY: help
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)
