"""Checks the licences and sources of `cargo metadata` (standard input) against deny.toml. Python's own library only."""
import json, re, sys, tomllib

allowed = set(tomllib.load(open(sys.argv[1], "rb"))["licenses"]["allow"])
banned = {entry["crate"] for entry in tomllib.load(open(sys.argv[1], "rb"))["bans"]["deny"]}


def fits(expression):
    """SPDX: OR needs one side, AND both; slashes are an old spelling of OR."""
    expression = expression.replace("/", " OR ").strip()
    while expression.startswith("(") and closing(expression) == len(expression) - 1:
        expression = expression[1:-1].strip()
    for word, rule in ((" OR ", any), (" AND ", all)):
        parts = split(expression, word)
        if len(parts) > 1:
            return rule(fits(part) for part in parts)
    return expression in allowed


def closing(text):
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at
    return -1


def split(text, word):
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text.startswith(word, at):
            parts.append(text[start:at])
            start = at + len(word)
    return parts + [text[start:]]


metadata = json.load(sys.stdin)
used = {node["id"] for node in metadata["resolve"]["nodes"]}
problems = []
for package in metadata["packages"]:
    if package["source"] is None or package["id"] not in used:
        continue
    name = f'{package["name"]} {package["version"]}'
    if not package["source"].startswith("registry+"):
        problems.append(f"{name} comes from {package['source']}")
    if not fits(package["license"] or "none"):
        problems.append(f"{name} is under {package['license']}")
    if package["name"] in banned:
        problems.append(f"{name} is not wanted here")
print("\n".join(problems) or f"{len(used)} crates: licences and sources are as deny.toml allows")
sys.exit(bool(problems))
