#!/usr/bin/env python3
"""A page in headless Chromium, over its pipe: what report.bats looks at, and pictures of it.

    browser.py PAGE                     every check, one line each; exit 1 when one fails
    browser.py PAGE --shot NAME.png [--width 1280] [--height 900] [--whole] [--dark] [--at SELECTOR]
    browser.py PAGE --pdf NAME.pdf
"""
import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time


class Browser:
    """Commands go down descriptor 3 and answers come up 4, each ended by a zero byte."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="rg-chromium-")
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()
        pipe = f'exec "$@" 3<&{down_read} 4>&{up_write}'
        words = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir=" + self.home, "about:blank"]
        self.process = subprocess.Popen(["sh", "-c", pipe, "sh", *words], pass_fds=(down_read, up_write),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down_read)
        os.close(up_write)
        self.rest, self.number, self.session = b"", 0, None
        self.said, self.asked, self.events = [], [], []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(domain + ".enable")

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.down)
        os.close(self.up)
        shutil.rmtree(self.home, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.rest:
            more = os.read(self.up, 1 << 20)
            if not more:
                raise EOFError("chromium has ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def note(self, m):
        what, about = m["method"], m["params"]
        if what == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(a.get("value")) for a in about["args"]))
        elif what == "Runtime.exceptionThrown":
            self.said.append(about["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif what == "Log.entryAdded":
            self.said.append(about["entry"]["text"])
        elif what == "Network.requestWillBeSent":
            self.asked.append(about["request"]["url"])
        self.events.append(what)

    def __call__(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.down, json.dumps(message).encode() + b"\0")
        while True:
            m = self.receive()
            if m.get("id") == self.number:
                if "error" in m:
                    raise RuntimeError(method + ": " + m["error"]["message"])
                return m["result"]
            if "method" in m:
                self.note(m)

    def js(self, text):
        r = self("Runtime.evaluate", expression=text, returnByValue=True)
        if "exceptionDetails" in r:
            raise RuntimeError(text + ": " + r["exceptionDetails"]["exception"].get("description", "?"))
        return r["result"].get("value")

    def open(self, page, width=1280, height=900, dark=False):
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        self("Page.navigate", url="file://" + os.path.abspath(page))
        while "Page.loadEventFired" not in self.events:
            m = self.receive()
            if "method" in m:
                self.note(m)

    def move(self, x, y, kind="mouseMoved", **more):
        self("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.move(x, y)
        self.move(x, y, "mousePressed", button="left", clickCount=1)
        self.move(x, y, "mouseReleased", button="left", clickCount=1)

    def key(self, name):
        code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Escape": 27}[name]
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)

    def box(self, selector):
        """x, y, width and height of an element, scrolled into view."""
        return self.js(f"(()=>{{const e=document.querySelector({json.dumps(selector)});"
                       "e.scrollIntoView({block:'center',behavior:'instant'});const r=e.getBoundingClientRect();"
                       "return [r.x,r.y,r.width,r.height]})()")

    def shot(self, path, whole=False, at=None):
        more = {}
        if at:
            self.box(at)
        if whole:
            high = self.js("document.documentElement.scrollHeight")
            wide = self.js("document.documentElement.clientWidth")
            more = {"clip": {"x": 0, "y": 0, "width": wide, "height": high, "scale": 1}, "captureBeyondViewport": True}
        with open(path, "wb") as f:
            f.write(base64.b64decode(self("Page.captureScreenshot", format="png", **more)["data"]))

    def pdf(self, path):
        data = base64.b64decode(self("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
        with open(path, "wb") as f:
            f.write(data)
        return data


def program():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    sys.exit("no chromium in PATH")


# --- what must be so ---

def luminance(colour):
    def part(hexes):
        v = int(hexes, 16) / 255
        return v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4
    return 0.2126 * part(colour[1:3]) + 0.7152 * part(colour[3:5]) + 0.0722 * part(colour[5:7])


def contrast(a, b):
    """WCAG 2.2: of relative luminances."""
    hi, lo = sorted((luminance(a), luminance(b)), reverse=True)
    return (hi + 0.05) / (lo + 0.05)


# Letters and what they stand on: 4.5, or 3 for signs in cells and large words.
LETTERS = [(ink, ground, 4.5) for ink in ("ink", "soft", "link") for ground in ("bg", "card")]
LETTERS += [(w, w + "bg", 4.5) for w in ("pass", "warn", "fail", "unknown")]
LETTERS += [(ink, w + "bg", 4.5) for ink in ("ink", "soft") for w in ("pass", "warn", "fail", "unknown")]
LETTERS += [("link", w + "bg", 4.5) for w in ("pass", "warn", "fail", "unknown")]
LETTERS += [("onmark", w, 4.5) for w in ("slow", "wrong")] + [("card", "dead", 4.5), ("fail", "card", 4.5)]
LETTERS += [(w, "card", 3) for w in ("slow", "wrong", "dead")]


def checks(b, page):
    yield from themes(b, page)
    b.open(page)
    text = b.js("document.body.innerText")
    yield "a verdict, one main heading", b.js("document.querySelectorAll('h1').length") == 1 and "undefined" not in text and "NaN" not in text
    levels = b.js("[...document.querySelectorAll('h1,h2,h3,h4')].map(h=>+h.tagName[1])")
    yield "headings do not skip a level", all(y <= x + 1 for x, y in zip(levels, levels[1:]))
    yield "a language, a title", b.js("document.documentElement.lang") == "en" and bool(b.js("document.title"))
    yield "pictures are named", b.js("[...document.querySelectorAll('svg,canvas')].filter(e=>!e.getAttribute('aria-label')&&!e.getAttribute('aria-hidden')).length") == 0
    yield "ids are unique", b.js("(()=>{const i=[...document.querySelectorAll('[id]')].map(e=>e.id);return new Set(i).size===i.length})()")
    yield "links lead somewhere", b.js("[...document.querySelectorAll('a[href]')].every(a=>document.querySelector(a.getAttribute('href')))")
    yield from sorting(b)
    if b.js("!!document.getElementById('heat')"):
        yield from the_map(b)
    yield from racks(b)
    for width in (1280, 390, 320):
        b.open(page, width)
        wide = b.js("[...document.querySelectorAll('body *')].filter(e=>!e.closest('.scroll,nav,.skip')&&"
                    "e.getBoundingClientRect().right>innerWidth+1).slice(0,3).map(e=>e.tagName+'.'+e.className)")
        over = b.js("document.documentElement.scrollWidth-document.documentElement.clientWidth")
        yield f"nothing is wider than {width} px {wide or ''}", over <= 0 and not wide
    yield from without_script(b, page)
    b.open(page)
    with tempfile.TemporaryDirectory() as folder:
        pdf = b.pdf(os.path.join(folder, "page.pdf"))
    yield "it prints", pdf.startswith(b"%PDF") and len(pdf) > 20000
    yield f"nothing in the console {b.said[:2] or ''}", not b.said
    yield f"nothing is fetched {[u for u in b.asked if not u.startswith('file:')][:2] or ''}", all(u.startswith("file:") for u in b.asked)


def without_script(b, page):
    b("Emulation.setScriptExecutionDisabled", value=True)
    b.open(page)
    box = "(id => { const e = document.getElementById(id); return e ? e.getBoundingClientRect().height : -1; })"
    yield "without scripts the map and the tables are there, and no control that does nothing", \
        b.js(f"{box}('heat') <= 0 && ({box}('still') > 100 || !document.getElementById('heat')) && {box}('checktable') > 50 && "
             "![...document.querySelectorAll('button,select,input')].some(e => e.getBoundingClientRect().height > 0)")
    b("Emulation.setScriptExecutionDisabled", value=False)


def themes(b, page):
    for dark in (False, True):
        b.open(page, dark=dark)
        colour = {n: b.js(f"getComputedStyle(document.documentElement).getPropertyValue('--{n}').trim()")
                  for n in {w for pair in LETTERS for w in pair[:2]}}
        low = [f"{a} on {g}: {contrast(colour[a], colour[g]):.2f}" for a, g, least in LETTERS if contrast(colour[a], colour[g]) < least]
        yield f"contrast, {'dark' if dark else 'light'} {low or ''}", not low


def sorting(b):
    values = "[...document.querySelector('#checktable tbody').rows].map(r=>+r.cells[2].dataset.v).filter(v=>!isNaN(v))"
    for order in ("ascending", "descending"):
        x, y, w, h = b.box("#checktable thead th:nth-child(3) button")
        b.click(x + w / 2, y + h / 2)
        got = b.js(values)
        yield f"checks sort {order}", got == sorted(got, reverse=order == "descending") and \
            b.js("document.querySelector('#checktable thead th:nth-child(3)').getAttribute('aria-sort')") == order
    if b.js("!!document.querySelector('.filter input')"):
        b.js("(()=>{const i=document.querySelector('.filter input');i.value='no such row';i.dispatchEvent(new Event('input'))})()")
        left = b.js("[...document.querySelector('.filter').nextElementSibling.querySelectorAll('tbody tr')].filter(r=>!r.hidden).length")
        b.js("(()=>{const i=document.querySelector('.filter input');i.value='';i.dispatchEvent(new Event('input'))})()")
        yield "a filter leaves rows that have the word", left == 0


def the_map(b):
    x, y, w, h = b.box("#heat")
    said = ""
    for at in range(1, 20):
        b.move(x + 0.05 * at * w, y + 0.8 * h)
        said += b.js("tip.hidden ? '' : tip.textContent")
    yield "hovering over the map reads a pair", " sends to " in said and "%" in said
    b.js("document.getElementById('heat').focus({preventScroll:true})")
    read = ""
    for name in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        b.key(name)
        read += b.js("mapread.textContent")
    yield "arrow keys read a pair", " sends to " in read
    b.key("Enter")
    zoomed = b.js("document.getElementById('from').value")
    b.key("Escape")
    yield "Enter opens a cell, Escape goes back", (zoomed != "-1" or b.js("JSON.parse(data.textContent).ends.endpoint.length") <= 160) and b.js("document.getElementById('from').value") == "-1"
    cells = b.js("(()=>{const c=document.getElementById('heat'),d=c.getContext('2d').getImageData(0,0,c.width,c.height).data,s=new Set();"
                 "for(let i=0;i<d.length;i+=4)s.add(d[i]<<16|d[i+1]<<8|d[i+2]);return s.size})()")
    yield "the map has colours", cells > 3


def racks(b):
    if not b.js("!!document.querySelector('.rack svg path.ok,.rack svg path.slow')"):
        return
    x, y, w, h = b.box(".rack svg")
    b.move(x + 0.5 * w, y + 0.5 * h)
    yield "hovering over a rack reads an endpoint", b.js("!tip.hidden && /within limits|slow|dead|wrong|not measured/.test(tip.textContent)")
    b.js("document.querySelector('.rack svg').focus({preventScroll:true})")
    b.key("ArrowRight")
    b.key("ArrowDown")
    yield "arrow keys read an endpoint", b.js("!rackread.hidden && rackread.textContent.length > 3")


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    a.add_argument("page")
    a.add_argument("--shot")
    a.add_argument("--pdf")
    a.add_argument("--width", type=int, default=1280)
    a.add_argument("--height", type=int, default=900)
    a.add_argument("--whole", action="store_true")
    a.add_argument("--dark", action="store_true")
    a.add_argument("--at")
    a.add_argument("--js", help="run this first")
    a = a.parse_args()
    b, bad = Browser(), 0
    try:
        if a.shot or a.pdf:
            b.open(a.page, a.width, a.height, a.dark)
            if a.js:
                b.js(a.js)
                time.sleep(0.2)
            if a.pdf:
                b.pdf(a.pdf)
            if a.shot:
                b.shot(a.shot, a.whole, a.at)
        else:
            for what, good in checks(b, a.page):
                print("ok" if good else "NOT OK", what)
                bad += not good
    finally:
        b.close()
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
