// Changes one tree of elements into another with the fewest edits, so that focus, selection and scroll positions stay.

export function morph(old, fresh) {
  copyAttributes(old, fresh);
  const next = [...fresh.childNodes];
  let place = old.firstChild;
  for (const node of next) {
    const match = find(place, node);
    if (match) {
      while (place !== match) {
        const gone = place;
        place = place.nextSibling;
        gone.remove();
      }
      if (match.nodeType === Node.ELEMENT_NODE) morph(match, node);
      else if (match.nodeValue !== node.nodeValue) match.nodeValue = node.nodeValue;
      place = match.nextSibling;
    } else {
      old.insertBefore(document.importNode(node, true), place);
    }
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

function find(place, node) {
  for (let candidate = place, steps = 0; candidate && steps < 12; candidate = candidate.nextSibling, steps += 1) {
    if (candidate.nodeType !== node.nodeType || candidate.nodeName !== node.nodeName) continue;
    if (node.nodeType !== Node.ELEMENT_NODE || keyOf(candidate) === keyOf(node)) return candidate;
  }
  return null;
}

// Rows and items are the same if they are about the same thing: their first link says what that is.
function keyOf(element) {
  if (element.id) return element.id;
  if (element.nodeName === "TR" || element.nodeName === "LI") return element.querySelector("a")?.getAttribute("href") ?? "";
  return "";
}

function copyAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    // The reader has opened it, and it stays open.
    if (!fresh.hasAttribute(name) && !(old.nodeName === "DETAILS" && name === "open")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.nodeName === "DETAILS" && name === "open") continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}
