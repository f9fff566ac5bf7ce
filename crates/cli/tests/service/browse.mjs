// Uses the pages in a real Chromium like a person: node browse.mjs CHROMIUM PROFILE ADDRESS KEY TARGET
// Uses the DevTools protocol over Node's built-in WebSocket, so that nothing has to be installed.
import { spawn } from "node:child_process";
import assert from "node:assert/strict";

const [chromium, profile, address, key, target] = process.argv.slice(2);
const browser = spawn(chromium, [
  "--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu", "--remote-debugging-port=0",
  `--user-data-dir=${profile}`, "about:blank",
], { stdio: ["ignore", "ignore", "pipe"] });
process.on("exit", () => browser.kill("SIGKILL"));

const endpoint = await new Promise((resolve, reject) => {
  let stderr = "";
  browser.stderr.on("data", (text) => {
    stderr += text;
    const match = stderr.match(/DevTools listening on (ws:\S+)/);
    if (match) resolve(match[1]);
  });
  browser.on("exit", () => reject(new Error(`the browser ended: ${stderr}`)));
});
const socket = new WebSocket(endpoint);
await new Promise((resolve, reject) => {
  socket.onopen = resolve;
  socket.onerror = reject;
});

let lastId = 0;
const pending = new Map();
const errors = [];
let session;
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.id) {
    const { resolve, reject } = pending.get(message.id);
    pending.delete(message.id);
    message.error ? reject(new Error(message.error.message)) : resolve(message.result);
  } else if (message.method === "Runtime.exceptionThrown") {
    errors.push(message.params.exceptionDetails.exception?.description ?? "an exception");
  } else if (message.method === "Log.entryAdded" && message.params.entry.level === "error") {
    errors.push(`${message.params.entry.text} ${message.params.entry.url ?? ""}`);
  }
};
const call = (method, params = {}) => new Promise((resolve, reject) => {
  lastId += 1;
  pending.set(lastId, { resolve, reject });
  socket.send(JSON.stringify({ id: lastId, method, params, sessionId: session }));
});
const { targetId } = await call("Target.createTarget", { url: "about:blank" });
({ sessionId: session } = await call("Target.attachToTarget", { targetId, flatten: true }));
for (const domain of ["Page", "Runtime", "Log", "DOM"]) await call(`${domain}.enable`);

