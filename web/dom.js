// Elements without markup in strings: text never becomes HTML.
export const $ = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'class') made.className = value;
    else if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// One cell; its name is shown in front of it where the table has no room for a head.
export const cell = (name, content, type = '') => element('td', { 'data-name': name, class: type }, content);

// Replaces the children only if their text changed, so that focus and selection survive a refresh.
export function refresh(parent, rows, signature) {
  if (parent.dataset.signature === signature) return;
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.dataset.signature = signature;
  parent.replaceChildren(...rows());
  if (focused) parent.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

export function setText(id, text) {
  const target = $(id);
  if (target.textContent !== text) target.textContent = text;
}
