import type { AgentCard } from '../../machines/protocol/card.ts'
import type { Artifact, Message, StreamResponse, Task, TaskStatus } from '../../machines/protocol/objects.ts'
import type { TaskPushNotificationConfig } from '../../machines/protocol/push.ts'
import type { SecurityScheme } from '../../machines/protocol/security.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import { normaliseVersion } from '../../machines/protocol/versions.ts'
import {
  type Artifact01,
  type Event01,
  type Message01,
  type State01,
  type Status01,
  type Task01,
  toPart01
} from './parts.ts'

/** The metadata key of a task of A2A 0.1 that holds the members which that version lacks. */
export const TASK_OF_01 = 'urn:taskchart:task-of-0.1'

/**
 * The client's id of a task, and the ended task of that id that it follows, if any. `opensTasks`: the agent's messages
 * may lead to a task.
 */
export interface Known {
  readonly id: string
  readonly opensTasks?: boolean
  readonly follows?: string | undefined
}

/** The states by their names in 0.1. Two that 0.1 lacks become states that require the same of a client. */
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

/** The states that 0.1 lacks. */
const UNKNOWN_TO_01: ReadonlyMap<TaskState, string> = new Map([
  ['TASK_STATE_AUTH_REQUIRED', 'auth-required'],
  ['TASK_STATE_REJECTED', 'rejected']
])

/** A task in the form of 0.1. Its metadata contains the runtime's id, and a state that 0.1 lacks. */
export function toTask01(
  { id: taskId, contextId, status, artifacts, history, metadata }: Task,
  { id, follows }: Known
): Task01 {
  const beside = { ...(taskId !== id && { taskId }), ...(follows !== undefined && { follows }), ...extraState(status) }
  return {
    id,
    ...(contextId !== undefined && { sessionId: contextId }),
    status: toStatus01(status),
    ...(artifacts && { artifacts: artifacts.map((artifact, index) => toArtifact01(artifact, index)) }),
    ...(history && { history: history.map(toMessage01) }),
    ...extraMetadata(metadata, beside)
  }
}

/**
 * An answer without a task, which 0.1 lacks: as a task in `input-required` if the next message may open one, else as a
 * completed one. `negotiated` ends with the answer, which is in the status.
 */
export function toAnswered01(
  reply: Message,
  { id, opensTasks = false }: Known,
  negotiated: readonly Message[] = [],
  historyLength?: number
): Task01 {
  const state = opensTasks ? 'input-required' : 'completed'
  const history = newestMessages(negotiated.slice(0, -1), historyLength).map(toMessage01)
  return {
    id,
    ...(reply.contextId !== undefined && { sessionId: reply.contextId }),
    status: { state, message: toMessage01(reply) },
    ...(history.length > 0 && { history })
  }
}

/** A webhook in the form of 0.1. */
export function toWebhook01({ url, token, authentication }: TaskPushNotificationConfig, { id }: Known): object {
  const { scheme, ...credentials } = authentication ?? {}
  return {
    id,
    pushNotificationConfig: {
      url,
      ...(token !== undefined && { token }),
      ...(scheme !== undefined && { authentication: { schemes: [scheme], ...credentials } })
    }
  }
}

/**
 * The events of one stream in the form of 0.1. Since 0.1 streams no tasks, a task becomes its artifacts and its status.
 * `isLast`: whether the stream closes after a state.
 */
export class Events01 {
  readonly #known: Known
  readonly #isLast: (state: TaskState) => boolean
  /** The numbers of the artifacts, by id. */
  readonly #numbers = new Map<string, number>()
  #firstNumber = 0

  constructor(known: Known, isLast: (state: TaskState) => boolean) {
    this.#known = known
    this.#isLast = isLast
  }

  /** Starts the numbers after those of the id's earlier tasks. */
  numberFrom(first: number): void {
    this.#firstNumber = first
  }

  /** Numbers the artifacts of a task, in its order. */
  number({ artifacts = [] }: Task): void {
    for (const { artifactId } of artifacts) this.#numberOf(artifactId)
  }

