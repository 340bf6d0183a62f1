import type { ActorRefFrom, AnyActorLogic, InputFrom } from 'xstate'
import { type AgentExtension, AgentExtensionSchema } from '../../machines/protocol/card.ts'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { toJson } from '../../machines/protocol/codec/json.ts'
import { A2AError, violationsText } from '../../machines/protocol/errors.ts'
import type { Message, RequestDetails, SendMessageRequest, Task } from '../../machines/protocol/objects.ts'
import { INPUT_EXTENSION, NEGOTIATION_EXTENSION, RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { ClientMessage } from '../../machines/task-events.ts'
import { jsonBytes, jsonLoss } from '../primitives/json.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { Scope } from '../store/rows.ts'
import type { EarlierArtifact, RefiningOptions } from './artifact-choices.ts'
import type { Question } from './questions.ts'
import type { Failed, Rejected, WorkResult, WorkWords } from './words.ts'

/** Protocol extensions that a runtime supports (§4.6), by URI. */
export interface Extensions {
  /** All that a client may activate: taskchart's and the author's. */
  readonly supported: readonly string[]
  /** Whether the reliability extension is among them. */
  readonly reliability: boolean
  /** The extensions that the author declares. */
  readonly own: readonly string[]
  /** The author's extensions that every client has to declare. */
  readonly required: readonly string[]
}

/** Extensions that taskchart declares itself, so no author may. */
const OURS: readonly string[] = [RELIABILITY_EXTENSION, NEGOTIATION_EXTENSION, INPUT_EXTENSION]

/** A shared empty list. */
export const NO_EXTENSIONS: readonly string[] = []

/** Extensions of a runtime whose agent declares these. `ours`: those that taskchart adds. */
export function extensionsWith(
  declared: readonly AgentExtension[],
  ours: readonly string[] = [RELIABILITY_EXTENSION]
): Extensions {
  const own = declared.map(({ uri }) => uri)
  const required = declared.filter(({ required }) => required).map(({ uri }) => uri)
  return { supported: [...ours, ...own], reliability: ours.includes(RELIABILITY_EXTENSION), own, required }
}

/** Extensions of a runtime whose agent declares none. */
export const OWN_EXTENSIONS = extensionsWith([])

/**
 * The author's extensions that a client has activated. Throws ExtensionSupportRequired if a required one is missing.
 */
export function activatedOf(
  { own, required }: Extensions,
  requested: readonly string[] = NO_EXTENSIONS
): readonly string[] {
  if (own.length === 0) return NO_EXTENSIONS
  const missing = required.filter(uri => !requested.includes(uri))
  if (missing.length === 0) return own.filter(uri => requested.includes(uri))
  const uris = missing.join(',')
  throw new A2AError(
    'ExtensionSupportRequired',
    `This agent can be used only with ${missing.join(' and ')}. Send A2A-Extensions: ${uris}, if you support that.`,
    {
      metadata: { requiredExtensions: uris }
    }
  )
}

/** Validates the extensions that an author declares. Throws TypeError that names the invalid one. */
export function declaredExtensions(given: readonly AgentExtension[]): readonly AgentExtension[] {
  if (!Array.isArray(given))
    throw new TypeError("extensions has to be a list: [{ uri: 'https://example.com/ext/v1' }].")
  const extensions = given.map((extension, i) => declared(extension, `extensions[${i}]`))
  const twice = extensions.find(({ uri }, i) => extensions.findIndex(other => other.uri === uri) < i)
  if (twice) throw new TypeError(`extensions names ${twice.uri} twice.`)
  return extensions
}

const EXTENSION = Object.keys({ uri: true, description: true, required: true, params: true } satisfies Record<
  keyof AgentExtension,
  true
>)

function declared(given: unknown, name: string): AgentExtension {
  const { value, violations } = tryDecode(AgentExtensionSchema, given, name)
  if (violations) throw new TypeError(violationsText(violations))
  rejectUnknown(given as object, EXTENSION, name)
  const { uri, params } = value
  // URIs are sent in a header, separated by commas.
  if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(uri))
    throw new TypeError(`${name}.uri must be a URI without spaces and commas, not ${JSON.stringify(uri)}.`)
  if (OURS.includes(uri))
    throw new TypeError(
      `${name}.uri is one of taskchart's own extensions, which taskchart declares itself. Leave it out.`
    )
  return { ...value, ...(params && { params: plain(params, name) }) }
}

function plain(params: Record<string, unknown>, name: string): Record<string, unknown> {
  const loss = jsonLoss(params, `${name}.params`, 'sent')
  if (loss !== undefined) throw new TypeError(loss)
  return toJson(params) as Record<string, unknown>
}

