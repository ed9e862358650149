// What an eye, a keyboard and a screen reader need of the visible page. The value is a list of sentences, empty if nothing is wrong.
(() => {
  const wrong = new Set();
  const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0;
  const all = (s) => [...document.querySelectorAll(s)].filter(seen);
  const words = (e) => (e.innerText || e.textContent || '').trim().replace(/\s+/g, ' ').slice(0, 60);
  const what = (e) => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + (e.className && typeof e.className === 'string' ? '.' + e.className.trim().replace(/\s+/g, '.') : '') + ' "' + words(e) + '"';
  const say = (e, s) => wrong.add(what(e) + ': ' + s);

  // Names and roles.
  const named = (e) => !!((e.getAttribute('aria-label') || '').trim() || [...(e.labels || [])].some((l) => words(l)) || (e.getAttribute('aria-labelledby') || '').split(/\s+/).some((i) => i && document.getElementById(i)) ||
    (!/^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName) && words(e)));
  for (const e of all('button, a[href], input:not([type=hidden]), select, textarea, summary, [role=button], [role=tab], dialog, [role=group], [role=log], nav')) if (!named(e)) say(e, 'it has no name');
  for (const e of all('table')) {
    if (!e.getAttribute('aria-label') && !e.caption) say(e, 'the table has no name');
    for (const th of e.querySelectorAll('thead th')) if (th.scope !== 'col') say(th, 'the head of a column has no scope');
  }
  for (const e of all('svg')) if (e.getAttribute('aria-hidden') !== 'true' && !e.getAttribute('aria-label')) say(e, 'the picture is neither named nor hidden');
  for (const e of all('img')) if (!e.hasAttribute('alt')) say(e, 'the picture has no alt');
  for (const e of all('button button, button a, a button, a a, button input')) say(e, 'a control within a control');
  for (const e of all('[tabindex]')) if (e.tabIndex > 0) say(e, 'a tabindex above 0 changes the order');
  for (const e of all('[aria-hidden=true]')) if (e.querySelector('button, a[href], input, select, textarea')) say(e, 'a control is hidden from screen readers alone');
  const ids = new Set();
  for (const e of document.querySelectorAll('[id]')) { if (ids.has(e.id)) say(e, 'the id is not unique'); ids.add(e.id); }
  if (!document.documentElement.lang) wrong.add('the document has no language');
  if (!document.title) wrong.add('the document has no title');
  const h1 = [...document.querySelectorAll('h1')].filter(seen).length;
  if (h1 !== 1) wrong.add('the document has ' + h1 + ' headings of the first level');
  let level = 1;
  for (const e of all('h1, h2, h3, h4')) { const n = Number(e.tagName[1]); if (n > level + 1) say(e, 'a level of headings is left out'); level = n; }

  // Contrast of text, as WCAG computes it.
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const rgba = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1); const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const ground = (e) => {
    const stack = [];
    for (let x = e; x; x = x.parentElement) { const c = rgba(getComputedStyle(x).backgroundColor); if (c[3]) stack.push(c); if (c[3] === 1) break; }
    return stack.reverse().reduce((under, c) => over(c, under), [255, 255, 255, 1]);
  };
  const light = (c) => { const [r, g, b] = c.map((x) => { x /= 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!e || !n.data.trim() || !seen(e) || e.closest('.sr, [disabled], .gone, svg, select')) continue;
    const s = getComputedStyle(e), back = ground(e), front = over(rgba(s.color), back);
    let [a, b] = [light(front), light(back)];
    if (a < b) [a, b] = [b, a];
    const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(s.fontSize), large = size >= 24 || (size >= 18.66 && Number(s.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) say(e, 'the contrast is ' + ratio.toFixed(2));
  }
  for (const e of all('.chart text')) {
    let [a, b] = [light(over(rgba(getComputedStyle(e).fill), ground(e))), light(ground(e))];
    if (a < b) [a, b] = [b, a];
    if ((a + 0.05) / (b + 0.05) < 4.5) say(e, 'the contrast of the chart is ' + ((a + 0.05) / (b + 0.05)).toFixed(2));
  }
  return [...wrong];
})()
