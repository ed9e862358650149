// A document that is large enough for the modules of console/ui: elements with children, attributes and events.

class FakeNode extends EventTarget {
  /** @type {FakeNode[]} */ childNodes = [];
  /** @type {FakeNode|null} */ parent = null;

  get children() {
    return this.childNodes.filter((n) => n instanceof FakeElement);
  }
  get firstElementChild() {
    return this.children[0] ?? null;
  }
  get nextElementSibling() {
    const all = this.parent?.children ?? [];
    return all[all.indexOf(this) + 1] ?? null;
  }
  /** @returns {string} */
  get textContent() {
    return this.childNodes.map((n) => n.textContent).join('');
  }
  set textContent(text) {
    this.replaceChildren(new FakeText(text));
  }
  appendChild(node) {
    return this.insertBefore(node, null);
  }
  insertBefore(node, before) {
    node.remove();
    node.parent = this;
    this.childNodes.splice(before ? this.childNodes.indexOf(before) : this.childNodes.length, 0, node);
    return node;
  }
  replaceChildren(...nodes) {
    for (const n of [...this.childNodes]) n.remove();
    for (const n of nodes) this.appendChild(n);
  }
  remove() {
    if (this.parent) this.parent.childNodes.splice(this.parent.childNodes.indexOf(this), 1);
    this.parent = null;
  }
  contains(node) {
    return node === this || this.childNodes.some((n) => n.contains(node));
  }
}

class FakeText extends FakeNode {
  constructor(text) {
    super();
    this.text = text;
  }
  get textContent() {
    return this.text;
  }
}

export class FakeElement extends FakeNode {
  /** @type {Map<string, string>} */ attributes = new Map();
  style = {
    setProperty(name, value) {
      this[name] = value;
    },
  };

  constructor(name) {
    super();
    this.localName = name;
    this.tagName = name.toUpperCase();
  }
  append(...nodes) {
    for (const n of nodes) this.appendChild(n);
  }
  replaceWith(node) {
    this.parent.insertBefore(node, this);
    this.remove();
  }
  querySelectorAll() {
    return [];
  }
  get classList() {
    return { add() {}, remove() {}, toggle() {} };
  }
  setAttribute(name, value) {
    this.attributes.set(name, value);
  }
  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }
}

/** Makes the document global, for the modules that a test imports afterwards. */
export function install() {
  const body = new FakeElement('body');
  Object.assign(globalThis, {
    Node: FakeNode,
    HTMLElement: FakeElement,
    requestAnimationFrame: (fn) => fn(),
    document: {
      activeElement: null,
      body,
      documentElement: new FakeElement('html'),
      createElement: (name) => new FakeElement(name),
      createElementNS: (_, name) => new FakeElement(name),
      createTextNode: (text) => new FakeText(text),
      getElementById: (id) => body.children.find((el) => el.getAttribute('id') === id) ?? null,
    },
  });
}
