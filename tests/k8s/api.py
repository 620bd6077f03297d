#!/usr/bin/python3
"""api.py PORT CRD.yaml... - what kubectl apply asks of a Kubernetes API server, on loopback and in memory.

It knows the kinds that the files of this repository use, and refuses (422) what check.py refuses: wrong types, missing
and unknown keys.  It has no admission, no CEL rules, no defaults, no controllers and no patches.
"""
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import check

# plural: (group and version, kind, namespaced)
KINDS = {
    "pods": ("v1", "Pod", True), "nodes": ("v1", "Node", False), "serviceaccounts": ("v1", "ServiceAccount", True),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", True), "jobs": ("batch/v1", "Job", True),
    "cronjobs": ("batch/v1", "CronJob", True),
    "clusterroles": ("rbac.authorization.k8s.io/v1", "ClusterRole", False),
    "clusterrolebindings": ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", False),
    "resourceclaimtemplates": ("resource.k8s.io/v1", "ResourceClaimTemplate", True),
}
CRDS = [crd for path in sys.argv[2:] for crd in check.load(path)]
KNOWN = check.schemas_of(CRDS)
for spec in (crd["spec"] for crd in CRDS):
    for version in spec["versions"]:
        KINDS[spec["names"]["plural"]] = (f"{spec['group']}/{version['name']}", spec["names"]["kind"],
                                          spec["scope"] == "Namespaced")
STORE = {}


def place(gv):
    return ("apis/" if "/" in gv else "api/") + gv


def group_list():
    groups = {}
    for gv, _, _ in KINDS.values():
        group, _, version = gv.rpartition("/")
        if group:
            groups[group] = {"groupVersion": gv, "version": version}
    return {"kind": "APIGroupList", "apiVersion": "v1",
            "groups": [{"name": g, "versions": [v], "preferredVersion": v} for g, v in groups.items()]}


def resources(gv):
    return {"kind": "APIResourceList", "groupVersion": gv, "resources": [
        {"name": plural, "singularName": "", "namespaced": inside, "kind": kind,
         "verbs": ["create", "get", "list"]}
        for plural, (at, kind, inside) in KINDS.items() if at == gv]}


def openapi(where):
    """That a PATCH of each kind takes fieldValidation: then kubectl leaves the checks to the server."""
    paths = {}
    for plural, (gv, kind, _) in KINDS.items():
        group, _, version = gv.rpartition("/")
        if place(gv) == where:
            paths[f"/{where}/{plural}/{{name}}"] = {"patch": {
                "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
                "responses": {}, "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind}}}
    return {"openapi": "3.0.0", "info": {"title": "stand-in", "version": "1"}, "paths": paths}


def fixed(path):
    """Answers that do not depend on what is stored."""
    if path == "/version":
        return {"major": "1", "minor": "37", "gitVersion": "v1.37.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return group_list()
    if path == "/openapi/v3":
        return {"paths": {place(gv): {"serverRelativeURL": "/openapi/v3/" + place(gv)} for gv, _, _ in KINDS.values()}}
    if path.startswith("/openapi/v3/"):
        return openapi(path[len("/openapi/v3/"):])
    for gv, _, _ in KINDS.values():
        if path == "/" + place(gv):
            return resources(gv)
    return None


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, code, what, reason=""):
        if reason:
            what = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": what, "code": code}
        body = json.dumps(what).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self):
        path, body = self.path.split("?")[0], self.rfile.read(int(self.headers.get("Content-Length") or 0))
        known = fixed(path)
        if known:
            return self.say(200, known)
        m = re.fullmatch(r"/apis?/(?:v1|[^/]+/[^/]+)(/namespaces/[^/]+)?/([a-z]+)(?:/([^/]+))?", path)
        if not m or m[2] not in KINDS:
            return self.say(404, "the server could not find the requested resource", "NotFound")
        kind = KINDS[m[2]][1]
        doc = json.loads(body) if self.command == "POST" else None
        key = (m[1], m[2], m[3] or (doc or {}).get("metadata", {}).get("name"))
        if self.command == "GET" and m[3] and key not in STORE:
            return self.say(404, f'{m[2]} "{m[3]}" not found', "NotFound")
        bad = check.wrong(doc, KNOWN) if doc else []
        if bad is None or bad:
            return self.say(422, f"{kind} {key[2]} is invalid: " + "; ".join(bad or ["no schema"]), "Invalid")
        if doc:
            STORE[key] = doc
        if not m[3] and self.command == "GET":
            return self.say(200, {"kind": kind + "List", "apiVersion": KINDS[m[2]][0], "metadata": {},
                                  "items": [d for k, d in STORE.items() if k[:2] == key[:2]]})
        return self.say(201 if self.command == "POST" else 200, STORE[key])

    do_GET = do_POST = answer


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Server).serve_forever()
