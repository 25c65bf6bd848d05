# make demo    builds a real cluster on this machine, counts real flights, writes a report
# make test    passes every test but those of `make soak`
# make check   passes those that need no cluster, in minutes
# make soak    what takes longer than a change should wait for: before a release
# Each room of tests leaves its results and times in dist/tests, in JUnit's form.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/pytest -q
ROOMS := @$(PYTHON) tools/rooms.py

.PHONY: demo test check soak system venv dev jar wheel lint unit tidy integration jvm-test bench allow-namespaces clean

demo: venv jar
	$(BIN)/boardcluster demo

test: dev
	$(ROOMS) lint+jvm-test+unit tidy integration

check: dev
	$(ROOMS) lint unit tidy

soak: dev jar
	$(PYTEST) tests/integration -m soak --junitxml=dist/tests/soak.xml

system:
	@$(PYTHON) tools/bootstrap.py system

venv: system
	@$(PYTHON) tools/bootstrap.py venv

dev:
	@$(PYTHON) tools/bootstrap.py system --dev
	@$(PYTHON) tools/bootstrap.py venv --dev

jar: system
	@$(PYTHON) tools/bootstrap.py jar

wheel: venv jar
	$(BIN)/pip wheel -q --no-deps -w dist .

jvm-test: system
	@$(PYTHON) tools/bootstrap.py jar --verify

lint: dev
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy

unit: dev
	@$(PYTEST) tests/unit -n 4 --dist worksteal --junitxml=dist/tests/unit.xml

tidy: dev
	@$(PYTEST) tests/tidy -n 2 --junitxml=dist/tests/tidy.xml

# Clusters side by side, one more than there are cores because they wait a lot; and then one by
# one what measures this machine.
integration: dev jar
	@$(PYTEST) tests/integration -m "not alone and not soak" -n 3 --dist loadfile --no-loadscope-reorder --junitxml=dist/tests/integration.xml
	@$(PYTEST) tests/integration -m "alone and not soak" --junitxml=dist/tests/alone.xml

bench: venv jar
	$(BIN)/python benchmarks/cluster.py

allow-namespaces:
	@$(PYTHON) tools/bootstrap.py allow-namespaces

clean:
	rm -rf .venv dist jvm/target .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
