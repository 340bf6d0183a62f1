import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { errorFrame, readEnvelope, type Envelope } from '../json-rpc/dispatch.ts'
import { COUNTED, mcpSettings, type McpOptions } from './mcp-handler.ts'
import { AgentOverMcp, BINDING, checkRequest, type McpSdk } from './mcp-server.ts'

/** The two ends of a host's pipe: lines that come in, and lines that go out. */
export interface HostPipe {
  readonly lines: AsyncIterable<string>
  /** Writes one line. */
  readonly write: (line: string) => void
}

/**
 * Serves an agent to the host of this process, over stdin and stdout, until the lines end. The caller chooses the
 * principal under which the host's tasks are stored: whoever starts the process has its rights. Tasks go on, or stay in
 * the store.
 */
export async function serveHost(
  runtime: ServedRuntime,
  pipe: HostPipe,
  { principal, ...options }: McpOptions & { readonly principal?: string | undefined }
): Promise<void> {
  const [sdk, { serveStdio }] = await Promise.all([
    import('@modelcontextprotocol/server'),
    import('@modelcontextprotocol/server/stdio')
  ])
  const agent = new AgentOverMcp(runtime, sdk, mcpSettings(options))
  const call: CallContext = { principal, connection: {}, binding: BINDING }
  const transport = new LineTransport(pipe)
  const { logger } = runtime.settings
  const handle = serveStdio(({ era }) => agent.serverFor({ era, call }), {
    transport,
    /* c8 ignore next -- lines that are no messages are answered before they get here */
    onerror: error => logger.warn('a message of the host was not understood', { error })
  })
  for await (const line of pipe.lines) deliver({ runtime, sdk, call, transport }, line)
  transport.onclose?.()
  await handle.close()
}

/** The connection of a host. */
interface HostConnection {
  readonly runtime: ServedRuntime
  readonly sdk: McpSdk
  readonly call: CallContext
  readonly transport: LineTransport
}

/** Passes a message on, or answers it with what is wrong with it. */
function deliver({ runtime, sdk, call, transport }: HostConnection, line: string): void {
  const { limits, jsonLimits, rejected } = runtime.settings
  const bytes = Buffer.byteLength(line)
  const tooLarge = new A2AError('TooLarge', `A message may have at most ${limits.messageBytes} bytes.`)
  const envelope =
    bytes > limits.messageBytes
      ? { kind: 'invalid' as const, id: null, error: tooLarge }
      : checkRequest(sdk, readEnvelope(line, jsonLimits))
  const counted = { ...call, bytes }
  if (envelope.kind === 'invalid')
    return transport.writeLine(errorFrame(envelope.id, rejected.answerTo(envelope.error, counted)))
  if (envelope.kind === 'request' && !COUNTED.has(envelope.method)) {
    const over = rejected.count(counted)
    if (over) return transport.writeLine(errorFrame(envelope.id, over))
  }
  transport.onmessage?.(messageIn(envelope, line) as JSONRPCMessage)
}

/** The message of a line. The envelope has that of a request parsed already. */
function messageIn(envelope: Exclude<Envelope, { kind: 'invalid' }>, line: string): unknown {
  if (envelope.kind === 'response') return JSON.parse(line)
  const { method, params } = envelope
  const message = { jsonrpc: '2.0', method, ...(params !== undefined && { params }) }
  return envelope.kind === 'request' ? { ...message, id: envelope.id } : message
}

/** Answers every request of a host with one error, until the lines end. */
export async function refuseHost({ lines, write }: HostPipe, message: string): Promise<void> {
  for await (const line of lines) {
    const envelope = readEnvelope(line, { depth: 64, nodes: 10_000 })
    if (envelope.kind === 'request') write(errorFrame(envelope.id, new A2AError('Overloaded', message)))
  }
}

/** Messages as lines, in the form that the SDK takes. */
class LineTransport implements Transport {
  onmessage?: NonNullable<Transport['onmessage']>
  onclose?: () => void
  onerror?: (error: Error) => void
  readonly #pipe: HostPipe

  constructor(pipe: HostPipe) {
    this.#pipe = pipe
  }

  async start(): Promise<void> {}

  async send(message: JSONRPCMessage): Promise<void> {
    this.writeLine(JSON.stringify(message))
  }

  writeLine(line: string): void {
    this.#pipe.write(line)
  }

  /* c8 ignore next -- the lines end before the SDK would close it */
  async close(): Promise<void> {}
}
