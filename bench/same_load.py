"""Lets both tools score Lighthouse's own page load, so that differences come from scoring and not from the visit.

A page needs Lighthouse's artifacts (`lighthouse URL -GA=DIR`) and a bundle of ours, from which evidence outside the
trace is taken (scripts, style sheets, images). Throttling is set to `devtools`: Lighthouse then uses the durations of
tasks unchanged, as Plumbline does, and the network stays its slow 4G. (A round trip that the load did not have is then
subtracted from the server's time: `document-latency-insight` of a slow server differs.)
"""
import gzip, json, os, pathlib, subprocess, tempfile

WAITS = ["pauseAfterFcpMs", "pauseAfterLoadMs", "networkQuietThresholdMs", "cpuQuietThresholdMs"]
LINE = {"downKbps": 1638.4, "rttMs": 150.0}


def lighthouse_again(program, gathered, url):
    """Scores Lighthouse's artifacts again with Lighthouse; returns the result as text."""
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory)
        for part in gathered.iterdir():
            if part.name not in ("artifacts.json", "lhr.report.json"):
                os.symlink(part.resolve(), copy / part.name)
        artifacts = json.loads((gathered / "artifacts.json").read_text())
        settings = artifacts["settings"]
        settings["throttlingMethod"] = "devtools"
        # Lighthouse rejects other settings than those of the artifacts, and these belong to that method.
        settings.update(dict.fromkeys(WAITS, 5250))
        settings["auditMode"], settings["gatherMode"], settings["onlyCategories"] = str(copy), False, ["performance"]
        (copy / "artifacts.json").write_text(json.dumps(artifacts))
        options = [f"-A={copy}", "--throttling-method=devtools", "--only-categories=performance"]
        if settings["formFactor"] == "desktop":
            options.append("--preset=desktop")
        return subprocess.run([program, "13", url] + options, capture_output=True, text=True, timeout=240).stdout


def convert_element(element):
    """Converts an element of Lighthouse to our format."""
    node = element["node"]
    rect = node["boundingRect"]
    return {"nodeId": element["nodeId"], "node": {
        "selector": node["selector"], "snippet": node["snippet"], "label": node["nodeLabel"],
        "path": node["devtoolsNodePath"], "rect": {key: rect[key] for key in ("left", "top", "width", "height")}}}


def main_frame(log):
    """Returns the frame of the first requested document."""
    requests = (message["params"] for message in log if message["method"] == "Network.requestWillBeSent")
    return next(params["frameId"] for params in requests if params.get("type") == "Document")


def bundle_of(gathered, ours, to):
    """Writes our bundle of the page with Lighthouse's load."""
    bundle = json.loads(gzip.decompress(ours.read_bytes()))
    artifacts = json.loads((gathered / "artifacts.json").read_text())
    trace = json.loads((gathered / "trace.json").read_text())
    # Lighthouse's Chromium paints in the host's pixels, ours in the device's.
    ratio = artifacts["settings"]["screenEmulation"]["deviceScaleFactor"] / (artifacts["HostDPR"] or 1)
    for event in trace["traceEvents"]:
        if event["name"] == "PaintImage":
            for side in ("width", "height"):
                event["args"]["data"][side] = event["args"]["data"].get(side, 0) * ratio
    bundle["trace"] = json.dumps({"traceEvents": trace["traceEvents"]})
    our_artifacts = bundle["artifacts"]
    log = (gathered / "devtoolslog.json").read_text()
    frames = main_frame(json.loads(bundle["log"])), main_frame(json.loads(log))
    for script in our_artifacts.get("scripts", {}).get("gathered", []):
        script["frame"] = frames[1] if script["frame"] == frames[0] else script["frame"]
    bundle["log"] = log
    our_artifacts.pop("scheduler", None)
    elements = {element["nodeId"]: convert_element(element) for element in artifacts["TraceElements"] if "nodeId" in element}
    our_artifacts["trace-elements"] = {"gathered": list(elements.values())}
    conditions = our_artifacts["conditions"]["gathered"]
    conditions["network"].update(LINE)
    conditions["cpu"].update({"rate": 1.0, "limitedByHost": False})
    to.write_bytes(gzip.compress(json.dumps(bundle).encode(), 1))
