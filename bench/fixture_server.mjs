// Serves the pages of Lighthouse's smoke tests as its own test server does: the query string of a URL determines the
// response (status_code, delay, extra_header, gzip, redirect, redirect_count). The behaviour follows
// cli/test/fixtures/static-server.js of GoogleChrome/lighthouse.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import zlib from 'node:zlib';

/** Ports that the tests expect: the page's origin, and two others. */
export const PORTS = [10200, 10503, 10420];
/** `localhost` may be either, and one page uses `[::1]` as a third party. */
const ADDRESSES = ['127.0.0.1', '::1'];

const TYPES = {
  html: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8', js: 'application/javascript; charset=utf-8',
  mjs: 'application/javascript; charset=utf-8', json: 'application/json; charset=utf-8', map: 'application/json',
  txt: 'text/plain; charset=utf-8', svg: 'image/svg+xml', png: 'image/png', jpg: 'image/jpeg', gif: 'image/gif',
  webp: 'image/webp', ttf: 'font/ttf', woff2: 'font/woff2',
};
const ALLOWED_HEADERS = new Set(['x-robots-tag', 'link', 'content-security-policy', 'set-cookie']);
const DEFAULT_DELAY_MS = 2000;

/** Listens on every port; resolves to a function that stops the servers. */
export async function serve(root) {
  const servers = PORTS.flatMap(port => ADDRESSES.map(address => {
    const server = http.createServer((request, response) => respond(root, request, response));
    return new Promise((resolve, reject) => {
      server.on('error', reject);
      server.listen(port, address, () => resolve(server));
    });
  }));
  const listening = await Promise.all(servers);
  return () => listening.forEach(server => { server.close(); server.closeAllConnections(); });
}

function respond(root, request, response) {
  const url = new URL(request.url, 'http://localhost');
  const query = url.searchParams;
  const headers = headersOf(url);
  const delay_ms = query.has('delay') ? parseInt(query.get('delay'), 10) || DEFAULT_DELAY_MS : 0;
  let [status, body] = read(root, url.pathname);
  if (query.has('status_code')) status = parseInt(query.get('status_code'), 10);
  if (query.has('redirect')) {
    const remaining = Math.max(Number(query.get('redirect_count') ?? 0) - 1, 0);
    const next = remaining ? request.url.replace(/redirect_count=\d+/, `redirect_count=${remaining}`) : query.get('redirect');
    [status, body] = [302, ''];
    headers.location = next;
  }
  if (query.get('gzip') && status === 200) {
    body = zlib.gzipSync(body);
    headers['content-encoding'] = 'gzip';
  }
  setTimeout(() => { response.writeHead(status, headers); response.end(body); }, delay_ms);
}

function headersOf(url) {
  const headers = {'origin-agent-cluster': '?1'};
  // robots.txt must be readable without CORS.
  if (url.pathname !== '/robots.txt') headers['access-control-allow-origin'] = '*';
  const type = TYPES[path.extname(url.pathname).slice(1)];
  if (type) headers['content-type'] = type;
  for (const [name, value] of new URLSearchParams(url.searchParams.get('extra_header') ?? '')) {
    if (ALLOWED_HEADERS.has(name.toLowerCase())) (headers[name.toLowerCase()] ??= []).push(value);
  }
  return headers;
}

function read(root, pathname) {
  const file = path.join(root, decodeURIComponent(pathname));
  if (!file.startsWith(root + path.sep) || !fs.existsSync(file) || fs.statSync(file).isDirectory()) {
    return [404, `404 - File not found. ${pathname}`];
  }
  return [200, fs.readFileSync(file)];
}
