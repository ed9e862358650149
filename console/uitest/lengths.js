// Names each function of more than 60 lines: node lengths.js FOLDER.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'acorn';

const MOST = 60;
const folder = process.argv[2];
let found = 0;

/** @param {string} file @param {any} node of the syntax tree @param {string} name of what stands around it */
function look(file, node, name) {
  if (!node || typeof node !== 'object') return;
  const lines = node.loc ? node.loc.end.line - node.loc.start.line + 1 : 0;
  if (/Function/.test(node.type) && lines > MOST) {
    console.error(`${file}:${node.loc.start.line}: ${node.id?.name || name} has ${lines} lines, and must have at most ${MOST}`);
    found++;
  }
  const own = node.id?.name || node.key?.name || name;
  for (const [key, part] of Object.entries(node)) if (key !== 'loc') look(file, part, own);
}

for (const name of readdirSync(folder, { recursive: true }))
  if (String(name).endsWith('.js')) {
    const file = join(folder, String(name));
    look(file, parse(readFileSync(file, 'utf8'), { ecmaVersion: 'latest', sourceType: 'module', locations: true }), 'the module');
  }
process.exitCode = found ? 1 : 0;