const run = async (expression) => {
  const { result, exceptionDetails } = await call("Runtime.evaluate", {
    expression, returnByValue: true, awaitPromise: true,
  });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? expression);
  return result.value;
};
// Waits until an expression is true. A page that is being replaced cannot evaluate it yet.
const until = async (expression, description, seconds = 30) => {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const is = await run(`document.readyState === "complete" && (${expression})`).catch(() => false);
    if (is) return;
    if (Date.now() > deadline) {
      const page = await run("location.href + '\\n' + document.body.innerText.slice(0, 600)").catch(String);
      throw new Error(`not within ${seconds} s: ${description}\n${page}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
const go = async (path) => {
  await run("window.old = true");
  await call("Page.navigate", { url: `http://${address}${path}` });
  await until("!window.old", path);
};
const submit = (form, fields) => run(`(() => {
  const form = document.querySelector(${JSON.stringify(form)});
  for (const [name, value] of Object.entries(${JSON.stringify(fields)})) form.elements[name].value = value;
  form.querySelector("button:not([hidden])").click();
})()`);
const html = async () => {
  const { root } = await call("DOM.getDocument", { depth: 0 });
  return (await call("DOM.getOuterHTML", { nodeId: root.nodeId })).outerHTML;
};

const audit = async () => {
  await go("/");
  await submit('form[action="/audits"]', { url: target, device: "desktop", network: "wifiFast", location: "us-tx" });
  await until('document.querySelector(".js-phases")', "progress is shown");
  // Lost on a reload: all phases in the list were received over the stream.
  await run(`window.seen = []; new MutationObserver(() => {
    const now = document.querySelector(".js-phases .now")?.dataset.phase;
    if (now && seen.at(-1) !== now) { seen.push(now); sessionStorage.seen = seen.join(); }
  }).observe(document.querySelector(".js-phases"), { subtree: true, attributes: true })`);
  await until('location.pathname.startsWith("/reports/")', "the report opens automatically", 180);
  const seen = (await run('sessionStorage.seen ?? ""')).split(",");
  assert.ok(seen.includes("loading") && seen.includes("gathering"), `phases were shown: ${seen}`);
  return run("location.pathname");
};

await go("/");
await submit('form[action="/sign-in"]', { key });
await until('document.querySelector(".order select")', "signing in opens the form");
const first = await audit();

assert.equal(await run('document.querySelectorAll(".rings .ring").length'), 5);
assert.equal(await run('document.querySelectorAll(".metric .curve").length'), 6);
assert.ok(await run('[...document.images].every((image) => image.alt || image.closest("[aria-hidden=true]"))'), "images have alternative texts");
const order = (by) => run(`(() => {
  const sort = document.querySelector(".js-sort");
  sort.value = ${JSON.stringify(by)};
  sort.dispatchEvent(new Event("change"));
  return [...document.querySelectorAll(".waterfall li")].map((row) => Number(row.dataset.s));
})()`);
const sizes = await order("s");
assert.ok(sizes.length >= 3, `${sizes.length} requests`);
assert.deepEqual(sizes, [...sizes].sort((a, b) => b - a), "the largest request comes first");
await order("n");
await run('document.querySelector(\'.chip[data-kind="Document"]\').click()');
assert.equal(await run('document.querySelectorAll(".waterfall li:not([hidden])").length'), 1);
await run('document.querySelector(".waterfall summary").click()');
assert.ok(await run('document.querySelector(".waterfall details").open'), "a click opens a request");
// The browser does not lay out rows that are out of view.
await run('document.querySelector(".waterfall").scrollIntoView()');
await until('document.querySelector(".waterfall .more dl").innerText.includes("Wait")', "its phases are shown");

const shown = (selector) => run(`[...document.querySelectorAll(${JSON.stringify(selector)})].filter((node) => node.checkVisibility()).length`);
const checks = '[aria-labelledby="performance"] > div.part .check';
const before = await shown(checks);
await run('document.querySelector(".filter [value=cls]").click()');
const ofShifts = await shown(checks);
assert.ok(ofShifts < before, `${ofShifts} of ${before} checks concern layout shifts`);
assert.equal(await run(`[...document.querySelectorAll('[aria-labelledby="performance"] > div.part .js-count')].reduce((sum, count) => sum + Number(count.textContent), 0)`), ofShifts, "the counts follow the filter");
await run('document.querySelector(".filter [value=all]").click()');
assert.equal(await shown(checks), before);
await run('document.querySelector(".frame").click()');
assert.equal(await run('getComputedStyle(document.querySelector(".frame .pictured")).position'), "fixed", "a click enlarges a frame");
await run('document.querySelector(".frame").click()');
assert.equal(await run('getComputedStyle(document.querySelector(".frame .pictured")).position'), "relative", "a second click closes it");
assert.equal(await run('document.querySelector(".video img").naturalWidth'), 0, "the video is not loaded before it is opened");
await run('document.querySelector(".video summary").click()');
await until('document.querySelector(".video img").naturalWidth > 0', "the video is shown");
const played = await run(`(async () => {
  const image = document.querySelector(".video img");
  const { src, naturalWidth, naturalHeight } = image;
  const decoder = new ImageDecoder({ type: "image/png", data: (await fetch(src)).body });
  await decoder.completed;
  const { frameCount } = decoder.tracks.selectedTrack;
  let ms = 0;
  for (let frameIndex = 0; frameIndex < frameCount; frameIndex += 1) {
    ms += (await decoder.decode({ frameIndex })).image.duration / 1000;
  }
  return { frameCount, ms, isShaped: image.getAttribute("width") == naturalWidth && image.getAttribute("height") == naturalHeight };
})()`);
assert.ok(played.frameCount > 1 && played.ms > 2000, `${played.frameCount} frames last ${played.ms} ms`);
assert.ok(played.isShaped, "the page knows the size of the video");
assert.equal(await run('document.querySelectorAll(".menu a[download]").length'), 8, "all formats can be downloaded");
assert.ok(await run('fetch(`${location.pathname}/export/json`).then((reply) => reply.json()).then((report) => report.plumblineVersion)'));

// The link without a text is a magenta box three screens below the first: its crop shows that colour.
const far = '.fixes .crop img[src$="/whole"]';
await until(`document.querySelector('${far}')`, "an element below the first screen has a crop");
await run(`document.querySelector('${far}').closest(".crop").scrollIntoView({ block: "center" })`);
await until(`document.querySelector('${far}').naturalHeight > 2500`, "the image is loaded when it scrolls into view");
const clip = await run(`(() => {
  const { x, y, width, height } = document.querySelector('${far}').closest(".crop").getBoundingClientRect();
  return { x: x + scrollX, y: y + scrollY, width, height, scale: 1 };
})()`);
const magenta = async () => {
  const { data } = await call("Page.captureScreenshot", { clip });
  return run(`(async () => {
    const image = new Image();
    image.src = "data:image/png;base64,${data}";
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const { data } = canvas.getImageData(0, 0, image.width, image.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += data[i] > 200 && data[i + 1] < 60 && data[i + 2] > 200;
    return count / (image.width * image.height);
  })()`);
};
// A loaded image still has to be decoded and painted.
let share = 0;
for (let tries = 0; tries < 100 && share < 0.3; tries += 1) share = await magenta();
assert.ok(share >= 0.3, `the element fills ${share} of its crop`);

await submit('form[action$="/share"]', {});
await until('document.querySelector(\'a[href^="/shared/"]\')', "the report is shared");
const link = await run('document.querySelector(\'a[href^="/shared/"]\').getAttribute("href")');
assert.equal(await run('document.querySelector(".js-link").value'), `http://${address}${link}`, "the whole address can be copied");
assert.equal(await run(`fetch(${JSON.stringify(link)}, { credentials: "omit" }).then((reply) => reply.status)`), 200);
await submit('form[action$="/share"]', {});
await until('!document.querySelector(\'a[href^="/shared/"]\')', "the report is no longer shared");

await call("Emulation.setScriptExecutionDisabled", { value: true });
await call("Page.navigate", { url: `http://${address}${first}` });
await until('document.querySelector("#environment")', "the report is there without scripts");
const staticHtml = await html();
assert.match(staticHtml, /class="tools js-tools" hidden/, "controls that need scripts are hidden without them");
assert.match(staticHtml, /<li data-n="1"/);
assert.match(staticHtml, /Performance: \d+ of 100/);
await call("Emulation.setScriptExecutionDisabled", { value: false });

const second = await audit();
assert.notEqual(first, second);
await run('document.querySelector(\'a[href^="/history"]\').click()');
await until('document.querySelector(".trend")', "the history has a trend");
await submit('form[action="/compare"]', {});
await until('document.querySelectorAll(".film").length === 2', "two filmstrips on one timeline");
assert.ok(await run('document.body.textContent.includes("Checks that changed")'));

await submit('form[action="/sign-out"]', {});
await until('document.querySelector(\'form[action="/sign-in"]\')', "signed out");
await go(first);
assert.ok(await run('Boolean(document.querySelector(\'form[action="/sign-in"]\'))'), "a report requires signing in again");
assert.deepEqual(errors, [], "the browser reports no errors");
console.log("browsed");
process.exit(0);
