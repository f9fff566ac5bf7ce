// Serves a directory for benchmarks: gzip for text, keep-alive, no caching. Over HTTP/1.1, or with a key and its
// certificate over HTTPS, with HTTP/2 for clients that support it.
//   node serve.mjs DIR ADDRESS PORT [KEY.pem CERTIFICATE.pem]
// The query of a URL can make its response worse: `redirects=N` redirects N times first, `think=MS` waits before the
// response, and `plain` leaves it uncompressed.
import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import path from 'node:path';
import zlib from 'node:zlib';

const [dir, address, port, key, cert] = process.argv.slice(2);
const root = fs.realpathSync(dir);
const types = {
  html: 'text/html', htm: 'text/html', xhtml: 'application/xhtml+xml', css: 'text/css', js: 'text/javascript',
  mjs: 'text/javascript', json: 'application/json', webmanifest: 'application/manifest+json', svg: 'image/svg+xml',
  png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', ico: 'image/x-icon',
  woff: 'font/woff', woff2: 'font/woff2', ttf: 'font/ttf', md: 'text/plain', txt: 'text/plain', pdf: 'application/pdf',
  wasm: 'application/wasm', mp4: 'video/mp4', map: 'application/json', xml: 'application/xml',
};
const gzipped = new Map();

function find(url) {
  const requested = path.join(root, decodeURIComponent(new URL(url, 'http://x').pathname));
  const file = fs.statSync(requested).isDirectory() ? path.join(requested, 'index.html') : requested;
  const real = fs.realpathSync(file);
  if (real !== root && !real.startsWith(root + path.sep)) throw new Error('outside');
  return real;
}

function respond(request, response) {
  const query = new URL(request.url, 'http://x').searchParams;
  const redirects = Number(query.get('redirects') ?? 0);
  if (redirects > 0) {
    query.set('redirects', redirects - 1);
    response.writeHead(302, {'Location': `?${query}`, 'Content-Length': 0});
    return response.end();
  }
  if (query.has('think')) {
    setTimeout(() => send(request, response, query), Number(query.get('think')));
  } else {
    send(request, response, query);
  }
}

function send(request, response, query) {
  let file, body;
  try {
    file = find(request.url);
    body = fs.readFileSync(file);
  } catch {
    response.writeHead(404, {'Content-Type': 'text/plain', 'Content-Length': 9});
    return response.end('not found');
  }
  const type = types[path.extname(file).slice(1).toLowerCase()] ?? 'application/octet-stream';
  const headers = {'Content-Type': type, 'Cache-Control': 'no-cache'};
  if (!query.has('plain') && /^text\/|json|xml|svg/.test(type) && /\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) {
    if (!gzipped.has(file)) gzipped.set(file, zlib.gzipSync(body));
    body = gzipped.get(file);
    headers['Content-Encoding'] = 'gzip';
  }
  response.writeHead(200, {...headers, 'Content-Length': body.length});
  response.end(body);
}

const server = key
  ? http2.createSecureServer({key: fs.readFileSync(key), cert: fs.readFileSync(cert), allowHTTP1: true}, respond)
  : http.createServer(respond);
server.listen(+port, address, () => console.log(`serving on ${address}:${port}`));
