import { isTerminal, stateText, TASK_STATES, type TaskState } from '../machines/protocol/states.ts'
import type { CallScheduler } from './access/call-scheduler.ts'
import { inTime } from './access/time-limit.ts'
import type { ContextRegistry } from './contexts/context-registry.ts'
import type { RuntimeState } from './contexts/dependencies.ts'
import type { Membership, NodeFigures } from './operations/cluster.ts'
import type { Clock } from './ports/clock.ts'
import { COUNTED_AT_ONCE, type StoreStatus } from './store/rows.ts'
import type { Store } from './store/store.ts'
import type { Counters, Metric, MetricDefinition, MetricSource, MetricValue } from './telemetry/counters.ts'
import { busySeconds, type Delays, EventLoopDelay } from './telemetry/event-loop-delay.ts'
import type { Webhooks } from './webhooks/webhooks.ts'

/** The parts of a runtime that its metrics are read from. */
interface MeasuredParts {
  readonly counters: Counters
  readonly contexts: Pick<ContextRegistry, 'size'>
  readonly store: Store
  readonly clock: Clock
  readonly scheduler: Pick<CallScheduler, 'waiting'>
  readonly webhooks: Pick<Webhooks, 'waiting'> | undefined
  readonly health: () => Health
  readonly cluster: Pick<Membership, 'figures'> | undefined
}

/** Values that are read once for all metrics. */
interface Readings extends MeasuredParts {
  /** Open tasks by state; `undefined` if the store does not answer. */
  readonly tasks: OpenTasks | undefined
  readonly status: StoreStatus
  readonly delays: Delays
  readonly node: NodeFigures
}

type OpenTasks = Record<TaskState, number>

/** How long metrics wait for the store. */
const COUNT_MS = 2000

/** How long a count serves further reads: so readers, however many, cost the store at most one count a second. */
const COUNT_SERVES_MS = 1000

/** A server on its own. */
const ALONE: NodeFigures = {
  shards: 0,
  nodes: 0,
  forwarded: 0,
  moves: { gained: 0, given: 0, lost: 0 },
  refusals: { join: 0, caller: 0, node: 0 }
}

const IDLE: StoreStatus = { isStopped: false, waitingReads: 0, waitingWrites: 0 }

