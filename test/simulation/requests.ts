import type { Message, StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { isA2AError } from '../../machines/protocol/errors.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { Journal } from './journal.ts'
import type { Violations } from './violations.ts'

/** What a request may come back with beside its result. */
export interface Expectation {
  /** The task that it is about, if it is about a known one of the caller's. */
  readonly taskId?: string
  /** Codes of errors that are right, whatever happens. */
  readonly codes: readonly string[]
  /** The message that it sends, which has to be in the task's history if it is answered. */
  readonly message?: Message
  /** For streams: after which generation of the task they are to begin, if not with the task itself. */
  readonly after?: number
  /** The generation that the task has to have, or it is refused. */
  readonly ifGeneration?: number | undefined
  /** Whether it has to be refused. */
  readonly isRefused?: boolean
  /** Whether tasks come with their artifacts. */
  readonly isBrief?: boolean
}

/** A request of a client: under way, or with its one outcome. */
export interface Request extends Expectation {
  readonly number: number
  readonly principal: string
  readonly what: string
  /** The newest generation of each task that the principal had seen when it began. */
  readonly seenBefore: ReadonlyMap<string, number>
  /** For streams: where they are. */
  heard: { readonly taskId: string; readonly generation: number } | 'message' | undefined
  outcome?: { readonly result: unknown } | { readonly error: unknown }
}

/** A task as somebody saw it. */
export interface Sight {
  readonly request: Request
  readonly task: Task
  readonly generation: number
}

/** Every request that was made, and all that was seen of tasks in answer. */
export class Requests {
  readonly all: Request[] = []
  readonly sights: Sight[] = []
  readonly streamed: {
    readonly request: Request
    readonly taskId: string
    readonly generation: number
    /** Where the stream was before. */
    readonly after: number
    readonly event: StreamResponse
  }[] = []
  readonly #seen = new Map<string, Map<string, number>>()
  readonly #services: { readonly journal: Journal; readonly violations: Violations }

  constructor(services: { readonly journal: Journal; readonly violations: Violations }) {
    this.#services = services
  }

  /** Tasks that a principal has seen, in the order in which it came to know them. */
  tasksOf(principal: string): readonly string[] {
    return [...(this.#seen.get(principal)?.keys() ?? [])]
  }

  /** The newest generation of a task that a principal has seen. */
  seen(principal: string, taskId: string): number {
    return this.#seen.get(principal)?.get(taskId) ?? 0
  }

  begin(principal: string, what: string, expectation: Expectation): Request {
    const heard =
      expectation.after === undefined || expectation.taskId === undefined
        ? undefined
        : { taskId: expectation.taskId, generation: expectation.after }
    const request: Request = {
      ...expectation,
      heard,
      number: this.all.length,
      principal,
      what,
      seenBefore: new Map(this.#seen.get(principal))
    }
    this.all.push(request)
    this.#services.journal.note(`request ${request.number} of ${principal}: ${what}`)
    return request
  }

  settle(request: Request, outcome: { readonly result: unknown } | { readonly error: unknown }): void {
    const { journal, violations } = this.#services
    if (request.outcome) violations.add(`I11: request ${request.number} (${request.what}) has two outcomes`)
    request.outcome = outcome
    journal.note(
      `outcome of ${request.number}: ${'error' in outcome ? codeOf(outcome.error) : JSON.stringify(outcome.result)}`
    )
  }

  /** Somebody sees a task whole. */
  saw(request: Request, task: Task): void {
    const generation = generationOf(task.metadata)
    this.sights.push({ request, task, generation })
    const before = request.seenBefore.get(task.id) ?? 0
    if (generation < before)
      this.#services.violations.add(
        `I1: request ${request.number} (${request.what}) sees ${task.id} at generation ${generation}, which was at ${before} before`
      )
    this.#note(request.principal, task.id, generation)
  }

  /** An event comes on a stream. */
  heard(request: Request, event: StreamResponse): void {
    const { violations } = this.#services
    const { heard } = request
    if (heard === 'message' || (heard && ('message' in event || 'task' in event)))
      violations.add(`I3: the stream of ${request.number} goes on with ${JSON.stringify(event)}`)
    if ('message' in event) request.heard = 'message'
    else if ('task' in event) {
      this.saw(request, event.task)
      request.heard = { taskId: event.task.id, generation: generationOf(event.task.metadata) }
    } else {
      const { taskId, metadata } = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate
      const generation = generationOf(metadata)
      if (typeof heard !== 'object' || taskId !== heard.taskId || generation <= heard.generation) {
        violations.add(
          `I3: on the stream of ${request.number} (${request.what}) generation ${generation} of ${taskId} comes after ${JSON.stringify(heard)}`
        )
      }
      const after = typeof heard === 'object' ? heard.generation : 0
      request.heard = { taskId, generation }
      this.streamed.push({ request, taskId, generation, after, event })
      this.#note(request.principal, taskId, generation)
    }
  }

  #note(principal: string, taskId: string, generation: number): void {
    const tasks = this.#seen.get(principal) ?? new Map<string, number>()
    this.#seen.set(principal, tasks)
    tasks.set(taskId, Math.max(generation, tasks.get(taskId) ?? 0))
  }
}

/** The code of an error that an agent gave; what else came instead of an answer. */
export function codeOf(error: unknown): string {
  return isA2AError(error) ? error.code : String(error)
}

function generationOf(metadata: Readonly<Record<string, unknown>> | undefined): number {
  return (metadata?.[RELIABILITY_EXTENSION] as { readonly generation: number } | undefined)?.generation ?? NaN
}
