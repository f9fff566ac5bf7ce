#!/usr/bin/env python3
"""Compares the link with a packet-level emulator, transfer by transfer.

    cargo build --release -p plumbline-link --example open_link
    sudo python3 crates/link/bench/against_packets.py --link target/release/examples/open_link

The same client fetches from the same server over both: once between two network namespaces whose
packets the emulator delays one by one (packet_link.py; Linux does TCP), once through the link on
loopback. Runs alternate, medians are compared. Needs root for the namespaces.
"""
import argparse, json, os, socket, statistics, struct, subprocess, sys, threading, time

HERE = os.path.abspath(__file__)
ROOT = os.path.abspath(os.path.join(os.path.dirname(HERE), "..", "..", ".."))
LINES = {  # down kbit/s, up kbit/s, round trip ms
    "mobileSlow4g": (1638.4, 750, 150),
    "normal4g": (9000, 9000, 170),
    "cable": (5000, 1000, 28),
    "normal3gSlow": (400, 400, 400),
}


# --- the server: GET /N returns N bytes, POST accepts a body; connections stay open ---

def serve(address, port):
    listener = socket.create_server((address, port), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=respond, args=(stream,), daemon=True).start()


def respond(stream):
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = b""
    try:
        while True:
            while b"\r\n\r\n" not in buffer:
                chunk = stream.recv(65536)
                if not chunk:
                    return
                buffer += chunk
            head, buffer = buffer.split(b"\r\n\r\n", 1)
            method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
            size = int(path[1:])
            if method == "POST":
                while len(buffer) < size:
                    chunk = stream.recv(65536)
                    if not chunk:
                        return
                    buffer += chunk
                buffer, size = buffer[size:], 2
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
    except OSError:
        pass
    finally:
        stream.close()


# --- the client: transfers, each giving named times in seconds ---

