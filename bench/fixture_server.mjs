// Serves the pages of Lighthouse's smoke tests as its own test server does: the query of an address says how it
// is answered (status_code, delay, extra_header, gzip, redirect, redirect_count). Behaviour learnt from
// cli/test/fixtures/static-server.js of GoogleChrome/lighthouse.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import zlib from 'node:zlib';

/** The tests count on these: the page's origin, and two others. */
export const PORTS = [10200, 10503, 10420];
/** `localhost` is either, and one page asks for `[::1]` as a third party. */
const ADDRESSES = ['127.0.0.1', '::1'];

const TYPES = {
  html: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8', js: 'application/javascript; charset=utf-8',
  mjs: 'application/javascript; charset=utf-8', json: 'application/json; charset=utf-8', map: 'application/json',
  txt: 'text/plain; charset=utf-8', svg: 'image/svg+xml', png: 'image/png', jpg: 'image/jpeg', gif: 'image/gif',
  webp: 'image/webp', ttf: 'font/ttf', woff2: 'font/woff2',
};
const HEADERS_ASKED_FOR = new Set(['x-robots-tag', 'link', 'content-security-policy', 'set-cookie']);
const DELAY_UNSAID_MS = 2000;

/** Listens on every port; gives a function that ends it. */
export async function serve(root) {
  const servers = PORTS.flatMap(port => ADDRESSES.map(address => {
    const server = http.createServer((request, response) => answer(root, request, response));
    return new Promise((resolve, reject) => {
      server.on('error', reject);
      server.listen(port, address, () => resolve(server));
    });
  }));
  const listening = await Promise.all(servers);
  return () => listening.forEach(server => { server.close(); server.closeAllConnections(); });
}

function answer(root, request, response) {
  const url = new URL(request.url, 'http://localhost');
  const asked = url.searchParams;
  const headers = headersOf(url);
  const delay_ms = asked.has('delay') ? parseInt(asked.get('delay'), 10) || DELAY_UNSAID_MS : 0;
  let [status, body] = read(root, url.pathname);
  if (asked.has('status_code')) status = parseInt(asked.get('status_code'), 10);
  if (asked.has('redirect')) {
    const left = Math.max(Number(asked.get('redirect_count') ?? 0) - 1, 0);
    const next = left ? request.url.replace(/redirect_count=\d+/, `redirect_count=${left}`) : asked.get('redirect');
    [status, body] = [302, ''];
    headers.location = next;
  }
  if (asked.get('gzip') && status === 200) {
    body = zlib.gzipSync(body);
    headers['content-encoding'] = 'gzip';
  }
  setTimeout(() => { response.writeHead(status, headers); response.end(body); }, delay_ms);
}

function headersOf(url) {
  const headers = {'origin-agent-cluster': '?1'};
  // Who reads robots.txt must not need leave of CORS.
  if (url.pathname !== '/robots.txt') headers['access-control-allow-origin'] = '*';
  const type = TYPES[path.extname(url.pathname).slice(1)];
  if (type) headers['content-type'] = type;
  for (const [name, value] of new URLSearchParams(url.searchParams.get('extra_header') ?? '')) {
    if (HEADERS_ASKED_FOR.has(name.toLowerCase())) (headers[name.toLowerCase()] ??= []).push(value);
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
