// The map of devices on a canvas: a tile for each node, a cell for each device, partitions inside their device.
//
// The layout is computed when tiles come or go, colours when a tile changes, and a frame draws what is visible. The data
// comes as changed tiles since a version (see devicemap.py), in the order of DeviceState for states.

const canvas = document.getElementById("map");
const context = canvas.getContext("2d", { alpha: false });
const tip = document.getElementById("tip");
const said = document.getElementById("map-said");
const legend = document.getElementById("map-legend");
const where = document.getElementById("map-where");
const stateField = document.querySelector('input[name="state"]');

const STATES = ["free", "used", "shared", "reserved", "blocked", "tainted", "unhealthy"];
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b2a300", "#7b61c9", "#8c564b", "#4e79a7"];
const [NAME, DRIVER, POOL, STATE, SHARE, TEAM, POD, CLASS, MODEL, GROUP, SIZE, PROBLEM] = Array(12).keys();
const FIELD = { team: TEAM, pod: POD, class: CLASS, model: MODEL };
const UNIT = 16;
const GAP = 2;
const HEAD = 12;
const MARGIN = 6;
const ACROSS = 8;
const NETWORK_ACROSS = 24; // devices that several nodes can use have a row of their own
const FAR = 3; // pixels of a device below which a tile is drawn as bands of its colours
const LABEL = 58; // pixels of a device from which it has its name
const COUNTERS = 1.6; // height of the bar that shows how far the counters of a device are drawn
const EDGE = 52; // room for the buttons
const MOST_LEGEND = 12;
const MOST_PIXELS = 16e6; // of the picture of all tiles from far

const tiles = new Map();
let cells = []; // { tile, device, x, y, w, h, colour, isDim, isPart }
let order = []; // tiles in the order of the layout, with x, y, w, h
let generation = 0;
let version = 0;
let colouring = canvas.dataset.colour || "state";
let search = (canvas.dataset.search || "").toLowerCase();
let state = canvas.dataset.state || "";
let colours = {};
let view = { x: 0, y: 0, scale: 1 };
let world = { w: 1, h: 1 };
let isFitted = true;
let chosen = -1;
let isQueued = false;
const picture = document.createElement("canvas"); // of all tiles from far
const pixelValues = new Map();
let pixels = null; // content of the picture
let painting = 0; // number of times that colours were computed
let pictured = ""; // scale and painting that the picture shows

// Data

let isLoading = false;
let isStale = false;

async function load() {
  if (isLoading) {
    isStale = true;
    return;
  }
  isLoading = true;
  try {
    do {
      isStale = false;
      const answer = await fetch(`/devices/map.json?generation=${generation}&since=${version}`, {
        headers: { Accept: "application/json" },
      });
      if (!answer.ok) return;
      take(await answer.json());
    } while (isStale);
  } catch {
    // The stream of events reconnects, and then the map asks again.
  } finally {
    isLoading = false;
  }
}

function take(data) {
  let isMoved = data.full || data.generation !== generation;
  if (isMoved) tiles.clear();
  generation = data.generation;
  version = data.version;
  for (const fresh of data.tiles) {
    const old = tiles.get(fresh.n);
    if (!fresh.d.length && !fresh.k) {
      isMoved = tiles.delete(fresh.n) || isMoved;
      continue;
    }
    isMoved = isMoved || !old || old.d.length !== fresh.d.length;
    tiles.set(fresh.n, fresh);
    if (old && !isMoved) {
      fresh.units = old.units;
      fresh.columns = old.columns;
      for (let number = 0; number < fresh.d.length; number += 1) {
        const cell = cells[old.first + number];
        cell.tile = fresh;
        cell.device = fresh.d[number];
      }
      Object.assign(fresh, { frames: old.frames, first: old.first, x: old.x, y: old.y, w: old.w, h: old.h });
      order[old.place] = fresh;
      fresh.place = old.place;
    }
  }
  if (isMoved) arrange();
  paint();
  canvas.dataset.devices = String(cells.length);
  canvas.dataset.version = String(version);
}

