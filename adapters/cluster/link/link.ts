import { randomUUID } from 'node:crypto'
import { systemClock, type Clock } from '../../../runtime/ports/clock.ts'
import { onReceived } from '../../../runtime/primitives/event-loop.ts'
import { NOT_OWNER, OUTCOME_UNKNOWN } from '../../../runtime/store/store.ts'
import {
  ANSWERED,
  fromFrameError,
  GREETING,
  isProof,
  OTHER_SECRET,
  proofOf,
  readFrame,
  WELCOME,
  type NodeAnswer,
  type NodeRequestFrame,
  type Request
} from './frames.ts'
import { SILENT_MS, webSockets, type LinkSocket, type Network } from './network.ts'

/**
 * The connection to another node has ended, or could not be opened. `wasSent`: it is unknown whether the request was
 * carried out.
 */
export class LinkLost extends Error {
  override readonly name = 'LinkLost'
  readonly wasSent: boolean

  constructor(wasSent: boolean) {
    super('The connection to another node was lost.')
    this.wasSent = wasSent
  }
}

/** The reason why a node cannot be used, for people. */
export type LinkFault = 'cannot be reached' | 'has another secret' | 'is no node of this version of taskchart'

/** The pause between two attempts to reach a node. */
export const TRY_AGAIN_MS = 1000

/** The network and the clock of a link. Default: WebSocket and the system clock. */
export interface LinkWays {
  readonly network: Network
  readonly clock: Clock
}

export const DEFAULT_WAYS: LinkWays = { network: webSockets, clock: systemClock }

type AnswerListener = (answer: NodeAnswer | 'lost') => void

/** The connection of this node to another, opened when it is needed and after a failure. */
export class NodeLink {
  readonly #address: string
  readonly #secret: string
  readonly #ways: LinkWays
  readonly #report: (fault: LinkFault) => void
  readonly #listeners = new Map<number, AnswerListener>()
  #socket: LinkSocket | undefined
  #opening: Promise<LinkSocket> | undefined
  #isClosed = false
  #next = 0
  /** The fault of the last attempt, since when it is the same, and when it was tried last. */
  #failed:
    | { readonly fault: LinkFault; readonly sinceMs: number; readonly atMs: number; isReported: boolean }
    | undefined

  /** `report` gets each fault once, until the node can be used again. */
  constructor(address: string, secret: string, ways = DEFAULT_WAYS, report: (fault: LinkFault) => void = () => {}) {
    this.#address = address
    this.#secret = secret
    this.#ways = ways
    this.#report = report
  }

  /** Whether no request is open. */
  get isIdle(): boolean {
    return this.#listeners.size === 0
  }

  /**
   * Why calls are refused at once: the other node proves another secret, is none, or cannot be reached for longer than
   * a node may be silent. Once in a while it is `undefined`, and the next call tries again.
   */
  get fault(): LinkFault | undefined {
    if (!this.#failed) return undefined
    const { fault, sinceMs, atMs } = this.#failed
    const nowMs = this.#ways.clock.now()
    const isFor = fault !== 'cannot be reached' || nowMs - sinceMs >= SILENT_MS
    return isFor && nowMs - atMs < TRY_AGAIN_MS ? fault : undefined
  }

  /**
   * Asks for one answer. Rejects with the error of the other node, with NOT_OWNER if it does not have the shard, with
   * OUTCOME_UNKNOWN and LinkLost.
   */
  call(request: Request, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const stop = this.request(request, answer => {
        signal?.removeEventListener('abort', abort)
        if (answer === 'unsent' || answer === 'lost') return reject(new LinkLost(answer === 'lost'))
        stop()
        if ('moved' in answer) reject(NOT_OWNER)
        else if ('error' in answer) reject(answer.isUnknown ? OUTCOME_UNKNOWN : fromFrameError(answer.error))
        else resolve((answer as { readonly answer: unknown }).answer)
      }).stop
      const abort = () => {
        stop()
        reject(signal?.reason as Error)
      }
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  /** Sends a request, and calls `onAnswer` with every answer. `unsent` and `lost` are the last. */
  request(
    request: Request,
    onAnswer: (answer: NodeAnswer | 'unsent' | 'lost') => void
  ): { readonly stop: () => void; readonly sendErased: (erased: boolean) => void } {
    const id = (this.#next += 1)
    let isOver = false
    const send = (frame: NodeRequestFrame) =>
      this.#opening?.then(
        socket => socket.send(JSON.stringify(frame)),
        () => {}
      )
    const begin = async () => {
      const socket = await this.#open().catch(() => undefined)
      if (isOver) return
      if (!socket) return onAnswer('unsent')
      this.#listeners.set(id, onAnswer)
      socket.send(JSON.stringify({ id, ...request } satisfies NodeRequestFrame))
    }
    void begin()
    const stop = () => {
      isOver = true
      if (this.#listeners.delete(id)) void send({ id, stop: true })
    }
    return { stop, sendErased: erased => void send({ id, erased }) }
  }

  /** Ends the connection, also one that is being opened. Later requests are not sent. */
  close(): void {
    this.#isClosed = true
    this.#socket?.terminate()
  }

  #open(): Promise<LinkSocket> {
    if (this.#isClosed) return Promise.reject(new LinkLost(false))
    return (this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = undefined
      throw error
    }))
  }

  #connect(): Promise<LinkSocket> {
    const { network, clock } = this.#ways
    const socket = network.connect(this.#address)
    this.#socket = socket
    const own = randomUUID()
    let theirs: string | undefined
    let isProved = false
    let fault: LinkFault = 'cannot be reached'
    let silence: unknown
    const restartTimer = () => {
      clock.clearTimeout(silence)
      silence = clock.setTimeout(() => socket.terminate(), SILENT_MS)
    }
    restartTimer()
    return new Promise((resolve, reject) => {
      const receive = (data: unknown) => {
        restartTimer()
        if (isProved) {
          const answered = readFrame(ANSWERED, data)
          return this.#listeners.get(answered.id)?.(answered)
        }
        if (theirs === undefined) {
          theirs = readFrame(GREETING, data).number
          return socket.send(JSON.stringify({ number: own, proof: proofOf(this.#secret, 'caller', [theirs, own]) }))
        }
        isProved = isProof(readFrame(WELCOME, data).proof, this.#secret, 'server', [theirs, own])
        if (isProved) {
          this.#failed = undefined
          return resolve(socket)
        }
        fault = 'has another secret'
        socket.terminate()
      }
      onReceived(socket, 'message', receive, () => {
        fault = 'is no node of this version of taskchart'
        socket.terminate()
      })
      socket.on('ping', restartTimer)
      socket.on('error', () => {})
      socket.on('close', code => {
        clock.clearTimeout(silence)
        this.#opening = undefined
        if (code === OTHER_SECRET) fault = 'has another secret'
        if (!isProved && !this.#isClosed) this.#fail(fault)
        const lost = [...this.#listeners.values()]
        this.#listeners.clear()
        for (const listener of lost) listener('lost')
        reject(new LinkLost(false))
      })
    })
  }

  #fail(fault: LinkFault): void {
    const nowMs = this.#ways.clock.now()
    const before = this.#failed?.fault === fault ? this.#failed : { sinceMs: nowMs, isReported: false }
    this.#failed = { ...before, fault, atMs: nowMs }
    if (this.fault === undefined || before.isReported) return
    this.#failed.isReported = true
    this.#report(fault)
  }
}
