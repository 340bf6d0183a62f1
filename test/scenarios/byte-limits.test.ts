import { once } from 'node:events'
import { SendMessageRequest } from '@a2a-js/sdk'
import { A2AService } from '@a2a-js/sdk/server/grpc'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { assign } from 'xstate'
import { grpcCaller } from '../../adapters/conformance/callers/grpc-caller.ts'
import { grpc } from '../../adapters/grpc/index.ts'
import { dialect01, dialect03 } from '../../adapters/legacy/index.ts'
import { serveHost } from '../../adapters/mcp/stdio.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import { artifact, fromPromise, inputRequired, setupWork, type WorkArguments } from '../../runtime/index.ts'
import type { AgentDefinition } from '../../runtime/agent/define-agent.ts'
import { loadContext } from '../../runtime/snapshots/restored-task.ts'
import { anyone } from '../fixtures/runtime/lives.ts'
import { echo, steeredWork } from '../fixtures/runtime/agents.ts'
import { rejection, say, start, taskIn, textOf } from '../fixtures/runtime/runtime-helpers.ts'

type Work = NonNullable<AgentDefinition['work']>

/** A character of three bytes, and one unit of a JavaScript string. */
const WIDE = '語'

/** A limit, and texts that are a little below and a little above it in bytes, and both far below it in characters. */
const LIMIT = 60_000
const UNDER = WIDE.repeat(19_000)
const OVER = WIDE.repeat(20_100)

/** Work whose context is the text of its second message. */
const keeping = setupWork({ types: { context: { words: '' } } }).createMachine({
  context: { words: '' },
  initial: 'asking',
  states: {
    asking: {
      tags: 'input-required',
      meta: { prompt: '?' },
      on: {
        'message.received': {
          target: 'asking',
          reenter: true,
          actions: assign({ words: ({ event }) => (textOf(event.message) === 'under' ? UNDER : OVER) })
        }
      }
    }
  }
})

/** Work that asks, then does something with the text that the answer names. */
function asking(use: (text: string, args: WorkArguments) => unknown): Work {
  return async (args: WorkArguments) => {
    const answer = await args.ask(inputRequired('?'))
    await use(textOf(answer) === 'under' ? UNDER : OVER, args)
    await args.ask(inputRequired('Again?'))
  }
}

await t.test('limits.taskBytes counts bytes, whatever has them', async t => {
  const works: Readonly<Record<string, Work>> = {
    'an artifact': asking((text, { emit }) => emit(artifact(text))),
    'data with a long name': asking((text, { emit }) => emit(artifact({ parts: [{ data: { [text]: 1 } }] }))),
    'a question': asking((text, { ask }) => ask(inputRequired(text))),
    'a step in the journal': asking((text, { step }) => step('long', () => text)),
    'the context of a chart': keeping
  }
  for (const [what, work] of Object.entries(works)) {
    const { runtime } = start(t, { work }, { limits: { taskBytes: LIMIT } })
    for (const [text, state] of [
      ['under', 'TASK_STATE_INPUT_REQUIRED'],
      ['over', 'TASK_STATE_FAILED']
    ] as const) {
      const { id } = taskIn(await runtime.sendMessage(say('hello')))
      const { status } = taskIn(await runtime.sendMessage(say(text, { taskId: id })))
      t.equal(status.state, state, `${text} in ${what}`)
      if (text === 'over') t.match(textOf(status.message), /and 60000 are the limit/, what)
    }
  }
  const { runtime } = start(t, { work: keeping }, { limits: { taskBytes: LIMIT } })
  const { id } = taskIn(await runtime.sendMessage(say('hello')))
  t.match(await rejection(runtime.sendMessage(say(OVER, { taskId: id }))), { code: 'RateLimited' })
})

await t.test('limits.advanced.liveBytes counts the bytes of messages and of snapshots', async t => {
  const works: Readonly<Record<string, [work: Work, message: string]>> = {
    'a message': [steeredWork().work, UNDER],
    'the context of a chart': [
      setupWork({
        types: { context: { words: '' } },
        actors: { endless: fromPromise(() => new Promise(() => {})) }
      }).createMachine({
        context: { words: UNDER },
        initial: 'busy',
        states: { busy: { invoke: { src: 'endless' } } }
      }),
      'hello'
    ]
  }
  for (const [what, [work, message]] of Object.entries(works)) {
    const limits = { messageBytes: 100, advanced: { liveBytes: 4 * LIMIT } }
    const { runtime } = start(t, { work }, { limits })
    const opened = () => runtime.sendMessage(say(message, {}, { returnImmediately: true }), { principal: 'anna' })
    await opened()
    await opened()
    t.match(await rejection(opened()), { code: 'RateLimited', metadata: { limit: String(LIMIT) } }, what)
  }
})

