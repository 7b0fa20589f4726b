// The playground of selectors: evaluates while one types, marks errors, and completes attributes.

const input = document.getElementById("expression");
const result = document.getElementById("cel-result");
const table = document.getElementById("cel-matches");
const list = document.getElementById("completions");
const mirror = document.getElementById("mirror");
const paths = [...document.querySelectorAll("[data-insert]")].map((button) => [button.dataset.insert, button.dataset.example]);

let timer = 0;
let asked = 0;

async function evaluate() {
  const expression = input.value;
  const query = new URLSearchParams(expression ? { expression } : {});
  history.replaceState(null, "", expression ? `/cel?${query}` : "/cel");
  const number = (asked += 1);
  let answer;
  try {
    const response = await fetch(`/cel/evaluation?${query}`, { headers: { Accept: "application/json" } });
    answer = await response.json();
  } catch {
    return;
  }
  // A slower answer to an older text must not replace a newer one.
  if (number === asked) show(answer);
}

function note(tone, text, tag = "p") {
  const element = document.createElement(tag);
  element.className = `note ${tone}`;
  element.textContent = text;
  return element;
}

function show(answer) {
  const parts = [];
  input.removeAttribute("aria-invalid");
  underline(answer.state === "error" ? answer.issues : []);
  table.hidden = answer.state !== "ok";
  if (answer.error) parts.push(note("bad", answer.error));
  if (answer.state === "error") {
    input.setAttribute("aria-invalid", "true");
    parts.push(note("bad", frame(answer), "pre"));
  }
  if (answer.state === "ok") {
    parts.push(note(answer.max_cost > answer.limit ? "bad" : "good", `${answer.count} of ${answer.devices} devices match · type ${answer.type} · cost ${answer.cost}, at most ${answer.max_cost} of ${answer.limit}`));
    if (answer.failures) parts.push(note("warn", `${answer.failures} evaluations failed, for example ${answer.failure}`));
    if (answer.is_cut) parts.push(note("warn", "Not all devices were tried: there are too many."));
    table.tBodies[0].replaceChildren(...answer.matches.map(row));
  }
  result.replaceChildren(...parts);
}

// The words that errors are about are marked behind the text, which the mirror repeats invisibly.
function underline(issues) {
  const lines = input.value.split("\n");
  const begins = [0];
  for (const line of lines) begins.push(begins[begins.length - 1] + line.length + 1);
  const starts = issues.map(({ line, column }) => (begins[line - 1] ?? 0) + Math.max(column - 1, 0)).sort((a, b) => a - b);
  const parts = [];
  let done = 0;
  for (const start of starts) {
    if (start < done || start > input.value.length) continue;
    const word = /^(?:\.?\w+|"[^"]*"?|\S)/.exec(input.value.slice(start))?.[0] || " ";
    const mark = document.createElement("mark");
    mark.textContent = word;
    parts.push(input.value.slice(done, start), mark);
    done = start + word.length;
  }
  if (parts.length) parts.push(input.value.slice(done));
  mirror.replaceChildren(...parts);
}

// The errors below the lines that they are about.
function frame(answer) {
  if (!answer.issues.length) return answer.message;
  const lines = input.value.split("\n");
  return answer.issues
    .map(({ line, column, message }) => `${lines[line - 1] ?? ""}\n${" ".repeat(Math.max(column - 1, 0))}^ ${message}`)
    .join("\n");
}

function row(match) {
  const line = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  const link = document.createElement("a");
  link.href = match.link;
  link.textContent = match.device;
  head.append(link);
  line.append(head);
  for (const text of [match.node, match.pool, match.driver, match.model]) {
    const cell = document.createElement("td");
    cell.textContent = text;
    line.append(cell);
  }
  return line;
}

// Completion

let active = -1;

function word() {
  const before = input.value.slice(0, input.selectionStart);
  return /[A-Za-z_][\w.[\]"/-]*$/.exec(before)?.[0] ?? "";
}

// Paths that begin with the text, then those that contain it, so that "memory" finds device.capacity["…"].memory.
function matches(text) {
  if (text.length < 2) return [];
  const lower = text.toLowerCase();
  const others = paths.filter(([path]) => path !== text);
  const begin = others.filter(([path]) => path.toLowerCase().startsWith(lower));
  const rest = others.filter(([path]) => !path.toLowerCase().startsWith(lower) && path.toLowerCase().includes(lower));
  return [...begin, ...(text.startsWith("device") ? [] : rest)].slice(0, 30);
}

function complete() {
  const fits = matches(word());
  active = -1;
  list.hidden = !fits.length;
  input.setAttribute("aria-expanded", String(fits.length > 0));
  list.replaceChildren(
    ...fits.map(([path, example], number) => {
      const item = document.createElement("li");
      const value = document.createElement("span");
      item.id = `completion-${number}`;
      item.role = "option";
      item.dataset.path = path;
      value.textContent = example;
      item.append(path, value);
      item.addEventListener("mousedown", (event) => {
        event.preventDefault();
        insert(path);
      });
      return item;
    }),
  );
}

function activate(number) {
  const items = [...list.children];
  active = (number + items.length) % items.length;
  items.forEach((item, place) => item.setAttribute("aria-selected", String(place === active)));
  input.setAttribute("aria-activedescendant", items[active].id);
  items[active].scrollIntoView({ block: "nearest" });
}

function insert(path) {
  const text = document.activeElement === input ? word() : "";
  input.setRangeText(path, input.selectionStart - text.length, input.selectionStart, "end");
  list.hidden = true;
  input.removeAttribute("aria-activedescendant");
  input.focus();
  evaluate();
}

input.addEventListener("input", () => {
  underline([]);
  complete();
  clearTimeout(timer);
  timer = setTimeout(evaluate, 200);
});
input.addEventListener("keydown", (event) => {
  if (event.ctrlKey && event.key === " ") {
    event.preventDefault();
    complete();
    return;
  }
  if (list.hidden) return;
  if (event.key === "ArrowDown") activate(active + 1);
  else if (event.key === "ArrowUp") activate(active - 1);
  else if ((event.key === "Enter" || event.key === "Tab") && active >= 0) insert(list.children[active].dataset.path);
  else if (event.key === "Escape") list.hidden = true;
  else return;
  event.preventDefault();
});
input.addEventListener("scroll", () => (mirror.scrollTop = input.scrollTop));
input.addEventListener("blur", () => (list.hidden = true));
document.getElementById("attributes").addEventListener("click", (event) => {
  const button = event.target.closest("[data-insert]");
  if (button) insert(button.dataset.insert);
});
document.addEventListener("dashboard:change", (event) => {
  if (event.detail.topics.includes("devices") && input.value) evaluate();
});

// A link with an expression shows its errors at once.
if (input.value) evaluate();
