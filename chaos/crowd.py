"""Clients that start audits, and simulated agents."""
import collections, http.client, itertools, json, threading, time, uuid

from stage import TIMEOUT_S, CheckFailed

CONNECTION_ERRORS = (OSError, http.client.HTTPException)


def send_request(server, method, path, body=None, headers=()):
    """Sends a request over a new connection; returns status and JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=45)
    try:
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json", **dict(headers)})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


class Client:
    """An account that knows all servers and tries the next if one does not respond."""

    def __init__(self, servers, name, credits=1000):
        self.servers, self.name, self.opening = servers, name, credits
        self.key = servers[0].account(name, credits)
        self.turn = itertools.count()
        self.accepted = []
        # Failed connections, responses of 500 and above, and requests that no server accepted at the first try.
        self.unanswered, self.failed, self.refused = 0, 0, 0
        self.answered = collections.Counter()  # Responses by server and program.

    def request(self, path, body=None, within=TIMEOUT_S):
        headers = {"X-SVC-KEY": self.key}
        if body:
            # A retry after a lost response gets the same audit.
            headers["Idempotency-Key"] = str(uuid.uuid4())
        deadline = time.monotonic() + within
        for tried in itertools.count(1):
            server = self.servers[next(self.turn) % len(self.servers)]
            try:
                status, answer = send_request(server, "POST" if body else "GET", path, body, headers)
                if status < 500:
                    self.answered[server.name, server.program] += 1
                    return status, answer
                self.failed += 1
            except CONNECTION_ERRORS:
                self.unanswered += 1
            self.refused += tried == len(self.servers)
            if time.monotonic() > deadline:
                raise CheckFailed(f"{path}: no response within {within} s")
            time.sleep(0 if tried < len(self.servers) else 0.2)

    def get(self, path):
        status, answer = self.request(path)
        if status != 200:
            raise CheckFailed(f"{path} returned {status}: {answer}")
        return answer["data"]

    def order(self, url):
        status, answer = self.request("/v1/audit/start", {"url": url, **CONDITIONS})
        if status != 200:
            raise CheckFailed(f"a start returned {status}: {answer}")
        self.accepted.append(answer["trackingId"])
        return answer["trackingId"]

    def batch(self, url, audits):
        status, answer = self.request("/v1/batches", {"urls": [f"{url}?{n}" for n in range(audits)],
                                                  **{f"{name}s": [value] for name, value in CONDITIONS.items()}})
        if status != 200:
            raise CheckFailed(f"a batch returned {status}: {answer}")
        rows = self.get(f"/v1/batches/{answer['data']['batchId']}")["audits"]
        self.accepted += [row["trackingId"] for row in rows]


CONDITIONS = {"device": "desktop", "network": "wifiFast", "location": "us-tx"}


class Load:
    """Starts audits and reads their status at a steady rate until stopped."""

    def __init__(self, client, url, pause_s):
        self.client, self.url, self.pause_s = client, url, pause_s
        self.is_over, self.error = threading.Event(), None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.is_over.wait(self.pause_s):
                tracking_id = self.client.order(self.url)
                self.client.get(f"/v1/audit/status/{tracking_id}")
                self.client.get("/v1/audits?limit=5")
        except Exception as error:
            self.error = error

    def end(self):
        self.is_over.set()
        self.thread.join()
        if self.error:
            raise self.error


class FakeAgents:
    """Simulated agents that lease audits over HTTP and submit a prepared report."""

    def __init__(self, stage, servers, each, visit_s):
        self.token = servers[0].token("fakes")
        self.report, self.visit_s = stage.settings.report(), visit_s
        self.leased, self.finished, self.lost = [], [], 0
        self.is_over = threading.Event()
        stage.on_exit(self.is_over.set)
        self.start_agents(servers, each)

    def start_agents(self, servers, each):
        for server in servers:
            for _ in range(each):
                threading.Thread(target=self.work, args=(server,), daemon=True).start()

    def work(self, server):
        agent = {"process": uuid.uuid4().hex, "location": "us-tx", "chromium": "none", "hostIndex": None, "slots": 1,
                 "version": "fake"}
        while not self.is_over.is_set():
            leased = self.step(server, "lease", {"agent": agent, "slot": 0, "waitMs": 5000})
            if leased is None:
                self.is_over.wait(0.5)
            elif job := leased["job"]:
                self.leased.append(job["trackingId"])
                self.is_over.wait(self.visit_s)
                self.finish(server, {name: job[name] for name in ("trackingId", "attempt")})

    def finish(self, server, attempt):
        while not self.is_over.is_set():
            if answer := self.step(server, "finish", {**attempt, "report": self.report}):
                if answer["hold"] == "held":
                    self.finished.append(attempt["trackingId"])
                else:
                    self.lost += 1
                return
            self.is_over.wait(0.5)

    def step(self, server, name, body):
        """Sends a message; returns None without a valid response."""
        headers = {"Authorization": f"Bearer {self.token}", "X-Plumbline-Protocol": "1"}
        try:
            status, answer = send_request(server, "POST", f"/agent/v1/{name}", body, headers)
        except (*CONNECTION_ERRORS, ValueError):
            return None
        return answer["data"] if status == 200 else None
