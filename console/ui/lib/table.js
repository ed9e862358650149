// Tables that a click sorts, with keyboard navigation, and a text for the empty state.
import { h, fill, list } from './h.js';
import { copy } from './bytes.js';
import { t } from './i18n.js';

/** @import { Column, TableOptions } from './types.js' */

/** How many rows enter the document per frame, because the layout of 200 rows at once takes 100 ms. */
const ROWS_PER_FRAME = 40;
/** How many columns fit on a phone. If a table has more, or if its rows have buttons, each row becomes a card. */
const PHONE_COLUMNS = 4;
/** How long a faded row stays, ms. quick applies if other rows wait for the place. */
const FADE = { slow: 700, quick: 200 };
/** How many of the rows in view must be alive if `most` limits them. */
const MIN_ALIVE = 5;

/**
 * Sorts rows by a value, in ascending (direction 1) or descending (-1) order; rows without a value come last.
 * @template R
 * @param {R[]} rows
 * @param {(row: R) => string|number|null|undefined} value
 * @param {number} direction
 */
export function sorted(rows, value, direction) {
  return rows
    .map((row) => ({ row, v: value(row) ?? null }))
    .sort((a, b) => {
      if (a.v === b.v) return 0;
      if (a.v === null) return 1;
      if (b.v === null) return -1;
      return (a.v < b.v ? -1 : 1) * direction;
    })
    .map((x) => x.row);
}

/**
 * Returns the first `most` rows, and more if too few of them are alive.
 * @template R
 * @param {R[]} rows
 * @param {number} most
 * @param {(row: R) => boolean} alive
 */
export function firstRows(rows, most, alive) {
  let living = 0;
  const end = rows.findIndex((row, i) => {
    if (alive(row)) living++;
    return i + 1 >= most && living >= MIN_ALIVE;
  });
  return end < 0 ? rows : rows.slice(0, end + 1);
}

/**
 * The state of a row's element.
 * @template R
 * @typedef {{row: R, json: string, shape: string|undefined, box: HTMLInputElement|undefined}} RowState
 */

/**
 * A table. set shows rows, selected returns the selected rows, focus moves to the first row. j and k move, Enter opens, x selects, y
 * copies the row, and / moves to the page's filter.
 * @template R
 */
class Table {
  /** @param {TableOptions<R>} o */
  constructor(o) {
    this.o = o;
    /** @type {R[]} */
    this.all = o.rows || [];
    /** The rows in order. The first `room` of them are in the document. @type {R[]} */
    this.ordered = this.all;
    this.room = ROWS_PER_FRAME;
    this.growing = false;
    /** The sort column and direction. @type {[string, number]} */
    this.sort = o.sort || ['', 1];
    /** The keys of the selected rows. @type {Set<string>} */
    this.chosen = new Set();
    /** @type {WeakMap<Element, RowState<R>>} */
    this.states = new WeakMap();
    /** The initial sort column. A phone shows it too, so that the user can return to that order. */
    this.first = this.sort[0];
    this.lead = o.columns.find((c) => !c.minor);
    this.heads = new Map(o.columns.map((c) => [c.id, this.makeHead(c)]));
    this.chooseAll = h('input', { type: 'checkbox', 'aria-label': t('table.all'), on: { change: () => this.chooseEach() } });
    this.body = h('tbody');
    const stack = o.stack || o.actions || o.columns.filter((c) => !this.isMinor(c)).length > PHONE_COLUMNS;
    this.inner = h('table', { 'aria-label': o.label, class: stack ? 'stack' : undefined }, h('thead', null, this.makeHeadRow()), this.body);
    this.none = h('div', { class: 'empty' });
    this.el = h('div', { class: 'table' }, this.inner, this.none);
    this.render();
  }

  rows() {
    return this.all;
  }
  selected() {
    return this.all.filter((r) => this.chosen.has(this.o.key(r)));
  }
  /** @param {R[]} rows */
  set(rows) {
    this.all = rows;
    this.render();
  }
  /** Deselects all rows. */
  clear() {
    this.chosen.clear();
    this.render();
  }
  focus() {
    this.body.querySelector('tr')?.focus();
  }

  /** Whether a phone hides a column. @param {Column<R>} c */
  isMinor(c) {
    return c.minor && c.id !== this.first;
  }

  /** @param {Column<R>} c */
  classes(c) {
    return [c.num && 'num', c.wide && 'wide', this.isMinor(c) && 'minor', c === this.lead && 'lead'];
  }

  /** @param {Column<R>} c */
  makeHead(c) {
    const click = () => this.sortBy(c);
    return h(
      'th',
      { class: this.classes(c), scope: 'col', title: c.title },
      c.sort === false ? c.label : h('button', { type: 'button', class: 'head', on: { click } }, c.label),
    );
  }

  makeHeadRow() {
    return h(
      'tr',
      { 'data-label': t('table.sort') },
      this.o.select && h('th', { class: 'pick', scope: 'col' }, this.chooseAll),
      [...this.heads.values()],
      this.o.actions && h('th', { class: 'acts', scope: 'col' }, h('span', { class: 'sr' }, t('table.actions'))),
    );
  }

  /** The cells of a row. @param {R} row */
  cells(row) {
    return this.o.columns.map((c) =>
      h('td', { class: this.classes(c), 'data-label': c.label }, c.cell ? c.cell(row) : String(c.value(row) ?? '–')),
    );
  }

