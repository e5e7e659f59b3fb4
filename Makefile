# PYTHON picks the interpreter for .venv, e.g. `make venv PYTHON=python3.12`.
PYTHON ?=
BIN := .venv/bin
STAMP := .venv/.installed
LIBVIRT := .venv/.libvirt
NOVA := .venv/nova

export PIP_NO_INPUT := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Empty: tests start hundreds of processes, and none has to compile the sources again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help venv servers libvirt nova test lint format docs screenshots demo bench nightly lock clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## build .venv with all dependencies and .venv/bin/roost

$(STAMP): pyproject.toml requirements-dev.lock
	@set -e; \
	if command -v uv >/dev/null; then \
	    test -x $(BIN)/python || uv venv --quiet --clear $(if $(PYTHON),--python $(PYTHON)) .venv; \
	    install="uv pip install --quiet --python $(BIN)/python"; \
	else \
	    python=$(or $(PYTHON),python3); \
	    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	        echo "Roost needs Python 3.11 or newer, or uv on PATH; $$python is" \
	            "$$($$python --version 2>/dev/null || echo missing). Name another: make venv PYTHON=python3.11" >&2; \
	        exit 1; }; \
	    $(BIN)/python -m pip --version >/dev/null 2>&1 || $$python -m venv --clear .venv; \
	    install="$(BIN)/python -m pip install --quiet"; \
	fi; \
	$$install --require-hashes -r requirements-dev.lock; \
	$$install --no-deps --no-build-isolation -e .
	@touch $@

servers: ## install the servers and the browser for the tests, where that is possible
	@tools/install-test-servers

libvirt: $(STAMP) ## build libvirt's bindings into .venv, where the system has its headers
	@set -e; \
	test $(LIBVIRT) -nt requirements-libvirt.lock && exit; \
	if ! pkg-config --exists libvirt 2>/dev/null || ! command -v gcc >/dev/null; then \
	    echo "The tests that need libvirt will be skipped: its headers, pkg-config or gcc are missing." >&2; exit; \
	fi; \
	if command -v uv >/dev/null; then install="uv pip install --quiet --python $(BIN)/python"; \
	else install="$(BIN)/python -m pip install --quiet"; fi; \
	if $$install --no-build-isolation --require-hashes -r requirements-libvirt.lock; then touch $(LIBVIRT); \
	else echo "The tests that need libvirt will be skipped: its bindings cannot be built." >&2; fi

nova: $(NOVA)/.installed ## install Nova beside .venv, for the tests that compare with it

$(NOVA)/.installed: requirements-nova.lock | $(STAMP)
	@set -e; \
	rm -rf $(NOVA); \
	if command -v uv >/dev/null; then \
	    uv venv --quiet --python $(BIN)/python $(NOVA); \
	    install="uv pip install --quiet --python $(NOVA)/bin/python"; \
	else \
	    $(BIN)/python -m venv $(NOVA); \
	    install="$(NOVA)/bin/python -m pip install --quiet"; \
	fi; \
	$$install --require-hashes -r requirements-nova.lock
	@touch $@

test: venv servers libvirt ## run the tests
	$(BIN)/pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

lint: venv ## check style, formatting, types and the import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: venv ## rewrite the code in the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: venv ## build the site of documents into build/docs
	PYTHONPATH=tools $(BIN)/python -m document_site

screenshots: venv ## make the screenshots of the dashboard in docs/images anew
	PYTHONPATH=tools:tests $(BIN)/python -m screenshots

demo: venv ## replay the demonstration workload
	$(BIN)/roost replay demo

bench: venv ## run the benchmarks in their short form
	rm -rf roost-data/bench
	$(BIN)/roost bench all roost-data/bench

nightly: venv servers libvirt nova ## run the tests that are too long for every change, and all properties at length
	@tools/install-test-servers --nightly
	$(BIN)/pytest -m "nightly or hypothesis"

lock: ## remake the lock files from pyproject.toml (needs uv)
	tools/lock

clean: ## remove .venv, caches and build output, but no data
	rm -rf .venv build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +
