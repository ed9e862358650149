// The answers of the API, written by `go test ./console -run TheTypes -update` from its structs.
import type { B, Body, Facts, Resp } from './types.js';

export interface ACLAnswer {
  me: B;
  users: UserRow[];
  denied?: string[];
}

export interface ACLLogAnswer {
  rows: AclLogRow[];
  denied?: string[];
}

export interface AclLogRow {
  id: number;
  count: number;
  reason: string;
  context: string;
  object: B;
  user: B;
  first: number; // ms since 1970
  last: number;
  addr: string;
  name: B;
}

export interface AppendOnly {
  on: boolean;
  fsync: string;
  size: number;
  base: number;
  buffered: number;
  pendingSync: number;
  delayedSyncs: number;
  writeOK: boolean;
  rewriting: boolean;
  rewriteScheduled: boolean;
  rewrites: number;
  failures: number;
  rewriteOK: boolean;
  rewriteTook: number | null;
}

export interface ArgRow {
  name: string;
  kind: string; // as in COMMAND DOCS
  token?: string;
  optional?: boolean;
  multiple?: boolean;
  args?: ArgRow[];
}

export interface AtAnswer {
  now: number;
  error: string;
  code?: string;
  command?: string;
  rule?: string;
}

export interface Attention {
  code: string;
  level: string; // act or look
  n: number;
  text: string;
  screen: string;
}

export interface AuditAnswer {
  rows: AuditRow[];
}

export interface AuditRow {
  at: number; // ms
  user: B;
  addr: string;
  db: number;
  argv: B[]; // without passwords, shortened as in the slow log
  result: string;
  ms: number;
  refused?: boolean;
}

export interface Backlog {
  on: boolean;
  size: number;
  first: string;
  len: number;
}

export interface BigRow {
  k: B;
  type: string;
  bytes: number;
  pttl: number;
}

export interface Bucket {
  from: number;
  to: number;
  keys: number;
  containers: number;
}

export interface ClientRow {
  id: number;
  addr: string;
  name: string;
  user: B;
  db: number;
  age: number;
  idle: number;
  cmd: string;
  flags: string;
  mem: number;
  resp: number;
  lib: string;
  libVer: string;
}

export interface ClientsAnswer extends Ranked<ClientRow> {
  total: number;
  denied?: string[];
}

export interface CommandRow {
  name: string; // in capitals, "CONFIG GET"
  group: string;
  summary: string;
  since: string;
  syntax: string;
  args: ArgRow[];
  flags: string[];
  danger?: boolean; // it is in the category dangerous
}

export interface CommandStat {
  name: string;
  calls: number;
  usec: number;
  rejected: number;
  failed: number;
  p50: number | null; // null: no call was timed
  p99: number | null;
  p999: number | null;
}

export interface CommandsAnswer {
  rows: CommandRow[];
}

export interface CommandsRow {
  runs: number;
  of: number;
  writes: number;
  dangerous: number;
  but?: boolean;
  whole: string[]; // categories
  some: string[]; // commands
  more: number;
}

export interface Concern {
  code: string;
  level: string; // act or look
  db: number;
  k: B;
  group?: B;
  n: number;
  ms?: number; // for that long
  why?: string;
}

export interface ConcernsAnswer {
  now: number;
  rows: Concern[];
  more?: Record<string, number>; // by code: the number of further concerns
  part?: boolean; // not all queues, locks and streams were examined
  denied?: string[];
}

export interface ConfigAnswer {
  file: string; // "": none was read
  rows: ConfigRow[];
  denied?: string[];
}

export interface ConfigRow {
  name: string;
  value: B | null; // null: a secret
  default: B | null;
  changed: boolean;
  secret?: boolean;
  set?: boolean; // for a secret: it is not empty
  given: B; // the place where it was given at start, such as redis.conf:12
  immutable: boolean; // CONFIG SET refuses it
  protected: boolean; // CONFIG SET needs enable-protected-configs
  choices: string[] | null; // the valid values; null: others are valid too
  usage: string; // describes the valid values
  doc: string; // its meaning and unit
  ignored?: string; // the reason why the server does not use it
}

