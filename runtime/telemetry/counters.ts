import { type ErrorCode, ERRORS } from '../../machines/protocol/errors.ts'
import { type OperationName, OPERATIONS } from '../../machines/protocol/operations.ts'
import { isTerminal, TASK_STATES, type TaskState } from '../../machines/protocol/states.ts'

/** One value of a metric. */
export interface MetricValue {
  readonly value: number
  /** Names and values are of the code, never of a client. */
  readonly attributes: Readonly<Record<string, string>>
}

/** The description of a metric, in OpenTelemetry's form. */
export interface MetricDefinition {
  /** `taskchart.tasks.ended`: in Prometheus `taskchart_tasks_ended_total`. */
  readonly name: string
  /** `counter`: a number of events since the runtime was created; `gauge`: a value now. */
  readonly kind: 'counter' | 'gauge'
  /** In UCUM: `s` for seconds, `By` for bytes; `{task}` and the like for numbers of things. */
  readonly unit: string
  readonly description: string
}

/** A metric with its values now. */
export interface Metric extends MetricDefinition {
  readonly values: readonly MetricValue[]
}

/** The metrics of a runtime, for an exporter. */
export interface MetricSource {
  readonly definitions: readonly MetricDefinition[]
  /** Reads all metrics, in the order of the definitions. Does not reject. */
  read(): Promise<readonly Metric[]>
}

/** Counts by name. All names exist from the start, with 0, so that a rate is known from the first event on. */
export type Counts<Name extends string = string> = Record<Name, number>

/** HTTP statuses of requests that a server refuses before it reads them. */
const REFUSALS = [400, 401, 403, 404, 415, 421, 426, 429, 500, 501, 503]

/** Results of a post to a webhook. */
const DELIVERIES = ['received', 'rejected', 'failed'] as const

/** Methods of MCP that reach the agent. */
const MCP_METHODS = ['tools/list', 'tools/call', 'tasks/get', 'tasks/update', 'tasks/cancel', 'resources/read'] as const

/** A method of MCP that reaches the agent. */
type McpMethod = (typeof MCP_METHODS)[number]

/** An operation, in camelCase. */
type CountedCall = OperationName | 'authorized'

/** The commit of a turn, as the store receives it. */
interface Committed<Entry> {
  readonly log: readonly Entry[]
  readonly tasks: readonly { readonly state: TaskState }[]
}

/** Kinds of connections that limits.connections bounds. */
type Transport = 'websocket' | 'http'

/**
 * Counts of a runtime and its servers since it was created: plain numbers, incremented where things happen. Names are
 * of the code, never of a client.
 */
export class Counters {
  commits = 0
  refusedCommits = 0
  lostRaces = 0
  events = 0
  openedTasks = 0
  webhooksGivenUp = 0
  /** Tasks that stayed in the store because a newer version of the agent opened them, each time that they were found. */
  newerTasks = 0
  /** By terminal state. */
  readonly endedTasks = zeros((Object.keys(TASK_STATES) as TaskState[]).filter(isTerminal))
  readonly calls = zeros<CountedCall>([...Object.values(OPERATIONS).map(({ name }) => name), 'authorized'])
  /** Requests over MCP, by method. The operations that they run are in `calls`. */
  readonly mcpCalls = zeros(MCP_METHODS)
  /** Requests over MCP that were answered with an error, by method. */
  readonly mcpErrors = zeros(MCP_METHODS)
  /** By the code of the error that a caller got. */
  readonly errors: Counts<ErrorCode> = zeros(Object.keys(ERRORS) as ErrorCode[])
  /** By HTTP status. */
  readonly refusals: Counts = zeros(REFUSALS.map(String))
  readonly deliveries = zeros(DELIVERIES)
  /** Tasks that violated a property, by its name; empty if properties are not observed. */
  violations: Counts = {}
  readonly #connections: Record<Transport, Set<() => number>> = { websocket: new Set(), http: new Set() }

  /** Counts a commit that the store has accepted. `opensTask`: whether an entry of its log opens a task. */
  committed<Entry extends object>({ log, tasks }: Committed<Entry>, opensTask: (entry: Entry) => boolean): void {
    this.commits += 1
    for (const entry of log) {
      if (!('message' in entry)) this.events += 1
      else if (opensTask(entry)) this.openedTasks += 1
    }
    for (const { state } of tasks) if (isTerminal(state)) this.endedTasks[state] += 1
  }

  /** Counts a call of an operation. */
  called(operation: CountedCall): void {
    this.calls[operation] += 1
  }

  /** Counts a request over MCP. */
  calledOverMcp(method: McpMethod): void {
    this.mcpCalls[method] += 1
  }

  /** Counts a request over MCP that is answered with an error. */
  failedOverMcp(method: McpMethod): void {
    this.mcpErrors[method] += 1
  }

  /** Begins to count violations of these properties. */
  observes(properties: readonly string[]): void {
    this.violations = zeros(properties)
  }

  /** Counts a task that violates a property. */
  violated(property: string): void {
    this.violations[property] = (this.violations[property] as number) + 1
  }

  /** Counts an error that a caller gets. */
  failed(code: ErrorCode): void {
    this.errors[code] += 1
  }

  /** Counts a request that a server refuses before it reads it, by its HTTP status. */
  refused(status: number): void {
    this.refusals[status] = (this.refusals[status] ?? 0) + 1
  }

  /** Adds a server, with the number of its open connections. Returns the function that removes it. */
  serves(transport: Transport, connections: () => number): () => void {
    this.#connections[transport].add(connections)
    return () => void this.#connections[transport].delete(connections)
  }

  /** Number of open connections at all servers. */
  connectionsBy(transport: Transport): number {
    let sum = 0
    for (const connections of this.#connections[transport]) sum += connections()
    return sum
  }
}

function zeros<Name extends string>(names: readonly Name[]): Counts<Name> {
  return Object.fromEntries(names.map(name => [name, 0])) as Counts<Name>
}
