// Elements, focus, announcements and short animations: what every view is built with.
// Nothing here or elsewhere sets HTML from text; the page's policy (Trusted Types) would refuse it.

/**
 * An element. Keys of `props`: "on…" adds a listener, true sets an empty attribute, null and false
 * set none, "text" is its text, any other one is an attribute. Children may be nested lists.
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An SVG element. */
export function svg(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Put new content into an element. The focus stays on the control with the same data-key; where
 * that is gone it goes to the first of `fallbacks` that is there, so that nobody using the
 * keyboard is thrown back to the top of the page.
 */
export function redraw(root, content, fallbacks = []) {
  const active = document.activeElement;
  const key = active && root.contains(active) ? active.closest("[data-key]")?.dataset.key : null;
  root.replaceChildren(...[content].flat(3).filter(Boolean));
  if (!key) return;
  const wanted = [key, ...neighbours(key), ...fallbacks];
  for (const name of wanted) {
    const found = find(root, name);
    if (found && !found.disabled) {
      found.focus({ preventScroll: true });
      return;
    }
  }
}

/** Keys near one that is gone: "hand:7#4" is followed by the hand's cards before it. */
function neighbours(key) {
  const match = /^(place:)(\d+)$/.exec(key);
  if (!match) return [];
  return Array.from({ length: Number(match[2]) }, (_, i) => `place:${Number(match[2]) - 1 - i}`);
}

/** The control with a data-key. */
export function find(root, key) {
  return root.querySelector(`[data-key="${CSS.escape(key)}"]`);
}

let pending = 0;
/** Say something to screen readers, once what they were reading is through. */
export function announce(text) {
  const live = document.getElementById("live");
  live.textContent = "";
  clearTimeout(pending);
  pending = setTimeout(() => { live.textContent = text; }, 60);
}

/** Show a fault at the top of the page, with what can be done about it; null takes it away. */
export function alarm(text, actions = []) {
  const box = document.getElementById("alert");
  if (!text) {
    box.replaceChildren();
    return;
  }
  box.replaceChildren(h("p", { text }), ...actions.map(([label, act]) => button(label, act, { "data-key": `alarm:${label}` })));
}

/** A button with a text. */
export function button(label, onclick, props = {}) {
  return h("button", { type: "button", onclick, ...props }, label);
}

const still = matchMedia("(prefers-reduced-motion: reduce)");
export const MOTION_MS = 170;

/** Let an element come from where another one stood; nothing where motion is not wanted. */
export function fly(element, from) {
  if (!element || !from || still.matches) return;
  const to = element.getBoundingClientRect();
  const x = from.left - to.left;
  const y = from.top - to.top;
  if (Math.abs(x) + Math.abs(y) < 2) return;
  element.animate(
    [{ transform: `translate(${x}px, ${y}px)`, zIndex: 5 }, { transform: "none", zIndex: 5 }],
    { duration: MOTION_MS, easing: "cubic-bezier(.2,.7,.3,1)" },
  );
}

/** Draw the eye to an element that has changed. */
export function pulse(element) {
  if (!element || still.matches) return;
  element.animate(
    [{ transform: "scale(.94)", opacity: 0.6 }, { transform: "none", opacity: 1 }],
    { duration: MOTION_MS, easing: "ease-out" },
  );
}

let unique = 0;
/** An id that no other element has. */
export function newId(prefix) {
  unique += 1;
  return `${prefix}-${unique}`;
}

/** A labelled control: the label stands before it. */
export function field(label, control, hint = null) {
  const id = control.id || newId("field");
  control.id = id;
  const parts = [h("label", { for: id }, label), control];
  if (hint) {
    const hintId = newId("hint");
    control.setAttribute("aria-describedby", hintId);
    parts.push(h("small", { id: hintId, text: hint }));
  }
  return h("div", { class: "field" }, parts);
}

/** A drop-down of [value, text] pairs, or [label, pairs] for a group of them. */
export function select(options, value, props = {}) {
  const option = ([key, text]) => h("option", { value: key, text });
  const element = h("select", props, options.map((entry) => (Array.isArray(entry[1]) ? h("optgroup", { label: entry[0] }, entry[1].map(option)) : option(entry))));
  element.value = String(value);
  return element;
}

/** Open the page's dialog with a heading, content and a button to close it. */
export function openDialog(title, content, { onclose } = {}) {
  const dialog = document.getElementById("dialog");
  const id = newId("dialog-title");
  dialog.setAttribute("aria-labelledby", id);
  dialog.replaceChildren(
    h("div", { class: "dialog-head" }, h("h2", { id, text: title }), button("Close", () => dialog.close(), { class: "quiet" })),
    content,
  );
  dialog.onclose = () => {
    dialog.replaceChildren();
    onclose?.();
  };
  if (!dialog.open) dialog.showModal();
  return dialog;
}
