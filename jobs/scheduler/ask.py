#!/usr/bin/python3
"""ask.py SOCKET JOB NEED HOST... - the cheapest NEED of these free hosts, from answer.c: what a scheduler's plugin does."""
import json
import socket
import sys

with socket.socket(socket.AF_UNIX) as s:
    s.settimeout(10)
    s.connect(sys.argv[1])
    s.sendall(json.dumps({"job": sys.argv[2], "need": int(sys.argv[3]), "free": sys.argv[4:]}).encode() + b"\n")
    said = json.loads(s.makefile().readline() or '{"error": "the answer was cut short"}')
if "error" in said:
    sys.exit("ask.py: " + said["error"])
print(" ".join(said["hosts"]))
