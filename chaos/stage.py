"""Test environment: PostgreSQL, servers, agents, a page, a network between them, disks.

All of it is real and isolated: a temporary directory, a separate database cluster, processes that are ended by their
id, a namespace and mounts that are always removed.
"""
import contextlib, glob, json, os, pathlib, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, threading
import time

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = 65534  # PostgreSQL refuses to run as root.
TIMEOUT_S = 120  # For operations that take seconds, on a busy machine.
NEAR, FAR = "10.213.77.1", "10.213.77.2"  # The two ends of the veth pair into the namespace.


class CheckFailed(Exception):
    """An invariant or expectation that does not hold."""


def wait_until(description, condition, within=TIMEOUT_S):
    """Waits until a condition returns a true value, and returns it."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise CheckFailed(f"timed out after {within} s: {description}")
        time.sleep(0.05)
    return found


def output_of(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, **more)
    if done.returncode:
        raise CheckFailed(f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Program:
    """A process with its output in a file, ended with the environment."""

    def __init__(self, stage, name, command, **more):
        self.log = stage.directory / f"{name}.log"
        self.name = name
        with open(self.log, "ab") as log:
            # In its own session: an interrupt ends this program, which then ends the others.
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            start_new_session=True, **more)
        stage.on_exit(self.kill)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Sends SIGTERM and returns the exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_S)

    def log_end(self):
        """Returns the current end of its log."""
        return self.log.stat().st_size

    def wait_for_line(self, text, after=0, within=TIMEOUT_S):
        """Waits for a log line with this text and returns it."""
        def line():
            lines = self.log.read_bytes()[after:].decode(errors="replace").splitlines()
            found = next((line for line in lines if text in line), None)
            if found is None and self.process.poll() is not None:
                raise CheckFailed(f"{self.name} exited without logging `{text}`: {lines[-3:]}")
            return found
        return wait_until(f"{self.name} logs `{text}`", line, within)

    def children(self):
        """Returns the ids of all its descendants."""
        found, parents = [], [self.process.pid]
        while parents:
            pid = parents.pop()
            for task in glob.glob(f"/proc/{pid}/task/*/children"):
                with contextlib.suppress(OSError):
                    parents += map(int, pathlib.Path(task).read_text().split())
            found.append(pid)
        return found[1:]


class Stage:
    """The temporary directory of a case, and its cleanup."""

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

    def on_exit(self, callback):
        self.undo.callback(callback)


def postgres_programs():
    found = [shutil.which("initdb"), *sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True)]
    # A wrapper on the path may not have the other programs.
    for directory in (pathlib.Path(initdb).parent for initdb in found if initdb):
        if all((directory / name).exists() for name in ("initdb", "postgres", "psql", "createdb")):
            return directory
    raise SystemExit("PostgreSQL not found: tools/setup test installs it")


class Postgres:
    REPORT = "reports.report::json"

    def __init__(self, stage, within=None):
        self.stage, self.programs = stage, postgres_programs()
        self.directory = (within or stage.directory) / "postgres"
        self.directory.mkdir(mode=0o700)
        self.user = {}
        if os.geteuid() == 0:
            self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            os.chown(self.directory, NOBODY, NOBODY)
        output_of(self.programs / "initdb", "-D", self.directory / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8",
             "--no-locale", "--no-sync", cwd=self.directory, **self.user)
        self.start()
        output_of(self.programs / "createdb", "-h", self.directory, "-U", "postgres", "plumbline")
        self.url = f"postgres://postgres@{str(self.directory).replace('/', '%2F')}/plumbline"

    def start(self):
        # Without fsync: only processes crash here, never the machine.
        self.process = Program(self.stage, "postgres", [
            self.programs / "postgres", "-D", self.directory / "data", "-k", self.directory, "-c", "listen_addresses=",
            "-c", "fsync=off", "-c", "max_connections=100"], cwd=self.directory, **self.user)
        wait_until("PostgreSQL is ready", lambda: subprocess.run(
            [self.programs / "psql", "-h", self.directory, "-U", "postgres", "-c", "SELECT 1"],
            capture_output=True).returncode == 0)

    def crash(self):
        """Stops it in immediate mode: connections are closed, and uncommitted data is lost."""
        self.process.signal(signal.SIGQUIT)
        self.process.process.wait(TIMEOUT_S)

    def rows(self, sql):
        query = f"SELECT coalesce(json_agg(result), '[]') FROM ({sql}) AS result"
        return json.loads(output_of(self.programs / "psql", "-h", self.directory, "-U", "postgres", "-d", "plumbline", "-XAtc",
                               query))


class Sqlite:
    REPORT = "reports.report"

    def __init__(self, file):
        self.file, self.url = file, f"sqlite:{file}"

    def rows(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=TIMEOUT_S)) as file:
            file.row_factory = sqlite3.Row
            return [dict(row) for row in file.execute(sql)]


class Server:
    """`plumbline serve`, usually without an embedded agent; restarts at the same address."""

    def __init__(self, stage, store, name="server", data=None, listen="127.0.0.1", lease_s=20, program=None, slots=0,
                 per_minute=0):
        self.stage, self.store, self.name = stage, store, name
        self.program = program or stage.program
        self.data = data or stage.directory / name
        self.blobs = (data or stage.directory) / "blobs"
        self.listen, self.port, self.lease_s, self.slots = listen, 0, lease_s, slots
        self.per_minute = str(per_minute)  # Limit of starts and other requests of a key; 0 is none.
        self.start()

    def store_args(self):
        return ["--data", self.data, "--store", self.store.url]

    def start(self):
        log_start = (self.stage.directory / f"{self.name}.log")
        log_start = log_start.stat().st_size if log_start.exists() else 0
        self.process = Program(self.stage, self.name, [
            self.program, "serve", "--listen", f"{self.listen}:{self.port}", *self.store_args(), "--slots", str(self.slots),
            "--blobs", f"file:{self.blobs}", "--lease-seconds", str(self.lease_s), "--starts-per-minute",
            self.per_minute, "--requests-per-minute", self.per_minute, "--unfinished-per-account", "0", "--allow-target", "127.0.0.1",
            "--drain-seconds", "5", "--log", "warn"],
            env=os.environ | {"XDG_CACHE_HOME": str(self.stage.settings.cache), "RUST_BACKTRACE": "0"})
        self.port = int(self.process.wait_for_line("listening on", log_start).rsplit(":", 1)[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def account(self, name, credits):
        return output_of(self.program, "keys", "create", "--credits", str(credits), "--name", name,
                    *self.store_args()).split()[-1]

    def token(self, name):
        add = [self.program, "admin", "agents", "add"]
        # A version before tokens had limits has no such flags.
        has_limits = "--slots" in output_of(*add, "--help")
        limits = ["--location", "us-tx", "--slots", "1000"] if has_limits else []
        return output_of(*add, name, *limits, *self.store_args()).split()[-1]


class Agent(Program):
    """`plumbline agent` with a real Chromium, at the location of the test audits."""

    def __init__(self, stage, server, name, url=None, within=(), slots=1, program=None):
        # A calibration on a busy machine must not be cached for other programs.
        environment = os.environ | {"PLUMBLINE_AGENT_TOKEN": server.token(name), "RUST_BACKTRACE": "0",
                                    "XDG_CACHE_HOME": str(stage.settings.cache)}
        super().__init__(stage, name, [
            *within, program or stage.program, "agent", "--server", url or server.url, "--plain-http", "--location", "us-tx",
            "--slots", str(slots), "--allow-target", "127.0.0.1", "--drain-seconds", "5"], env=environment)


class Page(Program):
    """The audited page, part of which is slow, so that faults can occur during a visit."""

    def __init__(self, stage, name="page", within=(), port=0):
        super().__init__(stage, name, [*within, sys.executable, "-u", str(HERE / "page.py"), str(port)])
        self.port = int(self.wait_for_line("port").split()[1])
        self.url = f"http://127.0.0.1:{self.port}/"

    def wait_for_visits(self, times=1):
        """Waits until the page was requested so many times; the visitors still wait for the slow part."""
        wait_until("the page is visited", lambda: self.log.read_text().count("GET /slow") >= times)


class Namespace:
    """A network namespace with a veth pair. Needs root."""

    def __init__(self, stage):
        self.name, self.veth = f"chaos{os.getpid()}", f"chaos{os.getpid()}"
        output_of("ip", "netns", "add", self.name)
        stage.on_exit(lambda: output_of("ip", "netns", "del", self.name))
        output_of("ip", "link", "add", self.veth, "type", "veth", "peer", "name", "far", "netns", self.name)
        output_of("ip", "addr", "add", f"{NEAR}/30", "dev", self.veth)
        self.reconnect()
        for command in (["addr", "add", f"{FAR}/30", "dev", "far"], ["link", "set", "far", "up"],
                        ["link", "set", "lo", "up"]):
            output_of("ip", "-n", self.name, *command)
        self.within = ("ip", "netns", "exec", self.name)

    def disconnect(self):
        output_of("ip", "link", "set", self.veth, "down")

    def reconnect(self):
        output_of("ip", "link", "set", self.veth, "up")


class Disk:
    """A small disk that can be filled. Needs root."""

    def __init__(self, stage, size_mb):
        self.directory = stage.directory / "disk"
        self.directory.mkdir()
        output_of("mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=755", "chaos", str(self.directory))
        stage.on_exit(lambda: output_of("umount", "-l", str(self.directory)))

    def fill(self):
        with open(self.directory / "ballast", "wb", buffering=0) as ballast:
            with contextlib.suppress(OSError):
                while True:
                    ballast.write(bytes(4096))

    def free(self):
        (self.directory / "ballast").unlink()


class Proxy:
    """A proxy between agent and server that changes one byte of one bundle."""

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

    def pass_on(self, reader, writer, transform):
        with contextlib.suppress(OSError):
            while data := reader.recv(65536):
                writer.sendall(transform(reader, data))
        for end in (reader, writer):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def damage(self, reader, data):
        is_bundle = data.startswith(b"PUT ") and b"/bundle?" in data.split(b"\r\n", 1)[0]
        if self.damaged or not is_bundle:
            return data
        self.damaged = 1
        head, body = data.split(b"\r\n\r\n", 1)
        while len(body) < 100:
            body += reader.recv(65536)
        return head + b"\r\n\r\n" + body[:99] + bytes([body[99] ^ 0xff]) + body[100:]

    def count(self, _, data):
        self.refused += data.startswith(b"HTTP/1.1 422 ")
        return data