// Layout

function arrange() {
  order = [...tiles.values()].sort((a, b) => (a.n === "" ? -1 : b.n === "" ? 1 : a.n < b.n ? -1 : 1));
  let area = 0;
  for (const tile of order) {
    tile.units = unitsOf(tile);
    const columns = Math.max(1, Math.min(tile.n === "" ? NETWORK_ACROSS : ACROSS, tile.units.length));
    const rows = Math.max(1, Math.ceil(tile.units.length / columns));
    tile.columns = columns;
    tile.w = columns * (UNIT + GAP) - GAP + 2 * GAP;
    tile.h = rows * (UNIT + GAP) - GAP + HEAD + 2 * GAP;
    area += (tile.w + MARGIN) * (tile.h + MARGIN);
  }
  const box = canvas.getBoundingClientRect();
  const width = bestWidth(area, Math.max(box.width, 1), Math.max(box.height, 1));
  let x = 0;
  let y = 0;
  let height = 0;
  world = { w: 1, h: 1 };
  cells = [];
  order.forEach((tile, place) => {
    if (x && x + tile.w > width) {
      x = 0;
      y += height + MARGIN;
      height = 0;
    }
    tile.x = x;
    tile.y = y;
    tile.place = place;
    x = tile.n === "" ? width : x + tile.w + MARGIN;
    height = Math.max(height, tile.h + (tile.n === "" ? MARGIN : 0));
    world.w = Math.max(world.w, tile.x + tile.w);
    world.h = Math.max(world.h, tile.y + tile.h);
    tile.first = cells.length;
    placeCells(tile);
  });
  chosen = -1;
  if (isFitted) fit();
}

// The width at which all tiles are largest on the screen; with many tiles their area says it well enough.
function bestWidth(area, across, down) {
  const guess = Math.max(Math.sqrt((area * across) / down), 60);
  if (order.length > 60) return guess;
  let best = guess;
  let largest = 0;
  for (let factor = 0.5; factor <= 2; factor += 0.02) {
    const limit = guess * factor;
    let x = 0;
    let y = 0;
    let row = 0;
    let w = 0;
    for (const tile of order) {
      if (x && x + tile.w > limit) {
        x = 0;
        y += row + MARGIN;
        row = 0;
      }
      w = Math.max(w, x + tile.w);
      x = tile.n === "" ? limit : x + tile.w + MARGIN;
      row = Math.max(row, tile.h);
    }
    const scale = Math.min(across / w, down / (y + row));
    if (scale > largest) {
      largest = scale;
      best = limit;
    }
  }
  return best;
}

// A unit is a device, or a physical device with its partitions.
function unitsOf(tile) {
  const groups = new Map();
  tile.d.forEach((device, number) => {
    const key = tile.s[device[GROUP]] ? unitKey(tile, device) : number;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(number);
  });
  return [...groups.values()];
}

function unitKey(tile, device) {
  return `${tile.s[device[DRIVER]]} ${tile.s[device[POOL]]} ${tile.s[device[GROUP]]}`;
}

