import type * as McpModule from '@modelcontextprotocol/server'
import type { Server, ServerContext } from '@modelcontextprotocol/server'
import * as z from 'zod'
import type { AgentCard } from '../../machines/protocol/card.ts'
import { isObject, pathText } from '../../machines/protocol/codec/json.ts'
import { A2AError, ERRORS, invalidParams, isA2AError } from '../../machines/protocol/errors.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { ATTRIBUTES, runInSpan } from '../../runtime/telemetry/spans.ts'
import type { Envelope } from '../json-rpc/dispatch.ts'
import { traceParameters } from '../json-rpc/service-parameters.ts'
import { ARTIFACT_TEMPLATE, artifactIn, resourceContents } from './content.ts'
import { cancelUnlessEnded, NO_TASK, Questions, type Abilities, type UserResponse } from './questions.ts'
import { StateSeal } from './sealed-state.ts'
import { TaskViews } from './task-view.ts'
import { ToolCalls, type McpCaller, type McpSettings } from './tool-calls.ts'
import { FOLLOW_UP_TOOL } from './tools.ts'

/** The functions of the SDK that serve. It is loaded when it is needed. */
export type McpSdk = Pick<
  typeof McpModule,
  'Server' | 'ProtocolError' | 'MissingRequiredClientCapabilityError' | 'ResourceNotFoundError' | 'specTypeSchemas'
>

/** One request or connection of a client. */
export interface McpConnection {
  /** `modern`: 2026-07-28. `legacy`: a version that begins with `initialize`. */
  readonly era: 'modern' | 'legacy'
  readonly call: CallContext
  /** Called when a request reaches the agent, which counts it. */
  readonly onReached?: (() => void) | undefined
  /** Whether the client has not read all that was sent to it: then it gets no progress. */
  readonly isBehind?: (() => boolean) | undefined
  /** Called with the error of a request, before the client gets it. */
  readonly onError?: ((error: A2AError) => void) | undefined
}

/** A method that reaches the agent. */
type McpMethod = Parameters<ServedRuntime['settings']['counters']['calledOverMcp']>[0]

/** A request that a handler answers. */
interface HandledRequest {
  readonly method: McpMethod
  /** The tool that it calls, if there is such a tool. */
  readonly tool?: string | undefined
  readonly server: Server
  readonly connection: McpConnection
  readonly ctx: ServerContext
}

/** The binding of calls over MCP. */
export const BINDING = 'MCP'

/** The extension for tasks. */
const TASKS = 'io.modelcontextprotocol/tasks'
/** The member of a request of 2026-07-28 with the abilities of its client. */
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** The interfaces in a card of which only the skills are read. */
const HERE = [{ url: 'mcp', protocolBinding: 'MCP', protocolVersion: '2026-07-28' }]

/** The longest instructions that hosts read. */
const LONGEST_INSTRUCTIONS = 2000
/** Questions that one call of an older client may ask its user. */
const MOST_ROUNDS = 1000
/** How long an older client's user may take. The client ends the call earlier. */
const ROUND_MS = 24 * 60 * 60 * 1000

/** How long clients keep lists, in milliseconds. They depend on the caller. */
const CACHE = { ttlMs: 60_000, cacheScope: 'private' as const }

const TASK_PARAMS = z.looseObject({ taskId: z.string().min(1) })
const TASK_REQUEST = z.object({ params: TASK_PARAMS })

/** The methods whose parameters are checked, and the schemas of their requests in the SDK. */
const CHECKED = new Map<string, keyof McpSdk['specTypeSchemas'] | 'task'>([
  ['initialize', 'InitializeRequest'],
  ['tools/list', 'ListToolsRequest'],
  ['tools/call', 'CallToolRequest'],
  ['resources/list', 'ListResourcesRequest'],
  ['resources/templates/list', 'ListResourceTemplatesRequest'],
  ['resources/read', 'ReadResourceRequest'],
  ['tasks/get', 'task'],
  ['tasks/update', 'task'],
  ['tasks/cancel', 'task']
])
/** The violations that an error names. */
const MOST_VIOLATIONS = 20

