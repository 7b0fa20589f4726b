// The playground of selectors: evaluates while one types, marks errors, and completes attributes.

const input = document.getElementById("expression");
const result = document.getElementById("cel-result");
const table = document.getElementById("cel-matches");
const list = document.getElementById("completions");
const paths = [...document.querySelectorAll("[data-insert]")].map((button) => button.dataset.insert);

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
  const match = /device[\w.[\]"/-]*$/.exec(before);
  return match ? match[0] : "";
}

function complete() {
  const text = word();
  const fits = text ? paths.filter((path) => path.startsWith(text) && path !== text).slice(0, 30) : [];
  active = -1;
  list.hidden = !fits.length;
  list.replaceChildren(
    ...fits.map((path, number) => {
      const item = document.createElement("li");
      item.id = `completion-${number}`;
      item.role = "option";
      item.textContent = path;
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
  const text = word();
  input.setRangeText(path, input.selectionStart - text.length, input.selectionStart, "end");
  list.hidden = true;
  input.removeAttribute("aria-activedescendant");
  input.focus();
  evaluate();
}

input.addEventListener("input", () => {
  complete();
  clearTimeout(timer);
  timer = setTimeout(evaluate, 200);
});
input.addEventListener("keydown", (event) => {
  if (list.hidden) return;
  if (event.key === "ArrowDown") activate(active + 1);
  else if (event.key === "ArrowUp") activate(active - 1);
  else if ((event.key === "Enter" || event.key === "Tab") && active >= 0) insert(list.children[active].textContent);
  else if (event.key === "Escape") list.hidden = true;
  else return;
  event.preventDefault();
});
input.addEventListener("blur", () => (list.hidden = true));
document.getElementById("attributes").addEventListener("click", (event) => {
  const button = event.target.closest("[data-insert]");
  if (button) insert(button.dataset.insert);
});
document.addEventListener("dashboard:change", (event) => {
  if (event.detail.topics.includes("devices") && input.value) evaluate();
});
