// The keys of all screens: Ctrl-K finds, / goes to the filter, j to the first row.
import { find } from './find.js';
import { screen } from './router.js';
import { isKnown } from './user.js';

/** @param {KeyboardEvent} e */
function keydown(e) {
  const at = /** @type {Element} */ (e.target);
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
    e.preventDefault();
    if (isKnown()) find();
    return;
  }
  if (at.closest?.('input,textarea,select,dialog') || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === '/') {
    e.preventDefault();
    const filter = /** @type {HTMLElement|null} */ (screen.querySelector('input[type="search"]'));
    if (filter) filter.focus();
    else find();
  }
  if (e.key === 'j' && !at.closest?.('tr')) /** @type {HTMLElement|null} */ (screen.querySelector('tbody tr[tabindex]'))?.focus();
}

export const start = () => addEventListener('keydown', keydown);