export interface ConsumerRow {
  name: B;
  pending: number;
  idle: number;
  inactive: number;
}

export interface Entry {
  id: string;
  fields: [B, B][];
  more?: number; // the number of fields that are left out
}

export interface ErrorStat {
  code: B;
  n: number;
}

export interface Expectation {
  argv: B[]; // GET, HGET, LINDEX, ZSCORE or EXISTS
  seen: string; // the mark of the value; "" for no value
}

export interface ExpiredEvent {
  at: number;
  db: number;
  level: string;
  k: B;
  item: B | null;
  lag: number; // ms; -1: not known
}

export interface Failure {
  error: string;
  code?: string; // the first word of an error reply
  login?: boolean; // the viewer must log in
  gone?: boolean; // the key does not exist
  confirm?: string; // what the viewer must type
  loading?: Progress | null;
  secret?: boolean; // as in a reply
  command?: string; // the command that the viewer's user may not run
  rule?: string; // the ACL rule that allows it
}

export interface FilesAnswer {
  now: number;
  dir: string | null; // null: the user may not see it, or there is none
  memory: boolean; // the server keeps no files
  aof?: AppendOnly;
  snapshot?: Snapshot;
  loaded?: Loaded;
  denied?: string[];
}

export interface Forecast {
  at: number;
  span: string;
  exact: boolean;
  took: number; // ms
  buckets: Bucket[];
  later: number;
  storm: Storm | null;
}

export interface FunctionRow {
  name: B;
  flags: string[];
  description: B | null;
}

export interface GrantRow {
  commands: CommandsRow;
  keys: {
    all: boolean;
    read: B[];
    write: B[];
    both: B[];
  };
  channels: {
    all: boolean;
    patterns: B[];
  };
}

export interface GroupAnswer {
  group: MemberRow | null;
  nodes: NodeRow[];
  listed: boolean; // the user may run GROUP STATUS; if not, nodes has only what INFO shows
  denied?: string[];
}

export interface GroupRow {
  name: B;
  consumers: number;
  pending: number;
  lag: number | null; // null: unknown
  last: string;
  oldest?: number; // ms since the first of the pending entries was delivered
  consumersRows: ConsumerRow[];
}

export interface HelpAnswer {
  text: string;
}

export interface HolderRow {
  owner: B;
  permits?: number;
  token: string;
  since: number; // ms since 1970
  until: number; // ms since 1970
}

export interface HotAnswer {
  rows: HotRow[];
  waiting: boolean; // the first window has not ended
  window: number; // ms
  percent: number; // the sampled share of the commands
  few: boolean; // the window has too few samples for shares
  denied?: string[];
}

export interface HotRow {
  k: B;
  db: number;
  qps: number;
  share: number; // of all calls with keys, 0 to 1
}

export interface Item {
  f?: B;
  m?: B;
  i?: number;
  v?: B;
  score?: string;
  pttl?: number;
  seen?: string; // the mark of the value: see expectation
}

export interface JobRow {
  id: B;
  payload: B;
  deliveries: number;
  state: string;
  due: number;
  token?: string; // of a leased job
  until?: number; // the end of its lease
}

export interface KeyEvent {
  db: number;
  k: B;
  version?: string;
  pttl: number;
  type: string;
  n: number;
  at: number;
}

export interface KeyPage {
  cursor: string;
  done: boolean;
  looked: number;
  total: number;
  now: number;
  rows: KeyRow[];
  denied?: string[];
  named?: KeyRow;
}

export interface KeyRow {
  k: B;
  type?: string;
  pttl?: number; // ms; -1: no deadline
  slide?: number; // as in a key's view
  bytes?: number;
  n?: number; // items of a container
}

export interface KeyView {
  k: B;
  type: string;
  encoding?: string;
  bytes?: number;
  idle?: number; // ms
  freq?: number;
  pttl?: number;
  slide?: number; // the span to which each read extends a sliding TTL, ms
  n?: number;
  version: string; // as in the events about the key
  digest?: string; // of a string that is shown in full: the digest for IFDEQ
  next: string | null; // the parameter from of the next page; null at the end
  now: number;
  body: Body | null;
  denied?: string[];
}