/** An agent as an MCP server: its skills as tools, its tasks as tasks. It has no state of its own. */
export class AgentOverMcp {
  readonly #runtime: ServedRuntime
  readonly #sdk: McpSdk
  readonly #calls: ToolCalls
  readonly #questions: Questions
  readonly #views: TaskViews

  constructor(runtime: ServedRuntime, sdk: McpSdk, settings: McpSettings) {
    this.#runtime = runtime
    this.#sdk = sdk
    this.#questions = new Questions(runtime, settings)
    this.#views = new TaskViews(runtime, this.#questions)
    const services = { runtime, questions: this.#questions, views: this.#views, seal: new StateSeal(runtime) }
    this.#calls = new ToolCalls(services, settings)
  }

  /** A server of the SDK for one request, or for one connection over stdio. */
  async serverFor(connection: McpConnection): Promise<Server> {
    const { era, call } = connection
    const card = await this.#cardFor(call)
    const hasTasks = era === 'modern' && this.#runtime.settings.opensTasks
    const { name, version, description, documentationUrl } = card
    const server = new this.#sdk.Server(
      { name, version, ...(documentationUrl !== undefined && { websiteUrl: documentationUrl }) },
      {
        capabilities: { tools: {}, resources: {}, ...(hasTasks && { extensions: { [TASKS]: {} } }) },
        ...(description !== '' && { instructions: description.slice(0, LONGEST_INSTRUCTIONS) }),
        cacheHints: {
          'tools/list': CACHE,
          'resources/list': CACHE,
          'resources/templates/list': CACHE,
          'server/discover': CACHE
        },
        inputRequired: { maxRounds: MOST_ROUNDS, roundTimeoutMs: ROUND_MS }
      }
    )
    this.#addTools(server, card, connection)
    this.#addResources(server, connection)
    if (hasTasks) this.#addTasks(server, connection)
    return server
  }