/** Every metric: its definition, and how it is read. */
const METRICS: readonly (MetricDefinition & { readonly values: (readings: Readings) => readonly MetricValue[] })[] = [
  gauge('ready', '1', 'Whether the runtime can serve calls, as /readyz reports: 1 or 0', ({ health }) =>
    one(health().isReady ? 1 : 0)
  ),
  gauge('tasks', '{task}', 'Open tasks in the store, by state', ({ tasks }) =>
    tasks ? OPEN.map(state => ({ value: tasks[state], attributes: { state: stateText(state) } })) : []
  ),
  counter('tasks.opened', '{task}', 'Tasks opened', ({ counters }) => one(counters.openedTasks)),
  counter('tasks.ended', '{task}', 'Tasks ended, by terminal state', ({ counters }) =>
    by('state', counters.endedTasks, stateText)
  ),
  counter(
    'tasks.newer_version',
    '{task}',
    'Tasks that a node left in the store because a newer version of the agent opened them, each time that it found them',
    ({ counters }) => one(counters.newerTasks)
  ),
  counter('events', '{event}', 'Events of tasks that were committed', ({ counters }) => one(counters.events)),
  counter(
    'property.violations',
    '{task}',
    'Tasks that violated a property, if properties are observed',
    ({ counters }) => by('property', counters.violations)
  ),
  counter('commits', '{commit}', 'Commits that the store accepted', ({ counters }) => one(counters.commits)),
  counter(
    'commit.failures',
    '{commit}',
    'Commits that the store refused, or that lost a race against another process',
    ({ counters }) => by('reason', { refused: counters.refusedCommits, race: counters.lostRaces })
  ),
  gauge('contexts', '{context}', 'Contexts in memory', ({ contexts }) => one(contexts.size)),
  counter('calls', '{call}', 'Calls of operations', ({ counters }) => by('operation', counters.calls)),
  counter('call.errors', '{call}', 'Calls and requests that were answered with an error, by its code', ({ counters }) =>
    by('reason', counters.errors)
  ),
  counter('mcp.calls', '{call}', 'Requests over MCP that reached the agent, by method', ({ counters }) =>
    by('method', counters.mcpCalls)
  ),
  counter('mcp.call.errors', '{call}', 'Those of them that were answered with an error, by method', ({ counters }) =>
    by('method', counters.mcpErrors)
  ),
  counter(
    'refused.requests',
    '{request}',
    'Requests and handshakes that a server refused before it read them, by HTTP status',
    ({ counters }) => by('status', counters.refusals)
  ),
  gauge('waiting.calls', '{call}', 'Calls that wait to be parsed or to start', ({ scheduler }) =>
    one(scheduler.waiting)
  ),
  gauge('connections', '{connection}', 'Open WebSockets, and HTTP requests in progress', ({ counters }) =>
    by('transport', { http: counters.connectionsBy('http'), websocket: counters.connectionsBy('websocket') })
  ),
  gauge('store.waiting', '{call}', 'Reads and writes that the store has not answered', ({ status }) =>
    by('kind', { read: status.waitingReads, write: status.waitingWrites })
  ),
  gauge('webhooks.waiting', '{webhook}', 'Webhooks with an event that is not delivered', ({ webhooks }) =>
    one(webhooks?.waiting ?? 0)
  ),
  counter('webhook.posts', '{post}', 'Posts to webhooks, by result', ({ counters }) =>
    by('result', counters.deliveries)
  ),
  counter('webhooks.given_up', '{webhook}', 'Webhooks that were given up', ({ counters }) =>
    one(counters.webhooksGivenUp)
  ),
  gauge('cluster.nodes', '{node}', 'Nodes of the cluster that this one knows; 0 for a server on its own', ({ node }) =>
    one(node.nodes)
  ),
  gauge('cluster.shards', '{shard}', 'Shards of this node', ({ node }) => one(node.shards)),
  counter('cluster.shard.moves', '{shard}', 'Shards that this node gained, gave to another node, or lost', ({ node }) =>
    by('kind', node.moves)
  ),
  counter(
    'cluster.refusals',
    '{refusal}',
    'Times that this node could not join, refused a caller that is no node of the cluster, or could not use another node',
    ({ node }) => by('kind', node.refusals)
  ),
  counter('cluster.forwarded', '{call}', 'Changes that another node made for this one', ({ node }) =>
    one(node.forwarded)
  ),
  gauge(
    'event_loop.delay',
    's',
    'Delay of the event loop in the last 30 seconds or more',
    ({ delays: { p50, p99, max } }) => by('statistic', { p50, p99, max })
  ),
  counter('event_loop.busy', 's', 'Time for which the event loop ran code', () => one(busySeconds()))
]

const DEFINITIONS = METRICS.map(({ name, kind, unit, description }): MetricDefinition => ({
  name,
  kind,
  unit,
  description
}))

/** The metrics of one runtime. Nothing is measured before the first read, except for the counters. */
export class RuntimeMetrics implements MetricSource {
  readonly definitions = DEFINITIONS
  readonly #parts: MeasuredParts
  readonly #delay = new EventLoopDelay()
  #count: Promise<OpenTasks | undefined> | undefined
  /** When the count ended; `undefined` while it goes on. */
  #countedAtMs: number | undefined

  constructor(parts: MeasuredParts) {
    this.#parts = parts
  }

  async read(): Promise<readonly Metric[]> {
    const delays = this.#delay.read()
    const tasks = await this.#openTasks()
    const readings: Readings = {
      ...this.#parts,
      tasks,
      delays,
      status: this.#parts.store.status?.() ?? IDLE,
      node: this.#parts.cluster?.figures() ?? ALONE
    }
    return METRICS.map(({ values, ...definition }) => ({ ...definition, values: values(readings) }))
  }