export interface Label {
  text: string;
  color: string;
}

export interface LagAnswer {
  rows: LagRow[];
  backlog: number;
  rules: number; // the number of rules that record expirations in streams
  enable: string; // the value of notify-keyspace-events that would report each key; "" if it does already
  need: string; // the ACL rule that the user lacks for these events
}

export interface LagRow {
  name: string;
  count: number;
  p50: number;
  p99: number;
  p999: number;
  max: number;
}

export interface LatencyAnswer {
  now: number;
  threshold: number | null; // ms, 0: the monitor is off; null: the user may not see it
  events: LatencyRow[];
  denied?: string[];
}

export interface LatencyRow {
  event: string;
  at: number; // ms since 1970
  ms: number;
  max: number;
  samples: [number, number][]; // oldest first
}

export interface LibraryRow {
  name: B;
  functions: FunctionRow[];
}

export interface LimitRow {
  k: B;
  algorithm: string;
  limit: number;
  period: number;
  remaining: number;
  retry: number;
  reset: number;
  reservations: number;
  line: number;
  burst: number;
}

export interface LimitsAnswer extends Ranked<LimitRow> {
  now: number;
  top: TopRow[];
  denied?: string[];
}

export interface Loaded {
  keys: number;
  expired: number;
}

export interface LockRow {
  k: B;
  kind: string;
  mode?: string;
  taken?: number;
  holders: HolderRow[];
  waiting: number;
  longest: number; // ms for which the first in line has waited
  line?: WaiterRow[];
}

export interface LocksAnswer extends Ranked<LockRow> {
  now: number;
  denied?: string[];
}

export interface MasterRow {
  host: B;
  port: number;
  up: boolean;
  step: string; // connect, connecting, handshake, sync or connected
  idle: number; // seconds since the last byte, -1: the link is down
  down: number; // seconds for which the link has been down, 0 if it is up
  readOnly: boolean;
  sync: SyncRow | null; // null: no full synchronisation is running
  error: B;
  refused: number; // commands of the stream that this server refused
  refusedLast: B;
}

export interface Me {
  user: B;
  loginable: boolean; // there is a login that the viewer can end
  others: boolean; // the server has other users, and they can log in
  label: Label | null;
  readOnly: boolean;
  writes: boolean; // the user may do at least one action that changes something
  values: boolean;
  db: number;
  databases: number;
  role: string;
  version: string;
  follows: boolean; // a replica that refuses writes
  grouped: boolean; // the server is a member of a group
  loading: Progress | null;
  open: string | false; // false, or the reason why other machines reach the server without a password
  now: number; // ms
  can: Record<string, boolean>;
  need: Record<string, string>; // for each action that the user may not do: the rule that would allow it
}

export interface MemberRow {
  state: string;
  node: number; // this one; 0 before it is registered
  isIn: boolean; // this node is in sync
  epoch: number; // each promotion raises it
  version: number; // each change of the directory's state raises it
  master: number; // 0: there has been none
  inSync: number; // the number of nodes in sync, including the master
  k: number; // the number of replicas that must be in sync
  leader: number; // the node that leads the directory; 0: this node knows none
  voters: number; // 0: this node has not loaded its data yet
  losses: number; // the number of times that an operator has accepted a loss
  writable?: boolean;
  lease?: boolean;
}

export interface NodeRow {
  node: number;
  addr: string; // for clients, or else of the group's port; "": not known
  isPort: boolean; // addr is that of the group's port
  isThis: boolean;
  role: string;
  silent: number; // ms since the last heartbeat of a silent node; -1: the node is not silent
  incarnation: number;
  link: string; // up, down or loading; "": none, or not known
  offset: string; // "": not known
  behind: number;
  since: number;
  share: number;
  next: boolean; // GROUP PROMOTE accepts the node
}

