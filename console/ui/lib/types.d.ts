// What the modules of the console share, for checks and editors: nothing here is served. rows.d.ts has the answers of the API.
import type { Item, Rows, ViewInfoAnswer, ViewStreamAnswer, ViewStringAnswer } from './rows.js';

/** A byte string as the API writes it, see bytes.js. n is the length of what was cut or hidden. */
export interface B {
  t?: string;
  b?: string;
  n?: number;
}

/** A reply of a command. A number is text, because a number of JavaScript holds 53 bits. */
export type Resp = any;

/** Facts about a key or a stream, as XINFO and its like tell them. */
export type Fact = string | number | boolean | null | undefined | B | Fact[] | Facts;
export interface Facts {
  [name: string]: Fact;
}

/** What the answer about a key has of its value, by type. */
export type Body = Rows<Item> | ViewStreamAnswer | ViewStringAnswer | ViewInfoAnswer;