  stop(): void {
    this.#delay.stop()
  }

  /** One count at a time; `undefined` if it fails or takes long, since the other metrics then matter most. */
  #openTasks(): Promise<OpenTasks | undefined> {
    const { clock } = this.#parts
    if (
      !this.#count ||
      (this.#countedAtMs !== undefined && Math.abs(clock.now() - this.#countedAtMs) >= COUNT_SERVES_MS)
    ) {
      this.#countedAtMs = undefined
      this.#count = this.#countTasks()
        .catch(() => undefined)
        .finally(() => (this.#countedAtMs = clock.now()))
    }
    return inTime(this.#count, COUNT_MS, 'the store', clock).catch(() => undefined)
  }

  async #countTasks(): Promise<OpenTasks> {
    const counts = Object.fromEntries(OPEN.map(state => [state, 0])) as OpenTasks
    let after: string | undefined = ''
    while (after !== undefined) {
      const page = await this.#parts.store.countStates(COUNTED_AT_ONCE, after)
      for (const state of OPEN) counts[state] += page.states[state] ?? 0
      after = page.next
    }
    return counts
  }
}

const STATES = Object.keys(TASK_STATES) as TaskState[]
const OPEN = STATES.filter(state => !isTerminal(state))

function gauge(
  name: string,
  unit: string,
  description: string,
  values: (readings: Readings) => readonly MetricValue[]
) {
  return { name: `taskchart.${name}`, kind: 'gauge', unit, description, values } as const
}

function counter(
  name: string,
  unit: string,
  description: string,
  values: (readings: Readings) => readonly MetricValue[]
) {
  return { name: `taskchart.${name}`, kind: 'counter', unit, description, values } as const
}

function one(value: number): readonly MetricValue[] {
  return [{ value, attributes: {} }]
}

/** A value for each name, which is the attribute. */
function by<Name extends string>(
  attribute: string,
  counts: Readonly<Record<Name, number>>,
  nameOf: (name: Name) => string = name => name
): readonly MetricValue[] {
  return Object.entries<number>(counts).map(([name, value]) => ({
    value,
    attributes: { [attribute]: nameOf(name as Name) }
  }))
}

/** Whether a runtime can serve calls: the answer of `/readyz`. */
export type Health =
  | { readonly isReady: true }
  | {
      readonly isReady: false
      /**
       * `closed`: the runtime is closed. `store stopped`: the store accepts nothing more from this process, because its
       * disk or file is broken or belongs to another process; restart it. `commits refused`: the store refused the
       * newest commit, less than 10 seconds ago.
       */
      readonly reason: 'closed' | 'store stopped' | 'commits refused'
    }

/**
 * How long a refused commit counts. Then requests may come again, because nothing else may show that the store has
 * recovered.
 */
const REFUSED_MS = 10_000

/** The parts of a runtime that decide whether it is ready. */
interface HealthParts {
  readonly state: Pick<RuntimeState, 'isOpen' | 'refusedAtMs'>
  readonly store: Pick<Store, 'status'>
  readonly clock: Clock
}

/** Whether a store is stopped; also if its engine cannot say so. */
function isStopped(store: Pick<Store, 'status'>): boolean {
  try {
    return store.status?.().isStopped ?? false
  } catch {
    return true
  }
}

/** The health of a runtime now. Reads memory only. */
export function healthOf({ state, store, clock }: HealthParts): Health {
  if (!state.isOpen) return { isReady: false, reason: 'closed' }
  if (isStopped(store)) return { isReady: false, reason: 'store stopped' }
  if (Math.abs(clock.now() - state.refusedAtMs) < REFUSED_MS) return { isReady: false, reason: 'commits refused' }
  return { isReady: true }
}