function placeCells(tile) {
  const made = new Array(tile.d.length);
  tile.frames = [];
  tile.units.forEach((unit, place) => {
    const x = tile.x + GAP + (place % tile.columns) * (UNIT + GAP);
    const y = tile.y + HEAD + GAP + Math.floor(place / tile.columns) * (UNIT + GAP);
    if (unit.length === 1) {
      made[unit[0]] = { tile, device: tile.d[unit[0]], x, y, w: UNIT, h: UNIT, isPart: false };
      return;
    }
    const whole = unit.filter((number) => tile.d[number][SIZE] >= 100);
    const parts = unit.filter((number) => tile.d[number][SIZE] < 100);
    for (const number of whole) made[number] = { tile, device: tile.d[number], x, y, w: UNIT, h: UNIT, isPart: false, isFrame: parts.length > 0 };
    // A row for each size, the largest first: as the profiles of a device are drawn in its manual.
    const bySize = new Map();
    for (const number of parts) {
      const size = tile.d[number][SIZE];
      if (!bySize.has(size)) bySize.set(size, []);
      bySize.get(size).push(number);
    }
    const rows = [...bySize].sort((a, b) => b[0] - a[0]).map(([, numbers]) => numbers);
    const inset = whole.length ? 1.5 : 0.5;
    const h = (UNIT - 2 * inset - COUNTERS) / rows.length;
    rows.forEach((numbers, row) => {
      const w = (UNIT - 2 * inset) / numbers.length;
      numbers.forEach((number, index) => {
        const gap = Math.min(0.4, w / 6);
        made[number] = { tile, device: tile.d[number], x: x + inset + index * w, y: y + inset + row * h, w: w - gap, h: h - 0.4, isPart: true };
      });
    });
    tile.frames.push({ x, y, key: unitKey(tile, tile.d[unit[0]]) });
  });
  for (const cell of made) cells.push(cell);
}

// Colours

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  colours = { surface: get("raised"), line: get("line"), strong: get("strong"), text: get("text"), dim: get("dim"), canvas: get("canvas"), accent: get("accent"), bad: get("unhealthy"), good: get("good") };
  for (const state of STATES) colours[state] = get(state);
  pixelValues.clear();
}

function paint() {
  const counts = new Map();
  const field = FIELD[colouring];
  if (field !== undefined) {
    for (const cell of cells) {
      const text = cell.tile.s[cell.device[field]];
      if (text) counts.set(text, (counts.get(text) || 0) + 1);
    }
  }
  const ranked = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const numbers = new Map(ranked.map(([text], number) => [text, number]));
  for (const cell of cells) {
    cell.colour = colourOf(cell, numbers);
    cell.isDim = (Boolean(search) && !textOf(cell).includes(search)) || (Boolean(state) && STATES[cell.device[STATE]] !== state);
  }
  for (const tile of order) tile.bands = bandsOf(tile);
  painting += 1;
  showLegend(ranked);
  draw();
}

function colourOf(cell, numbers) {
  const { tile, device } = cell;
  const state = STATES[device[STATE]];
  // The frame around partitions: the whole device is neither free to look at nor broken.
  if (cell.isFrame && (state === "free" || state === "blocked")) return colours.surface;
  if (colouring === "state") return colours[state];
  if (colouring === "health") {
    if (state === "unhealthy" || (!tile.r && tile.k)) return colours.unhealthy;
    return state === "tainted" ? colours.tainted : colours.good;
  }
  const text = tile.s[device[FIELD[colouring]]];
  return text ? PALETTE[numbers.get(text) % PALETTE.length] : colours.free;
}

// Shares of a tile's colours, the rarest last, so that a broken device is never hidden by free ones.
function bandsOf(tile) {
  const counts = new Map();
  for (let number = tile.first; number < tile.first + tile.d.length; number += 1) {
    const cell = cells[number];
    if (cell.isPart || !cell.isFrame) counts.set(cell.isDim ? `${cell.colour}!` : cell.colour, (counts.get(cell.isDim ? `${cell.colour}!` : cell.colour) || 0) + 1);
  }
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0) || 1;
  return [...counts].sort((a, b) => b[1] - a[1]).map(([key, count]) => [key, count / total]);
}

function textOf(cell) {
  const { tile, device } = cell;
  return `${tile.n} ${tile.s[device[NAME]]} ${tile.s[device[POD]]} ${tile.s[device[CLASS]]} ${tile.s[device[MODEL]]} ${tile.s[device[PROBLEM]]}`.toLowerCase();
}

