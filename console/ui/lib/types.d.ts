// What the modules of the console share, for checks and editors: nothing here is served. rows.d.ts has the answers of the API.
import type * as rows from './rows.js';
export type * from './rows.js';

/** A byte string as the API writes it, see bytes.js. n is the length of what was cut or hidden. */
export interface B {
  t?: string;
  b?: string;
  n?: number;
}

/** A command as it is composed: bytes.js makes byte strings of its words. */
export type Words = Array<string | number | B>;

/** A reply of a command: a byte string, {i} for an integer, {e} for an error, {s} for a status, {map} for pairs, and so on. A number is text. */
export interface RespValue extends B {
  i?: string;
  e?: string;
  s?: string;
  d?: number | string;
  map?: [Resp, Resp][];
  set?: Resp[];
  big?: string;
  v?: B;
}
export type Resp = RespValue | Resp[] | boolean | null;

/** Facts about a key or a stream, as XINFO and its like tell them. */
export type Fact = string | number | boolean | null | undefined | B | Fact[] | Facts;
export interface Facts {
  [name: string]: Fact;
}

/** What the answer about a key has of its value, by type. */
export type Body = rows.Rows<rows.Item> | rows.ViewStreamAnswer | rows.ViewStringAnswer | rows.ViewInfoAnswer;

/** The answers by path. */
export interface Answers {
  acl: rows.ACLAnswer;
  acllog: rows.ACLLogAnswer;
  audit: rows.AuditAnswer;
  clients: rows.ClientsAnswer;
  commands: rows.CommandsAnswer;
  concerns: rows.ConcernsAnswer;
  config: rows.ConfigAnswer;
  files: rows.FilesAnswer;
  forecast: rows.Forecast;
  group: rows.GroupAnswer;
  help: rows.HelpAnswer;
  hot: rows.HotAnswer;
  key: rows.KeyView;
  keys: rows.KeyPage;
  lag: rows.LagAnswer;
  latency: rows.LatencyAnswer;
  limits: rows.LimitsAnswer;
  lock: rows.LockRow;
  locks: rows.LocksAnswer;
  me: rows.Me;
  performance: rows.PerformanceAnswer;
  queue: rows.QueueAnswer;
  queues: rows.QueuesAnswer;
  replication: rows.ReplicationAnswer;
  scripts: rows.ScriptsAnswer;
  server: rows.ServerAnswer;
  slowlog: rows.SlowlogAnswer;
  soon: rows.SoonAnswer;
  stream: rows.StreamAnswer;
  streams: rows.StreamsAnswer;
  walk: rows.WalkAnswer;
}

/** The answers to what is posted. */
export interface Posted {
  batch: rows.PostBatchAnswer;
  do: rows.Reply;
  login: unknown;
  logout: unknown;
  walk: { id: string };
}

/** The lists that come by the stream of events: of an error its text, and the column by which the page has asked to sort. */
export interface Lists {
  limits: rows.LimitsAnswer;
  locks: rows.LocksAnswer;
  queues: rows.QueuesAnswer;
}
type Listed<T> = T & Partial<rows.Failure> & { sort?: string };

/** The data of events by topic. */
export interface Events {
  sample: rows.Sample;
  expired: rows.ExpiredEvent & Partial<rows.SkippedEvent>;
  key: rows.KeyEvent;
  limits: Listed<rows.LimitsAnswer>;
  locks: Listed<rows.LocksAnswer>;
  queues: Listed<rows.QueuesAnswer>;
}
/** event: the topic, or resync after a gap; of a key also gone, of samples also hello. */
export type Listener<T> = (data: T, event: string) => void;

/** Parameters of a request or of a route. Those without a value are left out. */
export type Params = Record<string, string | number | null | undefined>;

/** Children of an element: strings and numbers become text, lists are flattened, and the others are left out. */
export type Child = Node | string | number | boolean | null | undefined | Child[];

declare global {
  interface HTMLElementEventMap {
    /** A deadline in the element has passed, see countdown.js. */
    expired: CustomEvent;
  }
}
export type Handlers = { [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => unknown };
/** Properties, attributes, classes, styles and event handlers of an element, see h.js. */
export interface Props {
  class?: string | Array<string | false | null | undefined>;
  on?: Handlers;
  style?: Record<string, string | number>;
  [name: string]: unknown;
}

export interface ButtonOptions {
  danger?: boolean;
  small?: boolean;
  primary?: boolean;
}

/** What a screen gets. */
export interface Ctx {
  /** Parameters of the route. */
  params: Map<string, string>;
  me: rows.Me;
  db: number;
  /** Opens a route. */
  go(name: string, params?: Params): void;
  /** The hash of a route. */
  link(name: string, params?: Params): string;
  /** Whether the user may do an action. */
  can(action: string): boolean;
  /** A button for an action; null where the console is read-only, and a grey one with the ACL rule that would allow it. */
  button(action: string, label: string, fn: () => unknown, o?: ButtonOptions): HTMLButtonElement | null;
  /** Subscribes to a topic until the screen closes. of: what the topic is about. */
  onEvent<N extends keyof Events>(topic: N, of: string, fn: Listener<Events[N]>): () => void;
  onClose(fn: () => void): void;
  /** Aborted when the screen closes. */
  stop: AbortSignal;
  /** Ends the screen with an error that a reader sees. */
  fail(e: unknown): void;
}

export interface Screen {
  title: string;
  open(root: HTMLElement, ctx: Ctx): void | (() => void);
}

/** A column of a table, see table.js. */
export interface Column<R> {
  id: string;
  label: string;
  /** What the column sorts by and what a copied row has. */
  value: (row: R) => string | number | null | undefined;
  /** What a cell shows; default: the value. */
  cell?: (row: R) => Child;
  /** Aligned to the right, with tabular figures. */
  num?: boolean;
  /** The column that names the row. */
  wide?: boolean;
  /** A phone leaves it out, unless the table is sorted by it at first. */
  minor?: boolean;
  sort?: boolean;
  title?: string;
}

/** The options of a table, see table.js. */
export interface TableOptions<R> {
  columns: Column<R>[];
  rows?: R[];
  /** The same text for the same row. */
  key: (row: R) => string;
  /** What stands there without rows. */
  empty?: () => Child;
  /** The buttons of a row, made once; now() is the row of today. shape: they are made again when it changes. */
  actions?: (now: () => R) => Child;
  shape?: (row: R) => string;
  /** What Enter or a click does. */
  open?: (row: R) => void;
  /** Boxes to choose rows. */
  select?: (chosen: R[]) => void;
  /** The column and the direction, 1 or -1, at first. */
  sort?: [string, number];
  /** The reader has chosen a column, "-id" from the largest down: for lists of which the server sends the first rows. */
  sorted?: (sort: string) => void;
  /** A row whose deadline passes fades away; default true. */
  fade?: boolean;
  label?: string;
  /** The number of rows that are shown at once; more if fewer than five of them are alive. */
  most?: number;
  alive?: (row: R) => boolean;
  /** There are too few rows for `most`. */
  tooFew?: () => void;
  /** Rows have faded and are gone. */
  gone?: () => void;
  /** On a phone a row is a card in any case. */
  stack?: boolean;
}

/** A field of a form. Of a check box the value is 'yes' or ''. */
export interface Field {
  name: string;
  label: string;
  type?: string;
  value?: string | boolean;
  hint?: string;
  options?: Array<[string, string]>;
  required?: boolean;
  rows?: number;
  min?: number;
  /** Whether the form shows the field. */
  when?: (values: Record<string, string>) => boolean;
}
