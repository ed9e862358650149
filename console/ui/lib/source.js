// A stream of events like EventSource, for requests that are too long for an address: the request goes as the body of a POST.

export class PostSource extends EventTarget {
  /** @param {string} path @param {Record<string, string>} params */
  constructor(path, params) {
    super();
    this.end = new AbortController();
    this.read(path, params)
      .catch(() => {})
      .then(() => this.end.signal.aborted || this.dispatchEvent(new Event('error')));
  }

  close() {
    this.end.abort();
  }

  /** Reads to the end of the stream. @param {string} path @param {Record<string, string>} params */
  async read(path, params) {
    const res = await fetch(path, {
      method: 'POST',
      signal: this.end.signal,
      credentials: 'same-origin',
      cache: 'no-store',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(params),
    });
    if (!res.ok || !res.body) return;
    const chunks = res.body.getReader(),
      decoder = new TextDecoder();
    let rest = '';
    for (;;) {
      const { done, value } = await chunks.read();
      if (done) return;
      const events = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = /** @type {string} */ (events.pop());
      for (const e of events) this.tell(e);
    }
  }

  /** The server writes each event as three lines. @param {string} event */
  tell(event) {
    if (this.end.signal.aborted) return;
    const f = new Map(event.split('\n').map((s) => [s.slice(0, s.indexOf(':')), s.slice(s.indexOf(':') + 2)]));
    this.dispatchEvent(new MessageEvent(f.get('event') || 'message', { data: f.get('data'), lastEventId: f.get('id') || '' }));
  }
}