  /** Converts an event of 1.0. `follows`: see {@link Known}. */
  from(event: StreamResponse, follows?: string): Event01[] {
    const { id } = this.#known
    if ('message' in event) return [{ id, status: toAnswered01(event.message, this.#known).status, final: true }]
    if ('statusUpdate' in event) {
      const { status, metadata } = event.statusUpdate
      return [
        {
          id,
          status: toStatus01(status),
          final: this.#isLast(status.state),
          ...extraMetadata(metadata, extraState(status))
        }
      ]
    }
    if ('artifactUpdate' in event) {
      const { artifact, append, lastChunk, metadata } = event.artifactUpdate
      const chunk = {
        ...toArtifact01(artifact, this.#numberOf(artifact.artifactId)),
        ...(append && { append }),
        ...(lastChunk && { lastChunk })
      }
      return [{ id, artifact: chunk, ...(metadata && { metadata }) }]
    }
    const { task } = event
    this.number(task)
    const { status, artifacts = [], metadata } = toTask01(task, { id, follows })
    return [
      ...artifacts.map(artifact => ({ id, artifact: { ...artifact, index: this.#firstNumber + artifact.index } })),
      { id, status, final: this.#isLast(task.status.state), ...(metadata && { metadata }) }
    ]
  }

  #numberOf(artifactId: string): number {
    const number = this.#numbers.get(artifactId) ?? this.#firstNumber + this.#numbers.size
    this.#numbers.set(artifactId, number)
    return number
  }
}

function toStatus01({ state, message, timestamp }: TaskStatus): Status01 {
  return {
    state: STATES_01[state],
    ...(message && { message: toMessage01(message) }),
    ...(timestamp !== undefined && { timestamp })
  }
}

function toMessage01({ role, parts, metadata }: Message): Message01 {
  return { role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(toPart01), ...(metadata && { metadata }) }
}

/** The artifact's id in other versions, and in references, is in its metadata. */
function toArtifact01({ artifactId, name, description, parts, metadata }: Artifact, index: number): Artifact01 {
  return {
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    parts: parts.map(toPart01),
    index,
    metadata: { ...metadata, [TASK_OF_01]: { artifactId } }
  }
}

function extraState({ state }: TaskStatus): { readonly state?: string } {
  const name = UNKNOWN_TO_01.get(state)
  return name === undefined ? {} : { state: name }
}

/** Adds values that 0.1 lacks to metadata. */
function extraMetadata(
  metadata: Record<string, unknown> | undefined,
  beside: Record<string, unknown>
): { readonly metadata?: Record<string, unknown> } {
  if (Object.keys(beside).length === 0) return metadata ? { metadata } : {}
  return { metadata: { ...metadata, [TASK_OF_01]: beside } }
}

/** A card (§4.4.1) in the form of 0.1: with one URL, of JSON-RPC if possible, and the names of its security schemes. */
export function card01({
  name,
  description,
  supportedInterfaces,
  provider,
  version,
  documentationUrl,
  capabilities,
  defaultInputModes,
  defaultOutputModes,
  skills,
  securitySchemes
}: AgentCard): object {
  const own = supportedInterfaces.filter(({ protocolVersion }) => normaliseVersion(protocolVersion) === '0.1')
  const interfaces = own.length > 0 ? own : supportedInterfaces
  const main = interfaces.find(({ protocolBinding }) => protocolBinding === 'JSONRPC') ?? interfaces[0]
  const { streaming = false, pushNotifications = false } = capabilities
  return {
    name,
    description,
    ...(main && { url: main.url }),
    ...(provider && { provider }),
    version,
    ...(documentationUrl !== undefined && { documentationUrl }),
    capabilities: { streaming, pushNotifications, stateTransitionHistory: false },
    ...(securitySchemes && {
      authentication: { schemes: [...new Set(Object.values(securitySchemes).map(schemeName))] }
    }),
    defaultInputModes,
    defaultOutputModes,
    skills: skills.map(({ id, name, description, tags, examples, inputModes, outputModes }) => ({
      id,
      name,
      description,
      tags,
      ...(examples && { examples }),
      ...(inputModes && { inputModes }),
      ...(outputModes && { outputModes })
    }))
  }
}

/** The name of a security scheme in OpenAPI, as in 0.1; for HTTP the scheme itself. */
function schemeName(scheme: SecurityScheme): string {
  if ('apiKeySecurityScheme' in scheme) return 'apiKey'
  if ('httpAuthSecurityScheme' in scheme) return scheme.httpAuthSecurityScheme.scheme
  if ('openIdConnectSecurityScheme' in scheme) return 'openIdConnect'
  return 'mtlsSecurityScheme' in scheme ? 'mutualTLS' : 'oauth2'
}

/** The newest messages, or all. */
export function newestMessages(messages: readonly Message[], length = messages.length): Message[] {
  return length === 0 ? [] : messages.slice(-length)
}
