import { createRequire } from 'node:module'
import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import type { ELK, ElkNode } from 'elkjs'
import { onReceived } from '../../runtime/primitives/event-loop.ts'

/** An answer of the thread: the graph with its places, or the message of an error. */
export type LaidOut = { readonly laid: ElkNode } | { readonly failure: string }

/* c8 ignore start -- the thread ends with its process, before it could report coverage */

/**
 * The worker thread of a layout engine, whose package is in `workerData`. It answers graphs in the order in which they
 * came.
 */
const Engine = createRequire(import.meta.url)(workerData as string) as new () => ELK
const engine = new Engine()
const port = parentPort as MessagePort
const postAnswer = (answer: LaidOut) => port.postMessage(answer)

const fail = (error: unknown) => postAnswer({ failure: (error as Error).message })

onReceived(
  port,
  'message',
  (graph: ElkNode) => void engine.layout(graph).then(laid => postAnswer({ laid }), fail),
  fail
)

/* c8 ignore stop */
