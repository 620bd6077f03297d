#!/usr/bin/python3
"""check.py FILE.yaml CRD.yaml... - every document of FILE against the schema of its kind among the CRDs.

Kinds of Kubernetes itself are held against its OpenAPI, if Python has kubernetes-validate.  Unknown keys are errors
too, as for kubectl --validate=strict.  Exit 0 and one line a document; 1 and what is wrong; 77 when a kind has no
schema here or Python lacks a module.
"""
import sys

try:
    import jsonschema
    import yaml
except ImportError as e:
    print(f"not checked: {e}")
    sys.exit(77)
try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None


def load(path):
    with open(path, encoding="utf-8") as f:
        return [d for d in yaml.load_all(f, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if d]


def schemas(paths):
    """(apiVersion, kind) to schema."""
    return schemas_of(crd for path in paths for crd in load(path))


def schemas_of(crds):
    found = {}
    for crd in crds:
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


def builtin(doc):
    """What is wrong with a document of Kubernetes itself; None: no schema here."""
    group = doc.get("apiVersion", "").rpartition("/")[0]
    if kubernetes_validate is None or ("." in group and not group.endswith(".k8s.io")) or "x-k8s" in group:
        return None
    try:
        kubernetes_validate.validate(doc, kubernetes_validate.latest_version(), strict=True)
    except kubernetes_validate.ValidationError as e:
        return [f"{'.'.join(map(str, e.path))}: {e.message}"]
    except kubernetes_validate.SchemaNotFoundError as e:
        return [str(e)]
    return []


def wrong(doc, known):
    """What is wrong with a document, of those schemas; None: no schema here."""
    key = (doc.get("apiVersion"), doc.get("kind"))
    if key not in known:
        return builtin(doc)
    found = [f"{e.json_path}: {e.message}" for e in jsonschema.Draft7Validator(known[key]).iter_errors(doc)]
    return found + [f"{at}: unknown key" for at in unknown(doc, known[key])]


def main():
    known = schemas(sys.argv[2:])
    rc = 0
    for doc in load(sys.argv[1]):
        key = (doc.get("apiVersion"), doc.get("kind"))
        bad = wrong(doc, known)
        if bad is None:
            print(f"not checked: no CRD for {key}")
            rc = rc or 77
            continue
        for w in bad:
            print(w)
            rc = 1
        if not bad:
            print(f"valid {key[0]} {key[1]}")
    return rc


if __name__ == "__main__":
    sys.exit(main())
