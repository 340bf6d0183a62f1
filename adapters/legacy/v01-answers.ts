import type { Metadata } from '../../machines/protocol/codec/values.ts'
import type { Artifact, StreamResponse, Task, TaskStatus } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { TaskPushNotificationConfig } from '../../machines/protocol/push.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import { TASK_OF_01 } from '../../machines/protocol/uris.ts'
import type { Artifact01, Event01, Message01, State01, Status01, Task01 } from './v01-objects.ts'
import { toPart01 } from './v01-parts.ts'

/**
 * Under which id a client knows a task, and which task of that id ended before, if the answer is of one that follows it.
 * `opensTasks`: the agent's messages may open one.
 */
export interface Known {
  readonly id: string
  readonly opensTasks?: boolean
  readonly follows?: string | undefined
}

/** The states by their names in 0.1. The two that it does not know are those that ask the same of a client. */
export const STATES_01: Readonly<Record<TaskState, State01>> = {
  TASK_STATE_SUBMITTED: 'submitted',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_INPUT_REQUIRED: 'input-required',
  TASK_STATE_AUTH_REQUIRED: 'input-required',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_CANCELED: 'canceled',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_REJECTED: 'failed'
}

/** The states that 0.1 does not know. */
const UNKNOWN_TO_01: ReadonlyMap<TaskState, string> = new Map([['TASK_STATE_AUTH_REQUIRED', 'auth-required'], ['TASK_STATE_REJECTED', 'rejected']])

/** A task in the form of 0.1. Its metadata tells our id for it, and what of its state 0.1 cannot say. */
export function toTask01({ id: taskId, contextId, status, artifacts, history, metadata }: Task, { id, follows }: Known): Task01 {
  const beside = { ...(taskId !== id && { taskId }), ...(follows !== undefined && { follows }), ...stateBeside(status) }
  return {
    id,
    ...(contextId !== undefined && { sessionId: contextId }),
    status: toStatus01(status),
    ...(artifacts && { artifacts: artifacts.map((artifact, index) => toArtifact01(artifact, index)) }),
    ...(history && { history: history.map(toMessage01) }),
    ...toldBeside(metadata, beside)
  }
}

/**
 * An answer without a task, which 0.1 does not have: as a task that asks for the next message, if that may open one, else as one
 * that is completed with it.
 */
export function toAnswered01(reply: Message, { id, opensTasks = false }: Known): Task01 {
  const state = opensTasks ? 'input-required' : 'completed'
  return { id, ...(reply.contextId !== undefined && { sessionId: reply.contextId }), status: { state, message: toMessage01(reply) } }
}

/** A webhook in the form of 0.1. */
export function toWebhook01({ url, token, authentication }: TaskPushNotificationConfig, { id }: Known): object {
  const { scheme, ...credentials } = authentication ?? {}
  return { id, pushNotificationConfig: { url, ...(token !== undefined && { token }), ...(scheme !== undefined && { authentication: { schemes: [scheme], ...credentials } }) } }
}

/**
 * The events of one stream in the form of 0.1, which has no task there: what is known of that comes as its artifacts and its
 * status. `isLast` says after which state the stream closes.
 */
export class Events01 {
  readonly #known: Known
  readonly #isLast: (state: TaskState) => boolean
  /** The numbers of the artifacts, by their ids. */
  readonly #numbers = new Map<string, number>()
  #firstNumber = 0

  constructor(known: Known, isLast: (state: TaskState) => boolean) {
    this.#known = known
    this.#isLast = isLast
  }

  /** Has the numbers go on after those of the tasks that had the id before. */
  numberFrom(first: number): void {
    this.#firstNumber = first
  }

  /** Gives the artifacts of a task their numbers, as in the task itself. */
  number({ artifacts = [] }: Task): void {
    for (const { artifactId } of artifacts) this.#numberOf(artifactId)
  }

  /** The events that one of 1.0 is. `follows`: see {@link Known}. */
  from(event: StreamResponse, follows?: string): Event01[] {
    const { id } = this.#known
    if ('message' in event) return [{ id, status: toAnswered01(event.message, this.#known).status, final: true }]
    if ('statusUpdate' in event) {
      const { status, metadata } = event.statusUpdate
      return [{ id, status: toStatus01(status), final: this.#isLast(status.state), ...toldBeside(metadata, stateBeside(status)) }]
    }
    if ('artifactUpdate' in event) {
      const { artifact, append, lastChunk, metadata } = event.artifactUpdate
      const chunk = { ...toArtifact01(artifact, this.#numberOf(artifact.artifactId)), ...(append && { append }), ...(lastChunk && { lastChunk }) }
      return [{ id, artifact: chunk, ...(metadata && { metadata }) }]
    }
    const { task } = event
    this.number(task)
    const { status, artifacts = [], metadata } = toTask01(task, { id, follows })
    return [...artifacts.map(artifact => ({ id, artifact: { ...artifact, index: this.#firstNumber + artifact.index } })), { id, status, final: this.#isLast(task.status.state), ...(metadata && { metadata }) }]
  }

  #numberOf(artifactId: string): number {
    const number = this.#numbers.get(artifactId) ?? this.#firstNumber + this.#numbers.size
    this.#numbers.set(artifactId, number)
    return number
  }
}

function toStatus01({ state, message, timestamp }: TaskStatus): Status01 {
  return { state: STATES_01[state], ...(message && { message: toMessage01(message) }), ...(timestamp !== undefined && { timestamp }) }
}

function toMessage01({ role, parts, metadata }: Message): Message01 {
  return { role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(toPart01), ...(metadata && { metadata }) }
}

/** The id by which other versions, and references, know the artifact is in its metadata. */
function toArtifact01({ artifactId, name, description, parts, metadata }: Artifact, index: number): Artifact01 {
  return { ...(name !== undefined && { name }), ...(description !== undefined && { description }), parts: parts.map(toPart01), index, metadata: { ...metadata, [TASK_OF_01]: { artifactId } } }
}

function stateBeside({ state }: TaskStatus): { readonly state?: string } {
  const name = UNKNOWN_TO_01.get(state)
  return name === undefined ? {} : { state: name }
}

/** Metadata with what 0.1 has no member for. */
function toldBeside(metadata: Metadata | undefined, beside: Metadata): { readonly metadata?: Metadata } {
  if (Object.keys(beside).length === 0) return metadata ? { metadata } : {}
  return { metadata: { ...metadata, [TASK_OF_01]: beside } }
}