/** Input of work. `Input` is the output type of the agent's `input` schema, `Terms` the type of negotiated terms. */
export interface WorkInput<Input = unknown, Terms = Record<string, unknown>> {
  readonly taskId: string
  readonly contextId: string
  /** The message that opened the task. */
  readonly message: Message
  /**
   * Metadata and configuration of that message's request (§3.2.1): `metadata`, the client's `acceptedOutputModes`,
   * `returnImmediately` and `historyLength`. A replay gets the same.
   */
  readonly request: RequestDetails
  /** The message as the agent's `input` schema parses it; `undefined` without a schema. */
  readonly input: Input
  /** Terms of a negotiation, if it had any. */
  readonly terms?: Terms | undefined
  /** The agent's own extensions that the client activated for that message, by URI (§4.6). */
  readonly extensions: readonly string[]
  /** Tasks that the message refers to (`referenceTaskIds`), if the caller may see them and they are loaded. */
  readonly referenceTasks: Task[]
  /**
   * Ids of tasks that belong to `referenceTasks`, or whose artifacts belong to `earlierArtifacts`, but exceed
   * `limits.advanced.referencedTasks` or `limits.referencedBytes`. Load them one at a time, with `readTask(id)`. The
   * task with the latest status comes first.
   */
  readonly unloadedTasks: readonly string[]
  /**
   * Artifacts that the message may mean: those that its parts name, else those of the tasks that it refers to, else
   * those of the context's newest tasks. The task that completed last comes first. Tasks that have not completed come
   * last, because their artifacts may be incomplete.
   */
  readonly earlierArtifacts: EarlierArtifact[]
}

/** Arguments of a step. */
export interface StepArguments {
  /** The same for every attempt of this step, even after a restart. Pass it to services that deduplicate requests. */
  readonly idempotencyKey: string
  readonly signal: AbortSignal
}

/** Arguments of a step in a work function or generator. */
export interface WorkStepArguments extends StepArguments {
  /**
   * Sends words that belong to the step, such as chunks of an artifact that a model produces. If the step runs again,
   * it sends them again, so start an artifact without `append`. Once the step has its result, they are not sent again.
   * Do not send words in a step in any other way, because a replay would miss them.
   */
  readonly emit: (words: WorkWords) => void
}

/**
 * Runs `run` and stores its result, a JSON value, so that a replay does not run it again. A step that throws stores
 * nothing. Steps are identified by name, and by order if the name is the same.
 */
export type Step<Given = StepArguments> = <T>(name: string, run: (step: Given) => T | Promise<T>) => Promise<T>

/** Finds the artifact that a task refines; `undefined` only if it is `optional`. */
export interface FindArtifact {
  (options?: RefiningOptions & { readonly optional?: false }): Promise<EarlierArtifact>
  (options: RefiningOptions): Promise<EarlierArtifact | undefined>
}

/** A client's message, with metadata and configuration of its request; `request` is empty if it has neither. */
export interface ReceivedMessage {
  readonly message: Message
  readonly request: RequestDetails
}

/**
 * Arguments of a work generator, which yields its words and its questions. `Input` is the output type of the agent's
 * `input` schema, `Terms` the type of negotiated terms.
 */
export interface GeneratorArguments<Input = unknown, Terms = Record<string, unknown> | undefined> extends Omit<
  WorkInput<Input>,
  'terms'
