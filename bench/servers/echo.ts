import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { ARTIFACT_TEXT, CHUNK_TEXT, errandIn } from '../errands.ts'
import { report } from './control.ts'

/** A request, as far as an echo looks into it. */
interface Request {
  readonly id: number
  readonly method: string
  readonly params: { readonly message?: OpeningMessage }
}

interface OpeningMessage {
  readonly messageId: string
  readonly parts: readonly { readonly text: string }[]
}

/** What the last task was opened with, for the history of the next that is asked for. */
let opening: OpeningMessage | undefined

const taskId = crypto.randomUUID()
const contextId = crypto.randomUUID()

/**
 * The results that a real server would give, made up on the spot: no task is behind them, so this is what is left of
 * the cost.
 */
function resultsOf({ method, params: { message } }: Request): unknown[] {
  opening = message ?? opening
  const status = (state: string) => ({ state: `TASK_STATE_${state}`, timestamp: new Date().toISOString() })
  const task = (state: string, artifacts: readonly string[]) => ({
    id: taskId,
    contextId,
    status: status(state),
    artifacts: artifacts.map(artifactOf),
    history: [{ ...opening, contextId, taskId }]
  })
  if (method === 'GetTask') return [task('COMPLETED', [ARTIFACT_TEXT])]
  if (method === 'SendMessage') return [{ task: task('COMPLETED', [ARTIFACT_TEXT]) }]
  const errand = errandIn(message?.parts[0]?.text ?? '')
  const chunks = errand.kind === 'chunks' ? errand.count : 1
  return [
    { task: task('SUBMITTED', []) },
    { statusUpdate: { taskId, contextId, status: status('WORKING') } },
    ...Array.from({ length: chunks }, () => ({
      artifactUpdate: { taskId, contextId, artifact: artifactOf(CHUNK_TEXT), append: true }
    })),
    { statusUpdate: { taskId, contextId, status: status('COMPLETED') } }
  ]
}

function artifactOf(text: string) {
  return { artifactId: taskId, parts: [{ text }] }
}

const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
server.on('listening', () => report((server.address() as AddressInfo).port))
server.on('connection', socket => {
  socket.on('message', (data: Buffer) => {
    const request = JSON.parse(data.toString('utf8')) as Request
    for (const result of resultsOf(request)) socket.send(JSON.stringify({ jsonrpc: '2.0', id: request.id, result }))
    if (request.method === 'SendStreamingMessage')
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: request.id, streamEnd: true }))
  })
})
