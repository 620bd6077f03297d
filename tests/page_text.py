#!/usr/bin/env python3
"""What is in a report page, without a browser.

    page_text.py PAGE                its headings and cards as text, a line each
    page_text.py PAGE --data         the JSON that it holds
    page_text.py PAGE --check        it needs nothing else, and its own policy lets nothing else run; exit 1
"""
import base64
import hashlib
import html.parser
import json
import re
import sys


class Page(html.parser.HTMLParser):
    VOID = {"meta", "br", "input", "link", "img"}

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.attributes, self.inside, self.lines = [], [], [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, k, v) for k, v in attrs]
        if tag not in self.VOID:
            self.stack.append((tag, dict(attrs)))
        if tag in ("td", "th") and self.lines:
            self.lines[-1][2] += " | "
        if tag in ("h1", "h2", "h3", "h4", "p", "dt", "dd", "caption", "tr"):
            self.lines.append([tag, [a.get("id") for t, a in self.stack if t == "section"], ""])

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tag = self.stack[-1][0] if self.stack else ""
        if tag in ("script", "style"):
            kind = dict(self.stack[-1][1]).get("type", tag)
            self.inside[kind] = self.inside.get(kind, "") + data
        elif self.lines:
            self.lines[-1][2] += data


def shown(page):
    """Headings of all sections, names of parts, and every word of the checks."""
    for tag, section, text in page.lines:
        words = " ".join(text.split()).removeprefix("| ")
        if words and (tag in ("h1", "h2") or section == ["checks"] or (section == ["parts"] and tag in ("h3", "h4", "dt"))):
            yield ("#" * int(tag[1]) + " " if tag[0] == "h" else "  ") + words


def faults(page, text):
    outside = [a for a in page.attributes if a[1] in ("src", "href", "action", "data", "srcset", "xlink:href") and not (a[2] or "").startswith("#")]
    if outside:
        yield f"asks for {outside}"
    if any(a[1].startswith("on") or a[1] == "style" for a in page.attributes):
        yield "has code or style in attributes"
    if re.search(r"url\(|@import", page.inside["style"]):
        yield "its style asks for something"
    if [t for t in page.tags if t in ("img", "iframe", "object", "embed", "link", "base", "form", "b", "i", "u")]:
        yield "has elements that it does not make"
    policy = dict((k, v) for t, k, v in page.attributes if t == "meta" and k == "content" and "default-src" in v).get("content", "")
    if "default-src 'none'" not in policy:
        yield "has no policy"
    for kind, name in (("script", "script-src"), ("style", "style-src")):
        code = base64.b64encode(hashlib.sha256(page.inside[kind].encode()).digest()).decode()
        if f"{name} 'sha256-{code}'" not in policy:
            yield f"its policy does not know its {kind}"
    if page.tags.count("script") != 2 or page.tags.count("style") != 1:
        yield f"has {page.tags.count('script')} scripts"
    if [a for a in page.attributes if a[1] in ("d", "x", "y", "cx", "cy", "transform") and re.search("nan|inf", a[2])]:
        yield "draws what is no number"
    if page.stack:
        yield f"leaves open {page.stack}"
    ids = [v for t, k, v in page.attributes if k == "id"]
    if len(ids) != len(set(ids)):
        yield "has an id twice"
    if not text.isprintable() and re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text):
        yield "has control characters"


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    page = Page(text)
    if "--data" in sys.argv:
        print(json.dumps(json.loads(page.inside["application/json"])))
    elif "--check" in sys.argv:
        found = list(faults(page, text))
        for fault in found:
            print(sys.argv[1], fault)
        return bool(found)
    else:
        print("\n".join(shown(page)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
