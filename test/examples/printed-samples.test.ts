import t, { type Test } from 'tap'
import { dialect01, dialect03 } from '../../adapters/legacy/index.ts'
import { serve } from '../../adapters/serve/serve.ts'
import sailboat from '../../examples/sailboat.ts'
import { ask } from '../fixtures/servers/http-agent.ts'
import { start } from '../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket } from '../fixtures/servers/served-agent.ts'

type Json = Record<string, unknown>
type Send = (text: string) => Promise<Json>

/** The JSON of one guide: what a client sends, with the mistakes that are printed, and the form of the answers. */
interface Sample {
  readonly requests: readonly string[]
  readonly answers: readonly object[]
}

/** A message as guides print it. */
const request = (id: string, method: string, message: string) =>
  `{"jsonrpc": "2.0", "id": "${id}", "method": "${method}", "params": {"message": {"role": "user", ${message}}}}`

const picture = (description: object, part: object) => ({
  id: '',
  contextId: '',
  status: { state: 'completed' },
  artifacts: [{ artifactId: '', name: 'sailboat_image.png', ...description, parts: [part] }]
})
const file = { kind: 'file', file: { name: 'sailboat_image.png', mimeType: 'image/png', bytes: '' } }
const bareFile = { file: { name: 'sailboat_image.png', mediaType: 'image/png', fileWithBytes: '' } }
const BOAT = 'A generated image of a sailboat on the ocean.'
const RED_BOAT = 'A generated image of a red sailboat on the ocean.'

const SAMPLES: Record<string, Sample> = {
  'message/send with comments and trailing commas': {
    requests: [
      request(
        'req-001',
        'message/send',
        '"parts": [{"kind": "text", "text": "Generate an image of a sailboat on the ocean."}], "messageId": "msg-user-001"'
      ),
      request(
        'req-002',
        'message/send',
        `"messageId": "msg-user-002", "contextId": "CONTEXT", // Same contextId
        "referenceTaskIds": ["TASK"] // Optional
        "parts": [{"kind": "text", "text": "That's great! Can you make the sailboat red?" // Optional
        }],`
      )
    ],
    answers: [
      { ...picture({ description: BOAT }, file), kind: 'task' },
      { ...picture({ description: RED_BOAT }, file), kind: 'task' }
    ]
  },
  'message.send with kind': {
    requests: [
      request(
        'req-001',
        'message.send',
        '"messageId": "msg-user-001", "parts": [{"kind": "text", "text": "Generate an image of a sailboat on the ocean."}]'
      ),
      request(
        'req-002',
        'message.send',
        '"messageId": "msg-user-002", "contextId": "CONTEXT", "referenceTaskIds": ["TASK"], "parts": [{"kind": "text", "text": "Please modify the sailboat to be red."}]'
      )
    ],
    answers: [
      { ...picture({}, file), kind: 'task' },
      { ...picture({}, file), kind: 'task' }
    ]
  },
  'message.send without kind': {
    requests: [
      request(
        'req-001',
        'message.send',
        '"parts": [{"text": "Generate an image of a sailboat on the ocean."}], "messageId": "msg-user-001"'
      ),
      request(
        'req-002',
        'message.send',
        '"messageId": "msg-user-002", "contextId": "CONTEXT", "referenceTaskIds": ["TASK"], "parts": [{"text": "Please modify the sailboat to be red."}]'
      )
    ],
    answers: [picture({ description: BOAT }, bareFile), picture({ description: RED_BOAT }, bareFile)]
  }
}

const bindings: Record<string, (t: Test, url: string) => Promise<Send>> = {
  HTTP: async (_, url) => async text => ({ ...(await ask(url, { body: text, headers: { 'a2a-version': '' } })).json }),
  WebSocket: async (t, url) => {
    const socket = await JsonSocket.open(t, url.replace('http', 'ws'), { headers: {} })
    return text => {
      socket.send(text)
      const id = /"id": "(req-\d+)"/.exec(text)?.[1] ?? ''
      return socket.next(isJson(text) ? id : null).then(reply => ({ ...reply }))
    }
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A printed block without comments, and with its commas as JSON has them. */
function mended(text: string): string {
  return text
    .replaceAll(/\/\/.*$/gm, '')
    .replaceAll(/([\]"}])(\s*\n\s*")/g, '$1,$2')
    .replaceAll(/,(\s*[}\]])/g, '$1')
    .replaceAll(/,,/g, ',')
}

/** What is printed, with texts that are ids or bytes as any text. */
function formOf(value: unknown): unknown {
  if (value === '') return /./
  if (Array.isArray(value)) return value.map(formOf)
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, formOf(member)]))
    : value
}

for (const [name, { requests, answers }] of Object.entries(SAMPLES)) {
  for (const [binding, open] of Object.entries(bindings)) {
    await t.test(`the printed samples of ${name} are held as a conversation over ${binding}`, async t => {
      const { runtime } = start(t, sailboat)
      const { url, close } = await serve(runtime, { port: 0, dialects: [dialect03(runtime), dialect01(runtime)] })
      t.teardown(close)
      const send = await open(t, url)
      let ids = { id: '', contextId: '' }
      for (const [i, printed] of requests.entries()) {
        const text = printed.replace('CONTEXT', ids.contextId).replace('TASK', ids.id)
        if (!isJson(text))
          t.match(await send(text), { id: null, error: { code: -32700 } }, 'the printed form is no JSON')
        const { id, result, error } = await send(mended(text))
        t.equal(error, undefined)
        t.match({ id, result }, { id: `req-00${i + 1}`, result: formOf(answers[i]) })
        t.equal(JSON.stringify(result).includes('"kind"'), JSON.stringify(answers[i]).includes('"kind"'))
        const task = result as { id: string; contextId: string }
        if (i > 0)
          t.strictSame([task.contextId, task.id === ids.id], [ids.contextId, false], 'a new task in the same context')
        ids = task
      }
    })
  }
}
