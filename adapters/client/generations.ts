import type { ListTasksResponse, StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { type NativeVersion, NEXT_VERSION, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { mention } from './warnings.ts'

/** The generations of an agent as its answers show them (1.1 §3.2.7), for one connection. */
export class AgentGenerations {
  /** The version of the requests. */
  readonly version: NativeVersion
  #areMissing = false

  constructor(version: NativeVersion = PROTOCOL_VERSION) {
    this.version = version
  }

  /** Whether requests may rely on generations as members: in 1.1, unless an answer has shown that there are none. */
  get areMembers(): boolean {
    return this.version === NEXT_VERSION && !this.#areMissing
  }

  /** Notes the tasks of an answer. */
  note(answer: object): void {
    if (tasksIn(answer).some(({ generation }) => generation === undefined)) this.lack()
  }

  /** The agent has no generations. */
  lack(): void {
    if (this.areMembers) mention('Its tasks have no generations. Its events are read in the order of their arrival.')
    this.#areMissing = true
  }
}

function tasksIn(answer: object): readonly Task[] {
  if ('task' in answer) return [answer.task as Task]
  if ('tasks' in answer) return (answer as ListTasksResponse).tasks
  return 'status' in answer ? [answer as Task] : []
}

/** The generation of an event. `isExact`: it is that of the reliability extension, whose streams lack no event. */
export interface EventGeneration {
  readonly generation?: number
  readonly isExact?: boolean
}

/**
 * The order of the events of one stream: by their generations, or by their arrival if the agent has none. In 1.1 an
 * event without a generation shows that, and so do two events in a row with the same one (§3.2.7).
 */
export class EventOrder {
  readonly #agent: AgentGenerations
  #isByArrival = false
  /** The newest generation that the reader has. */
  #newest = 0
  #cursor: number | undefined
  /** The generation of the last update of this connection, and the update if the reader did not get it. */
  #last: { readonly generation: number; readonly skipped?: StreamResponse } | undefined
  #isResumed = false

  constructor(agent: AgentGenerations) {
    this.#agent = agent
  }

  /** The generation after which the stream can be resumed exactly; `undefined` without the reliability extension. */
  get cursor(): number | undefined {
    return this.#cursor
  }

  /** The stream is resumed on another connection. */
  resume(): void {
    this.#last = undefined
    this.#isResumed = true
  }

  /** The events that the reader gets now: none for one that it has. */
  take(event: StreamResponse, { generation, isExact = false }: EventGeneration): readonly StreamResponse[] {
    if ('message' in event) return [event]
    const isResumption = this.#isResumed
    this.#isResumed = false
    if (this.#isByArrival) return [withoutGeneration(event)]
    if (generation === undefined) {
      if (this.#agent.areMembers) this.#endOrder()
      return [event]
    }
    if ('task' in event) {
      // A task that is older than what was read, in place of its events: the agent was restored from a backup.
      if (isResumption && generation < this.#newest) return [withoutGeneration(this.#readByArrival(event))]
    } else if (!isExact) {
      const { generation: before, skipped } = this.#last ?? {}
      if (before === generation) {
        this.#endOrder()
        return [...(skipped ? [skipped] : []), event].map(withoutGeneration)
      }
      this.#last = { generation, ...(generation <= this.#newest && { skipped: event }) }
    }
    if (generation <= this.#newest) return []
    this.#newest = generation
    if (isExact) this.#cursor = generation
    return [event]
  }

  #endOrder(): void {
    this.#agent.lack()
    this.#readByArrival()
  }

  #readByArrival<T>(event?: T): T {
    this.#isByArrival = true
    this.#cursor = undefined
    return event as T
  }
}

/** Removes the generation of an event, in place. */
export function withoutGeneration(event: StreamResponse): StreamResponse {
  for (const content of Object.values<{ readonly metadata?: object }>(event)) {
    Reflect.deleteProperty(content, 'generation')
    if (content.metadata) Reflect.deleteProperty(content.metadata, RELIABILITY_EXTENSION)
  }
  return event
}