export interface PendingRow {
  id: string;
  consumer: B;
  idle: number; // ms since it was delivered
  deliveries: number;
}

export interface PerformanceAnswer {
  now: number;
  timing: boolean; // latency-tracking
  commands: CommandStat[];
  errors: ErrorStat[];
  denied?: string[];
}

export interface PostBatchAnswer {
  replies: Resp[];
  text: string[];
  cut?: boolean; // as of api/do
}

export interface Progress {
  done: number;
}

export interface QueueAnswer {
  now: number;
  row: QueueRow | null; // null: there is no such queue
  jobs: JobRow[];
  more: boolean;
  denied?: string[];
  schedules: ScheduleRow[];
  sharing?: B[];
  unsure?: boolean; // there may be further sharers
}

export interface QueueRow {
  k: B;
  delayed: number;
  ready: number;
  leased: number;
  dead: number; // the number of dead letters since the queue was made
  letters: number | null; // the number of dead letters now; null: the queue keeps none, or the user may not see them
  dropped: number;
  next: number | null; // ms since 1970 at which the next delayed job is due
  late: number; // of the longest-ready job
  waiting: number;
  maxLen: number;
  most: number; // the limit of deliveries of a job; 0: none
  to: B | null; // the queue of dead letters
  stream: B | null; // the stream that the queue delivers to; null: workers
  paused: boolean;
  until: number | null; // the last ms of the pause, null: it has no end
  schedules: number;
  wrong?: string; // the reason why the queue cannot deliver to Stream
  unattended: boolean; // jobs wait, and no worker has one or requests one
}

export interface QueuesAnswer extends Ranked<QueueRow> {
  now: number;
  denied?: string[];
}

export interface Ranked<T> {
  rows: T[];
  more: boolean; // there are others
  looked: number; // the number of keys that were examined
  all: boolean; // they are all keys of the type
}

export interface Reason {
  why: string;
  gap?: boolean;
}

export interface ReplicaRow {
  addr: string;
  state: string;
  offset: string;
  behind: string; // bytes of the stream that it has not acknowledged
  lag: number; // seconds since its last acknowledgement
}

export interface ReplicationAnswer {
  now: number;
  role?: string;
  port?: number; // the port of this server; 0: it has none
  offset?: string;
  id?: string;
  failover?: string;
  backlog?: Backlog;
  master: MasterRow | null;
  replicas: ReplicaRow[];
  grouped: boolean; // this server is a member of a group, see getGroup
  full: number;
  partial: number;
  partialRefused: number;
  denied?: string[];
}

export interface Reply {
  reply: Resp;
  text: string; // as ebb cli prints it
  ms: number;
  error?: boolean;
  cut?: boolean; // Reply does not contain all elements of the reply
  secret?: boolean;
}

export interface Rows<T> {
  rows: T[];
}

export interface RuleRow {
  name: B;
  match: B;
  levels: string[];
  to: B;
  queue: boolean; // To is a delay queue, else a stream
  maxLen: number;
  fired: number;
  missed: number;
  suspended: number;
  why: B | null; // null: the rule works
}

export interface Running {
  ms: number;
  overdue: boolean; // other clients get BUSY
}

export interface Sample {
  at: number; // ms since 1970
  keys: number;
  keysTTL: number; // keys for which PTTL returns a time: those with a deadline, locks and semaphores
  ops: number;
  p50: number | null; // us; null: no command has run
  p99: number | null;
  mem: number;
  memMax: number;
  rss: number;
  lag50: number | null; // ms; null: nothing has expired
  lag99: number | null;
  lagMax: number | null;
  backlog: number;
  clients: number;
  waiting: number;
  expired: Record<string, number>; // by level
  hits: number;
  misses: number;
  in: number; // bytes
  out: number;
  cpu: number; // seconds of CPU
  allowed: number; // by limiters
  denied: number;
  jobsAdded: number; // to delay queues
  jobsDelivered: number;
  jobsAcked: number;
  due: number[]; // for each of 60 seconds
  dueFrom: number; // ms since 1970: the current full second, with which Due begins
  role: string;
  replicas: number;
  link: string; // of a replica: up or down
  replLag: number; // seconds
  attention: Attention[];
}

