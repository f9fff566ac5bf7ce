"""page.py PORT: serves a page with an image that takes two seconds; prints the requests to standard output."""
import http.server, struct, sys, time, zlib

SLOW_S = 2.0
TEXT = "<p>" + "Some words to paint, and to measure. " * 40
PAGE = (f"<!doctype html><html lang=en><meta name=viewport content='width=device-width'><title>A page</title>"
        f"<h1>Hello</h1>{TEXT}<img src=/slow alt='A square' width=32 height=32><script src=/script></script>").encode()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


IMAGE = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 0, 0, 0, 0))
           + chunk(b"IDAT", zlib.compress((b"\0" + b"\x80" * 32) * 32)) + chunk(b"IEND", b""))
RESPONSES = {"/": ("text/html; charset=utf-8", PAGE), "/slow": ("image/png", IMAGE),
           "/script": ("text/javascript", b"document.title += '!';")}


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        print("GET", self.path, flush=True)
        if self.path == "/slow":
            time.sleep(SLOW_S)
        kind, body = RESPONSES.get(self.path, ("text/plain", b""))
        self.send_response(200 if self.path in RESPONSES else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page)
print("port", server.server_port, flush=True)
server.serve_forever()
