# `make help` lists all targets. Every target creates the environment that it needs.

PYTHON ?= python3
PYTEST_ARGS ?=
PYTEST := -m pytest -n auto --dist worksteal
MENAGERIE_ARGS ?=
ZOO_ARGS ?=
PARAMETERS_ARGS ?=
POLICIES_ARGS ?=
CLANG_TARGETS ?=
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# pip does not compile bytecode, because most modules are never imported; Python compiles the others
# at their first import
unexport PYTHONDONTWRITEBYTECODE

# the compiler that CMake would find, unless the caller sets CXX
ifeq ($(origin CXX),default)
CXX := $(shell command -v c++ || command -v g++ || command -v clang++)
else
export CXX
endif

UNIT := $(shell find tests/unit -name '*.cc' -o -name '*.h' -o -name CMakeLists.txt)
SOURCES := CMakeLists.txt pyproject.toml $(shell find cpp src -type f \
  -not -path '*/__pycache__/*' -not -name _core.pyi 2>/dev/null)
BIN := .venv/bin
PIP := -m pip -qq install --upgrade --no-compile
REQUIREMENTS := $(BIN)/python tools/requirements.py

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-315 test-versions test-newton test-crocoddyl test-pinocchio test-ray \
  lint format type bench bench-planners bench-rods validate-rods bench-newton table3 \
  menagerie zoo parameters pairs policies notebooks check-docs docs sanitize test-generic compile-clang wheels clean

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*##  */\1\t/p' Makefile | awk -F'\t' '{printf "  make %-15s %s\n", $$1, $$2}'

demo: .venv/.installed  ## accuracy and speed, then a trotting quadruped: tables, build/demo.png, build/trot.png
	$(BIN)/python -m examples.demo

