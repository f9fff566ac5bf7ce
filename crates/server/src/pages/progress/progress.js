// Live progress of an audit; without this script, the page is reloaded every few seconds.
const phases = document.querySelector(".js-phases");
if (phases && window.EventSource) {
  const events = new EventSource(phases.dataset.events);
  const status = document.querySelector(".js-status");
  events.addEventListener("phase", (event) => {
    const items = [...phases.querySelectorAll("li")];
    const now = items.findIndex((item) => item.dataset.phase === event.data);
    items.forEach((item, index) => {
      item.className = index < now ? "done" : index === now ? "now" : "";
      item.ariaCurrent = index === now ? "step" : null;
    });
    if (now >= 0) status.textContent = items[now].textContent;
  });
  const details = document.querySelector(".js-details");
  events.addEventListener("details", (event) => (details.textContent = event.data));
  events.addEventListener("done", (event) => {
    events.close();
    location.replace(event.data);
  });
  // If the server does not stream or is unavailable, reload the page.
  let failures = 0;
  events.addEventListener("open", () => (failures = 0));
  events.addEventListener("error", () => {
    failures += 1;
    // The browser does not reconnect to a refused stream.
    if (failures > 2 || events.readyState === EventSource.CLOSED) {
      events.close();
      setTimeout(() => location.reload(), 5000);
    }
  });
}
