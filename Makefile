# Every target makes its own virtual environment in .venv; only Python 3.11+ and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests start hundreds of processes: modules that are compiled anew by each of them are a third of its start.
unexport PYTHONDONTWRITEBYTECODE
RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed
SUPPLY := .cache/supply/.installed
INSTALL := pip install --progress-bar on --disable-pip-version-check --require-hashes --requirement
LOCK := .cache/supply/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url $(UPGRADE)

.DEFAULT_GOAL := help
.PHONY: help run quick test check peers charts cluster soak soak-long bench docs format lock audit sbom clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "drachma needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Every package is one that a lock file has the hash of, the build backend included.
$(RUNTIME): $(BIN)/python pyproject.toml requirements/runtime.txt
	@echo "installing drachma and its dependencies into $(VENV), which takes about a minute"
	$(BIN)/python -m $(INSTALL) requirements/runtime.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUNTIME) requirements/dev.txt
	@echo "installing the tools for tests, which takes about a minute"
	$(BIN)/python -m $(INSTALL) requirements/dev.txt
	@touch $@

$(SUPPLY): requirements/supply.txt
	$(PYTHON) -m venv $(dir $@)
	$(dir $@)bin/python -m $(INSTALL) requirements/supply.txt
	@touch $@

run: $(RUNTIME) ## the demo: pods run on a simulated machine, their logs show their devices, and one that cannot fit is explained
	@$(BIN)/drachma play -f examples/04-part-of-a-gpu/workloads.yaml --nodes 1 \
		--profile examples/04-part-of-a-gpu/machine.yaml --logs --explain || test $$? -eq 1

quick: $(DEV) ## check in two minutes that this clone works: the first steps of the README and the examples
	$(BIN)/pytest -q tests/newcomer tests/meta/test_examples.py

check: $(DEV) ## ruff, mypy strict and the layer contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test: check ## check, then the test suite, in about ten minutes; CI also runs docs and peers
	$(BIN)/pytest -n auto --dist worksteal -q

peers: $(DEV) ## try nodes and queues with a kubelet, a Go driver, controllers of JobSets and Ray, and public charts; built once
	$(BIN)/python -m tests.peers.programs
	$(BIN)/pytest -q tests/peers

charts: $(DEV) ## only the charts of peers: install them with helm on simulated nodes
	$(BIN)/python -m tests.peers.programs helm
	$(BIN)/pytest -q tests/peers/test_charts.py

cluster: $(DEV) ## try components on a real control plane of Kubernetes; it is built first, which takes half an hour once
	$(BIN)/python -m tests.cluster.programs
	DRACHMA_CLUSTER_REQUIRED=1 $(BIN)/pytest -q tests/cluster

soak: $(DEV) ## churn, kills while gangs are scheduled, a short restart matrix, 20,000 random requests, and new examples of properties
	$(BIN)/python -m tests.scenarios.churn --operations 10000
	$(BIN)/python -m tests.scenarios.gangdurability 20
	$(BIN)/python -m bench.soak --kills 30 --fault-seconds 8
	$(BIN)/python -m bench.fuzzing --requests 20000
	$(BIN)/pytest -n auto -q tests/property --hypothesis-profile=exploring

soak-long: $(DEV) ## restart matrix with 1,000 kills and faults of 60 s, then 1,000,000 random requests: about two hours
	$(BIN)/python -m bench.soak --kills 1000 --fault-seconds 60 --settle-every 100
	$(BIN)/python -m bench.fuzzing --requests 1000000

docs: $(RUNTIME) ## make a site of the documents, with the reference from docstrings, in build/site
	$(BIN)/python -m $(INSTALL) requirements/docs.txt
	$(BIN)/python -m mkdocs build --quiet

bench: $(DEV) ## print the benchmark tables
	$(BIN)/python -m bench

format: $(DEV) ## rewrite the sources in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(SUPPLY) ## lock dependencies anew where pyproject.toml changed; with UPGRADE=--upgrade all of them
	$(LOCK) pyproject.toml --group build --group dev --output-file requirements/dev.txt
	$(LOCK) pyproject.toml --group build --constraints requirements/dev.txt --output-file requirements/runtime.txt
	$(LOCK) pyproject.toml --group build --group docs --constraints requirements/dev.txt --output-file requirements/docs.txt
	$(LOCK) --group supply --output-file requirements/supply.txt

audit: $(SUPPLY) ## look the locked dependencies up in the database of known vulnerabilities; needs the network
	$(PYTHON) scripts/audit.py .cache/supply/bin/pip-audit requirements/*.txt

sbom: $(RUNTIME) ## write the bill of materials (CycloneDX) to build/sbom.json
	@mkdir -p build
	$(BIN)/python scripts/sbom.py > build/sbom.json

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
