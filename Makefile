# Soperator in Python. `make help` lists what there is to do.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help machine venv check test demo cluster images down clean status bench bench-cold bench-jail bench-scale golden crds format run spank-test e2e test-bookworm test-forky soak chaos

NODES ?= 2
PYTHON := .venv/bin/python
LOCAL := python3 -m local
export PATH := $(CURDIR)/.venv/bin:/usr/local/sbin:/usr/sbin:/sbin:$(PATH)

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.venv/ready: requirements/dev.txt
	@dpkg -s python3-venv >/dev/null 2>&1 || { apt-get update -qq; apt-get install -y -qq --no-install-recommends python3-venv >/dev/null; }
	/usr/bin/python3 -m venv .venv
	.venv/bin/pip --quiet install --require-hashes -r requirements/dev.txt
	echo "$(CURDIR)/src" > $$(.venv/bin/python -c 'import site; print(site.getsitepackages()[0])')/soperator.pth
	printf '#!/bin/sh\nexec %s/.venv/bin/python -m soperator.cli "$$@"\n' "$(CURDIR)" > .venv/bin/soperator && chmod +x .venv/bin/soperator
	touch $@

venv: .venv/ready ## make the Python environment in .venv

machine: ## install the Debian packages that the local cluster and the images need
	@command -v python3 >/dev/null || { apt-get update -qq; apt-get install -y -qq --no-install-recommends python3 >/dev/null; }
	$(LOCAL) machine

cluster: machine ## start a local Kubernetes of NODES Nodes (2)
	$(LOCAL) up --nodes $(NODES)

images: machine ## build the images whose inputs changed
	python3 -m local.images build

demo: venv ## a Slurm cluster on a local Kubernetes (or on KUBECONFIG's), and the main job in it
	$(PYTHON) -m local.demo

down: ## stop and remove all that `make cluster` and `make demo` started
	$(LOCAL) down

clean: ## `make down`, and remove the caches outside the tree
	$(LOCAL) clean

status: ## what of the local cluster runs
	$(LOCAL) status

format: venv ## format the code
	ruff check --fix --quiet src tests local spank examples images || true; ruff format --quiet src tests local spank examples images

crds: venv ## write the CRDs, the values schema and the reference pages from the models
	$(PYTHON) -m soperator.crd

golden: venv ## rewrite the golden objects from the renderer
	GOLDEN=write pytest tests/golden

check: venv machine ## format, lint, types, layers, unit and golden tests
	ruff format --check --quiet src tests local spank examples images
	ruff check --quiet src tests local spank examples images
	mypy
	lint-imports --verbose 2>&1 | tail -n 4
	shellcheck $$(git ls-files | grep -E '\.sh$$|/entry$$|/serve$$|^\.ci/run$$')
	pytest --numprocesses 4 --dist worksteal tests/unit tests/golden tests/world

spank-test: machine ## the tests of the SPANK plugin and the jail helper
	$(MAKE) -C spank test

test: check spank-test ## all tests, from unit to the real cluster
	SOPERATOR_MANY=1000 pytest tests/world/test_healthcheck.py -k many_nodes
	pytest tests/runtime
	$(PYTHON) -m local.demo
	pytest tests/unit/charts
	pytest tests/cluster

test-bookworm: venv ## a jail of Debian 12, on the local cluster
	python3 -m local.images build jail-bookworm
	$(PYTHON) -m local.demo --only-cluster
	SOPERATOR_BOOKWORM=yes pytest tests/cluster/test_bookworm.py

test-forky: venv ## Slurm 24.11 to 26.05 under jobs, and docs/reports/upgrade.md, on the local cluster
	python3 -m local.images build slurm-forky
	$(PYTHON) -m local.demo --only-cluster
	SOPERATOR_FORKY=yes pytest tests/cluster/test_forky.py

soak: venv ## nine faults of machines, a slow card, a hundred kills of each kind, 20 min of changes under live jobs, and the reports docs/reports/{kills,changes}.md
	SOPERATOR_LONG=yes $(PYTHON) -m pytest tests/cluster/test_health.py tests/cluster/test_healthcheck.py
	$(PYTHON) -m tests.soak

chaos: venv ## break everything three times under live jobs on the running cluster, and the table in docs/reliability.md
	$(PYTHON) -m tests.faults

bench: venv ## measure what docs/performance.md reports, on the local cluster
	$(PYTHON) -m local.bench

bench-scale: venv ## measure the operator with thousands of workers that KWOK plays; needs no cluster
	$(PYTHON) -m local.bench.scale

bench-jail: machine ## measure what the jail costs a job; needs the Debian root of spank/README.md
	$(MAKE) -C spank bench

run: venv ## run the operator from this tree against KUBECONFIG, without a lease
	soperator operator --no-lease
