"""Lighthouse's own load, for both to judge: what is left of a difference then is the judge's, not the visit's.

Of a page there must be what Lighthouse gathered (`lighthouse URL -GA=DIR`) and a bundle of ours, which lends the
evidence that does not come from the trace (scripts, style sheets, images). Throttling is set to `devtools`: Lighthouse
then takes the times of tasks as they are, as Plumbline does, and the line stays that of its slow 4G. (A round trip that
the load never had is then taken off what the server took: `document-latency-insight` of a slow server differs.)
"""
import gzip, json, os, pathlib, subprocess, tempfile

WAITS = ["pauseAfterFcpMs", "pauseAfterLoadMs", "networkQuietThresholdMs", "cpuQuietThresholdMs"]
LINE = {"downKbps": 1638.4, "rttMs": 150.0}


def lighthouse_again(program, gathered, url):
    """Lighthouse's verdict on what it gathered. The result as text."""
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory)
        for part in gathered.iterdir():
            if part.name not in ("artifacts.json", "lhr.report.json"):
                os.symlink(part.resolve(), copy / part.name)
        artifacts = json.loads((gathered / "artifacts.json").read_text())
        settings = artifacts["settings"]
        settings["throttlingMethod"] = "devtools"
        # It refuses to judge with other settings than were gathered with, and these come with that method.
        settings.update(dict.fromkeys(WAITS, 5250))
        settings["auditMode"], settings["gatherMode"], settings["onlyCategories"] = str(copy), False, ["performance"]
        (copy / "artifacts.json").write_text(json.dumps(artifacts))
        options = [f"-A={copy}", "--throttling-method=devtools", "--only-categories=performance"]
        if settings["formFactor"] == "desktop":
            options.append("--preset=desktop")
        return subprocess.run([program, "13", url] + options, capture_output=True, text=True, timeout=240).stdout


def described(element):
    """An element as Lighthouse has it, in our words."""
    node = element["node"]
    rect = node["boundingRect"]
    return {"nodeId": element["nodeId"], "node": {
        "selector": node["selector"], "snippet": node["snippet"], "label": node["nodeLabel"],
        "path": node["devtoolsNodePath"], "rect": {key: rect[key] for key in ("left", "top", "width", "height")}}}


def main_frame(log):
    """Of the first document that was asked for."""
    asked = (message["params"] for message in log if message["method"] == "Network.requestWillBeSent")
    return next(params["frameId"] for params in asked if params.get("type") == "Document")


def bundle_of(gathered, ours, to):
    """Our bundle of the page with Lighthouse's load in it."""
    bundle = json.loads(gzip.decompress(ours.read_bytes()))
    artifacts = json.loads((gathered / "artifacts.json").read_text())
    trace = json.loads((gathered / "trace.json").read_text())
    # Lighthouse's Chromium paints with the host's pixels, ours with the device's.
    ratio = artifacts["settings"]["screenEmulation"]["deviceScaleFactor"] / (artifacts["HostDPR"] or 1)
    for event in trace["traceEvents"]:
        if event["name"] == "PaintImage":
            for side in ("width", "height"):
                event["args"]["data"][side] = event["args"]["data"].get(side, 0) * ratio
    bundle["trace"] = json.dumps({"traceEvents": trace["traceEvents"]})
    gathered_by_us = bundle["artifacts"]
    log = (gathered / "devtoolslog.json").read_text()
    frames = main_frame(json.loads(bundle["log"])), main_frame(json.loads(log))
    for script in gathered_by_us.get("scripts", {}).get("gathered", []):
        script["frame"] = frames[1] if script["frame"] == frames[0] else script["frame"]
    bundle["log"] = log
    gathered_by_us.pop("scheduler", None)
    elements = {element["nodeId"]: described(element) for element in artifacts["TraceElements"] if "nodeId" in element}
    gathered_by_us["trace-elements"] = {"gathered": list(elements.values())}
    conditions = gathered_by_us["conditions"]["gathered"]
    conditions["network"].update(LINE)
    conditions["cpu"].update({"rate": 1.0, "limitedByHost": False})
    to.write_bytes(gzip.compress(json.dumps(bundle).encode(), 1))
