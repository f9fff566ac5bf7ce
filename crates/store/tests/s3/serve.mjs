// node serve.mjs DIRECTORY BUCKET MODULES
// Runs an S3 server for a directory on a free port, until standard input ends. Key and secret are S3RVER.
// s3rver does not check version 4 signatures, so this script does.
import { createHash, createHmac } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const [directory, bucket, modules] = process.argv.slice(2);
const S3rver = createRequire(join(modules, "index.js"))("s3rver");
const store = new S3rver({ silent: true, directory, configureBuckets: [{ name: bucket }] });
await store.configureBuckets();
const handle = store.callback();

// AWS General Reference, "Create a signed AWS API request".
const hmac = (key, text) => createHmac("sha256", key).update(text).digest();
const isSigned = ({ method, url, headers }) => {
  const match = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)$/
    .exec(headers.authorization ?? "");
  if (!match) return false;
  const [, credential, names, signature] = match;
  const [key, ...scope] = credential.split("/");
  const [path, query = ""] = url.split("?");
  const pairs = query.split("&").filter(Boolean).map((pair) => (pair.includes("=") ? pair : `${pair}=`)).sort();
  const signed = names.split(";").map((name) => `${name}:${headers[name].trim()}\n`).join("");
  const request = [method, path, pairs.join("&"), signed, names, headers["x-amz-content-sha256"]].join("\n");
  const hash = createHash("sha256").update(request).digest("hex");
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope.join("/"), hash].join("\n");
  const signing = scope.reduce(hmac, "AWS4S3RVER");
  return key === "S3RVER" && hmac(signing, text).toString("hex") === signature;
};

const server = createServer((request, response) => {
  if (isSigned(request)) return handle(request, response);
  response.writeHead(403, { "Content-Type": "application/xml" });
  response.end("<Error><Code>SignatureDoesNotMatch</Code></Error>");
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit(0));
