# Everything happens in .venv, which the first command makes: `make demo`, `make test`.

# Python 3.11 comes first because it is the tested version. Set PYTHON to use another one.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	"$$python" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && echo "$$python" && break; done)
BIN := .venv/bin
# Written last, so that a set-up that was cut short is done again.
READY := .venv/ready
TESTABLE := .venv/testable

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench skills docs format clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## make .venv with the tested versions of everything

$(READY): pyproject.toml constraints.txt
	@if [ -z "$(PYTHON)" ]; then \
		echo "No Python 3.11, 3.12 or 3.13 with its venv module was found."; \
		echo "Install one (on Debian: python3 and python3-venv), or name it: make PYTHON=/path/to/python3"; \
		exit 1; fi
	@echo "Setting up .venv; the first time downloads torch and MuJoCo, which takes some minutes."
	"$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[train,dev]'
	@touch $@

# MuJoCo Warp is large and nothing but its own tests needs it.
$(TESTABLE): $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[train,dev,warp]'
	@touch $@

demo: $(READY) ## train a duck to walk, export it, and drive it over a virtual servo bus
	$(BIN)/microduck demo

test: $(TESTABLE) ## run the tests
	$(BIN)/pytest

check: $(TESTABLE) ## everything that must hold: format, lint, types, layers, tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

bench: $(READY) ## measure physics, environment and training, also against TorchRL; tables in runs/bench.md
	$(BIN)/microduck bench --against-torchrl --scaling --markdown runs/bench.md

skills: $(READY) ## train, export and judge the nine skills that `duck run` comes with; three hours
	$(BIN)/microduck train runs/nine-skills --library nine-skills --minutes 60 --actuator xl330 --randomize 1
	$(BIN)/microduck resume runs/nine-skills --minutes 80
	$(BIN)/microduck train runs/nine-skills-polished --library nine-skills-polish --start-from runs/nine-skills \
		--minutes 80 --actuator xl330 --randomize 1 --initial-std 0.4 --final-std 0.2 --learning-rate 3e-4
	$(BIN)/microduck export runs/nine-skills-polished firmware_bridge/bundles/nine-skills --last
	$(BIN)/microduck eval firmware_bridge/bundles/nine-skills --episodes 64 --out docs/reports/nine-skills

docs: $(TESTABLE) ## build the documentation into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -f docs/site/mkdocs.yml

format: $(READY) ## put the sources into the house format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean: ## remove .venv, caches and build outputs; runs/ stays
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