> {
  /** Negotiated terms; always set if the agent's `negotiate` is a `negotiation`. */
  readonly terms: Terms
  /**
   * Aborts when the task ends before the work does, as by a cancel, and when the work leaves memory to run again later.
   */
  readonly signal: AbortSignal
  /**
   * The message that answered the last question, with metadata and configuration of its request; `undefined` before the
   * first one. An authorization that arrives out of band is not a message.
   */
  readonly lastAnswer: () => ReceivedMessage | undefined
  readonly step: Step<WorkStepArguments>
  /**
   * Whether this task runs the code that a change named `name` has added. It is `true` for a task that comes to this
   * point with the code there, and `false` for one that an earlier run has taken past it, or may have. The journal keeps
   * the answer, which is one for the whole task: all calls and all branches get that of the first. In a loop, give each
   * round a name: `patch(`tax ${round}`)`.
   *
   * Throws TypeError for a name that is no text of 1 to 200 characters.
   */
  readonly patch: (name: string) => boolean
  /**
   * Says that the code without the patch is gone. Throws TypeError, which fails the task, where a replay has passed this
   * point without it. `taskchart tasks patches` says when no task does. Write it in place of `patch`, until you are sure,
   * then remove it.
   */
  readonly retired: (name: string) => void
  /** Owner of the task: its tenant, and the principal that opened it. */
  readonly owner: Scope
  /**
   * Reads this task as it is committed, up to the last answer at least. With an id it reads another task of the same
   * caller, and rejects with TaskNotFound if there is none.
   */
  readonly readTask: (taskId?: string) => Promise<Task>
  /**
   * Waits, even across restarts, until another task of the same caller has completed, and gives it with its artifacts.
   *
   * Throws UnsupportedOperation with the task's `state` in `metadata` if the task ended otherwise, and TaskNotFound if
   * there is none. Throws RateLimited if it is too large: all tasks that one work awaits have `limits.referencedBytes`
   * together. Uncaught, the error fails this task, and the client reads the reason. The wait may be long if the other
   * task waits for its client; the agent's `deadlineMs` limits it.
   */
  readonly completed: (task: Task | string) => Promise<Task>
  /**
   * Waits until all tasks that the message refers to (`referenceTaskIds`) have completed, and gives them in the order
   * of the message. Throws the error of `completed` as soon as one cannot complete, or does not fit beside the others.
   * Ids of other callers' tasks and unknown ids are ignored.
   */
  readonly prerequisites: () => Promise<Task[]>
  /**
   * The artifact that the task refines: the one that its message refers to. Otherwise it is the only one of the
   * referenced tasks, or else the newest of the context (`earlierArtifacts`).
   *
   * If several with different names match, or none does, the task asks (TASK_STATE_INPUT_REQUIRED), until an answer
   * names exactly one, or refers to any artifact of the caller's. If an answer matches several, the task asks which of
   * those. A replay gives the same artifact.
   */
  readonly artifactToRefine: FindArtifact
  /**
   * Reads the newest messages of the context before the one that opened the task, oldest first; by default 50. They are
   * the client's messages, the agent's replies, and the agent's messages in tasks that had ended by then. A replay
   * reads the same, except for messages that have been removed.
   */
  readonly history: (limit?: number) => Promise<Message[]>
  /** Waits for any number of milliseconds, even across restarts. */
  readonly sleep: (ms: number) => Promise<void>
  /** Starts a child actor, which stops with the work. A replay starts it again. */
  readonly spawn: <Logic extends AnyActorLogic>(
    logic: Logic,
    options?: { id?: string; input?: InputFrom<Logic> }
  ) => ActorRefFrom<Logic>
}

/** Arguments of a work function. */
export interface WorkArguments<Input = unknown, Terms = Record<string, unknown> | undefined> extends GeneratorArguments<
  Input,
  Terms
> {
  /** Sends progress, an artifact or a chunk of one. In a generator it throws TypeError: `yield progress(…)`. */
  readonly emit: (words: WorkWords) => void
  /**
   * Asks, and resolves with the answer. One question is open at a time: a second one waits. In a generator it throws
   * TypeError: `yield* inputRequired(…)`.
   */
  readonly ask: <Answer>(question: Question<Answer>) => Promise<Answer>
}

/** Names the tools of a run among its arguments, for all copies of this package in the process. */
export const TOOLS = Symbol.for('taskchart.tools.1')

/** The tools that a work function has and a generator lacks, for helpers that both may call. */
export function toolsOf(work: GeneratorArguments | WorkArguments): Pick<WorkArguments, 'ask' | 'emit'> {
  return (work as { readonly [TOOLS]?: WorkArguments })[TOOLS] ?? (work as WorkArguments)
}

/** Return value of work. */
export type WorkEnd = WorkResult | Rejected | Failed | void

/** Extensions and request details of the call that opened a task. */
export type OpeningDetails = Pick<WorkInput, 'extensions' | 'request'>

/** Reads extensions and request details of the opening call. */
export type ReadOpeningDetails = () => OpeningDetails | Promise<OpeningDetails>

/** Details of a request without metadata and configuration. */
export const NO_DETAILS: RequestDetails = Object.freeze({})

/** Metadata and configuration of a request; `undefined` if it has neither. */
export function requestDetailsOf({ metadata, configuration }: SendMessageRequest): RequestDetails | undefined {
  if (!metadata && !configuration) return undefined
  const { acceptedOutputModes, returnImmediately, historyLength } = configuration ?? {}
  if (!metadata && !acceptedOutputModes && !returnImmediately && historyLength === undefined) return undefined
  return {
    ...(metadata && { metadata }),
    ...(acceptedOutputModes && { acceptedOutputModes }),
    ...(returnImmediately && { returnImmediately }),
    ...(historyLength !== undefined && { historyLength })
  }
}

/** Size of a client's message with metadata and configuration of its request, as `jsonBytes` counts it. */
export function receivedBytes({ message, request = NO_DETAILS }: ClientMessage): number {
  return jsonBytes(message) + (request === NO_DETAILS ? 0 : jsonBytes(request))
}