await t.test('snapshots are loaded up to a number of bytes', async t => {
  const { runtime, store } = start(t, { work: keeping })
  const contextId = 'c'
  for (let i = 0; i < 2; i += 1) {
    const { id } = taskIn(await runtime.sendMessage(say('hello', { contextId })))
    await runtime.sendMessage(say('under', { taskId: id }))
  }
  const loaded = async (bytes: number) =>
    (await loadContext(store, { ...anyone, contextId }, bytes))?.tasks.map(({ snapshot }) => snapshot !== undefined)
  t.strictSame(await loaded(LIMIT), [true, false])
  t.strictSame(await loaded(2 * LIMIT), [true, true])
})

/** A body with the text of a message, filled up to this many bytes. */
function filled(bytes: number, body: (text: string) => unknown): string {
  const left = bytes - Buffer.byteLength(JSON.stringify(body('')))
  return JSON.stringify(body(WIDE.repeat(left / 3) + 'x'.repeat(left % 3)))
}

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })

await t.test('limits.messageBytes counts bytes, over every binding', async t => {
  const { runtime } = start(t, { card: { name: 'Echo' }, work: echo }, { limits: { messageBytes: LIMIT } })
  const at = await serve(runtime, {
    port: 0,
    grpc: grpc({ port: 0 }),
    mcp: true,
    agui: true,
    dialects: [dialect03(runtime), dialect01(runtime)]
  })
  t.teardown(() => at.close())
  const address = at.interfaces.find(({ protocolBinding }) => protocolBinding === 'GRPC')?.url ?? ''
  const said = (text: string) => ({ messageId: 'm', role: 'ROLE_USER', parts: [{ text }] })
  const said03 = (text: string) => ({ kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text }] })
  const mcp = (text: string) => rpc('tools/call', { name: 'Echo', arguments: { message: text } })

  /** Sends a message of so many bytes; gives whether it was too large. */
  const bindings: Readonly<Record<string, (bytes: number) => Promise<boolean>>> = {
    'JSON-RPC': posted(at.url, text => rpc('SendMessage', { message: said(text) })),
    REST: posted(`${at.url}message:send`, text => ({ message: said(text) })),
    'JSON-RPC of 0.3': posted(at.url, text => rpc('message/send', { message: said03(text) }), '0.3'),
    'JSON-RPC of 0.1': posted(
      at.url,
      text => rpc('tasks/send', { id: 'x', message: { role: 'user', parts: [{ type: 'text', text }] } }),
      ''
    ),
    'MCP over HTTP': posted(String(at.mcpUrl), mcp),
    'MCP over stdio': async bytes => {
      const written: string[] = []
      async function* lines() {
        yield filled(bytes, mcp)
      }
      await serveHost(runtime, { lines: lines(), write: line => void written.push(line) }, {})
      return written.join().includes('-31413')
    },
    'AG-UI': posted(String(at.agUiUrl), text => ({
      threadId: 't',
      runId: 'r',
      messages: [{ id: 'm', role: 'user', content: text }]
    })),
    WebSocket: overWebSocket(t, at.url.replace('http', 'ws'), text => rpc('SendMessage', { message: said(text) })),
    gRPC: async bytes => {
      const caller = grpcCaller(address, { version: '1.0' })
      t.teardown(() => caller.close())
      const sizeOf = (text: string) => {
        const request = SendMessageRequest.fromJSON({ message: said(text) })
        return A2AService.sendMessage.requestSerialize(request).length
      }
      // A text of the greatest length: the lengths before it take as many bytes as those before the wanted text.
      const long = WIDE.repeat(bytes / 3)
      const left = bytes - (sizeOf(long) - Buffer.byteLength(long))
      const text = WIDE.repeat(left / 3) + 'x'.repeat(left % 3)
      t.equal(sizeOf(text), bytes)
      return caller.call('SendMessage', { message: said(text) }).then(
        () => false,
        error => /larger than max/.test(String(error))
      )
    }
  }
  for (const [name, isTooLarge] of Object.entries(bindings)) {
    t.equal(await isTooLarge(LIMIT), false, `${name}: at the limit`)
    t.equal(await isTooLarge(LIMIT + 3), true, `${name}: one character more`)
  }
})

function posted(url: string, body: (text: string) => unknown, version = '1.0') {
  return async (bytes: number): Promise<boolean> => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...(version !== '' && { 'A2A-Version': version })
      },
      body: filled(bytes, body)
    })
    await response.body?.cancel()
    return response.status === 413
  }
}

function overWebSocket(t: Test, url: string, body: (text: string) => unknown) {
  return async (bytes: number): Promise<boolean> => {
    const socket = new WebSocket(url, [WEBSOCKET_SUBPROTOCOL], { headers: { 'a2a-version': '1.0' } })
    t.teardown(() => socket.terminate())
    await once(socket, 'open')
    socket.send(filled(bytes, body))
    return Promise.race([
      once(socket, 'message').then(() => false),
      once(socket, 'close').then(([code]) => code === 1009)
    ])
  }
}
