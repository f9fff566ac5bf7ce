// Serves three small pages for `bench/agreement --pages` on an address that is not loopback, where HTTPS matters:
// one over HTTPS with a redirect from HTTP, one over HTTPS with mixed content, one over HTTP only.
//   node serve_tls.mjs ADDRESS PORT > pages.txt       HTTP on PORT, HTTPS on PORT + 1
// The certificate is generated (openssl) and untrusted: see `bench/agreement --help`.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';

const [address, port] = [process.argv[2], Number(process.argv[3])];
const plain = `http://${address}:${port}`;
const secure = `https://${address}:${port + 1}`;

const page = rest => `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
  <meta name="viewport" content="width=device-width"><meta name="description" content="A page to compare.">
  <link rel="icon" href="data:,"></head><body><main><h1>Hello</h1><p>Some words to paint.</p>${rest}</main></body></html>`;
const PAGES = {
  '/secure': page(''),
  '/mixed': page(`<img src="${plain}/picture.svg" width="40" height="40" alt="A square">`),
  '/plain': page(''),
};
const PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40"/></svg>';

function respond(request, response, headers) {
  const pathname = new URL(request.url, plain).pathname;
  const [type, body] = pathname === '/picture.svg' ? ['image/svg+xml', PICTURE] : ['text/html; charset=utf-8', PAGES[pathname]];
  response.writeHead(body ? 200 : 404, {'Content-Type': type, ...headers});
  response.end(body ?? 'not found');
}

function certificate() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'plumbline-tls-'));
  const [key, cert] = ['key.pem', 'cert.pem'].map(name => path.join(folder, name));
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${address}`,
    '-addext', `subjectAltName=IP:${address}`, '-keyout', key, '-out', cert], {stdio: 'ignore'});
  const identity = {key: fs.readFileSync(key), cert: fs.readFileSync(cert)};
  fs.rmSync(folder, {recursive: true});
  return identity;
}

http.createServer((request, response) => {
  if (request.url !== '/secure') return respond(request, response, {});
  response.writeHead(301, {Location: `${secure}/secure`});
  response.end();
}).listen(port, address);
https.createServer(certificate(), (request, response) => {
  const isStrict = request.url === '/secure';
  respond(request, response, isStrict ? {'Strict-Transport-Security': 'max-age=31536000; includeSubDomains'} : {});
}).listen(port + 1, address);

console.log(`tls-redirected\t${plain}/secure`);
console.log(`tls-direct\t${secure}/secure`);
console.log(`tls-mixed\t${secure}/mixed`);
console.log(`tls-none\t${plain}/plain`);
