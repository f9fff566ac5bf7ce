"""What must hold after every fault, looked for in the store itself and through every server.

Every accepted audit is completed, once; it was charged once, and refunded exactly when it could not be measured; its
report is whole, and so is its evidence where there is any.
"""
import gzip, json, random

from crowd import say
from stage import Broken, until

LAB = ("performance", "accessibility", "seo", "bestPractices", "pwa", "fcp", "lcp", "tbt", "cls", "si", "tti")
# Of more audits than this, so many are asked for through the API; the store is always looked at as a whole.
ASKED = 100

AUDITS = """
    SELECT a.tracking_id, a.audit_id, a.state, a.attempt, a.faults, a.error_code, accounts.name AS account,
           reports.report IS NOT NULL AS has_report, {report} ->> 'error' AS said,
           (SELECT count(*) FROM ledger WHERE ledger.position = a.position) AS lines,
           (SELECT count(*) FROM ledger WHERE ledger.position = a.position AND reason = 'audit'
                                          AND amount = -a.runs) AS charges,
           (SELECT count(*) FROM ledger WHERE ledger.position = a.position AND reason = 'refund'
                                          AND amount = a.runs) AS refunds
    FROM audits AS a JOIN accounts ON accounts.id = a.account_id LEFT JOIN reports ON reports.position = a.position"""
ACCOUNTS = """
    SELECT name, credits, (SELECT sum(amount) FROM ledger WHERE account_id = accounts.id) AS ledger FROM accounts"""
UNFINISHED = "SELECT count(*) AS n FROM audits WHERE state <> 'completed'"


def hold(is_so, *otherwise):
    if not is_so:
        raise Broken(" ".join(map(str, otherwise)))


class Proof:
    """Collected when nothing is unfinished any more; every case adds what it expects besides."""

    def __init__(self, store, clients, without_evidence=None, within=240):
        self.store, self.clients, self.without_evidence = store, clients, without_evidence
        until("every accepted audit completes", lambda: store.rows(UNFINISHED)[0]["n"] == 0, within)
        self.audits = {row["tracking_id"]: row for row in store.rows(AUDITS.format(report=store.REPORT))}
        self.charges()
        for client in clients:
            hold(len(set(client.accepted)) == len(client.accepted), "an audit was accepted twice")
            kept = {id for id, row in self.audits.items() if row["account"] == client.name}
            hold(kept == set(client.accepted), client.name, "has", len(kept), "audits, and was told of",
                 len(client.accepted))
            for id in random.Random(1).sample(client.accepted, min(ASKED, len(client.accepted))):
                self.answers(client, id)

    def charges(self):
        for id, row in self.audits.items():
            hold(row["has_report"], id, "is completed without a report")
            failed = row["error_code"] is not None
            hold((row["said"] is not None) == failed, id, "disagrees with its report about having failed")
            hold(row["charges"] == 1, id, "was charged", row["charges"], "times")
            hold(row["refunds"] == int(failed), id, "was refunded", row["refunds"], "times, error", row["error_code"])
            hold(row["lines"] == 1 + int(failed), id, "has", row["lines"], "lines in the ledger")
        balances = {row["name"]: row for row in self.store.rows(ACCOUNTS)}
        for client in self.clients:
            measured = sum(row["account"] == client.name and row["error_code"] is None for row in self.audits.values())
            balance = balances[client.name]
            hold(balance["credits"] == balance["ledger"] == client.opening - measured, client.name, "has",
                 balance["credits"], "credits, a ledger of", balance["ledger"], "and", measured, "measured audits")
            hold(client.get("/v1/credits")["credits"] == balance["credits"], "the API tells another balance")

    def answers(self, client, id):
        """Through every server: the same whole answers."""
        row, key = self.audits[id], {"X-SVC-KEY": client.key}
        told = []
        for server in client.servers:
            ask = lambda path: say(server, "GET", path, headers=key)
            status, data, report = (ask(f"/v1/audit/{path}") for path in (
                f"status/{id}", f"data/{row['audit_id']}", f"report/{row['audit_id']}"))
            hold([answer[0] for answer in (status, data, report)] == [200] * 3, id, "answers", status, data[0], report[0])
            status, data, report = (answer[1]["data"] for answer in (status, data, report))
            hold((status["status"], status["auditId"]) == ("completed", row["audit_id"]), id, "says", status)
            failed = row["error_code"] is not None
            hold(all((data["labData"][name] is None) == failed for name in LAB), id, "is half there:", data["labData"])
            told.append((status, data, report))
        hold(all(each == told[0] for each in told), id, "is told differently by two servers")
        if self.without_evidence is not None:
            self.evidence(client, row, is_kept=id not in self.without_evidence and row["error_code"] is None)

    def evidence(self, client, row, is_kept):
        """All of it or nothing: the bundle unpacks to a HAR and a screenshot, the exhibits to JSON."""
        id, server = row["audit_id"], client.servers[0]
        ask = lambda format: say(server, "GET", f"/v1/audit/report/{id}?format={format}", headers={"X-SVC-KEY": client.key})
        exhibits = server.blobs / "exhibits" / f"{id}-{row['attempt']}.gz"
        # What other attempts left is removed a moment after the last of them ended.
        left = lambda kind: [file.name for file in (server.blobs / kind).glob(f"{id}*")]
        until(f"only what counts is left of {id}", lambda: all(len(left(kind)) == int(is_kept) for kind in ("bundles", "exhibits")))
        if not is_kept:
            hold(ask("har")[0] == 404, id, "has evidence that was not kept")
            hold(not exhibits.exists(), id, "has exhibits that were not kept")
            return
        status, har = ask("har")
        hold(status == 200 and har["log"]["entries"], id, "has no HAR:", status)
        status, whole = ask("lighthouse")
        hold(status == 200 and whole["audits"]["final-screenshot"]["details"]["data"].startswith("data:image/"), id,
             "has no screenshot:", status)
        json.loads(gzip.decompress(exhibits.read_bytes()))

    def report(self, id):
        return self.clients[0].get(f"/v1/audit/report/{self.audits[id]['audit_id']}")

    def attempts(self, id):
        return self.audits[id]["attempt"], self.audits[id]["faults"]

    def counted(self):
        rows = self.audits.values()
        return {"accepted": len(rows), "measured": sum(row["error_code"] is None for row in rows),
                "refunded": sum(row["refunds"] for row in rows), "attempts": sum(row["attempt"] for row in rows)}
