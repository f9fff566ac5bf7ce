"""Invariants after every fault, checked in the store and through every server.

Every accepted audit is completed once; it was charged once, and refunded exactly if it could not be measured; its
report is complete, and so is its evidence if there is any.
"""
import gzip, json, random

from crowd import send_request
from stage import CheckFailed, wait_until

LAB = ("performance", "accessibility", "seo", "bestPractices", "pwa", "fcp", "lcp", "tbt", "cls", "si", "tti")
# Maximum number of audits checked through the API; the store is always checked completely.
MAX_API_CHECKS = 100

AUDITS = """
    SELECT a.tracking_id, a.audit_id, a.state, a.attempt, a.faults, a.error_code, accounts.name AS account,
           reports.report IS NOT NULL AS has_report, {report} ->> 'error' AS report_error,
           (SELECT count(*) FROM ledger WHERE ledger.position = a.position) AS lines,
           (SELECT count(*) FROM ledger WHERE ledger.position = a.position AND reason = 'audit'
                                          AND amount = -a.runs) AS charges,
           (SELECT count(*) FROM ledger WHERE ledger.position = a.position AND reason = 'refund'
                                          AND amount = a.runs) AS refunds
    FROM audits AS a JOIN accounts ON accounts.id = a.account_id LEFT JOIN reports ON reports.position = a.position"""
ACCOUNTS = """
    SELECT name, credits, (SELECT sum(amount) FROM ledger WHERE account_id = accounts.id) AS ledger FROM accounts"""
UNFINISHED = "SELECT count(*) AS n FROM audits WHERE state <> 'completed'"


def check(condition, *message):
    if not condition:
        raise CheckFailed(" ".join(map(str, message)))


class Proof:
    """Waits until all audits are finished and checks the invariants; every case adds its own checks."""

    def __init__(self, store, clients, without_evidence=None, within=240):
        self.store, self.clients, self.without_evidence = store, clients, without_evidence
        wait_until("every accepted audit completes", lambda: store.rows(UNFINISHED)[0]["n"] == 0, within)
        self.audits = {row["tracking_id"]: row for row in store.rows(AUDITS.format(report=store.REPORT))}
        self.charges()
        for client in clients:
            check(len(set(client.accepted)) == len(client.accepted), "an audit was accepted twice")
            stored = {id for id, row in self.audits.items() if row["account"] == client.name}
            check(stored == set(client.accepted), client.name, "has", len(stored), "audits, but accepted are",
                 len(client.accepted))
            for id in random.Random(1).sample(client.accepted, min(MAX_API_CHECKS, len(client.accepted))):
                self.answers(client, id)

    def charges(self):
        for id, row in self.audits.items():
            check(row["has_report"], id, "is completed without a report")
            failed = row["error_code"] is not None
            check((row["report_error"] is not None) == failed, id, "and its report disagree about a failure")
            check(row["charges"] == 1, id, "was charged", row["charges"], "times")
            check(row["refunds"] == int(failed), id, "was refunded", row["refunds"], "times, error", row["error_code"])
            check(row["lines"] == 1 + int(failed), id, "has", row["lines"], "lines in the ledger")
        balances = {row["name"]: row for row in self.store.rows(ACCOUNTS)}
        for client in self.clients:
            measured = sum(row["account"] == client.name and row["error_code"] is None for row in self.audits.values())
            balance = balances[client.name]
            check(balance["credits"] == balance["ledger"] == client.opening - measured, client.name, "has",
                 balance["credits"], "credits, a ledger of", balance["ledger"], "and", measured, "measured audits")
            check(client.get("/v1/credits")["credits"] == balance["credits"], "the API reports another balance")

    def answers(self, client, id):
        """Checks that every server returns the same complete responses."""
        row, key = self.audits[id], {"X-SVC-KEY": client.key}
        responses = []
        for server in client.servers:
            get = lambda path: send_request(server, "GET", path, headers=key)
            status, data, report = (get(f"/v1/audit/{path}") for path in (
                f"status/{id}", f"data/{row['audit_id']}", f"report/{row['audit_id']}"))
            check([answer[0] for answer in (status, data, report)] == [200] * 3, id, "returns", status, data[0], report[0])
            status, data, report = (answer[1]["data"] for answer in (status, data, report))
            check((status["status"], status["auditId"]) == ("completed", row["audit_id"]), id, "has status", status)
            failed = row["error_code"] is not None
            check(all((data["labData"][name] is None) == failed for name in LAB), id, "is partial:", data["labData"])
            responses.append((status, data, report))
        check(all(each == responses[0] for each in responses), id, "differs between two servers")
        if self.without_evidence is not None:
            self.evidence(client, row, is_stored=id not in self.without_evidence and row["error_code"] is None)

    def evidence(self, client, row, is_stored):
        """Checks that evidence is complete or absent: the bundle unpacks to a HAR and a screenshot, the report media to JSON."""
        id, server = row["audit_id"], client.servers[0]
        get = lambda format: send_request(server, "GET", f"/v1/audit/report/{id}?format={format}", headers={"X-SVC-KEY": client.key})
        media = server.blobs / "exhibits" / f"{id}-{row['attempt']}.gz"
        # Evidence of other attempts is removed shortly after the last of them ended.
        left = lambda kind: [file.name for file in (server.blobs / kind).glob(f"{id}*")]
        wait_until(f"only the evidence of the final attempt of {id} is left", lambda: all(len(left(kind)) == int(is_stored) for kind in ("bundles", "exhibits")))
        if not is_stored:
            check(get("har")[0] == 404, id, "has unexpected evidence")
            check(not media.exists(), id, "has unexpected report media")
            return
        status, har = get("har")
        check(status == 200 and har["log"]["entries"], id, "has no HAR:", status)
        status, whole = get("lighthouse")
        check(status == 200 and whole["audits"]["final-screenshot"]["details"]["data"].startswith("data:image/"), id,
             "has no screenshot:", status)
        json.loads(gzip.decompress(media.read_bytes()))

    def report(self, id):
        return self.clients[0].get(f"/v1/audit/report/{self.audits[id]['audit_id']}")

    def attempts(self, id):
        return self.audits[id]["attempt"], self.audits[id]["faults"]

    def counted(self):
        rows = self.audits.values()
        return {"accepted": len(rows), "measured": sum(row["error_code"] is None for row in rows),
                "refunded": sum(row["refunds"] for row in rows), "attempts": sum(row["attempt"] for row in rows)}