function showLegend(ranked) {
  const entries = [];
  if (colouring === "state") {
    const counts = new Array(STATES.length).fill(0);
    for (const cell of cells) counts[cell.device[STATE]] += 1;
    STATES.forEach((state, number) => entries.push([state, counts[number], `c-${state}`, ""]));
  } else if (colouring === "health") {
    entries.push(["healthy", "", "", colours.good], ["tainted", "", "c-tainted", ""], ["unhealthy, or its node is not ready", "", "c-unhealthy", ""]);
  } else {
    ranked.slice(0, MOST_LEGEND).forEach(([text, count], number) => entries.push([text, count, "", PALETTE[number % PALETTE.length]]));
    if (ranked.length > MOST_LEGEND) entries.push([`and ${ranked.length - MOST_LEGEND} more`, "", "", colours.line]);
  }
  legend.replaceChildren(
    ...entries.map(([text, count, name, colour]) => {
      const item = document.createElement("li");
      const box = document.createElement("i");
      if (name) box.className = name;
      if (colour) box.style.backgroundColor = colour;
      const number = document.createElement("b");
      number.textContent = count === "" ? "" : ` ${count}`;
      if (count === "") {
        item.append(box, text);
        return item;
      }
      const button = document.createElement("button");
      const isState = colouring === "state";
      button.type = "button";
      button.title = "Show only these";
      button.setAttribute("aria-pressed", String(isState ? state === text : search === text.toLowerCase()));
      button.append(box, plain(text), number);
      button.addEventListener("click", () => pick(isState, text));
      item.append(button);
      return item;
    }),
  );
}

// Picking a group of the legend is a filter, so it is in the address.
function pick(isState, text) {
  const field = isState ? stateField : document.querySelector('input[name="q"]');
  field.value = field.value.toLowerCase() === text.toLowerCase() ? "" : text;
  field.form.requestSubmit();
}

// Drawing

function draw() {
  if (isQueued) return;
  isQueued = true;
  requestAnimationFrame(frame);
}

