// Live updates, filters, theme and keys of every page. No page needs it to show its content.

import { morph } from "./morph.js";

const main = document.getElementById("main");
const live = document.getElementById("live");
const topics = new Set((main?.dataset.topics || "").split(" ").filter(Boolean));

// Refreshing: the page asks for itself again, and the parts that are marked as live take the new content.

let isRefreshing = false;
let isStale = false;

export async function refresh() {
  if (isRefreshing) {
    isStale = true;
    return;
  }
  isRefreshing = true;
  try {
    do {
      isStale = false;
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "follow" });
      if (answer.redirected && new URL(answer.url).pathname === "/signin") {
        location.reload();
        return;
      }
      if (answer.status === 404) {
        showGone();
        return;
      }
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const next = fresh.getElementById(part.id);
        if (next) morph(part, next);
      }
    } while (isStale);
  } catch {
    // The server does not answer: the stream of events reconnects, and then the page is refreshed.
  } finally {
    isRefreshing = false;
  }
}

// The object of the page was deleted: its last state stays, with a word about it.
function showGone() {
  const notice = document.getElementById("notice");
  if (!notice) return;
  const note = document.createElement("p");
  note.className = "note warn";
  note.setAttribute("role", "alert");
  note.textContent = "This page is gone: what it shows was deleted, or you may no longer read it.";
  notice.replaceChildren(note);
}

// Events. A hidden page closes its stream, so that many tabs do not use up the browser's connections.

const SILENT_MILLISECONDS = 40000; // The server says something every 15 s; a connection that sleeps does not notice its end.

let events = null;
let wasLost = false;
let heard = 0;

function say(state, text) {
  if (!live) return;
  live.dataset.state = state;
  if (live.textContent !== text) live.textContent = text;
}

function connect() {
  if (!live || events || document.hidden) return;
  events = new EventSource("/live");
  heard = Date.now();
  events.addEventListener("beat", () => (heard = Date.now()));
  events.addEventListener("hello", (event) => {
    say("on", "live");
    heard = Date.now();
    if (wasLost) {
      wasLost = false;
      refresh();
    }
    document.dispatchEvent(new CustomEvent("dashboard:change", { detail: JSON.parse(event.data) }));
  });
  events.addEventListener("change", (event) => {
    const change = JSON.parse(event.data);
    heard = Date.now();
    if (change.topics.some((topic) => topics.has(topic))) refresh();
    document.dispatchEvent(new CustomEvent("dashboard:change", { detail: change }));
  });
  events.addEventListener("error", () => {
    wasLost = true;
    say("off", "reconnecting");
    if (events && events.readyState === EventSource.CLOSED) {
      // The server refused the stream: the browser does not try again by itself.
      disconnect();
      setTimeout(connect, 2000);
    }
  });
}

function disconnect() {
  events?.close();
  events = null;
}

// Ages on a page grow although nothing changes.
setInterval(() => {
  if (topics.size && events && !document.hidden) refresh();
}, 30000);

setInterval(() => {
  if (events && Date.now() - heard > SILENT_MILLISECONDS) {
    wasLost = true;
    disconnect();
    connect();
  }
}, 5000);

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    disconnect();
    wasLost = true;
    say("wait", "paused");
  } else {
    connect();
  }
});
window.addEventListener("pagehide", disconnect);
window.addEventListener("pageshow", (event) => {
  if (event.persisted) {
    wasLost = true;
    connect();
  }
});
connect();

// Filters: the address always has them, so that a link shows the same rows to others.

for (const form of document.querySelectorAll("form[data-filter]")) {
  let timer = 0;
  const apply = () => {
    const values = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) values.set(name, value);
    const query = values.toString();
    history.replaceState(null, "", form.getAttribute("action") + (query ? `?${query}` : ""));
    document.dispatchEvent(new CustomEvent("dashboard:filter", { detail: values }));
    refresh();
  };
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(apply, event.target.type === "search" ? 150 : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    apply();
  });
}

// Parts that take a while, such as explanations, are loaded after the page, and again after changes of the cluster.

const RELOAD_MILLISECONDS = 15000;

async function fill(part) {
  part.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(part.dataset.load, { headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fragment = fresh.getElementById("fragment") || fresh.querySelector(".note");
    const old = part.querySelector("#fragment");
    if (old && fragment?.id === "fragment") morph(old, fragment);
    else if (fragment) part.replaceChildren(document.importNode(fragment, true));
    if (part.dataset.then === "refresh") await refresh();
  } catch {
    if (!part.querySelector("#fragment")) part.append(" This could not be loaded.");
  } finally {
    part.removeAttribute("aria-busy");
  }
}

for (const part of document.querySelectorAll("[data-load]")) {
  fill(part);
  if (part.dataset.then) continue;
  let timer = 0;
  document.addEventListener("dashboard:change", ({ detail }) => {
    if (timer || !detail.topics.some((topic) => topics.has(topic) || topic === "devices")) return;
    timer = setTimeout(() => {
      timer = 0;
      if (!document.hidden && part.isConnected) fill(part);
    }, RELOAD_MILLISECONDS);
  });
}

// Copying the manifest of a fix.

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const code = button.closest("li")?.querySelector("pre code");
  if (!code) return;
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    const details = button.closest("li").querySelector("details");
    details.open = true;
    getSelection().selectAllChildren(code);
    button.textContent = "Press Ctrl+C";
  }
  setTimeout(() => (button.textContent = "Copy YAML"), 2000);
});

// Theme.

document.getElementById("theme")?.addEventListener("click", () => {
  const isDark =
    document.documentElement.dataset.theme === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const theme = isDark ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  document.cookie = `drachma-theme=${theme}; path=/; max-age=31536000; samesite=lax`;
  document.dispatchEvent(new CustomEvent("dashboard:theme"));
});

// Keys.

const PLACES = { o: "/", d: "/devices", p: "/pods", c: "/claims", q: "/queues", w: "/whatif", s: "/cel", r: "/reports" };
let isGoing = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, dialog")) return;
  if (isGoing && PLACES[event.key]) {
    location.href = PLACES[event.key];
  } else if (event.key === "/") {
    const search = document.querySelector('input[type="search"], #expression');
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "?") {
    document.getElementById("help").showModal();
  }
  isGoing = event.key === "g";
});
