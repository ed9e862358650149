// Uncaught errors: from event handlers, from timers, and from promises that nothing awaits.
import { ApiError, isAbort, messageOf, refusal } from './api.js';
import { toast } from './dialog.js';
import { t } from './i18n.js';

/** The text for an error: '' if only the screen ended, or if the login explains it. @param {unknown} e */
function words(e) {
  if (isAbort(e) || (e instanceof ApiError && e.login)) return '';
  return e instanceof ApiError ? refusal(e) : t('error.action', { why: messageOf(e) });
}

/**
 * Shows an error as a message. Returns whether a request failed. All other errors are mistakes of the pages, and appear in the browser's
 * own log.
 * @param {unknown} e
 */
function showUncaught(e) {
  const s = words(e);
  if (s) toast(s, 'bad');
  return isAbort(e) || e instanceof ApiError;
}

/** From now on shows all errors that no caller catches. */
export function start() {
  addEventListener('unhandledrejection', (e) => {
    if (showUncaught(e.reason)) e.preventDefault();
  });
  addEventListener('error', (e) => {
    if (e.error) showUncaught(e.error);
  });
}