  /** Makes the element of a row. @param {R} row @returns {HTMLTableRowElement} */
  makeRow(row) {
    const { o } = this;
    const box = o.select
      ? h('input', { type: 'checkbox', 'aria-label': t('table.pick'), on: { change: () => this.choose(state.row) } })
      : undefined;
    /** @type {RowState<R>} */
    const state = { row, json: JSON.stringify(row), shape: o.shape?.(row), box };
    /** @type {HTMLTableRowElement} */
    const tr = h(
      'tr',
      {
        tabIndex: 0,
        class: o.open ? 'opens' : '',
        on: {
          click: (e) => {
            if (!(/** @type {Element} */ (e.target).closest('button,a,input,select'))) o.open?.(state.row);
          },
          keydown: (e) => {
            if (e.target === tr) this.keydown(e, tr, state.row);
          },
          expired: () => this.fade(tr, state),
        },
      },
      box && h('td', { class: 'pick' }, box),
      this.cells(row),
      o.actions &&
        h(
          'td',
          { class: 'acts' },
          o.actions(() => state.row),
        ),
    );
    this.states.set(tr, state);
    if (box) box.checked = this.chosen.has(o.key(row));
    return tr;
  }

  /** Updates an element to a new row with the same key. @param {HTMLTableRowElement} tr @param {R} row */
  updateRow(tr, row) {
    const { o } = this,
      state = /** @type {RowState<R>} */ (this.states.get(tr)),
      json = JSON.stringify(row);
    if (state.box) state.box.checked = this.chosen.has(o.key(row));
    state.row = row;
    if (json === state.json) return;
    state.json = json;
    tr.classList.remove('gone', 'quick');
    const old = [...tr.children].slice(state.box ? 1 : 0),
      fresh = this.cells(row);
    fresh.forEach((td, i) => old[i].replaceWith(td));
    const shape = o.shape?.(row);
    if (!o.actions || shape === state.shape) return;
    state.shape = shape;
    fill(
      old[fresh.length],
      o.actions(() => state.row),
    );
  }

  /** Fades out a row whose deadline has passed, and then removes it. @param {HTMLElement} tr @param {RowState<R>} state */
  fade(tr, state) {
    const { o } = this;
    if (o.fade === false) return;
    tr.classList.add('gone');
    if (o.tooFew) tr.classList.add('quick');
    setTimeout(
      () => {
        const before = this.all.length;
        this.all = this.all.filter((r) => r !== state.row && (!o.alive || this.ordered.includes(r) || o.alive(r)));
        this.chosen.delete(o.key(state.row));
        this.render();
        if (o.tooFew && this.all.length < (o.most || 1)) o.tooFew();
        if (this.all.length < before) o.gone?.();
      },
      o.tooFew ? FADE.quick : FADE.slow,
    );
  }

  /** @param {Column<R>} c */
  sortBy(c) {
    this.sort = this.sort[0] === c.id ? [c.id, -this.sort[1]] : [c.id, c.num ? -1 : 1];
    this.render();
    this.o.sorted?.((this.sort[1] < 0 ? '-' : '') + c.id);
  }

  /** @param {R} row */
  choose(row) {
    const k = this.o.key(row);
    if (!this.chosen.delete(k)) this.chosen.add(k);
    this.render();
  }

  /** Selects all rows, or none. */
  chooseEach() {
    for (const r of this.all)
      if (this.chooseAll.checked) this.chosen.add(this.o.key(r));
      else this.chosen.delete(this.o.key(r));
    this.render();
  }

  /** @param {KeyboardEvent} e @param {HTMLElement} tr @param {R} row */
  keydown(e, tr, row) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { o } = this,
      down = e.key === 'j' || e.key === 'ArrowDown',
      up = e.key === 'k' || e.key === 'ArrowUp',
      to = down ? tr.nextElementSibling : up ? tr.previousElementSibling : null;
    if (to) /** @type {HTMLElement} */ (to).focus();
    else if (e.key === 'Enter') o.open?.(row);
    else if (e.key === 'x' && o.select) this.choose(row);
    else if (e.key === 'y') copy(o.columns.map((c) => String(c.value(row) ?? '')).join('\t'));
    else return;
    e.preventDefault();
  }

  render() {
    const { o } = this,
      column = o.columns.find((c) => c.id === this.sort[0]);
    this.ordered = column ? sorted(this.all, column.value, this.sort[1]) : this.all;
    if (o.most) this.ordered = firstRows(this.ordered, o.most, o.alive || (() => true));
    for (const [name, th] of this.heads)
      th.setAttribute('aria-sort', name !== this.sort[0] ? 'none' : this.sort[1] > 0 ? 'ascending' : 'descending');
    this.grow((tr, row) => this.updateRow(tr, row));
    const empty = !this.ordered.length;
    this.inner.hidden = empty;
    this.none.hidden = !empty;
    if (empty) fill(this.none, o.empty ? o.empty() : t('table.empty'));
    if (o.select) this.showChosen(o.select);
  }

  /** Adds the rows to the document in steps, one per frame. @param {(tr: HTMLTableRowElement, row: R) => void} [change] */
  grow(change) {
    list(this.body, this.ordered.slice(0, this.room), this.o.key, (row) => this.makeRow(row), change);
    if (this.ordered.length <= ROWS_PER_FRAME) this.room = ROWS_PER_FRAME;
    if (this.growing || this.ordered.length <= this.room) return;
    this.growing = true;
    requestAnimationFrame(() => {
      this.growing = false;
      this.room += ROWS_PER_FRAME;
      this.grow();
    });
  }

  /** @param {(rows: R[]) => void} select */
  showChosen(select) {
    const rows = this.selected();
    this.chooseAll.checked = rows.length > 0 && rows.length === this.all.length;
    this.chooseAll.indeterminate = rows.length > 0 && rows.length < this.all.length;
    select(rows);
  }
}

/**
 * Makes a table.
 * @template R
 * @param {TableOptions<R>} o
 */
export const table = (o) => new Table(o);
