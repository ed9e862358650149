// Ways to read a value: text, JSON, hex, MessagePack, gzip, bits.

/** Bytes as offset, hex and letters, 16 a line. @param {Uint8Array} a */
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

/** Bits as SETBIT numbers them, 64 a line. @param {Uint8Array} a */
export function bits(a) {
  const out = [];
  for (let i = 0; i < a.length; i += 8)
    out.push(String(i * 8).padStart(8) + '  ' + [...a.subarray(i, i + 8)].map((c) => c.toString(2).padStart(8, '0')).join(' '));
  return out.join('\n');
}

/** Unpacks gzip, at most 1 MiB of it. @param {Uint8Array} a */
export async function gunzip(a) {
  const reader = new Blob([/** @type {any} */ (a)]).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
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

/** Reads one MessagePack value, as text like JSON. Large integers stay whole. @param {Uint8Array} a */
export function msgpack(a) {
  const v = new DataView(a.buffer, a.byteOffset, a.length);
  let at = 0;
  const take = (/** @type {number} */ n) => {
    if (at + n > a.length) throw new Error('the value ends too early');
    at += n;
    return at - n;
  };
  const str = (/** @type {number} */ n) => JSON.stringify(new TextDecoder().decode(a.subarray(take(n), at)));
  const bin = (/** @type {number} */ n) => 'bin(' + [...a.subarray(take(n), at)].map((c) => c.toString(16).padStart(2, '0')).join('') + ')';
  /** @param {number} n @param {string} pad @returns {string} */
  const arr = (n, pad) => {
    const out = [];
    for (let i = 0; i < n; i++) out.push(pad + '  ' + read(pad + '  '));
    return n ? '[\n' + out.join(',\n') + '\n' + pad + ']' : '[]';
  };
  /** @param {number} n @param {string} pad @returns {string} */
  const map = (n, pad) => {
    const out = [];
    for (let i = 0; i < n; i++) {
      const k = read(pad);
      out.push(pad + '  ' + k + ': ' + read(pad + '  '));
    }
    return n ? '{\n' + out.join(',\n') + '\n' + pad + '}' : '{}';
  };
  /** @param {string} pad @returns {string} */
  function read(pad) {
    if (pad.length > 128) throw new Error('the value is nested too deeply');
    const c = v.getUint8(take(1)),
      u8 = () => v.getUint8(take(1)),
      u16 = () => v.getUint16(take(2)),
      u32 = () => v.getUint32(take(4));
    if (c < 0x80) return String(c);
    if (c >= 0xe0) return String(c - 256);
    if (c < 0x90) return map(c & 15, pad);
    if (c < 0xa0) return arr(c & 15, pad);
    if (c < 0xc0) return str(c & 31);
    switch (c) {
      case 0xc0:
        return 'null';
      case 0xc2:
        return 'false';
      case 0xc3:
        return 'true';
      case 0xc4:
        return bin(u8());
      case 0xc5:
        return bin(u16());
      case 0xc6:
        return bin(u32());
      case 0xca:
        return String(v.getFloat32(take(4)));
      case 0xcb:
        return String(v.getFloat64(take(8)));
      case 0xcc:
        return String(u8());
      case 0xcd:
        return String(u16());
      case 0xce:
        return String(u32());
      case 0xcf:
        return String(v.getBigUint64(take(8)));
      case 0xd0:
        return String(v.getInt8(take(1)));
      case 0xd1:
        return String(v.getInt16(take(2)));
      case 0xd2:
        return String(v.getInt32(take(4)));
      case 0xd3:
        return String(v.getBigInt64(take(8)));
      case 0xd9:
        return str(u8());
      case 0xda:
        return str(u16());
      case 0xdb:
        return str(u32());
      case 0xdc:
        return arr(u16(), pad);
      case 0xdd:
        return arr(u32(), pad);
      case 0xde:
        return map(u16(), pad);
      case 0xdf:
        return map(u32(), pad);
      default: {
        const n = c === 0xc7 ? u8() : c === 0xc8 ? u16() : c === 0xc9 ? u32() : 2 ** (c - 0xd4);
        return 'ext ' + v.getInt8(take(1)) + ' ' + bin(n);
      }
    }
  }
  const s = read('');
  if (at !== a.length) throw new Error('more bytes follow the value');
  return s;
}

/**
 * JSON laid out anew. It is not read and written back: large integers, and names that stand twice, stay as they are written. It throws
 * where the text is no JSON.
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
