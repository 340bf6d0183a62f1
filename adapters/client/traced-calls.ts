import type { Telemetry } from '../../runtime/telemetry-port.ts'
import {
  ATTRIBUTES,
  callAttributes,
  INVOKES_AGENT,
  methodName,
  runInSpan,
  type SpannedCall,
  spannedStream
} from '../../runtime/telemetry/spans.ts'
import type { Calls } from './calls.ts'
import type { RequestFrame } from './requests.ts'

/** The agent that a client calls. */
export interface CalledAgent {
  readonly binding: string
  /** The name in the card, if the card was read. */
  readonly name?: string | undefined
}

/**
 * Wraps each call in a span of the kind `client`, a child of the active span. The agent's spans become its children,
 * retries included. The span of a stream begins when the stream is first read, and ends with it or when its reader
 * leaves.
 */
export function tracedCalls(calls: Calls, agent: CalledAgent, telemetry: Telemetry): Calls {
  const { url, link, generations } = calls
  const { binding } = agent
  const place = placeOf(url)
  const spannedCall = (frame: RequestFrame, signal: AbortSignal | undefined): SpannedCall => ({
    begin: () =>
      telemetry.begin({
        kind: 'client',
        name: nameOf(frame, agent),
        attributes: { ...place, ...attributesOf(frame, agent) }
      }),
    binding,
    signal
  })
  return {
    url,
    link,
    generations,
    isReliable: calls.isReliable.bind(calls),
    call: (frame, signal) =>
      runInSpan(spannedCall(frame, signal), ({ carrier }) => calls.call({ ...frame, trace: carrier }, signal)),
    stream: (frame, signal) =>
      spannedStream(spannedCall(frame, signal), ({ carrier }) => calls.stream({ ...frame, trace: carrier }, signal))
  }
}

/** Uses the semantic conventions for generative AI for messages, and those for RPC for other methods. */
function nameOf({ method }: RequestFrame, { name }: CalledAgent): string {
  if (!isSend(method)) return methodName(method)
  return name === undefined ? 'invoke_agent' : `invoke_agent ${name}`
}

function attributesOf({ method, params }: RequestFrame, { binding, name }: CalledAgent) {
  return {
    ...callAttributes(method, binding, params),
    ...(isSend(method) && INVOKES_AGENT),
    ...(name !== undefined && { [ATTRIBUTES.agentName]: name })
  }
}

function isSend(method: string): boolean {
  return method === 'SendMessage' || method === 'SendStreamingMessage'
}

/** The host and port of a URL, which has no scheme over gRPC. */
function placeOf(url: string) {
  const { protocol, hostname, port } = new URL(url.includes('://') ? url : `grpc://${url}`)
  const usual = /^(?:https|wss|grpcs):$/.test(protocol) ? 443 : 80
  return { [ATTRIBUTES.serverAddress]: hostname, [ATTRIBUTES.serverPort]: port === '' ? usual : Number(port) }
}
