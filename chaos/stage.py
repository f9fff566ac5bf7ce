"""Everything that plays a part: PostgreSQL, servers, agents, a page, a network between them, disks.

All of it is real and ours alone: a temporary directory, a cluster of its own, processes that are ended by their
number, a namespace and mounts that are removed, whatever happened.
"""
import contextlib, glob, json, os, pathlib, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, threading
import time

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = 65534  # PostgreSQL refuses to run as root.
PATIENCE_S = 120  # For what should take seconds, on a machine that does much besides.
NEAR, FAR = "10.213.77.1", "10.213.77.2"  # The two ends of the cable into the namespace.


class Broken(Exception):
    """A promise that was not kept."""


def until(what, condition, within=PATIENCE_S):
    """Waits for a condition to be true, and returns what it returned."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise Broken(f"{what}: not within {within} s")
        time.sleep(0.05)
    return found


def said(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, **more)
    if done.returncode:
        raise Broken(f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Program:
    """A process with its output in a file, ended with the stage."""

    def __init__(self, stage, name, command, **more):
        self.log = stage.directory / f"{name}.log"
        self.name = name
        with open(self.log, "ab") as log:
            # Away from the terminal: an interrupt is for this program, which then ends the others.
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            start_new_session=True, **more)
        stage.ends(self.kill)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Asks it to end, and returns its exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def here(self):
        """A place in its log."""
        return self.log.stat().st_size

    def says(self, words, after=0, within=PATIENCE_S):
        """The first line with these words in it."""
        def line():
            lines = self.log.read_bytes()[after:].decode(errors="replace").splitlines()
            found = next((line for line in lines if words in line), None)
            if found is None and self.process.poll() is not None:
                raise Broken(f"{self.name} ended without saying `{words}`: {lines[-3:]}")
            return found
        return until(f"{self.name} says `{words}`", line, within)

    def children(self):
        """All processes below it."""
        found, parents = [], [self.process.pid]
        while parents:
            pid = parents.pop()
            for task in glob.glob(f"/proc/{pid}/task/*/children"):
                with contextlib.suppress(OSError):
                    parents += map(int, pathlib.Path(task).read_text().split())
            found.append(pid)
        return found[1:]


class Stage:
    """One case's temporary directory, and all that has to be undone."""

    def __init__(self, settings):
        self.settings = settings
        self.program = settings.plumbline
        self.undo = contextlib.ExitStack()

    def __enter__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="plumbline-chaos-"))
        os.chmod(self.directory, 0o755)
        return self

    def __exit__(self, kind, *_):
        self.undo.close()
        if kind is None or not self.settings.keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def ends(self, callback):
        self.undo.callback(callback)


def postgres_programs():
    found = [shutil.which("initdb"), *sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True)]
    # A wrapper on the path may lack the others.
    for directory in (pathlib.Path(initdb).parent for initdb in found if initdb):
        if all((directory / name).exists() for name in ("initdb", "postgres", "psql", "createdb")):
            return directory
    raise SystemExit("PostgreSQL is missing: tools/setup test installs it")


class Postgres:
    REPORT = "reports.report::json"

    def __init__(self, stage, within=None):
        self.stage, self.programs = stage, postgres_programs()
        self.directory = (within or stage.directory) / "postgres"
        self.directory.mkdir(mode=0o700)
        self.who = {}
        if os.geteuid() == 0:
            self.who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            os.chown(self.directory, NOBODY, NOBODY)
        said(self.programs / "initdb", "-D", self.directory / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8",
             "--no-locale", "--no-sync", cwd=self.directory, **self.who)
        self.start()
        said(self.programs / "createdb", "-h", self.directory, "-U", "postgres", "plumbline")
        self.url = f"postgres://postgres@{str(self.directory).replace('/', '%2F')}/plumbline"

    def start(self):
        # Without fsync: here processes die, never the machine.
        self.process = Program(self.stage, "postgres", [
            self.programs / "postgres", "-D", self.directory / "data", "-k", self.directory, "-c", "listen_addresses=",
            "-c", "fsync=off", "-c", "max_connections=100"], cwd=self.directory, **self.who)
        until("PostgreSQL is ready", lambda: subprocess.run(
            [self.programs / "psql", "-h", self.directory, "-U", "postgres", "-c", "SELECT 1"],
            capture_output=True).returncode == 0)

    def crash(self):
        """Immediate mode: connections are cut, and what was not committed is gone."""
        self.process.signal(signal.SIGQUIT)
        self.process.process.wait(PATIENCE_S)

    def rows(self, sql):
        asked = f"SELECT coalesce(json_agg(found), '[]') FROM ({sql}) AS found"
        return json.loads(said(self.programs / "psql", "-h", self.directory, "-U", "postgres", "-d", "plumbline", "-XAtc",
                               asked))


class Sqlite:
    REPORT = "reports.report"

    def __init__(self, file):
        self.file, self.url = file, f"sqlite:{file}"

    def rows(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=PATIENCE_S)) as file:
            file.row_factory = sqlite3.Row
            return [dict(row) for row in file.execute(sql)]


