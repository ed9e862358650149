// Formats in which the page shows a value: text, JSON, hex, MessagePack, gzip, bits.

/** Bytes as offset, hex and characters, 16 per line. @param {Uint8Array} a */
export function hex(a) {
  const out = [];
  for (let i = 0; i < a.length; i += 16) {
    const part = [...a.subarray(i, i + 16)];
    out.push(
      i.toString(16).padStart(8, '0') +
        '  ' +
        part
          .map((c) => c.toString(16).padStart(2, '0'))
          .join(' ')
          .padEnd(48) +
        ' ' +
        part.map((c) => (c > 31 && c < 127 ? String.fromCharCode(c) : '.')).join(''),
    );
  }
  return out.join('\n');
}

/** Bits in the order of SETBIT, 64 per line. @param {Uint8Array} a */
export function bits(a) {
  const out = [];
  for (let i = 0; i < a.length; i += 8)
    out.push(String(i * 8).padStart(8) + '  ' + [...a.subarray(i, i + 8)].map((c) => c.toString(2).padStart(8, '0')).join(' '));
  return out.join('\n');
}

/** Decompresses gzip, up to 1 MiB of output. @param {Uint8Array} a */
export async function gunzip(a) {
  const reader = new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (a)]).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  /** @type {number[]} */
  const out = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    for (const c of value) out.push(c);
    if (out.length > 1 << 20) {
      reader.cancel();
      break;
    }
  }
  return new Uint8Array(out);
}

/** The greatest depth of nested MessagePack values. */
const MAX_DEPTH = 64;

/** Converts MessagePack to text in the style of JSON. */
class MessagePack {
  /** @param {Uint8Array} a */
  constructor(a) {
    this.a = a;
    this.view = new DataView(a.buffer, a.byteOffset, a.length);
    this.at = 0;
    const v = this.view,
      take = (/** @type {number} */ n) => this.take(n),
      u8 = () => v.getUint8(take(1)),
      u16 = () => v.getUint16(take(2)),
      u32 = () => v.getUint32(take(4));
    /** The function that reads the values with a given first byte. @type {Record<number, (depth: number) => string|number|bigint>} */
    this.readers = {
      0xc0: () => 'null',
      0xc2: () => 'false',
      0xc3: () => 'true',
      0xc4: () => this.bin(u8()),
      0xc5: () => this.bin(u16()),
      0xc6: () => this.bin(u32()),
      0xc7: () => this.ext(u8()),
      0xc8: () => this.ext(u16()),
      0xc9: () => this.ext(u32()),
      0xca: () => v.getFloat32(take(4)),
      0xcb: () => v.getFloat64(take(8)),
      0xcc: u8,
      0xcd: u16,
      0xce: u32,
      0xcf: () => v.getBigUint64(take(8)),
      0xd0: () => v.getInt8(take(1)),
      0xd1: () => v.getInt16(take(2)),
      0xd2: () => v.getInt32(take(4)),
      0xd3: () => v.getBigInt64(take(8)),
      0xd9: () => this.str(u8()),
      0xda: () => this.str(u16()),
      0xdb: () => this.str(u32()),
      0xdc: (depth) => this.array(u16(), depth),
      0xdd: (depth) => this.array(u32(), depth),
      0xde: (depth) => this.map(u16(), depth),
      0xdf: (depth) => this.map(u32(), depth),
    };
  }

  /** Skips n bytes, and returns the offset at which they begin. @param {number} n */
  take(n) {
    if (this.at + n > this.a.length) throw new Error('the value ends too early');
    this.at += n;
    return this.at - n;
  }
  /** @param {number} n */
  part(n) {
    const from = this.take(n);
    return this.a.subarray(from, this.at);
  }
  /** @param {number} n */
  str(n) {
    return JSON.stringify(new TextDecoder().decode(this.part(n)));
  }
  /** @param {number} n */
  bin(n) {
    return 'bin(' + [...this.part(n)].map((c) => c.toString(16).padStart(2, '0')).join('') + ')';
  }
  /** @param {number} n */
  ext(n) {
    return 'ext ' + this.view.getInt8(this.take(1)) + ' ' + this.bin(n);
  }
  /** @param {number} n @param {number} depth */
  array(n, depth) {
    return block('[', ']', n, depth, () => this.read(depth + 1));
  }
  /** @param {number} n @param {number} depth */
  map(n, depth) {
    return block('{', '}', n, depth, () => this.read(depth) + ': ' + this.read(depth + 1));
  }
  /** Reads a value. @param {number} depth @returns {string} */
  read(depth) {
    if (depth > MAX_DEPTH) throw new Error('the value is nested too deeply');
    const c = this.view.getUint8(this.take(1));
    if (c < 0x80) return String(c);
    if (c >= 0xe0) return String(c - 256);
    if (c < 0x90) return this.map(c & 15, depth);
    if (c < 0xa0) return this.array(c & 15, depth);
    if (c < 0xc0) return this.str(c & 31);
    const reader = this.readers[c];
    return reader ? String(reader(depth)) : this.ext(2 ** (c - 0xd4));
  }
}

/** n parts between brackets, each on a line. @param {string} from @param {string} to @param {number} n @param {number} depth
 * @param {() => string} part */
function block(from, to, n, depth, part) {
  const pad = '  '.repeat(depth),
    out = [];
  for (let i = 0; i < n; i++) out.push(pad + '  ' + part());
  return n ? from + '\n' + out.join(',\n') + '\n' + pad + to : from + to;
}

/** Converts one MessagePack value to text in the style of JSON. Large integers keep all digits. @param {Uint8Array} a */
export function msgpack(a) {
  const m = new MessagePack(a),
    s = m.read(0);
  if (m.at !== a.length) throw new Error('more bytes follow the value');
  return s;
}

/**
 * Changes the layout of JSON without parsing it into values, so that large integers and duplicate names stay. Throws if the text is not
 * JSON.
 * @param {string} s
 */
export function pretty(s) {
  JSON.parse(s);
  let out = '',
    pad = '';
  for (const [tok] of s.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    if (tok === '{' || tok === '[') {
      pad += '  ';
      out += tok + '\n' + pad;
    } else if (tok === '}' || tok === ']') {
      pad = pad.slice(2);
      out = out.trimEnd();
      out += (/[{[]$/.test(out) ? '' : '\n' + pad) + tok;
    } else out += tok === ',' ? ',\n' + pad : tok === ':' ? ': ' : tok;
  }
  return out;
}