function frame() {
  isQueued = false;
  const began = performance.now();
  const ratio = devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  const width = Math.round(box.width * ratio);
  const height = Math.round(box.height * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colours.surface;
  context.fillRect(0, 0, width, height);
  const scale = view.scale * ratio;
  const left = view.x;
  const top = view.y;
  const right = left + width / scale;
  const bottom = top + height / scale;
  const size = view.scale * UNIT;
  const hasNames = view.scale * HEAD > 8;
  const visible = order.filter((tile) => tile.x <= right && tile.x + tile.w >= left && tile.y <= bottom && tile.y + tile.h >= top);
  if (size < FAR) {
    const factor = scale / takePicture(ratio);
    context.drawImage(picture, -left * scale, -top * scale, picture.width * factor, picture.height * factor);
  }
  context.setTransform(scale, 0, 0, scale, -left * scale, -top * scale);
  if (size >= FAR) drawTiles(visible, size);
  if (size > 9) drawMarks(visible);
  if (size > 9) drawCounters(visible);
  if (hasNames) drawNames(visible, scale);
  if (size > LABEL) drawLabels(visible);
  if (chosen >= 0 && cells[chosen]) {
    const cell = cells[chosen];
    context.strokeStyle = colours.text;
    context.lineWidth = 2 / view.scale;
    context.strokeRect(cell.x, cell.y, cell.w, cell.h);
  }
  showPlace(visible);
  canvas.dataset.frame = (performance.now() - began).toFixed(1);
}

function showPlace(visible) {
  const nodes = order.length - (tiles.has("") ? 1 : 0);
  const text =
    visible.length === 1 && order.length > 1
      ? plain(visible[0].n || "network-attached")
      : `${visible.filter((tile) => tile.n).length} of ${nodes} nodes`;
  if (where.textContent !== text) where.textContent = text;
}

// From far, all tiles are painted into a picture when their colours change, and a frame only draws the picture: a tile is
// a stack of its colours, so that the use of a node can be read at a glance. Returns the scale of the picture.
function takePicture(ratio) {
  const scale = Math.min((FAR / UNIT) * ratio, Math.sqrt(MOST_PIXELS / (world.w * world.h)));
  const key = `${scale} ${painting}`;
  if (pictured === key) return scale;
  pictured = key;
  const width = Math.ceil(world.w * scale);
  const height = Math.ceil(world.h * scale);
  if (pixels?.width !== width || pixels.height !== height) pixels = new ImageData(width, height);
  const values = new Uint32Array(pixels.data.buffer);
  values.fill(pixelOf(colours.surface));
  for (const tile of order) paintTile(tile, values, width, scale);
  picture.width = width;
  picture.height = height;
  picture.getContext("2d").putImageData(pixels, 0, 0);
  return scale;
}

function paintTile(tile, values, width, scale) {
  const left = Math.round(tile.x * scale);
  const right = Math.min(Math.max(Math.round((tile.x + tile.w) * scale), left + 1), width);
  let top = Math.round(tile.y * scale);
  const bottom = Math.max(Math.round((tile.y + tile.h) * scale), top + 1);
  const total = bottom - top;
  const fill = (rows, value) => {
    for (const end = Math.min(top + rows, bottom); top < end; top += 1) values.fill(value, top * width + left, top * width + right);
  };
  if (!tile.r && tile.k) fill(Math.max(1, Math.round(1.5 * scale)), pixelOf(colours.bad));
  // The rarest colour first, with a row at least.
  for (let place = tile.bands.length - 1; place > 0; place -= 1) {
    const [key, share] = tile.bands[place];
    fill(Math.max(1, Math.round(share * total)), pixelOf(key));
  }
  fill(total, pixelOf(tile.bands.length ? tile.bands[0][0] : colours.canvas));
}

// The value of a colour as a pixel; one with an exclamation mark is dim.
function pixelOf(key) {
  let value = pixelValues.get(key);
  if (value === undefined) {
    const number = parseInt(key.slice(1, 7), 16);
    const under = parseInt(colours.canvas.slice(1, 7), 16);
    const share = key.endsWith("!") ? 0.15 : 1;
    const part = (shift) => Math.round(((number >> shift) & 255) * share + ((under >> shift) & 255) * (1 - share));
    value = ((255 << 24) | (part(0) << 16) | (part(8) << 8) | part(16)) >>> 0;
    pixelValues.set(key, value);
  }
  return value;
}

function drawTiles(visible, size) {
  context.fillStyle = colours.canvas;
  for (const tile of visible) context.fillRect(tile.x, tile.y, tile.w, tile.h);
  drawCells(visible, size > 9);
  context.fillStyle = colours.bad;
  for (const tile of visible) if (!tile.r && tile.k) context.fillRect(tile.x, tile.y, tile.w, Math.max(1.5, 1.5 / view.scale));
}

function drawCells(visible, isNear) {
  const batches = new Map();
  for (const tile of visible) {
    const end = tile.first + tile.d.length;
    for (let number = tile.first; number < end; number += 1) {
      const cell = cells[number];
      const key = cell.isDim ? `${cell.colour}!` : cell.colour;
      let batch = batches.get(key);
      if (!batch) batches.set(key, (batch = []));
      batch.push(cell);
    }
  }
  // Whole devices first, so that their partitions lie on top.
  for (const isPart of [false, true]) {
    for (const [key, batch] of batches) {
      context.globalAlpha = key.endsWith("!") ? 0.15 : 1;
      context.fillStyle = key.replace("!", "");
      for (const cell of batch) {
        if (cell.isPart !== isPart) continue;
        if (isNear && cell.device[STATE] === 2) {
          // Shared: the bar shows the used share.
          context.fillStyle = colours.free;
          context.fillRect(cell.x, cell.y, cell.w, cell.h);
          context.fillStyle = key.replace("!", "");
          const used = (cell.h * cell.device[SHARE]) / 100;
          context.fillRect(cell.x, cell.y + cell.h - used, cell.w, used);
        } else {
          context.fillRect(cell.x, cell.y, cell.w, cell.h);
        }
      }
    }
  }
  context.globalAlpha = 1;
}

// The bar at the foot of a partitioned device: the used share of its fullest counter.
function drawCounters(visible) {
  context.strokeStyle = colours.strong;
  context.lineWidth = Math.min(0.6, 1 / view.scale);
  for (const tile of visible) {
    if (!tile.c) continue;
    for (const { x, y, key } of tile.frames) {
      context.strokeRect(x, y, UNIT, UNIT);
      context.fillStyle = colours.free;
      context.fillRect(x + 1, y + UNIT - COUNTERS, UNIT - 2, COUNTERS - 0.5);
      context.fillStyle = colours.accent;
      context.fillRect(x + 1, y + UNIT - COUNTERS, ((UNIT - 2) * (tile.c[key] || 0)) / 100, COUNTERS - 0.5);
    }
  }
}

// Names of devices and of their pods, when there is room for them.
function drawLabels(visible) {
  const size = 10.5 / view.scale;
  context.textBaseline = "top";
  for (const tile of visible) {
    for (let number = tile.first; number < tile.first + tile.d.length; number += 1) {
      const cell = cells[number];
      if (cell.isFrame || cell.isDim || cell.w < size * 3.2 || cell.h < size * 1.2) continue;
      context.font = `600 ${size}px system-ui, sans-serif`;
      context.fillStyle = labelColour(cell);
      writeLabel(plain(tile.s[cell.device[NAME]]), cell, size, 0.25);
      context.font = `${size * 0.92}px system-ui, sans-serif`;
      const lines = [tile.s[cell.device[POD]] || tile.s[cell.device[MODEL]]];
      if (cell.device[STATE] === 2) lines.push(`${cell.device[SHARE]}% used`);
      else if (tile.s[cell.device[POD]]) lines.push(tile.s[cell.device[MODEL]]);
      lines.forEach((text, line) => writeLabel(plain(text), cell, size, 1.5 + 1.2 * line));
    }
  }
}

function writeLabel(text, cell, size, down) {
  if (cell.h < size * (down + 1.1)) return;
  const most = Math.floor(cell.w / (size * 0.58));
  context.fillText(text.length > most ? `${text.slice(0, Math.max(most - 1, 1))}…` : text, cell.x + size * 0.3, cell.y + size * down, cell.w - size * 0.4);
}

// Black or white, by the brightness of what is behind the text; a shared device is filled from below.
function labelColour(cell) {
  const isEmpty = cell.device[STATE] === 2 && cell.device[SHARE] < 70;
  const colour = isEmpty ? colours.free : cell.colour;
  const value = parseInt(colour.slice(1), 16);
  const brightness = 0.299 * (value >> 16) + 0.587 * ((value >> 8) & 255) + 0.114 * (value & 255);
  return brightness > 140 ? "#0c1116" : "#ffffff";
}

// Marks tell states apart without colour: a cross for unhealthy, a stroke for tainted.
function drawMarks(visible) {
  context.strokeStyle = colours.surface;
  context.lineWidth = 1.4;
  context.beginPath();
  for (const tile of visible) {
    for (let number = tile.first; number < tile.first + tile.d.length; number += 1) {
      const { x, y, w, h, device } = cells[number];
      const state = device[STATE];
      if (state < 5) continue;
      context.moveTo(x + w * 0.25, y + h * 0.75);
      context.lineTo(x + w * 0.75, y + h * 0.25);
      if (state === 6) {
        context.moveTo(x + w * 0.25, y + h * 0.25);
        context.lineTo(x + w * 0.75, y + h * 0.75);
      }
    }
  }
  context.stroke();
}

function drawNames(visible, scale) {
  context.fillStyle = colours.dim;
  context.textBaseline = "middle";
  const size = Math.min(8, Math.max(4, 11 / (scale / (devicePixelRatio || 1))));
  context.font = `${size}px system-ui, sans-serif`;
  for (const tile of visible) {
    const name = plain(tile.n || "network-attached");
    const most = Math.max(3, Math.floor(tile.w / (size * 0.55)));
    const text = name.length > most ? `…${name.slice(1 - most)}` : name;
    context.fillText(text, tile.x + GAP, tile.y + HEAD / 2 + 1, tile.w - 2 * GAP);
  }
}

// Names come from others: characters that turn the direction of writing are shown by their code.
function plain(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (char) => `⟨U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// Moving

function fit() {
  const box = canvas.getBoundingClientRect();
  const scale = Math.min((box.width - 2 * EDGE) / world.w, (box.height - 24) / world.h, 5);
  view.scale = Math.max(scale, 0.01);
  view.x = (world.w - box.width / view.scale) / 2;
  view.y = (world.h - box.height / view.scale) / 2;
  isFitted = true;
}

function zoom(factor, x, y) {
  const box = canvas.getBoundingClientRect();
  const px = x ?? box.width / 2;
  const py = y ?? box.height / 2;
  const scale = Math.min(Math.max(view.scale * factor, 0.02), 24);
  view.x += px / view.scale - px / scale;
  view.y += py / view.scale - py / scale;
  view.scale = scale;
  isFitted = false;
  draw();
}

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.offsetX, event.offsetY);
}, { passive: false });

const pointers = new Map();
let travelled = 0;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
  travelled = 0;
});
canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) {
    hover(event.offsetX, event.offsetY);
    return;
  }
  const others = [...pointers].filter(([id]) => id !== event.pointerId);
  if (others.length) {
    const [ox, oy] = others[0][1];
    const was = Math.hypot(before[0] - ox, before[1] - oy);
    const is = Math.hypot(event.offsetX - ox, event.offsetY - oy);
    if (was > 0) zoom(is / was, (event.offsetX + ox) / 2, (event.offsetY + oy) / 2);
  } else {
    view.x -= (event.offsetX - before[0]) / view.scale;
    view.y -= (event.offsetY - before[1]) / view.scale;
    isFitted = false;
    draw();
  }
  travelled += Math.abs(event.offsetX - before[0]) + Math.abs(event.offsetY - before[1]);
  pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
});
for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => {
    const wasClick = pointers.delete(event.pointerId) && name === "pointerup" && travelled < 5;
    if (!wasClick) return;
    if (view.scale * UNIT < 6) {
      // Devices are too small to hit: a click comes closer.
      const tile = tileAt(event.offsetX, event.offsetY);
      if (tile) showTile(tile);
      return;
    }
    const number = at(event.offsetX, event.offsetY);
    if (number >= 0) open(cells[number]);
  });
}
canvas.addEventListener("pointerleave", () => (tip.hidden = true));

canvas.addEventListener("dblclick", (event) => {
  const tile = tileAt(event.offsetX, event.offsetY);
  if (tile) showTile(tile);
});

function tileAt(px, py) {
  const x = view.x + px / view.scale;
  const y = view.y + py / view.scale;
  return order.find((each) => x >= each.x && x <= each.x + each.w && y >= each.y && y <= each.y + each.h);
}

// Zooms so that one node fills the map.
function showTile(tile) {
  const box = canvas.getBoundingClientRect();
  view.scale = Math.min((box.width - 2 * EDGE) / tile.w, (box.height - 48) / tile.h, 24);
  view.x = tile.x + tile.w / 2 - box.width / view.scale / 2;
  view.y = tile.y + tile.h / 2 - box.height / view.scale / 2;
  isFitted = false;
  tip.hidden = true;
  draw();
}

function at(px, py) {
  const x = view.x + px / view.scale;
  const y = view.y + py / view.scale;
  const tile = tileAt(px, py);
  if (!tile) return -1;
  let best = -1;
  for (let number = tile.first; number < tile.first + tile.d.length; number += 1) {
    const cell = cells[number];
    if (x >= cell.x && x <= cell.x + cell.w && y >= cell.y && y <= cell.y + cell.h && (best < 0 || cell.isPart)) best = number;
  }
  return best;
}

function describe(cell) {
  const { tile, device } = cell;
  const text = (field) => plain(tile.s[device[field]]);
  const lines = [`${text(NAME)}: ${STATES[device[STATE]]}${device[STATE] === 2 ? `, ${device[SHARE]}% used` : ""}`, `${text(MODEL)} · ${plain(tile.n) || "network-attached"}`];
  if (text(POD)) lines.push(`pod ${text(POD)}`);
  const drawn = tile.c?.[unitKey(tile, device)];
  if (drawn !== undefined) lines.push(`part of ${text(GROUP)}, whose counters are ${drawn}% drawn`);
  if (text(PROBLEM)) lines.push(text(PROBLEM));
  return lines;
}

function hover(px, py) {
  const number = at(px, py);
  const tile = number < 0 && view.scale * HEAD <= 8 ? tileAt(px, py) : null;
  canvas.dataset.over = number >= 0 ? "device" : "";
  tip.hidden = number < 0 && !tile;
  if (tip.hidden) return;
  tip.textContent = tile ? plain(tile.n || "network-attached") : describe(cells[number]).join("\n");
  const box = canvas.getBoundingClientRect();
  tip.style.left = `${Math.min(px + 14, box.width - tip.offsetWidth - 4)}px`;
  tip.style.top = `${Math.min(py + 14, box.height - tip.offsetHeight - 4)}px`;
}

function open(cell) {
  const { tile, device } = cell;
  const query = new URLSearchParams({ driver: tile.s[device[DRIVER]], pool: tile.s[device[POOL]], name: tile.s[device[NAME]] });
  location.href = `/device?${query}`;
}

canvas.addEventListener("keydown", (event) => {
  const moves = { ArrowRight: 1, ArrowLeft: -1 };
  if (event.key === "+" || event.key === "=") zoom(1.4);
  else if (event.key === "-") zoom(1 / 1.4);
  else if (event.key === "0") {
    fit();
    draw();
  } else if (event.key === "Enter" && chosen >= 0) open(cells[chosen]);
  else if (event.key in moves) choose(chosen < 0 ? 0 : chosen + moves[event.key]);
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const place = chosen < 0 ? 0 : cells[chosen].tile.place + (event.key === "ArrowDown" ? 1 : -1);
    const tile = order[Math.min(Math.max(place, 0), order.length - 1)];
    if (tile) choose(tile.first);
  } else return;
  event.preventDefault();
});

function choose(number) {
  if (!cells.length) return;
  chosen = Math.min(Math.max(number, 0), cells.length - 1);
  const cell = cells[chosen];
  const box = canvas.getBoundingClientRect();
  const px = (cell.x - view.x) * view.scale;
  const py = (cell.y - view.y) * view.scale;
  if (px < 0 || py < 0 || px > box.width || py > box.height) {
    view.x = cell.x - box.width / view.scale / 2;
    view.y = cell.y - box.height / view.scale / 2;
  }
  said.textContent = describe(cell).join(", ");
  draw();
}

document.querySelectorAll("[data-zoom]").forEach((button) =>
  button.addEventListener("click", () => {
    if (button.dataset.zoom === "fit") {
      fit();
      draw();
    } else zoom(button.dataset.zoom === "in" ? 1.5 : 1 / 1.5);
  }),
);

document.addEventListener("dashboard:filter", (event) => {
  colouring = event.detail.get("colour") || "state";
  search = (event.detail.get("q") || "").toLowerCase();
  state = event.detail.get("state") || "";
  paint();
});
document.addEventListener("dashboard:theme", () => {
  readColours();
  paint();
});
document.addEventListener("dashboard:change", (event) => {
  const { topics } = event.detail;
  if (!topics.length || topics.some((topic) => topic === "devices" || topic === "nodes" || topic === "access")) load();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  paint();
});
new ResizeObserver(() => {
  if (isFitted) fit();
  draw();
}).observe(canvas);

readColours();
load();