class Server:
    """`plumbline serve`, most of the time without an agent inside; comes back at the address it had."""

    def __init__(self, stage, store, name="server", data=None, listen="127.0.0.1", lease_s=20, program=None, slots=0,
                 per_minute=0):
        self.stage, self.store, self.name = stage, store, name
        self.program = program or stage.program
        self.data = data or stage.directory / name
        self.blobs = (data or stage.directory) / "blobs"
        self.listen, self.port, self.lease_s, self.slots = listen, 0, lease_s, slots
        self.per_minute = str(per_minute)  # Starts and other requests of a key; 0 is no limit.
        self.start()

    def place(self):
        return ["--data", self.data, "--store", self.store.url]

    def start(self):
        begins = (self.stage.directory / f"{self.name}.log")
        begins = begins.stat().st_size if begins.exists() else 0
        self.process = Program(self.stage, self.name, [
            self.program, "serve", "--listen", f"{self.listen}:{self.port}", *self.place(), "--slots", str(self.slots),
            "--blobs", f"file:{self.blobs}", "--lease-seconds", str(self.lease_s), "--starts-per-minute",
            self.per_minute, "--requests-per-minute", self.per_minute, "--unfinished-per-account", "0", "--allow-target", "127.0.0.1",
            "--drain-seconds", "5", "--log", "warn"],
            env=os.environ | {"XDG_CACHE_HOME": str(self.stage.settings.cache), "RUST_BACKTRACE": "0"})
        self.port = int(self.process.says("listening on", begins).rsplit(":", 1)[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def account(self, name, credits):
        return said(self.program, "keys", "create", "--credits", str(credits), "--name", name,
                    *self.place()).split()[-1]

    def token(self, name):
        add = [self.program, "admin", "agents", "add"]
        # A version before tokens were bound has no such flags.
        is_bound = "--slots" in said(*add, "--help")
        bounds = ["--location", "us-tx", "--slots", "1000"] if is_bound else []
        return said(*add, name, *bounds, *self.place()).split()[-1]


class Agent(Program):
    """`plumbline agent` with a real Chromium, at the location that orders name."""

    def __init__(self, stage, server, name, url=None, within=(), slots=1, program=None):
        # A calibration on a busy machine is kept from everybody else.
        environment = os.environ | {"PLUMBLINE_AGENT_TOKEN": server.token(name), "RUST_BACKTRACE": "0",
                                    "XDG_CACHE_HOME": str(stage.settings.cache)}
        super().__init__(stage, name, [
            *within, program or stage.program, "agent", "--server", url or server.url, "--plain-http", "--location", "us-tx",
            "--slots", str(slots), "--allow-target", "127.0.0.1", "--drain-seconds", "5"], env=environment)


class Page(Program):
    """The page that is audited: some of it takes a while, so that there is a middle of a visit."""

    def __init__(self, stage, name="page", within=(), port=0):
        super().__init__(stage, name, [*within, sys.executable, "-u", str(HERE / "page.py"), str(port)])
        self.port = int(self.says("port").split()[1])
        self.url = f"http://127.0.0.1:{self.port}/"

    def visited(self, times=1):
        """Returns when it has been asked for so often, and who did is still waiting for the rest of it."""
        until("the page is visited", lambda: self.log.read_text().count("GET /slow") >= times)


class Namespace:
    """A machine of its own at the end of a cable. Root."""

    def __init__(self, stage):
        self.name, self.cable = f"chaos{os.getpid()}", f"chaos{os.getpid()}"
        said("ip", "netns", "add", self.name)
        stage.ends(lambda: said("ip", "netns", "del", self.name))
        said("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "far", "netns", self.name)
        said("ip", "addr", "add", f"{NEAR}/30", "dev", self.cable)
        self.mend()
        for command in (["addr", "add", f"{FAR}/30", "dev", "far"], ["link", "set", "far", "up"],
                        ["link", "set", "lo", "up"]):
            said("ip", "-n", self.name, *command)
        self.within = ("ip", "netns", "exec", self.name)

    def cut(self):
        said("ip", "link", "set", self.cable, "down")

    def mend(self):
        said("ip", "link", "set", self.cable, "up")


class Disk:
    """A small disk that can be filled. Root."""

    def __init__(self, stage, size_mb):
        self.directory = stage.directory / "disk"
        self.directory.mkdir()
        said("mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=755", "chaos", str(self.directory))
        stage.ends(lambda: said("umount", "-l", str(self.directory)))

    def fill(self):
        with open(self.directory / "ballast", "wb", buffering=0) as ballast:
            with contextlib.suppress(OSError):
                while True:
                    ballast.write(bytes(4096))

    def free(self):
        (self.directory / "ballast").unlink()


class Proxy:
    """A line between agent and server that changes one byte of a bundle on its way, once."""

    def __init__(self, server):
        self.server, self.damaged, self.refused = server, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            agent, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.server.port))
            threading.Thread(target=self.pass_on, args=(agent, server, self.damage), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(server, agent, self.count), daemon=True).start()

    def pass_on(self, reader, writer, look):
        with contextlib.suppress(OSError):
            while some := reader.recv(65536):
                writer.sendall(look(reader, some))
        for end in (reader, writer):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def damage(self, reader, some):
        is_bundle = some.startswith(b"PUT ") and b"/bundle?" in some.split(b"\r\n", 1)[0]
        if self.damaged or not is_bundle:
            return some
        self.damaged = 1
        head, body = some.split(b"\r\n\r\n", 1)
        while len(body) < 100:
            body += reader.recv(65536)
        return head + b"\r\n\r\n" + body[:99] + bytes([body[99] ^ 0xff]) + body[100:]

    def count(self, _, some):
        self.refused += some.startswith(b"HTTP/1.1 422 ")
        return some
