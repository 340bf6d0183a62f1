import type { Test } from 'tap'
import { apiKey } from '../../adapters/auth/schemes.ts'
import type { WireCaller, WireParameters } from '../../adapters/conformance/callers/caller.ts'
import { grpcCaller } from '../../adapters/conformance/callers/grpc-caller.ts'
import { jsonRpcCaller, restCaller } from '../../adapters/conformance/callers/http-callers.ts'
import { webSocketCaller } from '../../adapters/conformance/callers/websocket-caller.ts'
import { grpc } from '../../adapters/grpc/index.ts'
import { webhooks } from '../../adapters/push/webhooks.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { WEBSOCKET_BINDING } from '../../machines/protocol/uris.ts'
import type { AgentDefinition } from '../../runtime/agent/define-agent.ts'
import { authRequired, inputRequired } from '../../runtime/authoring/questions.ts'
import { accepted, artifact, failed, rejected, reply, textOf } from '../../runtime/authoring/words.ts'
import type { NegotiateFunction } from '../../runtime/negotiation/per-message.ts'
import type { RuntimeOptions } from '../../runtime/runtime-options.ts'
import type { WorkFunction } from '../../runtime/work/function-work.ts'
import { deferred, start, type Started } from '../fixtures/runtime/runtime-helpers.ts'

/** The tokens of ACTS. The first is sent with every operation. */
export const TOKENS = { valid: 'itk-valid-token', insufficient: 'itk-insufficient-token', other: 'of-somebody-else' }

/** How the agent is served: for everybody, for callers with a token, and with every capability turned off. */
export const PROFILES = ['open', 'guarded', 'reduced'] as const

type Profile = (typeof PROFILES)[number]

/** The bindings that tests name, and taskchart's own. */
export const BINDINGS = ['jsonrpc', 'rest', 'grpc', 'websocket'] as const

export type BindingName = (typeof BINDINGS)[number]

/** An agent under test that is served over every binding. */
export interface Site extends Started {
  /** Where the card is. */
  readonly url: string
  readonly addressOf: (binding: BindingName) => string
  /** Calls the agent until the test ends. */
  readonly open: (t: Test, binding: BindingName) => WireCaller
  /** Lets the long-running tasks go on. */
  readonly goOn: () => void
}

/** Serves the agent of ACTS until the test ends. */
export async function serveAgent(t: Test, profile: Profile): Promise<Site> {
  const { definition, goOn } = actsAgent()
  const started = start(t, { ...definition, ...DEFINITIONS[profile] }, OPTIONS[profile])
  const served = await serve(started.runtime, { port: 0, grpc: grpc({ port: 0 }) })
  t.teardown(() => served.close())
  const addressOf = (binding: BindingName) =>
    served.interfaces.find(({ protocolBinding }) => protocolBinding === PROTOCOL_BINDINGS[binding])?.url ?? ''
  const open: Site['open'] = (t, binding) => {
    const caller = CALLERS[binding](addressOf(binding), { version: '1.0', credentials: TOKENS.valid })
    t.teardown(() => caller.close())
    return caller
  }
  return { ...started, url: served.url, addressOf, open, goOn }
}

const PROTOCOL_BINDINGS: Readonly<Record<BindingName, string>> = {
  jsonrpc: 'JSONRPC',
  rest: 'HTTP+JSON',
  grpc: 'GRPC',
  websocket: WEBSOCKET_BINDING
}

const CALLERS: Readonly<Record<BindingName, (url: string, usual: WireParameters) => WireCaller>> = {
  jsonrpc: jsonRpcCaller,
  rest: restCaller,
  grpc: grpcCaller,
  websocket: webSocketCaller
}

const OPTIONS: Readonly<Record<Profile, Partial<RuntimeOptions>>> = {
  open: { push: webhooks({ allowLoopback: true }) },
  guarded: {
    push: webhooks({ allowLoopback: true }),
    authenticate: apiKey({
      keys: key => (Object.values(TOKENS).includes(key) ? { id: key } : undefined),
      header: 'authorization'
    }),
    authorize: ({ principal }) => principal !== TOKENS.insufficient
  },
  reduced: {}
}

const DEFINITIONS: Readonly<Record<Profile, Partial<AgentDefinition>>> = {
  open: {},
  guarded: { extendedCard: { description: 'Does what ACTS says, for callers that it knows.' } },
  reduced: { capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: false, extensions: false } }
}

/**
 * The behaviours of ACTS, by the first word of the message that opens a task. A long-running task works until `goOn` is
 * called, which then holds for the newest.
 */
function actsAgent(): { definition: Pick<AgentDefinition, 'card' | 'work' | 'negotiate'>; goOn: () => void } {
  let held = deferred()
  const negotiate: NegotiateFunction = ({ message }) => {
    const behaviour = behaviourIn(message)
    if (behaviour === 'tck-long-running') held = deferred()
    if (behaviour === 'tck-message-response') return reply('Hello to you.')
    return behaviour === 'tck-reject-task' ? rejected('I do not do that.') : accepted()
  }
  const work: WorkFunction = async ({ message, emit, ask, signal }) => {
    switch (behaviourIn(message)) {
      case 'tck-long-running':
        await Promise.race([held.promise, aborted(signal)])
        break
      case 'tck-cancel':
        await aborted(signal)
        break
      case 'tck-multi-turn':
        for (let answer = ''; !answer.startsWith('done');) answer = textOf(await ask(inputRequired('And then?')))
        break
      case 'tck-input-required':
        await ask(inputRequired('And then?'))
        break
      case 'tck-auth-required':
        await ask(authRequired('Please authorize this.'))
        break
      case 'tck-task-failure':
        return failed('It did not work, as you wanted.')
      case 'tck-stream-chunked':
        for (const [i, text] of ['one', 'two', 'three'].entries())
          emit(
            artifact({ artifactId: 'chunks', name: 'chunks', parts: [{ text }] }, { append: i > 0, lastChunk: i === 2 })
          )
        return {}
      case 'tck-artifact-data':
        return { artifact: { parts: [{ data: { answer: 42 } }] } }
      case 'tck-artifact-file':
        return { artifact: { parts: [{ raw: 'aGVsbG8=', filename: 'hello.txt', mediaType: 'text/plain' }] } }
      case 'tck-artifact-file-url':
        return { artifact: { parts: [{ url: 'https://example.com/hello.txt', filename: 'hello.txt' }] } }
    }
    return { artifact: 'Done, as you wanted.' }
  }
  return { definition: { card: CARD, work, negotiate }, goOn: () => held.resolve() }
}

function behaviourIn(message: Parameters<typeof textOf>[0]): string {
  return textOf(message).split(' ')[0] ?? ''
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}

const CARD = {
  name: 'Agent under test',
  description: 'Does what ACTS says.',
  skills: [{ id: 'acts', name: 'ACTS', description: 'Does what the first word of a message says.', tags: ['test'] }]
}
