"""Holds Cargo.lock against a checkout of github.com/rustsec/advisory-db: advisories.py Cargo.lock DIR [deny.toml].

For machines without cargo-deny or without a way to fetch the database. Python's own library only. Ends with 1 where a
crate in use has a vulnerability; what is only unmaintained or unsound is said and does not fail, as in cargo-deny's
default for transitive crates. Format: the database's EXAMPLE_ADVISORY.md; versions are Cargo's requirements."""
import pathlib, re, sys, tomllib


def key(version):
    """To compare by: numbers, then whether it is a release (a pre-release comes before it)."""
    core, _, before = version.split("+")[0].partition("-")
    numbers = [int(part) for part in core.split(".")]
    parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in before.split(".") if part]
    return numbers + [0] * (3 - len(numbers)), not before, parts


def next_breaking(numbers):
    """The first version that `^` leaves out: past the leftmost part that is not zero."""
    at = next((n for n, part in enumerate(numbers) if part), len(numbers) - 1)
    return [*numbers[:at], numbers[at] + 1] + [0] * (2 - at)


def fits(version, requirement):
    for part in requirement.split(","):
        sign, wanted = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~)?\s*([0-9]\S*)\s*", part).groups()
        ours, theirs = key(version), key(wanted)
        if sign in (None, "^"):
            numbers = [int(n) for n in wanted.split("-")[0].split(".")]
            ok = theirs <= ours and ours[0] < next_breaking(numbers)
        elif sign == "~":
            numbers = [int(n) for n in wanted.split("-")[0].split(".")][:2]
            ok = theirs <= ours and ours[0] < ([*numbers[:-1], numbers[-1] + 1] + [0, 0])[:3]
        else:
            ok = {">=": ours >= theirs, "<=": ours <= theirs, ">": ours > theirs, "<": ours < theirs, "=": ours == theirs}[sign]
        if not ok:
            return False
    return True


def main(lock, database, deny=None):
    ignored = tomllib.loads(pathlib.Path(deny).read_text())["advisories"]["ignore"] if deny else []
    ignored = {entry if isinstance(entry, str) else entry["id"] for entry in ignored}
    packages = tomllib.loads(pathlib.Path(lock).read_text())["package"]
    packages = [package for package in packages if package.get("source", "").startswith("registry+")]
    files = {path.stem: path for path in pathlib.Path(database, "crates").glob("*/RUSTSEC-*.md")}
    if not files:
        sys.exit(f"advisories: no advisories below {database}/crates")
    by_crate = {}
    for path in files.values():
        by_crate.setdefault(path.parent.name, []).append(path)
    bad = 0
    for package in packages:
        for path in by_crate.get(package["name"], []):
            told = tomllib.loads(re.search(r"```toml\n(.*?)```", path.read_text(), re.S)[1])
            advisory, versions = told["advisory"], told["versions"]
            safe = versions.get("patched", []) + versions.get("unaffected", [])
            if "withdrawn" in advisory or advisory["id"] in ignored or any(fits(package["version"], v) for v in safe):
                continue
            kind = advisory.get("informational", "vulnerability")
            bad += kind == "vulnerability"
            print(f"{package['name']} {package['version']}: {advisory['id']}, {kind}")
    newest = max(files)
    print(f"{len(packages)} crates against {len(files)} advisories (the newest is {newest}): {bad} vulnerabilities")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
