# Soperator in Python. `make help` lists what there is to do.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Some machines have it, and then each of a few thousand starts of Python would compile all anew.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: built quick world mutants rotating test-rest test-outside help machine venv check test demo cluster images down clean status bench bench-accounting bench-cold bench-day bench-exporter bench-jail bench-scale golden crds format run monitoring spank-test fuzz e2e test-bookworm test-newer-slurm test-2605 test-accounting test-backup test-logs soak soak-power chaos site zipapp release test-release test-infra

NODES ?= 2
PYTHON := .venv/bin/python
# What makes .venv: the distribution's own, which is not the one of another .venv on PATH.
HOST_PYTHON ?= /usr/bin/python3
LOCAL := python3 -m local
# A wait goes on for a multiple of its deadline, and what came late is told (docs/decisions/0096); a test may last as long as that takes.
PATIENT := --timeout 1200
export PATH := $(CURDIR)/.venv/bin:/usr/local/sbin:/usr/sbin:/sbin:$(PATH)

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.venv/ready: requirements/dev.txt
	@$(HOST_PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >/dev/null; } \
		|| { echo "$(HOST_PYTHON) cannot make virtual environments: install its package for them (python3-venv on Debian and Ubuntu)" >&2; exit 1; }
	@$(HOST_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(HOST_PYTHON) is older than Python 3.11: name a newer one, as in make venv HOST_PYTHON=python3.12" >&2; exit 1; }
	$(HOST_PYTHON) -m venv .venv
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

built: machine ## build the programs of Kubernetes and all images; `make demo` does it otherwise
	$(LOCAL) binaries
	python3 -m local.images build

images: machine ## build the images whose inputs changed
	python3 -m local.images build

demo: venv ## a Slurm cluster on a local Kubernetes, and the main job in it; ON=FILE: in the cluster of that kubeconfig instead
	$(PYTHON) -m local.demo

monitoring: venv ## a Prometheus with our alerts beside the local cluster, with the metrics of its Slurm clusters on
	$(PYTHON) -m local.monitoring

down: ## stop and remove all that `make cluster` and `make demo` started
	$(LOCAL) down

clean: ## `make down`, and remove the caches outside the tree
	$(LOCAL) clean

status: ## what of the local cluster runs
	$(LOCAL) status

format: venv ## format the code
	ruff check --fix --quiet src tests local spank examples images || true; ruff format --quiet src tests local spank examples images

crds: venv ## write the CRDs, the values schema, the reference pages, the dashboards and the charts' READMEs from their sources
	$(PYTHON) -m soperator.crdgen
	$(PYTHON) -m local.chart_readme

site: venv ## the pages of docs/ as a site with navigation and search, in build/site; a link that leads nowhere fails
	$(PYTHON) -m local.site

zipapp: venv ## the command line as one file, build/soperator.pyz, and as a plugin for krew; RELEASE_URL= is where it will be published
	$(PYTHON) -m local.zipapp

release: export VERSION := $(VERSION)
release: venv machine ## images, charts, command line, site, lists of packages and signed sums in dist/VERSION; REGISTRY=host:port/path publishes them
	@[ -n "$$VERSION" ] || { echo "name the version: make release VERSION=$$(sed -n 's/__version__ = "\(.*\)"/\1/p' src/soperator/__init__.py)" >&2; exit 2; }
	$(PYTHON) -m local.release "$$VERSION"

test-release: venv machine ## a release, published in a registry on this machine, taken from there and checked, and docs/reports/release.md; needs no cluster
	$(LOCAL) binaries
	$(PYTHON) -m local.release.registry
	SOPERATOR_RELEASE=yes pytest tests/release

test-infra: venv ## the OpenTofu module in infra/ with a real OpenTofu, built the first time, on API servers of its own; needs no cluster
	$(LOCAL) binaries
	$(PYTHON) -m local.infra
	SOPERATOR_INFRA=yes pytest tests/infra

golden: venv ## rewrite the golden objects from the renderer
	GOLDEN=write pytest tests/golden --deselect tests/golden/test_version.py
	$(PYTHON) -m tests.golden.version

# So many processes for tests without a cluster; each collects all of them first.
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 8 --dist worksteal
# Unit tests wait for one another's processes and clocks now and then: half as many workers again as cores.
UNITS := --numprocesses $(shell n=$$(nproc); n=$$((n + n / 2)); echo $$((n > 8 ? 8 : n))) --dist worksteal
# Properties are tried on a quarter of their inputs, and what waits on the clock is left out, but in `make test`.
FEW := yes
PURE := $(addprefix tests/unit/,api checks cli reconcile crdgen importers policy kube observe render runtime slurm slurmrest) tests/golden

quick: venv ## format, lint, types, layers and the pure core's tests, while you work; half a minute
	ruff format --check --quiet src tests local spank examples images
	ruff check --quiet src tests local spank examples images
	mypy
	lint-imports --verbose 2>&1 | tail -n 4
	SOPERATOR_FEW=$(FEW) pytest $(SIDE_BY_SIDE) $(PURE)

check: venv machine ## format, lint, types, layers, unit and golden tests; a minute
	ruff format --check --quiet src tests local spank examples images
	ruff check --quiet src tests local spank examples images
	mypy
	lint-imports --verbose 2>&1 | tail -n 4
	shellcheck $$(git ls-files | grep -E '\.sh$$|/entry$$|/serve$$|^\.ci/run$$' | grep -v '^tests/golden/')
	SOPERATOR_FEW=$(FEW) pytest $(UNITS) $(if $(FEW),-m 'not slow') tests/unit tests/golden

world: venv machine ## the operator's loops against a Kubernetes API and a Slurm in memory, with every crash and failed call; two minutes
	SOPERATOR_FEW=$(FEW) pytest $(SIDE_BY_SIDE) tests/world
	STORM_SEEDS=0-2 PYTHONHASHSEED=0 pytest tests/world/test_storm.py

storm: venv ## everything at once on the operator over fakes, twenty times, drawn anew: no job may die of it; a quarter of an hour, no cluster
	STORM_SEEDS=$$(date +%s | awk '{ print $$1 "-" $$1 + 20 }') pytest $(SIDE_BY_SIDE) tests/world/test_storm.py

mutants: venv ## take out each condition that protects a job, a key or an administrator's word, and see a test fail; six minutes, no cluster
	$(PYTHON) -m tests.mutants

spank-test: machine ## the tests of the SPANK plugin and the jail helper
	python3 -m local.slurm_root
	$(MAKE) -C spank test

fuzz: ## the readers of foreign input in C against made-up input, FUZZ_SECONDS=600 each
	$(MAKE) -C spank fuzz

test: FEW :=
test: check world ## all tests, from unit to the real cluster
	SOPERATOR_MANY=1000 pytest tests/world/test_healthcheck.py -k many_nodes
	python3 -m local.slurm_root
	$(PYTHON) -m local.side_by_side $(MAKE) spank-test -- pytest $(PATIENT) tests/collector tests/slurm -- nice -n 19 $(MAKE) built
	$(PYTHON) -m local.demo
	pytest $(PATIENT) tests/runtime tests/unit/charts
	$(PYTHON) -m local.openapi
	pytest $(PATIENT) --durations=40 tests/cluster
	$(PYTHON) -m local.rotate

# What every release of Slurm has to do: jobs, users, SSH, jails, containers, GPUs, changes of the configuration and of the number of nodes.
CORE := $(addprefix tests/cluster/test_,$(addsuffix .py,jobs job_spaces jail ssh containers isolation limits partitions configuration scale power rollout \
	metrics per_node packages deep health))

rotating: venv ## the part of what is too long for every run whose turn it is, at most ten minutes; `make test` ends with it
	$(PYTHON) -m local.rotate

test-bookworm: venv ## a jail of Debian 12, on the local cluster
	python3 -m local.images build jail-bookworm
	$(PYTHON) -m local.demo --only-cluster
	SOPERATOR_BOOKWORM=yes pytest tests/cluster/test_bookworm.py

test-newer-slurm: venv ## Slurm 24.11 to 26.05 under jobs, and docs/reports/upgrade.md, on the local cluster
	python3 -m local.images build slurm-2411 slurm-2605
	$(PYTHON) -m local.demo --only-cluster
	SOPERATOR_NEWER_SLURM=yes pytest tests/cluster/test_newer_slurm.py

test-2605: export SLURM_RELEASE := 26.05
test-2605: venv ## the core of the cluster's tests with Slurm 26.05, on a local cluster of its own: a running one is stopped first
	$(LOCAL) down
	$(PYTHON) -m local.demo
	pytest $(PATIENT) $(CORE)
	$(LOCAL) down

test-accounting: venv ## accounting with three kinds of database, what goes wrong with one, a backup, munge and an archive, on the local cluster; 45 minutes
	python3 -m local.images build mariadb
	python3 -m local.mariadb_crd
	$(PYTHON) -m local.demo --only-cluster
	python3 -m local.slurm_root records
	SOPERATOR_ACCOUNTING=yes pytest tests/slurm/test_records.py
	SOPERATOR_ACCOUNTING=yes pytest tests/cluster/test_accounting.py tests/cluster/test_accounting_ways.py tests/cluster/test_accounting_faults.py tests/cluster/test_accounting_guard.py tests/cluster/test_accounting_more.py

test-backup: venv ## backups with a real restic into a real store with the API of S3, on the local cluster too, and docs/reports/backup.md; a quarter of an hour
	python3 -m local.s3
	python3 -m local.images build backup
	mkdir -p build
	pytest -vv tests/backup | tee build/test-backup.log
	$(PYTHON) -m local.demo --only-cluster
	SOPERATOR_BACKUP=yes pytest -vv $(PATIENT) tests/cluster/test_backup.py | tee build/test-backup-cluster.log
	$(PYTHON) -m tests.backup.report build/test-backup.log build/test-backup-cluster.log

test-logs: venv ## examples/logs/collector.yaml in a real OpenTelemetry collector, which is built the first time (3 min); needs no cluster
	$(PYTHON) -m local.collector
	pytest tests/collector

test-rest: venv ## REST for users with a new certificate and new keys too, on the local cluster; five minutes
	python3 -m local.images build proxy
	$(PYTHON) -m local.openapi
	$(PYTHON) -m local.demo --only-cluster
	SOPERATOR_REST=yes pytest tests/cluster/test_rest_users.py

test-outside: venv ## a host outside Kubernetes, with podman, joins the local cluster as a node and as a login host; two minutes
	$(PYTHON) -m local.demo --only-cluster
	SOPERATOR_OUTSIDE=yes pytest tests/cluster/test_outside.py

soak: venv ## nine faults of machines, a slow card, a hundred kills of each kind, 20 min of changes under live jobs, and the reports docs/reports/{kills,changes}.md
	SOPERATOR_LONG=yes $(PYTHON) -m pytest tests/cluster/test_health.py tests/cluster/test_healthcheck.py
	$(PYTHON) -m tests.soak

soak-power: venv ## nodes that sleep: how long a wake takes and whose time that is, 200 jobs with the operator killed five times, and docs/reports/power.md
	SOPERATOR_LONG=yes $(PYTHON) -m pytest tests/cluster/test_power_faults.py
	$(PYTHON) -m tests.soak.power

chaos: venv ## break everything three times under live jobs on the running cluster, and the table in docs/reliability.md
	$(PYTHON) -m tests.faults

bench: venv ## measure what docs/performance.md reports, on the local cluster
	$(PYTHON) -m local.bench

bench-scale: venv ## measure the operator with thousands of workers that KWOK plays; needs no cluster
	$(PYTHON) -m local.bench.scale

bench-accounting: venv ## measure sacct of 100,000 jobs beside its queries alone, on the local cluster
	$(PYTHON) -m local.demo --only-cluster
	$(PYTHON) -m tests.cluster.bench_accounting

bench-exporter: venv ## measure the exporter with 5,000 nodes and 50,000 jobs of a stand-in; needs no cluster
	$(PYTHON) -m local.bench.exporter

bench-day: venv ## live a simulated day of jobs on nodes that sleep; needs no cluster
	$(PYTHON) -m local.bench.dayreport

bench-jail: machine ## measure what the jail costs a job
	python3 -m local.slurm_root
	$(MAKE) -C spank bench

run: venv ## run the operator from this tree against KUBECONFIG, without a lease
	soperator operator --no-lease
