import { dialect01, dialect03 } from '../../../adapters/legacy/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { reply } from '../../../runtime/authoring/words.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'
import { clientOf } from '../client.ts'
import { openColumn, type Column, type Runtime, type Test } from '../column.ts'
import { only, row, type Row } from '../row.ts'

type Json = Record<string, unknown>

const OLD_RPC = only(['0.3 WebSocket', '0.3 JSON-RPC'], 'not the JSON-RPC of 0.1')

/** 0.1, over the bindings of 0.3 that carry JSON-RPC. */
export const oldest: readonly Row[] = [
  row(
    169,
    'D',
    '9.3',
    'An answer without a task is one in input-required if the agent has work, else completed; no task is stored for it',
    async (t, { binding }) => {
      const column = await openColumn(t, { ...binding, serve: serve01 })
      const { runtime } = column
      const before = (await runtime.listTasks({})).totalSize
      t.match(await send(column, { id: 'talk', text: 'hello' }), {
        id: 'talk',
        status: { state: 'input-required', message: { role: 'agent' } }
      })
      t.match(await call(column, 'tasks/get', { id: 'talk' }), { id: 'talk', status: { state: 'input-required' } })
      t.equal((await runtime.listTasks({})).totalSize, before)
      t.match(await send(column, { id: 'talk', text: 'x' }), {
        id: 'talk',
        status: { state: 'completed' },
        artifacts: [{ index: 0 }]
      })
      const { runtime: talker } = start(t, { card: { name: 'Talker' }, negotiate: () => reply('hi') })
      const client = clientOf(await binding.open(t, await serve01(t, talker)), [])
      t.match(await send({ ...column, client }, { id: 'talk', text: 'hello' }), { status: { state: 'completed' } })
    },
    OLD_RPC
  ),
  row(
    170,
    'D',
    '9.3',
    'Under one id and session the history and the artifacts go on over the rounds',
    async (t, { binding }) => {
      const column = await openColumn(t, { ...binding, serve: serve01 })
      const first = await send(column, { id: 'rabbit', text: 'draw rabbit' })
      const second = await send(column, { id: 'rabbit', text: 'draw red', sessionId: first.sessionId })
      t.match(second, {
        id: 'rabbit',
        sessionId: first.sessionId,
        artifacts: [
          { index: 0, name: 'rabbit' },
          { index: 1, name: 'red' }
        ]
      })
      t.match(second.history, [{ parts: [{ text: 'draw rabbit' }] }, { parts: [{ text: 'draw red' }] }])
      t.match(await call(column, 'tasks/get', { id: 'rabbit', historyLength: 1 }), {
        artifacts: { length: 2 },
        history: [{ parts: [{ text: 'draw red' }] }]
      })
    },
    OLD_RPC
  )
]

let requests = 0

async function serve01(t: Test, runtime: Runtime): Promise<string> {
  const served = await serve(runtime, { port: 0, dialects: [dialect03(runtime), dialect01(runtime)] })
  t.teardown(() => served.close())
  return new URL(served.url).origin
}

/** What tasks/send gives. */
function send(
  column: Column,
  { text, ...params }: { readonly id: string; readonly text: string; readonly sessionId?: unknown }
): Promise<Json> {
  return call(column, 'tasks/send', { ...params, message: { role: 'user', parts: [{ type: 'text', text }] } })
}

async function call({ client: { caller } }: Column, method: string, params: Json): Promise<Json> {
  if (!caller.raw) throw new Error('This binding has no envelope')
  const { result } = await caller.raw(
    JSON.stringify({ jsonrpc: '2.0', id: `oldest ${(requests += 1)}`, method, params })
  )
  return result as Json
}
