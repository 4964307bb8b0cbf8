#!/usr/bin/env python3
"""The schemas of protocol/schema against the corpora of the fuzzers, and against themselves. The name of
an input says the outcome: ok-* is valid, bad-* is not, code-* is valid (or is JSON that the schema
language cannot judge) although the code refuses it. check_corpus.c holds the code to the same
names. Prints TAP; exit 77 when python3-jsonschema is missing."""
import importlib.machinery
import importlib.util
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
TOOL = TOP / "tests" / "tools" / "validate-schema"
CORPUS = TOP / "tests" / "fuzz" / "corpus"
SCHEMAS = {
    "rpc": ["request-line"],
    "request": ["run-params"],
    "spec": ["spec", "provider-ready", "provider-report", "provider-run",
             "provider-clear", "provider-listener", "outputs"],
    "envelope": ["envelope"],
    "record": ["record"],
}


def load_tool():
    """The tool as a module: one process for all inputs."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("validate_schema", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def cases(tool):
    schemas = tool.load()
    yield "schemas are sound", tool.check_schemas(schemas) == 0
    for corpus, names in SCHEMAS.items():
        checks = [tool.validator(schemas, name) for name in names]
        for path in sorted((CORPUS / corpus).iterdir()):
            kind = path.name.split("-")[0]
            if kind in ("ok", "bad", "code"):
                valid = any(not tool.faults(check, path.read_bytes()) for check in checks)
                yield f"{corpus} {path.name}", valid == (kind != "bad")


def main():
    try:
        tool = load_tool()
    except SystemExit:
        print("1..0 # SKIP python3-jsonschema is missing")
        return 77
    number = failed = 0
    for name, right in cases(tool):
        number += 1
        failed += not right
        print(f"{'ok' if right else 'not ok'} {number} - {name}")
    print(f"1..{number}")
    return 1 if failed or number < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