test: .venv/.tools .venv/.installed build/release/primitives/.built  ## the test suite on the newest MuJoCo
	$(BIN)/python $(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-all: .venv/.tools .venv/.installed build/release/primitives/.built  ## the slow tests too: all combinations, large populations
	$(BIN)/python $(PYTEST) $(PYTEST_ARGS)

test-315: .venv/.tools .venv/.installed build/release/primitives/.built build/mujoco-3.15/.installed  ## the test suite on MuJoCo 3.15
	PYTHONPATH="$(CURDIR)/build/mujoco-3.15" $(BIN)/python $(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-versions: export MENAGERIE_ROOT ?= $(wildcard ../shared/menagerie)
test-versions: .venv/.tools .venv/.installed  ## a sample of the tests and of Menagerie on every supported MuJoCo
	$(BIN)/python tools/test_versions.py

test-newton: .venv-newton/.installed  ## the tests and examples of the Newton bridge, with its MuJoCo
	.venv-newton/bin/python $(PYTEST) tests/newton_bridge $(PYTEST_ARGS)

test-crocoddyl: .venv/.bench .venv/.installed  ## the tests of the Crocoddyl adapter and the code blocks that need it
	$(BIN)/python -m pytest tests/test_crocoddyl.py tests/test_pages.py -k "crocoddyl or control" $(PYTEST_ARGS)

test-pinocchio: .venv/.bench .venv/.installed  ## second derivatives against the tensors of Pinocchio
	$(BIN)/python -m pytest tests/test_pinocchio.py -n 0 $(PYTEST_ARGS)

test-ray: .venv/.tools .venv/.installed build/ray/.installed  ## workers on a Ray cluster of several nodes on this machine
	PYTHONPATH="$(CURDIR)/build/ray" $(BIN)/python -m pytest tests/test_ray.py tests/test_pages.py -k "ray or scale" $(PYTEST_ARGS)

notebooks: .venv/.tools .venv/.installed  ## execute the notebooks; PYTEST_ARGS="-n 0 --overwrite" stores their outputs
	$(BIN)/python $(PYTEST) --nbmake notebooks $(PYTEST_ARGS)

lint: type  ## ruff, clang-format, codespell (American English), mypy and schemas of files, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	find cpp benchmarks tests -name '*.cc' -o -name '*.h' | xargs $(BIN)/clang-format --dry-run -Werror
	$(BIN)/codespell
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*_*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format --default-filetype yaml CITATION.cff

format: .venv/.tools  ## put all sources into the house style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	find cpp benchmarks tests -name '*.cc' -o -name '*.h' | xargs $(BIN)/clang-format -i

type: .venv/.tools src/mujacobian/_core.pyi  ## mypy on src
	$(BIN)/mypy

bench: .venv/.bench .venv/.installed  ## accuracy, speed and scaling against MuJoCo and Pinocchio
	$(BIN)/python -m benchmarks

bench-planners: .venv/.installed  ## plans from random initial controls: costs, iterations and times
	$(BIN)/python -m benchmarks.planners

bench-rods: .venv/.installed  ## rods by left perturbations against rotation vectors: speed, iterations
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/bench-rods -G Ninja -DMUJACOBIAN_ROD_BASELINE=ON \
	  -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" -DSKBUILD_PROJECT_VERSION=0 > /dev/null
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/bench-rods > /dev/null
	$(BIN)/python -m benchmarks.rods

validate-rods: .venv/.installed  ## rods against closed forms and differential equations, with orders of convergence
	$(BIN)/python -m benchmarks.rods_validation

bench-newton: .venv-newton/.installed  ## time of a step of the Newton bridge, forward and backward
	.venv-newton/bin/python -m benchmarks.newton_bridge
	.venv-newton/bin/python -m benchmarks.newton_worlds

table3: .venv/.installed  ## compare derivative backends on the trotting A1: build/table3.md
	$(BIN)/python -m benchmarks.table3

menagerie: .venv/.tools .venv/.installed  ## accuracy and speed on the robots of MENAGERIE_ROOT, a MuJoCo Menagerie
	$(BIN)/python -m benchmarks.menagerie $(MENAGERIE_ARGS)

zoo: .venv/.tools .venv/.installed  ## check the models of many packages, MENAGERIE_ROOT and MUJOCO_ROOT: build/zoo.md
	$(BIN)/python -m benchmarks.zoo $(ZOO_ARGS)

parameters: .venv/.tools .venv/.installed  ## check all parameter families on the models of the zoo: build/parameters.md
	$(BIN)/python -m benchmarks.parameters $(PARAMETERS_ARGS)

pairs: .venv/.tools .venv/.installed  ## check random poses of all pairs of geoms (an hour on two cores): build/pairs.md
	$(BIN)/python -m benchmarks.pairs

policies: .venv/.policies .venv/.installed  ## policies from gradients against PPO: build/policies.md, build/policies.png
	$(BIN)/python -m benchmarks.policies $(POLICIES_ARGS)

check-docs: .venv/.tools  ## check links, equation labels, lines and language of pages, and cycles between folders
	$(BIN)/python tools/check_docs.py
	$(BIN)/python tools/check_graph.py
	$(BIN)/python tools/check_language.py

docs: check-docs .venv/.docs .venv/.installed build/mathjax/.installed  ## build the site in build/html, without warnings
	$(BIN)/python -m sphinx -b html -d build/doctrees -j auto --quiet --fail-on-warning --keep-going docs build/html
	$(BIN)/python tools/check_site.py build/html

UNSANITIZED := $(shell grep '^tests/' tests/unsanitized.txt)
sanitize: .venv/.tools build/sanitized/.installed build/sanitize/primitives/.built  ## a sample of the tests under the address and undefined-behavior sanitizers
	LD_PRELOAD="$(foreach l,libasan.so libubsan.so libstdc++.so.6,$(shell $(CXX) -print-file-name=$(l)))" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1,print_stacktrace=1 \
	PYTHONPATH="$(CURDIR)/build/sanitized:$(CURDIR)/build/sanitize/primitives" \
	$(BIN)/python $(PYTEST) -m "not slow" \
	  $(foreach t,$(UNSANITIZED),$(if $(findstring ::,$(t)),--deselect,--ignore)=$(t)) --cases 3 -p no:cacheprovider --capture=sys $(PYTEST_ARGS)

GENERIC_TESTS := tests/unit tests/test_contacts.py tests/test_smooth_models.py tests/test_transition.py \
  tests/test_rollout.py tests/test_control_ilqr.py tests/test_rods_simulation.py
test-generic: .venv/.tools build/generic/.installed build/cmake-generic/primitives/.built  ## a sample of the tests on a build without AVX2
	PYTHONPATH="$(CURDIR)/build/generic:$(CURDIR)/build/cmake-generic/primitives" \
	$(BIN)/python $(PYTEST) -m "not slow" $(GENERIC_TESTS) $(PYTEST_ARGS)

compile-clang: .venv/.release  ## compile the core with Clang for Linux, macOS and Windows, or for CLANG_TARGETS; nothing is linked
	$(BIN)/python tools/compile_clang.py $(CLANG_TARGETS)

wheels: .venv/.release  ## build, check and try the sdist and the wheels of this machine: dist
	$(BIN)/python tools/make_wheels.py

clean:  ## remove everything that make created, including the environments
	rm -rf build dist .venv .venv-newton .venv-zoo .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f src/mujacobian/_core.pyi
	find src tests benchmarks tools -name __pycache__ -prune -exec rm -rf {} +

# the packages that the wheel and the demo need, with cmake and ninja from pip
.venv/.basis: pyproject.toml tools/requirements.py
	@$(PYTHON) tools/check_machine.py
	@echo "making .venv"
	@test -x $(BIN)/pip || tools/make_venv.sh $(PYTHON) .venv
	@$(BIN)/python $(PIP) $$($(REQUIREMENTS) build run plot) cmake ninja
	@touch $@

.venv/.tools: .venv/.basis
	@echo "installing the tools into .venv"
	@$(BIN)/python $(PIP) $$($(REQUIREMENTS) dev)
	@touch $@

# one wheel for all environments, one with sanitizers, one without AVX2
DEFINE := --config-settings=cmake.define.MUJACOBIAN
build/wheels/.built: SETTINGS := --config-settings=build-dir=build/release
build/wheels-sanitize/.built: SETTINGS := --config-settings=build-dir=build/sanitize \
  --config-settings=cmake.build-type=Debug $(DEFINE)_SANITIZE=ON $(DEFINE)_WERROR=ON
build/wheels-generic/.built: SETTINGS := --config-settings=build-dir=build/cmake-generic \
  $(DEFINE)_GENERIC=ON $(DEFINE)_WERROR=ON
build/wheels/.built build/wheels-sanitize/.built build/wheels-generic/.built: .venv/.basis $(SOURCES)
	@echo "building the core into $(@D)"
	@rm -rf $(@D) && mkdir -p $(@D)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip -qq wheel . --no-deps --no-build-isolation \
	  --wheel-dir $(@D) $(DEFINE)_PRIMITIVES=ON $(SETTINGS)
	@touch $@

# the module of tests/unit, which is part of no wheel, from the objects of a wheel
build/release/primitives/.built: build/wheels/.built
build/sanitize/primitives/.built: build/wheels-sanitize/.built
build/cmake-generic/primitives/.built: build/wheels-generic/.built
build/%/primitives/.built: $(UNIT)
	@echo "building the primitives for tests/unit"
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/$* --target primitives -- --quiet
	@touch $@

.venv/.installed: build/wheels/.built
	@$(BIN)/python $(PIP) --force-reinstall --no-deps build/wheels/*.whl
	@touch $@

.venv/.release: .venv/.basis
	@echo "installing the tools of a release into .venv"
	@$(BIN)/python $(PIP) $$($(REQUIREMENTS) release)
	@touch $@

.venv/.bench: .venv/.tools
	@echo "installing the competitors into .venv"
	@$(BIN)/python $(PIP) $$($(REQUIREMENTS) bench)
	@touch $@

.venv/.policies: .venv/.tools
	@echo "installing stable-baselines3 into .venv"
	@$(BIN)/python $(PIP) $$($(REQUIREMENTS) dev policies)
	@touch $@

.venv/.docs: .venv/.tools
	@echo "installing Sphinx into .venv"
	@$(BIN)/python $(PIP) $$($(REQUIREMENTS) docs)
	@touch $@

build/mathjax/.installed: .venv/.docs tools/install_mathjax.py
	@echo "installing MathJax"
	@$(BIN)/python tools/install_mathjax.py build/mathjax
	@touch $@

# packages that replace those of .venv or that few targets need; PYTHONPATH puts them in front
build/mujoco-%/.installed: .venv/.basis
	@echo "installing MuJoCo $*"
	@$(BIN)/python $(PIP) --no-warn-conflicts --target $(@D) 'mujoco==$*.*'
	@touch $@

build/ray/.installed: .venv/.basis
	@echo "installing Ray"
	@$(BIN)/python $(PIP) --no-warn-conflicts --target $(@D) $$($(REQUIREMENTS) ray)
	@touch $@

build/sanitized/.installed: build/wheels-sanitize/.built
build/generic/.installed: build/wheels-generic/.built
build/sanitized/.installed build/generic/.installed:
	@$(BIN)/python $(PIP) --no-deps --target $(@D) $(<D)/*.whl
	@touch $@

.venv-newton/.installed: build/wheels/.built
	@test -x .venv-newton/bin/pip || tools/make_venv.sh $(PYTHON) .venv-newton
	@.venv-newton/bin/python $(PIP) $$($(REQUIREMENTS) run newton sysid) 'torch==2.13.0' 'pytest>=8' 'pytest-xdist>=3.6' 'sybil>=10'
	@.venv-newton/bin/python $(PIP) --force-reinstall --no-deps build/wheels/*.whl
	@touch $@

src/mujacobian/_core.pyi: .venv/.installed
	@cp "$$(find .venv -path '*/mujacobian/_core.pyi')" $@
