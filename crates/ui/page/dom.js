// Builds elements. Text becomes text nodes, never markup.

import { visible, oneLine } from "./words.js";

const ALLOWED = /^(class|id|type|role|tabindex|title|for|value|name|placeholder|href|scope|colspan|disabled|checked|open|selected|autocomplete|spellcheck|aria-[a-z]+|data-[a-z]+)$/;

export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name === "on") {
      for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    } else if (value !== false && value !== null && value !== undefined) {
      if (!ALLOWED.test(name) || (name === "href" && !String(value).startsWith("#"))) throw new Error(`attribute ${name}`);
      element.setAttribute(name, value === true ? "" : oneLine(value));
    }
  }
  put(element, children);
  return element;
}

export function put(element, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
}

// Replaces what is in an element.
export function fill(element, ...children) {
  element.replaceChildren();
  put(element, children);
  return element;
}

// A name from elsewhere. Letters that are written from right to left stay inside.
export const named = (text, properties) => h("bdi", properties, oneLine(text));

export const sign = (kind, sign) => h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, sign);

export const svg = (tag, properties, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  put(element, children);
  return element;
};

export const empty = (title, ...hints) => h("div", { class: "empty" }, h("p", {}, h("strong", {}, title)), hints.map((hint) => h("p", {}, hint)));

export const code = (text) => h("code", {}, text);

// A list of any length, of which only the visible rows are in the page. Arrow keys choose a row.
export class VirtualList {
  constructor({ label, height, render, choose, id, content = "" }) {
    Object.assign(this, { height, render, choose, id, items: [], chosen: -1, rows: new Map() });
    this.inner = h("div", { class: `rows ${content}` });
    this.element = h("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": label, id }, this.inner);
    this.element.addEventListener("scroll", () => this.later(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("click", (event) => {
      const row = event.target.closest("[data-index]");
      if (row && this.inner.contains(row)) this.pick(Number(row.dataset.index));
    });
    new ResizeObserver(() => this.later()).observe(this.element);
  }

  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  // Shows these items. What is looked at stays where it is, unless it is the top.
  set(items, keyOf) {
    const top = this.element.scrollTop;
    if (keyOf && top > 0 && this.items.length) {
      const first = this.items[Math.floor(top / this.height)];
      const at = first ? items.findIndex((item) => keyOf(item) === keyOf(first)) : -1;
      if (at >= 0) this.element.scrollTop = at * this.height + (top % this.height);
    }
    const chosen = this.items[this.chosen];
    this.chosen = chosen && keyOf ? items.findIndex((item) => keyOf(item) === keyOf(chosen)) : -1;
    this.items = items;
    this.inner.style.height = `${items.length * this.height}px`;
    this.rows.clear();
    this.inner.replaceChildren();
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.height) - 8);
    const last = Math.min(this.items.length, first + Math.ceil((this.element.clientHeight || 800) / this.height) + 16);
    for (const [index, row] of this.rows) {
      if (index < first || index >= last) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      if (this.rows.has(index)) continue;
      const row = this.render(this.items[index], index);
      row.setAttribute("role", "option");
      row.setAttribute("aria-posinset", index + 1);
      row.setAttribute("aria-setsize", this.items.length);
      row.setAttribute("aria-selected", index === this.chosen);
      row.id = `${this.id}-${index}`;
      row.dataset.index = index;
      row.classList.add("row");
      row.style.top = `${index * this.height}px`;
      row.style.height = `${this.height}px`;
      this.rows.set(index, row);
      this.inner.append(row);
    }
    this.element.toggleAttribute("data-empty", !this.items.length);
    const active = this.rows.get(this.chosen);
    if (active) this.element.setAttribute("aria-activedescendant", active.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey || !this.items.length) return;
    event.preventDefault();
    this.pick(Math.min(this.items.length - 1, Math.max(0, this.chosen + steps[event.key])));
  }

  pick(index) {
    this.rows.get(this.chosen)?.setAttribute("aria-selected", "false");
    this.chosen = index;
    this.show(index);
    this.draw();
    this.rows.get(index)?.setAttribute("aria-selected", "true");
    this.choose?.(this.items[index], index);
  }

  show(index) {
    const top = index * this.height;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + this.height > this.element.scrollTop + this.element.clientHeight) this.element.scrollTop = top + this.height - this.element.clientHeight;
  }
}
