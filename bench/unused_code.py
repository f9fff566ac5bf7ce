"""Removes the code that a page does not use from its scripts and style sheets, for bench/savings.

The page is loaded in a Chromium of its own, whose coverage says which functions were called and which rules matched, as
the checks `unused-javascript` and `unused-css-rules` read it. The changes replace the bodies of files in a recording.
"""
import json, os, re, select, shutil, subprocess, tempfile, time

CHECKS = ("unused-css-rules", "unused-javascript")
CHROMIUM = os.environ.get("PLUMBLINE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
LOOPBACK_ONLY = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost"
LOAD_DEADLINE_S = 60
# The time after the load event in which scripts may still begin.
IDLE_S = 3


class Browser:
    """A headless Chromium with one page, connected through pipes."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory()
        down, self.commands = os.pipe()
        self.events, up = os.pipe()

        def connect():
            # The browser reads from descriptor 3 and writes to 4.
            first, second = os.dup(down), os.dup(up)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
             f"--user-data-dir={self.profile.name}", f"--host-resolver-rules={LOOPBACK_ONLY}"],
            preexec_fn=connect, close_fds=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down)
        os.close(up)
        self.buffer, self.number, self.session, self.seen = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.events)
        shutil.rmtree(self.profile.name, ignore_errors=True)

    def message(self, end_s):
        while b"\0" not in self.buffer:
            if not select.select([self.events], [], [], max(0, end_s - time.monotonic()))[0]:
                return None
            part = os.read(self.events, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.seen.append(message)
        return message

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        text = json.dumps(command).encode() + b"\0"
        while text:
            text = text[os.write(self.commands, text):]
        end_s = time.monotonic() + LOAD_DEADLINE_S
        while message := self.message(end_s):
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
        raise RuntimeError(f"{method}: no answer")

    def load(self, url):
        self.call("Page.navigate", url=url)
        end_s = time.monotonic() + LOAD_DEADLINE_S
        while not any(it["method"] == "Page.loadEventFired" for it in self.seen) and self.message(end_s):
            pass
        end_s = time.monotonic() + IDLE_S
        while self.message(end_s):
            pass

    def heard(self, method):
        return [it["params"] for it in self.seen if it["method"] == method]


def changes(url, check, files, mobile=True):
    """Returns the changes of a recording of this page that remove what is not used in these files."""
    with Browser() as browser:
        for domain in ("Page", "DOM", "CSS", "Debugger", "Profiler"):
            browser.call(f"{domain}.enable")
        if mobile:
            browser.call("Emulation.setDeviceMetricsOverride", width=412, height=823, deviceScaleFactor=1.75, mobile=True)
        browser.call("CSS.startRuleUsageTracking")
        browser.call("Profiler.startPreciseCoverage", callCount=False, detailed=False)
        browser.load(url)
        smaller = scripts(browser) if check == "unused-javascript" else sheets(browser)
    return [{"type": "replaceBody", "pattern": url, "text": text} for url, text in smaller.items() if url in files]


def scripts(browser):
    texts = {}
    for script in browser.call("Profiler.takePreciseCoverage")["result"]:
        # Inline scripts have the URL of their document.
        if not re.search(r"\.m?js(\?|$)", script["url"]) or script["url"] in texts:
            continue
        source = browser.call("Debugger.getScriptSource", scriptId=script["scriptId"])["scriptSource"]
        unused = [(it["startOffset"], it["endOffset"]) for function in script["functions"]
                  for it in function["ranges"] if it["count"] == 0]
        smaller = without_functions(source, unused)
        if len(smaller) < len(source) and is_script(smaller):
            texts[script["url"]] = smaller
    return texts


def without_functions(source, unused):
    """Empties the bodies of functions that were not called. Offsets are in UTF-16 units."""
    units = source.encode("utf-16-le")
    text = lambda start, end: units[2 * start:2 * end].decode("utf-16-le", "surrogatepass")
    # A function that cannot be emptied may contain others.
    bodies = ((start, end, body_of(text(start, end))) for start, end in unused)
    bodies = [(start, start + body, end) for start, end, body in bodies if body is not None]
    valid = are_functions([text(start, body) + "{}" for start, body, _ in bodies])
    kept, at = [], 0
    for start, body, end in sorted((it for it, is_valid in zip(bodies, valid) if is_valid), key=lambda it: (it[0], -it[2])):
        if start >= at:
            kept.append(text(at, body) + "{}")
            at = end
    return "".join(kept) + text(at, len(units) // 2)


def body_of(function):
    """Returns the offset of a function's body in UTF-16 units; None if it is not between braces."""
    single = re.match(r"(async\s+)?[\w$]+\s*=>\s*(?=\{)", function)
    at = single.end() if single else None
    if at is None:
        depth, at = 0, function.find("(")
        # The texts of default values are not expected to contain brackets.
        while 0 <= at < len(function):
            depth += {"(": 1, ")": -1}.get(function[at], 0)
            at += 1
            if depth == 0:
                break
        between = re.match(r"\s*(=>)?\s*(?=\{)", function[at:]) if at > 0 else None
        at = at + between.end() if between else None
    if at is None or function.startswith("class") or not function.endswith("}"):
        return None
    return len(function[:at].encode("utf-16-le", "surrogatepass")) // 2


SYNTAX = """
const vm = require('vm'), texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const fits = text => { try { new vm.Script(text); return true } catch { return false } };
const isModule = text => { try { new vm.SourceTextModule(text); return true } catch { return false } };
const isFunction = text => fits(`(${text})`) || fits(`({${text}})`) || fits(`(class extends Object {${text}})`);
console.log(JSON.stringify(texts.map(text => CHECK)));
"""


def syntax(check, texts):
    command = ["node", "--experimental-vm-modules", "--no-warnings", "-e", SYNTAX.replace("CHECK", check)]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def are_functions(texts):
    """Returns for each text whether it has the syntax of a function or method."""
    return syntax("isFunction(text)", texts)


def is_script(text):
    """Returns whether the text has the syntax of a script or module."""
    return syntax("fits(text) || isModule(text)", [text])[0]


def sheets(browser):
    used = {}
    for rule in browser.call("CSS.stopRuleUsageTracking")["ruleUsage"]:
        if rule["used"]:
            used.setdefault(rule["styleSheetId"], []).append((rule["startOffset"], rule["endOffset"]))
    texts = {}
    for sheet in (it["header"] for it in browser.heard("CSS.styleSheetAdded")):
        if sheet["isInline"] or not sheet["sourceURL"]:
            continue
        source = browser.call("CSS.getStyleSheetText", styleSheetId=sheet["styleSheetId"])["text"]
        smaller = without_rules(source, 0, len(source), used.get(sheet["styleSheetId"], []))
        if len(smaller) < len(source):
            texts[sheet["sourceURL"]] = smaller
    return texts


# The rules within these are removed one by one; all other rules that begin with @ are kept.
GROUPS = ("@media", "@supports", "@layer", "@container")
TOKEN = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|url\([^)]*\)|\\.|[{};]", re.S)


def without_rules(text, start, end, used):
    """Removes the style rules that matched nothing between two offsets."""
    kept, at, depth, opened = [], start, 0, start
    for token in TOKEN.finditer(text, start, end):
        kind = token.group()
        if kind == "{":
            opened = token.end() if depth == 0 else opened
            depth += 1
        elif kind == "}":
            depth -= 1
        if depth > 0 or kind not in ("}", ";"):
            continue
        rule = text[at:token.end()]
        head = re.sub(r"/\*.*?\*/", "", rule, flags=re.S).lstrip()
        if kind == "}" and head.startswith(GROUPS):
            inside = without_rules(text, opened, token.start(), used)
            kept += [text[at:opened], inside, "}"] if inside.strip() else []
        elif head.startswith("@") or any(low < token.end() and high > at for low, high in used):
            kept.append(rule)
        at = token.end()
    return "".join(kept) + text[at:end]
