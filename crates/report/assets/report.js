// All pages work without this file. It adds sorting and filtering of requests, printing and copying, counts the checks
// that a filter shows, opens checks that a link points to, and highlights the current section of a report.
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

const tools = document.querySelector(".js-tools");
const list = document.querySelector(".waterfall");
if (tools && list) {
  tools.hidden = false;
  const rows = all("li", list);
  const status = document.querySelector(".js-none");
  const chips = all(".chip", tools);
  const find = tools.querySelector(".js-find");
  const show = () => {
    const kinds = new Set(chips.filter((chip) => chip.ariaPressed === "true").map((chip) => chip.dataset.kind));
    const query = find.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = (!kinds.size || kinds.has(row.dataset.t))
        && (!query || row.querySelector(".url").textContent.toLowerCase().includes(query));
      row.hidden = !fits;
      shown += fits;
    }
    status.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} requests are shown.`;
  };
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.ariaPressed = chip.ariaPressed === "true" ? "false" : "true";
      show();
    });
  }
  find.addEventListener("input", show);
  tools.querySelector(".js-sort").addEventListener("change", (event) => {
    const by = event.target.value;
    const order = {
      n: (a, b) => a.dataset.n - b.dataset.n,
      d: (a, b) => b.dataset.d - a.dataset.d,
      s: (a, b) => b.dataset.s - a.dataset.s,
      t: (a, b) => a.dataset.t.localeCompare(b.dataset.t) || a.dataset.n - b.dataset.n,
    }[by];
    list.append(...rows.sort(order));
  });
}

for (const filter of all(".filter")) {
  filter.addEventListener("change", (event) => {
    const metric = event.target.value;
    for (const part of all(".part", filter.parentElement)) {
      const shown = all(".check", part).filter((check) => metric === "all" || check.matches(`[data-m~=${metric}]`));
      part.querySelector(".js-count").textContent = shown.length;
    }
  });
}

const open = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) {
    if (node.localName === "details") node.open = true;
  }
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", open);
open();

const jump = document.querySelector(".js-jump");
if (jump) {
  const links = all("a", jump);
  const sections = links.map((link) => document.getElementById(link.hash.slice(1)));
  let scheduled = false;
  // The current section is the last one that starts in or above the top third.
  const mark = () => {
    scheduled = false;
    const line = innerHeight / 3;
    const last = sections.findLastIndex((section) => section && section.getBoundingClientRect().top < line);
    if (last < 0) jump.scrollLeft = 0;
    links.forEach((link, index) => {
      if ((index === last) === (link.ariaCurrent === "true")) return;
      link.ariaCurrent = index === last ? "true" : null;
      const item = link.getBoundingClientRect();
      const bar = jump.getBoundingClientRect();
      if (index === last && (item.left < bar.left || item.right > bar.right)) jump.scrollLeft += item.left - bar.left - 16;
    });
  };
  addEventListener("scroll", () => {
    if (!scheduled) requestAnimationFrame(mark);
    scheduled = true;
  }, { passive: true });
}

for (const button of all(".js-print")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    document.documentElement.classList.toggle("whole", button.value === "whole");
    print();
  });
}
for (const client of all(".js-client")) {
  client.hidden = false;
  client.addEventListener("input", () => {
    for (const name of all(".js-client-name")) name.textContent = client.value.trim() && `For ${client.value.trim()}`;
  });
}
addEventListener("afterprint", () => document.documentElement.classList.remove("whole"));

// Menus close when something else is clicked, and enlarged frames with a second click or with Escape.
// The arrow keys enlarge the frame before or after.
addEventListener("click", (event) => {
  for (const menu of all(".menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
let enlarged = null;
for (const frame of all(".frame")) {
  frame.addEventListener("click", () => {
    const next = enlarged === frame ? null : frame;
    if (next) frame.focus();
    else frame.blur();
    enlarged = next;
  });
  frame.addEventListener("blur", () => { enlarged = null; });
}
addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step && document.activeElement?.matches(".frame")) {
    const frames = all(".frame", document.activeElement.closest("ol"));
    const next = frames[frames.indexOf(document.activeElement) + step];
    next?.focus();
    enlarged = next ?? enlarged;
    event.preventDefault();
  }
  if (event.key !== "Escape") return;
  document.activeElement?.closest(".frame")?.blur();
  for (const menu of all(".menu[open]")) menu.open = false;
});

for (const field of all(".js-link")) {
  field.value = field.parentElement.querySelector("a").href;
}
for (const button of all(".js-copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = button.parentElement.querySelector(".js-link");
    field.select();
    // The clipboard is available to scripts on HTTPS and localhost only.
    await navigator.clipboard?.writeText(field.value).catch(() => document.execCommand("copy"));
    if (!navigator.clipboard) document.execCommand("copy");
    button.textContent = "Copied";
  });
}
// The stylesheet shows failed checks in print. Browsers that cannot style closed details need them opened.
if (!CSS.supports("selector(::details-content)")) {
  addEventListener("beforeprint", () => {
    for (const details of all(".check.poor, .check.middling, .folded")) details.open = true;
  });
}

// The price of measuring a recording on the chosen devices and networks.
for (const form of all("form.choose")) {
  const price = form.querySelector(".js-price");
  const show = () => {
    const networks = form.querySelectorAll("input[name=network]:checked").length;
    const credits = networks * form.querySelector("select[name=device]").selectedOptions.length;
    price.textContent = `: ${credits} ${credits === 1 ? "credit" : "credits"}`;
    price.hidden = false;
  };
  form.addEventListener("change", show);
  show();
}
