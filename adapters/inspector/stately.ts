import { connect, type NetConnectOpts } from 'node:net'
import type * as stately from '@statelyai/inspect'
import { type ClientOptions, WebSocket } from 'ws'
import type { AnyActorRef, AnyStateMachine, InspectionEvent } from 'xstate'
import type { Logger } from '../../runtime/ports/logger.ts'
import type { LiveActors } from '../../runtime/telemetry-port.ts'
import { writtenConfig } from '../../runtime/work-port.ts'
import { checkPackages } from '../peers/installed-packages.ts'
import type { Hub } from './hub.ts'
import type { InspectionSink } from './observation.ts'
import { type Redact, shownEvent } from './recorder/seen-step.ts'

/** The pauses between attempts to connect: doubled from the first to the last. */
const FIRST_PAUSE_MS = 500
const LAST_PAUSE_MS = 30_000

/** The buffer of a receiver in bytes. Above it, the connection is replaced, and starts with the present actors. */
export const WAITING_BYTES = 1024 * 1024

/** Creates a connection that does not keep the process alive. */
const notHolding: NonNullable<ClientOptions['createConnection']> = options => connect(options as NetConnectOpts).unref()

/** The options of a link. */
interface LinkOptions {
  readonly stately: Stately
  readonly redact: Redact
  readonly logger: Logger
}

/**
 * Sends inspection events to a receiver of Stately's (`createInspectorServer`). Reconnects until it is closed, and
 * never keeps the process alive. Returns the function that closes it.
 */
export function linkTo(url: string, hub: Hub, { stately, redact, logger }: LinkOptions): () => void {
  let pauseMs = FIRST_PAUSE_MS
  let timer: NodeJS.Timeout | undefined
  let socket: WebSocket | undefined
  let isClosed = false

  const open = () => {
    const own = new WebSocket(url, { createConnection: notHolding })
    socket = own
    let release = () => {}
    own.on('open', () => {
      pauseMs = FIRST_PAUSE_MS
      release = hub.sink(
        new StatelySink(stately, redact, text => {
          if (own.bufferedAmount > WAITING_BYTES) own.terminate()
          else if (own.readyState === own.OPEN) own.send(text)
        })
      )
    })
    own.on('close', () => {
      release()
      if (isClosed) return
      timer = setTimeout(open, pauseMs).unref()
      pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)
    })
    own.on('error', error => logger.info?.('the receiver of the inspection is unreachable', { url, error }))
  }
  open()
  return () => {
    isClosed = true
    clearTimeout(timer)
    socket?.terminate()
  }
}

/** The origin of Stately's inspector. */
export const STATELY_ORIGIN = 'https://stately.ai'

/** The page that passes the hub's events on to Stately's inspector, which opens no sockets itself. */
export const statelyPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Stately Inspector</title>
<style>html, body, iframe { margin: 0; border: 0; width: 100%; height: 100% } p { font: 1rem system-ui; padding: 1rem }</style>
</head>
<body data-token="TOKEN">
<iframe title="Stately Inspector" src="${STATELY_ORIGIN}/inspect"></iframe>
<script src="/inspector/stately.js"></script>
</body>
</html>
`

/**
 * The script of that page. When the inspector is ready, each frame of the socket is posted to it. A closed socket is
 * reopened, and starts with all present actors.
 */
export const statelyScript = `const frame = document.querySelector('iframe')
const { token } = document.body.dataset
let socket

function open() {
  socket = new WebSocket('ws' + location.origin.slice(4) + '/inspector/stately?token=' + encodeURIComponent(token))
  socket.onmessage = ({ data }) => frame.contentWindow.postMessage(JSON.parse(data), '${STATELY_ORIGIN}')
  socket.onclose = () => setTimeout(open, 1000)
}

addEventListener('message', ({ source, origin, data }) => {
  if (source === frame.contentWindow && origin === '${STATELY_ORIGIN}' && data?.type === '@statelyai.connected' && !socket) open()
})
`

/** The used part of Stately's package, an optional peer. */
export type Stately = Pick<typeof stately, 'createInspector'>

/** Loads it. Throws TypeError with the command that installs it. */
export async function loadStately(load: () => Promise<Stately> = () => import('@statelyai/inspect')): Promise<Stately> {
  checkPackages(['@statelyai/inspect'])
  try {
    return await load()
  } catch (cause) {
    throw new TypeError(
      "Stately's inspector needs its package. Install it: npm install --save-dev @statelyai/inspect",
      { cause }
    )
  }
}

/**
 * Sends Stately's inspection protocol: actors with their definitions, events and snapshots, each as JSON text, made by
 * Stately's own `createInspector`. Since that reads actors later, it gets copies of their present state, without
 * secrets.
 */
export class StatelySink implements InspectionSink {
  readonly #inspect: (event: InspectionEvent) => void
  readonly #redact: Redact
  /** New actors, which have no snapshot yet. */
  readonly #unborn = new Map<string, AnyActorRef>()

  constructor({ createInspector }: Stately, redact: Redact, send: (text: string) => void) {
    const { inspect } = createInspector({ send: event => send(JSON.stringify(event)) })
    this.#inspect = event => inspect.next?.(event)
    this.#redact = redact
  }

  began({ root }: LiveActors): void {
    this.#sendAll(root)
  }

  inspected(event: InspectionEvent): void {
    const ref = event.actorRef as AnyActorRef
    if (event.type === '@xstate.actor') {
      this.#unborn.set(ref.sessionId, ref)
      return
    }
    if (event.type !== '@xstate.event' && event.type !== '@xstate.snapshot') return
    if (this.#unborn.delete(ref.sessionId)) this.#sendActor(ref)
    const shown = { ...event, event: shownEvent(event.event, this.#redact) }
    this.#inspect(
      shown.type === '@xstate.snapshot'
        ? ({ ...shown, snapshot: this.#snapshot(shown.snapshot) } as InspectionEvent)
        : shown
    )
  }

  #sendAll(ref: AnyActorRef): void {
    this.#sendActor(ref)
    const { children = {} } = ref.getSnapshot() as { readonly children?: Readonly<Record<string, AnyActorRef>> }
    for (const child of Object.values(children)) this.#sendAll(child)
  }

  #sendActor(ref: AnyActorRef): void {
    const { id, sessionId, _parent: parent, system } = ref
    const snapshot = this.#snapshot(ref.getSnapshot())
    const actorRef = {
      id,
      sessionId,
      _parent: parent && { sessionId: parent.sessionId },
      logic: { config: this.#config(ref) },
      getSnapshot: () => snapshot
    }
    this.#inspect({
      type: '@xstate.actor',
      actorRef,
      rootId: rootOf(ref).sessionId,
      system
    } as unknown as InspectionEvent)
  }

  /** A chart's definition. Its initial context is data, and is redacted. */
  #config({ logic }: AnyActorRef & { readonly logic?: Partial<AnyStateMachine> }): object | undefined {
    const config = logic?.config && writtenConfig(logic.config)
    return config && 'context' in config && typeof config.context !== 'function'
      ? { ...config, context: this.#redact(config.context) }
      : config
  }

  #snapshot(snapshot: unknown): unknown {
    const { status, value, context, output, error, input } = snapshot as Readonly<Record<string, unknown>>
    const shownError = error instanceof Error ? error.message : error
    return { status, ...(this.#redact({ value, context, output, input, error: shownError }) as object) }
  }
}

function rootOf(ref: AnyActorRef): AnyActorRef {
  return ref._parent ? rootOf(ref._parent) : ref
}