export interface ScheduleRow {
  name: B;
  rule: string;
  zone: string;
  next: number;
  last: number | null; // null: no occurrence has become a job
  runs: number;
  skipped: number;
  late: number;
}

export interface ScriptRow {
  sha: string;
  bytes: number;
  loaded: boolean; // by SCRIPT LOAD: it stays until SCRIPT FLUSH
  head: B;
}

export interface ScriptsAnswer {
  now: number;
  cached: number;
  bytes: number;
  evicted: number;
  functions: number;
  functionBytes: number;
  running: Running | null;
  scripts: ScriptRow[];
  libraries: LibraryRow[];
  denied?: string[];
}

export interface ServerAnswer {
  info: Record<string, Record<string, string>>;
  now: number;
  denied?: string[];
}

export interface SkippedEvent {
  db: number;
  skipped: number;
}

export interface SlowRow {
  id: number;
  at: number; // ms since 1970
  us: number;
  argv: B[];
  addr: string;
  name: B;
}

export interface SlowlogAnswer {
  rows: SlowRow[];
  threshold?: string; // us
  max?: string;
  denied?: string[];
}

export interface Snapshot {
  saving: boolean;
  scheduled: boolean;
  progress: number; // 0 to 1, of the running job
  last: number; // ms since 1970
  ok: boolean;
  took: number | null;
  changes: number;
  saves: number;
  points: string; // as CONFIG GET save prints them
}

export interface SoonAnswer {
  whole: boolean;
  rows: SoonRow[];
}

export interface SoonRow {
  at: number;
  level: string;
  k: B;
  item: B | null;
}

export interface Storm {
  from: number;
  n: number;
  share: number;
}

export interface StreamAnswer {
  now: number;
  row: StreamRow;
  pending: PendingRow[];
  more: boolean;
  denied?: string[];
}

export interface StreamRow {
  k: B;
  length: number;
  last: string;
  groups: GroupRow[];
}

export interface StreamsAnswer extends Ranked<StreamRow> {
  now: number;
  rules: RuleRow[];
  denied?: string[];
}

export interface SyncRow {
  total: number;
  read: number;
  share: number;
}

export interface TopRow {
  k: B;
  denied: number;
  allowed: number;
  since: number;
  error: number;
  info: LimitRow | null; // null: the limiter no longer exists, or the user may not read it
}

export interface UserRow {
  name: B;
  on: boolean;
  nopass: boolean;
  passwords: number;
  rules: B; // as ACL LIST prints them, without the hashes
  may: GrantRow[]; // one of them must allow a request
}

export interface ViewInfoAnswer {
  info: Facts;
}

export interface ViewStreamAnswer {
  rows: Entry[];
  info?: Facts;
  groups?: GroupRow[];
}

export interface ViewStringAnswer {
  v: B;
  len: number;
  seen?: string; // the mark of a value that is shown in full
}

export interface WaiterRow {
  owner: B;
  mode?: string;
  permits?: number;
  client: ClientRow | null; // null where the user may not list clients
  since: number; // ms since 1970
}

export interface WalkAnswer extends WalkState {
  db: number;
  sep: string;
  depth: number;
  match: string;
  keys: number;
  bytes: number;
  rows: WalkRow[];
  rest: WalkCount | null; // of the prefixes without a row
  big: BigRow[];
}

export interface WalkCount extends WalkSum {
  types: Record<string, number>;
}

export interface WalkOrder {
  db: number;
  kind: string;
  sep: string;
  depth: number;
  match: string;
}

export interface WalkRow extends WalkCount {
  p: B;
}

export interface WalkState {
  id: string;
  kind: string;
  done: number;
  over: boolean;
  looked: number;
  total: number;
  took: number; // ms
  error?: string;
}

export interface WalkSum {
  keys: number;
  bytes: number;
  bytesTTL: number; // of keys with a deadline
  ttl: number[];
}
