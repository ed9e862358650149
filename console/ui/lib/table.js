// Tables: sortable, filtered, moved through by keyboard, with an empty state.
import { h, fill, list } from './h.js';
import { copy } from './bytes.js';
import { t } from './i18n.js';

/** The rows that come into the document in one frame. */
const STEP = 40;
/** A phone has room for so many columns. Where there are more, and where rows have buttons, each row stands as a card. */
const PHONE = 4;

/**
 * A column. value: what it sorts by and copies. cell: what it shows (default: the value). num: aligned to the right with tabular figures.
 * @template R
 * @typedef {{id: string, label: string, num?: boolean, value: (r: R) => any, cell?: (r: R) => any, title?: string, wide?: boolean,
 *   minor?: boolean, sort?: boolean}} Column
 * wide: the column that names the row. minor: a phone leaves it out.
 */

/**
 * Makes a table. key: a string for Map, the same for the same row. open: what Enter or a click does. actions: buttons of a row,
 * made once per row (now() is the row of today), and again when what shape says of the row changes.
 * empty: what stands there without rows. select: boxes to choose rows. sort: [column id, -1 or 1] at first. fade: a row whose
 * deadline passes fades away (default true). most: the number of rows that it shows at once, more if fewer
 * than five of them are alive; the others follow as rows fade away; over: what to do when these are too few. stack: on a phone
 * a row is a card in any case.
 * sorted: the reader has chosen a column, "-id" from the largest down; where the server has more rows it finds the first ones.
 * set(rows) shows rows; selected() are the chosen ones; focus() goes to the first row. j and k move, Enter opens, x chooses, y
 * copies the row, / goes to the filter of the page.
 * @template R
 * @param {{columns: Column<R>[], rows?: R[], key: (r: R) => string, empty?: () => any, actions?: (now: () => R) => any, open?: (r:
 *   R) => void,
 *   select?: (chosen: R[]) => void, sort?: [string, number], fade?: boolean, label?: string, href?: (r: R) => string, most?: number,
 *   alive?: (r: R) => boolean, over?: () => void, stack?: boolean, shape?: (r: R) => string, sorted?: (sort: string) => void}} o
 */