  #addTools(server: Server, card: AgentCard, connection: McpConnection): void {
    const tools = [...this.#calls.toolsOf(card).map(({ listed }) => listed), FOLLOW_UP_TOOL]
    server.setRequestHandler('tools/list', (_, ctx) =>
      this.#run({ method: 'tools/list', server, connection, ctx }, async () => ({
        tools: tools.map(tool => ({ ...tool }))
      }))
    )
    server.setRequestHandler('tools/call', ({ params }, ctx) => {
      const tool = tools.find(({ name }) => name === params.name)?.name
      return this.#run({ method: 'tools/call', tool, server, connection, ctx }, async caller => {
        const state: unknown = ctx.mcpReq.requestState()
        const outcome = await this.#calls.run(
          {
            name: params.name,
            arguments: params.arguments ?? {},
            state: typeof state === 'string' ? state : undefined,
            responses: responsesIn(ctx) ?? {},
            onProgress: progressTo(ctx, connection)
          },
          card,
          caller
        )
        return { ...outcome } as never
      })
    })
  }

  #addResources(server: Server, connection: McpConnection): void {
    server.setRequestHandler('resources/list', () => ({ resources: [] }))
    server.setRequestHandler('resources/templates/list', () => ({
      resourceTemplates: [{ name: 'artifact', title: 'A result of a task', uriTemplate: ARTIFACT_TEMPLATE }]
    }))
    server.setRequestHandler('resources/read', ({ params: { uri } }, ctx) =>
      this.#run({ method: 'resources/read', server, connection, ctx }, async ({ call }) => {
        const named = artifactIn(uri)
        const task =
          named && (await this.#runtime.getTask({ id: named.taskId, historyLength: 0 }, call).catch(unlessUnknown))
        const artifact = task?.artifacts?.find(({ artifactId }) => artifactId === named?.artifactId)
        if (!artifact)
          throw (!named && this.#runtime.settings.rejected.count(call)) || new this.#sdk.ResourceNotFoundError(uri)
        return { contents: resourceContents(uri, artifact) as never, ttlMs: 0, cacheScope: 'private' as const }
      })
    )
  }

  #addTasks(server: Server, connection: McpConnection): void {
    const handle = (
      method: McpMethod,
      run: (taskId: string, caller: McpCaller, ctx: ServerContext) => Promise<object>
    ) =>
      server.setRequestHandler(method, { params: TASK_PARAMS }, ({ taskId }, ctx) =>
        this.#run({ method, server, connection, ctx }, async caller => {
          if (!caller.abilities.tasks) throw this.#tasksMissing(caller)
          return { ...(await run(taskId, caller, ctx)) }
        })
      )
    handle('tasks/get', async (taskId, { call, abilities }) =>
      this.#views.answerOf(await this.#runtime.getTask({ id: taskId, historyLength: 0 }, call), abilities, call)
    )
    handle('tasks/update', async (taskId, { call, abilities }, ctx) => {
      const responses = responsesIn(ctx)
      if (!responses)
        throw this.#runtime.settings.rejected.answerTo(
          new A2AError('InvalidParams', 'inputResponses must be an object: the responses by their keys.'),
          call
        )
      const task = await this.#runtime.getTask({ id: taskId, historyLength: 0 }, call)
      const question = await this.#questions.openOf(task, call)
      const response = question && responses[question.key]
      if (response) await this.#questions.answer(question, response, abilities, call)
      return { resultType: 'complete' }
    })
    handle('tasks/cancel', async (taskId, { call }) => {
      await cancelUnlessEnded(this.#runtime, taskId, call)
      return { resultType: 'complete' }
    })
  }

  #tasksMissing({ call }: McpCaller): Error {
    const required = { requiredCapabilities: { extensions: { [TASKS]: {} } } }
    return (
      this.#runtime.settings.rejected.count(call) ??
      new this.#sdk.MissingRequiredClientCapabilityError(required, `This method needs the extension ${TASKS}.`)
    )
  }

  /**
   * Runs a handler, counts its request, and traces it. Errors of the runtime become those of MCP. Others are logged,
   * unless the client has disconnected, and tell the client nothing.
   */
  async #run<T>(handled: HandledRequest, run: (caller: McpCaller) => Promise<T>): Promise<T> {
    const { counters, logger } = this.#runtime.settings
    counters.calledOverMcp(handled.method)
    handled.connection.onReached?.()
    try {
      return await this.#spanned(handled, run)
    } catch (error) {
      counters.failedOverMcp(handled.method)
      if (error instanceof this.#sdk.ProtocolError) throw error
      if (!isA2AError(error) && !handled.ctx.mcpReq.signal.aborted) logger.error('a request over MCP failed', { error })
      const shown = isA2AError(error) ? error : new A2AError('InternalError')
      handled.connection.onError?.(shown)
      throw this.#protocolErrorOf(shown)
    }
  }

  /** Runs a handler within a span of its request, which is the parent of its operations. */
  #spanned<T>(
    { method, tool, server, connection, ctx }: HandledRequest,
    run: (caller: McpCaller) => Promise<T>
  ): Promise<T> {
    const { telemetry } = this.#runtime.settings
    const caller = this.#callerOf(server, connection, ctx)
    if (!telemetry) return run(caller)
    const { abilities, call } = caller
    const { trace: named } = traceParameters(telemetry, { get: name => textIn(ctx.mcpReq._meta, name) })
    const begin = () =>
      telemetry.begin({
        name: tool === undefined ? method : `${method} ${tool}`,
        kind: 'server',
        parent: named ?? call.trace,
        attributes: {
          [ATTRIBUTES.mcpMethod]: method,
          ...(tool !== undefined && { [ATTRIBUTES.toolName]: tool }),
          [ATTRIBUTES.binding]: BINDING
        }
      })
    return runInSpan({ begin, binding: BINDING, signal: call.signal }, ({ carrier }) =>
      run({ abilities, call: { ...call, trace: carrier } })
    )
  }

  /** The numbers of A2A are never those of MCP. Foreign, removed and unknown tasks look alike. */
  #protocolErrorOf(error: A2AError): Error {
    const {
      code,
      metadata: { reason }
    } = error
    const isOwn = ERRORS[code].code > -32000 || ERRORS[code].code <= -32600
    const message = code === 'TaskNotFound' ? NO_TASK : error.message
    return new this.#sdk.ProtocolError(
      ERRORS[isOwn ? code : 'InvalidParams'].code,
      message,
      reason === undefined ? undefined : { reason }
    )
  }

  #callerOf(server: Server, { era, call }: McpConnection, { mcpReq }: ServerContext): McpCaller {
    const signal = call.signal ? AbortSignal.any([call.signal, mcpReq.signal]) : mcpReq.signal
    // The SDK keeps what an older client has declared for its connection.
    const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope }
    const declared = era === 'modern' ? envelope[CAPABILITIES] : server.getClientCapabilities()
    return { call: { ...call, signal }, abilities: abilitiesOf(declared, era) }
  }

  /** The card for a caller: the extended one if it has authenticated, and there is one for it. */
  async #cardFor(call: CallContext): Promise<AgentCard> {
    const { capabilities } = this.#runtime.settings
    const publicCard = () => this.#runtime.agentCard([], call.tenant)
    if (call.principal === undefined || !capabilities.extendedAgentCard) return publicCard()
    return this.#runtime.getExtendedAgentCard({}, { ...call, interfaces: HERE }).catch(publicCard)
  }
}

