import { sayAtOnce, say, THREE_MEGABYTES, times } from './documents.ts'
import type { Lane, Attack } from './lane.ts'
import { textFrame, type Wire } from './wire.ts'

/** Attacks by well-formed requests for tasks. */
export const taskAttacks: Readonly<Record<string, Attack>> = {
  'one large task named 2,000 times': lane =>
    sends(lane, () => sayAtOnce('ask', `,"referenceTaskIds":[${times(2000, `"${lane.prey.large}"`)}]`)),
  'the largest tasks named': lane =>
    sends(lane, () =>
      sayAtOnce('ask', `,"referenceTaskIds":["${lane.prey.large}","${lane.prey.grown}","${lane.prey.foreign}"]`)
    ),
  '32 tasks named': lane =>
    sends(lane, () => sayAtOnce('hello', `,"referenceTaskIds":${JSON.stringify(some(lane, 32))}`)),
  'tasks of 3 MB that wait': lane => sends(lane, () => sayAtOnce('wait', THREE_MEGABYTES), 10),
  'tasks of 3 MB that ask': lane => sends(lane, () => sayAtOnce('ask', THREE_MEGABYTES), 10),
  'tasks of 3 MB in one context': lane =>
    sends(lane, () => sayAtOnce('hello', `,"contextId":"one"${THREE_MEGABYTES}`), 10),
  'tasks that never end': lane => sends(lane, () => sayAtOnce('wait'), 400),
  'tasks that sleep': lane => sends(lane, () => sayAtOnce('sleep'), 400),
  'tasks that ask': lane => sends(lane, () => sayAtOnce('ask'), 400),
  'tasks of one context': lane =>
    sends(lane, () => sayAtOnce('sleep', `,"contextId":"room-${lane.random.below(3)}"`), 400),
  'tasks that end at once': lane => sends(lane, () => say('hello'), 200),
  'tasks that throw': lane => sends(lane, () => say(lane.random.of(['throw', 'strange', 'deep 200', 'deep 5000'])), 50),
  'artifacts of 45 MiB': lane => sends(lane, () => sayAtOnce('grow 720'), 1),
  'tasks of 20,000 events': lane => sends(lane, () => sayAtOnce('tick 20000'), 2),
  'answers to a task that asks': lane => sends(lane, () => say('ask', `,"taskId":"${lane.prey.asking}"`), 50),
  'messages to a task that runs': lane => sends(lane, () => sayAtOnce('hello', `,"taskId":"${lane.prey.running}"`), 50),
  'the same message again': lane =>
    sends(
      lane,
      () =>
        `{"message":{"messageId":"again-${lane.random.below(3)}","role":"ROLE_USER","parts":[{"text":"hello ${lane.random.below(2)}"}]}}`,
      100
    ),
  cancels: lane => calls(lane, 'CancelTask', () => `{"id":"${one(lane)}"}`, 100),
  'tasks of another caller': lane =>
    calls(
      lane,
      lane.random.of(['GetTask', 'CancelTask', 'SubscribeToTask']),
      () => `{"id":"${lane.prey.foreign}"}`,
      100
    ),
  webhooks: lane =>
    calls(
      lane,
      'CreateTaskPushNotificationConfig',
      () =>
        `{"taskId":"${one(lane)}","id":"w-${lane.random.below(100)}","url":"${lane.random.of(['https://127.0.0.1:1/', 'https://[::1]/', 'http://localhost/', 'https://10.0.0.1/', 'file:///etc/passwd', 'https://[::ffff:127.0.0.1]/', 'https://2130706433/'])}"}`,
      100
    )
}

/** One of the tasks that were opened. */
export function one(lane: Lane): string {
  const { opened, asking } = lane.prey
  return opened.length === 0 ? asking : lane.random.of(opened)
}

function some(lane: Lane, count: number): string[] {
  return Array.from({ length: count }, () => one(lane))
}

function sends(lane: Lane, params: () => string, atOnce = 20): Promise<void> {
  return calls(lane, lane.random.of(['SendMessage', 'SendMessage', 'SendStreamingMessage']), params, atOnce)
}

/** Calls a method again and again, over WebSocket or HTTP, so many in each write. */
async function calls(lane: Lane, method: string, params: () => string, atOnce: number): Promise<void> {
  const isHttp = lane.random.below(3) === 0
  const wire = await (isHttp ? lane.connection() : lane.webSocket())
  const request = () => lane.request(method, params())
  const bytes = () => (isHttp ? lane.http('POST', '/', request()) : textFrame(request()))
  await again(lane, wire, () => Buffer.concat(Array.from({ length: atOnce }, bytes)))
}

/** Writes again and again until the lane has held long enough. */
export async function again(lane: Lane, wire: Wire, bytes: () => Buffer): Promise<void> {
  const until = performance.now() + lane.holdMs
  do {
    await wire.write(bytes(), lane.holdMs)
    await wire.hold(10)
  } while (!lane.isOver && !wire.isGone && performance.now() < until)
}