class Client:
    def __init__(self, host, port, socks):
        self.host, self.port, self.socks = host, port, socks

    def connect(self):
        target = ("127.0.0.1", self.socks) if self.socks else (self.host, self.port)
        stream = socket.create_connection(target)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.socks:
            request = b"\5\1\0\5\1\0\1" + socket.inet_aton(self.host) + struct.pack(">H", self.port)
            stream.sendall(request)
            reply = receive_exactly(stream, 12)
            assert reply[3] == 0, f"the link replied {reply[3]}"
        return stream

    def fetch(self, stream, size):
        stream.sendall(b"GET /%d HTTP/1.1\r\nHost: x\r\nUser-Agent: %s\r\n\r\n" % (size, b"u" * 300))
        receive(stream, size)

    def single(self, size):
        started = time.monotonic()
        stream = self.connect()
        self.fetch(stream, size)
        return {"": time.monotonic() - started}

    def upload(self, size):
        started = time.monotonic()
        stream = self.connect()
        stream.sendall(b"POST /%d HTTP/1.1\r\nHost: x\r\n\r\n" % size + b"y" * size)
        receive(stream, 2)
        return {"": time.monotonic() - started}

    def parallel(self, count, size):
        started, ends = time.monotonic(), []

        def one():
            self.fetch(self.connect(), size)
            ends.append(time.monotonic() - started)

        threads = [threading.Thread(target=one) for _ in range(count)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        ends.sort()
        return {"first": ends[0], "median": ends[count // 2], "last": ends[-1]}

    def reuse(self, size, pauses):
        stream, times = self.connect(), {}
        for number, pause in enumerate(pauses, 1):
            time.sleep(pause)
            started = time.monotonic()
            self.fetch(stream, size)
            times[f"{number} after {pause} s"] = time.monotonic() - started
        return times

    def in_parallel_to(self, large, small):
        thread = threading.Thread(target=lambda: self.fetch(self.connect(), large))
        thread.start()
        time.sleep(1)
        times = self.single(small)
        thread.join()
        return times


def receive_exactly(stream, size):
    buffer = b""
    while len(buffer) < size:
        chunk = stream.recv(size - len(buffer))
        assert chunk, "the connection ended early"
        buffer += chunk
    return buffer


def receive(stream, size):
    buffer = b""
    while b"\r\n\r\n" not in buffer:
        chunk = stream.recv(262144)
        assert chunk, "the connection ended early"
        buffer += chunk
    received = len(buffer) - buffer.index(b"\r\n\r\n") - 4
    while received < size:
        chunk = stream.recv(262144)
        assert chunk, "the connection ended early"
        received += len(chunk)


TRANSFERS = {
    "10 kB": lambda c: c.single(10_000),
    "100 kB": lambda c: c.single(100_000),
    "1 MB": lambda c: c.single(1_000_000),
    "5 MB": lambda c: c.single(5_000_000),
    "6 x 50 kB": lambda c: c.parallel(6, 50_000),
    "6 x 200 kB": lambda c: c.parallel(6, 200_000),
    "60 kB again": lambda c: c.reuse(60_000, [0, 0, 0.3, 1, 3]),
    "5 kB again": lambda c: c.reuse(5_000, [0, 0, 0]),
    "20 kB beside 600 kB": lambda c: c.in_parallel_to(600_000, 20_000),
    "200 kB up": lambda c: c.upload(200_000),
}


def measure(host, port, socks, names):
    client = Client(host, port, socks)
    # The first connection pays for imports and cold caches on both sides.
    client.connect().close()
    print(json.dumps({name: TRANSFERS[name](client) for name in names}))


# --- the comparison ---

def over_packets(packet_link, line, names):
    down, up, rtt = LINES[line]
    command = [sys.executable, packet_link, "--rtt", str(rtt), "--down", str(down), "--up", str(up),
               "--server", f"{sys.executable} {HERE} --serve 10.77.0.2 8080 >/dev/null", "--",
               sys.executable, HERE, "--measure", "10.77.0.2", "8080", "0", *names]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def over_link(link, line, names):
    down, up, rtt = LINES[line]
    server = subprocess.Popen([sys.executable, HERE, "--serve", "127.0.0.1", "0"],
                              stdout=subprocess.PIPE, text=True)
    proxy = subprocess.Popen([link, "--down", str(down), "--up", str(up), "--rtt", str(rtt),
                              "--allow", "127.0.0.0/8"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    try:
        port = server.stdout.readline().strip()
        socks = proxy.stdout.readline().strip().rsplit(":", 1)[1]
        command = [sys.executable, HERE, "--measure", "127.0.0.1", port, socks, *names]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    finally:
        proxy.stdin.close()
        proxy.wait(timeout=10)
        server.terminate()
        server.wait(timeout=10)


def compare(packet_link, link, line, rounds, names):
    # The emulator's hosts use this kernel's congestion control; the link's hosts always use BBR.
    algorithm = open("/proc/sys/net/ipv4/tcp_congestion_control").read().strip()
    truth, ours = [], []
    for _ in range(rounds):
        truth.append(over_packets(packet_link, line, names))
        ours.append(over_link(link, line, names))
    print(f"\n{line} {LINES[line]}, {algorithm}, median of {rounds}\n")
    print(f"{'transfer':<36}{'packets':>10}{'link':>10}{'diff':>9}")
    errors = []
    for name in names:
        for part in truth[0][name]:
            t = statistics.median(run[name][part] for run in truth)
            o = statistics.median(run[name][part] for run in ours)
            errors.append(o / t - 1)
            print(f"{name + ' ' + part:<36}{t:>9.3f}s{o:>9.3f}s{100 * errors[-1]:>+8.1f}%")
    return errors


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--packet-link", default=os.path.join(ROOT, "..", "shared", "tools", "packet_link.py"))
    p.add_argument("--link", default=os.path.join(ROOT, "target", "release", "examples", "open_link"))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--lines", nargs="+", default=list(LINES), choices=list(LINES))
    p.add_argument("--transfers", nargs="+", default=list(TRANSFERS), choices=list(TRANSFERS))
    a = p.parse_args()
    for path, option in ((a.packet_link, "--packet-link"), (a.link, "--link")):
        if not os.path.exists(path):
            sys.exit(f"{path} is missing: set {option}")
    errors = []
    for line in a.lines:
        # On the slowest line five megabytes take two minutes and add no information.
        skip = {"5 MB"} if LINES[line][0] < 1000 else set()
        errors += compare(a.packet_link, a.link, line, a.rounds, [t for t in a.transfers if t not in skip])
    sizes = sorted(abs(e) for e in errors)
    print(f"\n{len(sizes)} times: median difference {100 * statistics.median(sizes):.1f} %, "
          f"{sum(s <= 0.05 for s in sizes)} within 5 %, worst {100 * sizes[-1]:.1f} %")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
    else:
        main()