export function table(o) {
  let rows = o.rows || [],
    sort = o.sort || ['', 1];
  /** The rows in their order, of which the first `room` are in the document: see grow. */
  let out = rows,
    room = STEP,
    growing = false;
  /** @type {Set<string>} */
  const chosen = new Set();
  const body = h('tbody'),
    none = h('div', { class: 'empty' });
  /** @type {Map<string, HTMLElement>} */
  const heads = new Map();
  const all = h('input', {
    type: 'checkbox',
    'aria-label': t('table.all'),
    on: {
      change: () => {
        for (const r of rows)
          if (all.checked) chosen.add(o.key(r));
          else chosen.delete(o.key(r));
        render();
      },
    },
  });
  const lead = o.columns.find((c) => !c.minor);
  const classes = (/** @type {Column<R>} */ c) => [c.num && 'num', c.wide && 'wide', c.minor && 'minor', c === lead && 'lead'];
  for (const c of o.columns) {
    heads.set(
      c.id,
      h(
        'th',
        { class: classes(c), scope: 'col', title: c.title },
        c.sort === false
          ? c.label
          : h(
              'button',
              {
                type: 'button',
                class: 'head',
                on: {
                  click: () => {
                    sort = sort[0] === c.id ? [c.id, -sort[1]] : [c.id, c.num ? -1 : 1];
                    render();
                    if (o.sorted) o.sorted((sort[1] < 0 ? '-' : '') + c.id);
                  },
                },
              },
              c.label,
            ),
      ),
    );
  }
  const head = h(
    'thead',
    null,
    h(
      'tr',
      { 'data-label': t('table.sort') },
      o.select && h('th', { class: 'pick', scope: 'col' }, all),
      [...heads.values()],
      o.actions && h('th', { class: 'acts', scope: 'col' }, h('span', { class: 'sr' }, t('table.actions'))),
    ),
  );
  const stack = o.stack || o.actions || o.columns.filter((c) => !c.minor).length > PHONE;
  const inner = h('table', { 'aria-label': o.label, class: stack ? 'stack' : null }, head, body);
  const el = h('div', { class: 'table' }, inner, none);

  /** @param {R} row */
  const cells = (row) =>
    o.columns.map((c) => h('td', { class: classes(c), 'data-label': c.label }, c.cell ? c.cell(row) : String(c.value(row) ?? '–')));
  /** @param {R} row */
  function make(row) {
    const state = { row, json: JSON.stringify(row), shape: o.shape?.(row) };
    const box =
      o.select &&
      h('input', {
        type: 'checkbox',
        'aria-label': t('table.pick'),
        on: {
          change: () => {
            choose(state.row);
          },
        },
      });
    const tr = h(
      'tr',
      {
        tabIndex: 0,
        class: o.open || o.href ? 'opens' : '',
        on: {
          click: (/** @type {MouseEvent} */ e) => {
            if (!(/** @type {Element} */ (e.target).closest('button,a,input,select'))) go(state.row);
          },
          keydown: (/** @type {KeyboardEvent} */ e) => {
            if (e.target === tr) keydown(e, tr, state.row);
          },
          expired: () => {
            if (o.fade !== false) {
              tr.classList.add('gone');
              if (o.over) tr.classList.add('quick');
              setTimeout(
                () => {
                  rows = rows.filter((r) => r !== state.row && (!o.alive || out.includes(r) || o.alive(r)));
                  chosen.delete(o.key(state.row));
                  render();
                  if (o.over && rows.length < (o.most || 1)) o.over();
                },
                o.over ? 200 : 700,
              ); // other rows wait for the place of this one
            }
          },
        },
      },
      box && h('td', { class: 'pick' }, box),
      cells(row),
      o.actions &&
        h(
          'td',
          { class: 'acts' },
          o.actions(() => state.row),
        ),
    );
    Object.assign(tr, { ebb: { state, box } });
    if (box) box.checked = chosen.has(o.key(row));
    return tr;
  }
  /** @param {any} tr @param {R} row */
  function update(tr, row) {
    const { state, box } = tr.ebb,
      json = JSON.stringify(row);
    if (box) box.checked = chosen.has(o.key(row));
    state.row = row;
    if (json === state.json) return;
    state.json = json;
    tr.classList.remove('gone', 'quick');
    const old = [...tr.children].slice(box ? 1 : 0),
      fresh = cells(row);
    fresh.forEach((td, i) => old[i].replaceWith(td));
    const shape = o.shape?.(row);
    if (o.actions && shape !== state.shape) {
      state.shape = shape;
      fill(
        old[fresh.length],
        o.actions(() => state.row),
      );
    }
  }
  /** @param {R} row */
  function choose(row) {
    const k = o.key(row);
    if (chosen.has(k)) chosen.delete(k);
    else chosen.add(k);
    render();
  }
  /** @param {R} row */
  function go(row) {
    if (o.open) o.open(row);
    else if (o.href) location.hash = o.href(row);
  }
  /** @param {KeyboardEvent} e @param {HTMLElement} tr @param {R} row */
  function keydown(e, tr, row) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const to =
      e.key === 'j' || e.key === 'ArrowDown'
        ? tr.nextElementSibling
        : e.key === 'k' || e.key === 'ArrowUp'
          ? tr.previousElementSibling
          : null;
    if (to) /** @type {HTMLElement} */ (to).focus();
    else if (e.key === 'Enter') go(row);
    else if (e.key === 'x' && o.select) choose(row);
    else if (e.key === 'y') copy(o.columns.map((c) => String(c.value(row) ?? '')).join('\t'));
    else return;
    e.preventDefault();
  }
  // A frame that lays out 200 rows at once takes 100 ms: the rows come into the document in steps, a step a frame.
  /** @param {typeof update} [change] for the rows that are there */
  function grow(change) {
    list(body, out.slice(0, room), o.key, make, change);
    if (out.length <= STEP) room = STEP;
    if (growing || out.length <= room) return;
    growing = true;
    requestAnimationFrame(() => {
      growing = false;
      room += STEP;
      grow();
    });
  }
  function render() {
    const col = o.columns.find((c) => c.id === sort[0]);
    out = rows;
    if (col) {
      out = rows
        .map((r) => ({ r, v: col.value(r) }))
        .sort((a, b) => {
          const x = a.v,
            y = b.v;
          if (x === y) return 0;
          if (x === null || x === undefined) return 1;
          if (y === null || y === undefined) return -1;
          return (x < y ? -1 : 1) * sort[1];
        })
        .map((x) => x.r);
    }
    if (o.most) {
      let alive = 0;
      const end = out.findIndex((r, i) => {
        if (!o.alive || o.alive(r)) alive++;
        return i + 1 >= (o.most || 0) && alive >= 5;
      });
      if (end >= 0) out = out.slice(0, end + 1);
    }
    for (const [k, th] of heads) th.setAttribute('aria-sort', k !== sort[0] ? 'none' : sort[1] > 0 ? 'ascending' : 'descending');
    grow(update);
    inner.hidden = !out.length;
    none.hidden = !!out.length;
    if (!out.length) fill(none, o.empty ? o.empty() : t('table.empty'));
    if (o.select) {
      const picked = rows.filter((r) => chosen.has(o.key(r)));
      all.checked = picked.length > 0 && picked.length === rows.length;
      all.indeterminate = picked.length > 0 && picked.length < rows.length;
      o.select(picked);
    }
  }
  render();
  return {
    el,
    /** @param {R[]} next */
    set(next) {
      rows = next;
      render();
    },
    rows: () => rows,
    selected: () => rows.filter((r) => chosen.has(o.key(r))),
    clear() {
      chosen.clear();
      render();
    },
    focus() {
      /** @type {HTMLElement|null} */ (body.querySelector('tr'))?.focus();
    },
  };
}
