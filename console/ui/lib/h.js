// Elements and keyed lists from data. Every string becomes a text node or an attribute: this file never parses HTML.

/** @import { Child, Props } from './types.js' */

// The HTML parser gives the icon sheet of index.html the namespace of SVG.
const SVG = /** @type {string} */ (document.getElementById('icons')?.namespaceURI);
const PROPERTY = new Set([
  'value',
  'checked',
  'disabled',
  'hidden',
  'selected',
  'open',
  'indeterminate',
  'readOnly',
  'tabIndex',
  'htmlFor',
]);

/** @param {Element} el @param {Props|null|undefined} props */
function apply(el, props) {
  const { class: names, on, style, ...others } = props || {};
  for (const [event, fn] of Object.entries(on || {})) el.addEventListener(event, /** @type {EventListener} */ (fn));
  for (const [name, v] of Object.entries(style || {})) /** @type {HTMLElement} */ (el).style.setProperty(name, String(v));
  if (names !== undefined && names !== null) el.setAttribute('class', Array.isArray(names) ? names.filter(Boolean).join(' ') : names);
  for (const [name, v] of Object.entries(others)) {
    if (v === null || v === undefined) continue;
    if (PROPERTY.has(name)) Object.assign(el, { [name]: v });
    else if (v !== false) el.setAttribute(name, v === true ? '' : String(v));
  }
}

/**
 * Appends children: strings and numbers become text nodes; null, undefined, true and false are left out; arrays are flattened.
 * @param {Node} parent @param {Child[]} children
 */
export function add(parent, ...children) {
  for (const c of children) {
    if (Array.isArray(c)) add(parent, ...c);
    else if (c instanceof Node) parent.appendChild(c);
    else if (c !== null && c !== undefined && typeof c !== 'boolean') parent.appendChild(document.createTextNode(String(c)));
  }
  return parent;
}

/**
 * Makes an HTML element. Props: `class` (string or list), `on: {click: fn}`, `style: {width: '3px'}` (set by CSSOM), DOM
 * properties, other attributes.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Props|null} [props] @param {Child[]} children @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  add(el, ...children);
  apply(el, props);
  return el;
}

/**
 * Makes an SVG element in the way h makes an HTML element.
 * @param {string} tag
 * @param {Props|null} [props]
 * @param {Child[]} children
 * @returns {SVGElement}
 */
export function svg(tag, props, ...children) {
  const el = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  add(el, ...children);
  apply(el, props);
  return el;
}

/** An icon of the sheet in index.html: `icon('keys')`. @param {string} name */
export const icon = (name) => svg('svg', { class: 'icon', 'aria-hidden': 'true', focusable: 'false' }, svg('use', { href: '#i-' + name }));

/** The name by which a reader knows a button or a link. @param {Element} e */
export const nameOf = (e) => e.getAttribute('aria-label') || e.textContent;

/**
 * Replaces all children of an element. If a button or a link had the focus, the new one of the same name receives it.
 * @param {Element} el
 * @param {Child[]} children
 */
export function fill(el, ...children) {
  const at = document.activeElement,
    focused = at && el !== at && el.contains(at) && /^(A|BUTTON)$/.test(at.tagName) ? at : null;
  el.replaceChildren();
  add(el, ...children);
  if (focused) {
    const again = [...el.querySelectorAll(focused.localName)].find((e) => nameOf(e) === nameOf(focused));
    if (again) /** @type {HTMLElement} */ (again).focus({ preventScroll: true });
  }
  return el;
}

/** Sets the text of an element if it differs. @param {Element} el @param {string} s */
export function setText(el, s) {
  if (el.textContent !== s) el.textContent = s;
}

/** The elements of lists by row key. @type {WeakMap<Element, Map<string, {el: Element, row: any}>>} */
const lists = new WeakMap();

/**
 * Makes the children of parent match rows. A row keeps its element while its key stays. update is called for rows that existed before.
 * @template T
 * @template {Element} E
 * @param {Element} parent
 * @param {T[]} rows
 * @param {(row: T, i: number) => string} key
 * @param {(row: T) => E} make
 * @param {(el: E, row: T, before: T) => void} [update]
 */
export function list(parent, rows, key, make, update) {
  const old = lists.get(parent) || new Map(),
    now = new Map();
  rows.forEach((row, i) => {
    const k = key(row, i),
      before = old.get(k);
    if (now.has(k)) return;
    if (before && update) update(/** @type {E} */ (before.el), row, before.row);
    now.set(k, { el: before ? before.el : make(row), row });
  });
  for (const [k, x] of old) if (!now.has(k)) x.el.remove();
  let at = parent.firstElementChild;
  for (const { el } of now.values()) {
    if (at && el === at) at = at.nextElementSibling;
    else parent.insertBefore(el, at);
  }
  lists.set(parent, now);
}

/** A section with a title and a border. @param {string|null} title @param {Child[]} children */
export const section = (title, ...children) => h('section', { class: 'card' }, title !== null && h('h2', null, title), children);

/** The number of columns of a text: Chinese characters have two. @param {string} s */
const columns = (s) => [...s].reduce((n, c) => n + (c > '\u2e7f' ? 2 : 1), 0);

/**
 * Makes a search field as wide as its label. typed receives the field's text at each letter (live), or when the user leaves the field.
 * @param {string} label
 * @param {(text: string) => void} typed
 * @param {{value?: string|null, live?: boolean}} [o]
 */
export function searchBox(label, typed, o = {}) {
  const changed = () => typed(box.value);
  /** @type {HTMLInputElement} */
  const box = h('input', {
    type: 'search',
    value: o.value || '',
    placeholder: label,
    'aria-label': label,
    size: Math.max(20, columns(label) + 2),
    spellcheck: 'false',
    on: o.live ? { input: changed } : { change: changed },
  });
  return box;
}