/**
 * A message, or what is wrong with the parameters of its request. The SDK would call some of these errors its own, and
 * would count none.
 */
export function checkRequest({ specTypeSchemas }: Pick<McpSdk, 'specTypeSchemas'>, envelope: Envelope): Envelope {
  const name = envelope.kind === 'request' ? CHECKED.get(envelope.method) : undefined
  if (envelope.kind !== 'request' || name === undefined) return envelope
  const { id, method, params } = envelope
  // 2026-07-28, whose requests all declare what their client can do, has no such method.
  if (method === 'initialize' && isObject(params?.['_meta']) && CAPABILITIES in params['_meta']) return envelope
  const { issues } =
    name === 'task'
      ? { issues: TASK_REQUEST.safeParse({ params }).error?.issues }
      : specTypeSchemas[name]['~standard'].validate({ method, params })
  if (!issues) return envelope
  const violations = issues.slice(0, MOST_VIOLATIONS).map(({ path, message }) => ({
    field: pathText('', path as readonly PropertyKey[]),
    description: message
  }))
  return { kind: 'invalid', id, error: invalidParams(...violations) }
}

/** The abilities in a client's declaration. */
function abilitiesOf(declared: unknown, era: McpConnection['era']): Abilities {
  const { extensions, elicitation } = isObject(declared) ? declared : {}
  const { form, url } = isObject(elicitation) ? elicitation : {}
  return {
    tasks: era === 'modern' && isObject(extensions) && isObject(extensions[TASKS]),
    // Without any mode, forms are meant.
    form: isObject(elicitation) && (form !== undefined || url === undefined),
    url: url !== undefined
  }
}

/** A text in the `_meta` of a request. */
function textIn(meta: unknown, name: string): string | undefined {
  const value = isObject(meta) ? meta[name] : undefined
  return typeof value === 'string' ? value : undefined
}

/** The responses of a client's user by their keys. The SDK passes on those that are objects. */
function responsesIn({ mcpReq }: ServerContext): Readonly<Record<string, UserResponse>> | undefined {
  return mcpReq.inputResponses as Readonly<Record<string, UserResponse>> | undefined
}

/** Sends the progress of a call to a client that has given a token for it, and reads. */
function progressTo({ mcpReq }: ServerContext, { isBehind }: McpConnection): ((words: string) => void) | undefined {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return undefined
  let progress = 0
  return message => {
    progress += 1
    if (isBehind?.()) return
    void mcpReq
      .notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
      .catch(() => {})
  }
}

/** An unknown task has no artifacts. */
function unlessUnknown(error: unknown): undefined {
  if (isA2AError(error) && error.code === 'TaskNotFound') return undefined
  throw error
}
