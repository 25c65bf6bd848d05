# make demo    builds a real cluster on this machine, counts real flights, writes a report
# make test    passes every test
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test system venv dev jar wheel lint unit tidy integration jvm-test bench allow-namespaces clean

demo: venv jar
	$(BIN)/boardcluster demo

test: dev lint jvm-test unit tidy integration
	@echo "all rooms passed"

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
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

unit: dev
	$(BIN)/pytest tests/unit -q -n 2

tidy: dev
	$(BIN)/pytest tests/tidy -q -n 2

integration: dev jar
	$(BIN)/pytest tests/integration -q

bench: venv jar
	$(BIN)/python benchmarks/cluster.py

allow-namespaces:
	@$(PYTHON) tools/bootstrap.py allow-namespaces

clean:
	rm -rf .venv dist jvm/target .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
