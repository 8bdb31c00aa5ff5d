// Elements without markup: text is only ever set as text, so a name or value from a release can never become code.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svgElement(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, String(value));
  }
  node.append(...children.filter((child) => child !== null).map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

/** Change only what differs, so that frequent updates stay cheap. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let identities = 0;
export function identity(prefix) {
  identities += 1;
  return `${prefix}-${identities}`;
}
