#!/usr/bin/python3
"""check.py FILE.yaml CRD.yaml... - every document of FILE against the schema of its kind among the CRDs.

Unknown keys are errors too, as for kubectl --validate=strict.  Exit 0 and one line a document; 1 and
what is wrong; 77 when a kind has no CRD here or Python lacks a module.
"""
import sys

try:
    import jsonschema
    import yaml
except ImportError as e:
    print(f"not checked: {e}")
    sys.exit(77)


def load(path):
    with open(path, encoding="utf-8") as f:
        return [d for d in yaml.safe_load_all(f) if d]


def schemas(paths):
    """(apiVersion, kind) to schema."""
    found = {}
    for path in paths:
        for crd in load(path):
            spec = crd["spec"]
            for v in spec["versions"]:
                key = (f"{spec['group']}/{v['name']}", spec["names"]["kind"])
                found[key] = v["schema"]["openAPIV3Schema"]
    return found


def unknown(value, schema, at=""):
    """Paths of keys that the schema does not name."""
    if isinstance(value, dict):
        known = schema.get("properties")
        more = schema.get("additionalProperties")
        for key, v in value.items():
            if known is not None and key in known:
                yield from unknown(v, known[key], f"{at}.{key}")
            elif isinstance(more, dict):
                yield from unknown(v, more, f"{at}.{key}")
            elif known is not None and not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{at}.{key}"
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from unknown(v, schema.get("items", {}), f"{at}[{i}]")


def main():
    known = schemas(sys.argv[2:])
    rc = 0
    for doc in load(sys.argv[1]):
        key = (doc.get("apiVersion"), doc.get("kind"))
        if key not in known:
            print(f"not checked: no CRD for {key}")
            rc = rc or 77
            continue
        wrong = [f"{e.json_path}: {e.message}" for e in jsonschema.Draft7Validator(known[key]).iter_errors(doc)]
        wrong += [f"{at}: unknown key" for at in unknown(doc, known[key])]
        for w in wrong:
            print(w)
            rc = 1
        if not wrong:
            print(f"valid {key[0]} {key[1]}")
    return rc


sys.exit(main())
