// Errors that no caller has caught: those of event handlers and timers, and of promises that nothing awaits.
import { ApiError, isAbort, messageOf, refusal } from './api.js';
import { toast } from './dialog.js';
import { t } from './i18n.js';

/** What a reader reads of an error: '' for the end of a screen, and where the login tells. @param {unknown} e */
function words(e) {
  if (isAbort(e) || (e instanceof ApiError && e.login)) return '';
  return e instanceof ApiError ? refusal(e) : t('error.action', { why: messageOf(e) });
}

/**
 * Shows an error as a message. Returns whether it is one of a request: the browser's own log has the others, which are mistakes of the
 * pages.
 * @param {unknown} e
 */
function showUncaught(e) {
  const s = words(e);
  if (s) toast(s, 'bad');
  return isAbort(e) || e instanceof ApiError;
}

/** Shows from now on what no caller catches. */
export function start() {
  addEventListener('unhandledrejection', (e) => {
    if (showUncaught(e.reason)) e.preventDefault();
  });
  addEventListener('error', (e) => {
    if (e.error) showUncaught(e.error);
  });
}
