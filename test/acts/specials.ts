import type { Test } from 'tap'
import type { Stream } from '../../adapters/conformance/callers/caller.ts'
import { schemaOf } from '../../adapters/conformance/emitted.ts'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import { until } from '../fixtures/runtime/runtime-helpers.ts'
import { refusalOf } from '../conformance/client.ts'
import type { ServedTarget } from './target.ts'

/** What a test leaves to its runner, which comes after its steps. */
export type Special = (t: Test, target: ServedTarget) => Promise<void>

/** What the tests that are tagged `runner-special` say in words alone. */
export const SPECIALS: Readonly<Record<string, Special>> = {
  'CARD-CACHE-001': async (t, { site }) => {
    const { headers } = await fetch(new URL(AGENT_CARD_PATH, site.url))
    t.match(headers.get('cache-control'), /max-age=\d+/)
    t.ok(headers.get('etag'))
  },
  'CARD-SCHEMA-001': async (t, { card }) => fits(t, 'GetExtendedAgentCard', await card()),
  'DM-SERIAL-002': async (t, target) => fits(t, 'SendMessage', await sent(target, 'tck-complete-task')),
  'REST-CT-001': async (t, { site }) => {
    // Other clients, such as a browser that shows an answer, get application/json.
    const terms = { 'a2a-version': '1.0', accept: 'application/a2a+json' }
    const { headers } = await fetch(`${site.addressOf('rest')}/tasks`, { headers: terms })
    t.equal(headers.get('content-type'), 'application/a2a+json')
  },
  'SEC-AUTH-003': revealsNothing,
  'CORE-ERR-009': revealsNothing,
  'SEC-PUSH-001': carriesCredentials,
  'PUSH-DELIV-001': carriesCredentials,
  'PUSH-DELIV-002': async (t, { site, got }) => {
    site.goOn()
    await until(() => got.length >= 2)
    const ids = got.map(({ headers }) => headers['taskchart-delivery-id'])
    t.equal(new Set(ids).size, ids.length, 'each update came once')
    t.match(got.at(-1)?.body, /TASK_STATE_COMPLETED/)
  },
  'PUSH-DELIV-003': async (t, { site, got }) => {
    site.goOn()
    await until(() => got.length >= 2)
    for (const { body } of got) fits(t, 'SendStreamingMessage', JSON.parse(body))
  },
  'STREAM-MULTI-001': async (t, target) => {
    const { streams } = await subscribed(target, 2)
    const [one, other] = streams
    target.goOn()
    const events = await restOf(one)
    t.strictSame(await restOf(other), events)
    t.ok(isCompleted(events.at(-1)))
  },
  'STREAM-MULTI-002': async (t, target) => {
    const { streams } = await subscribed(target, 2)
    const [left, stays] = streams
    left?.leave()
    target.goOn()
    t.ok(isCompleted((await restOf(stays)).at(-1)))
  },
  'STREAM-RESUB-001': async (t, target) => {
    const { id, streams } = await subscribed(target, 1)
    streams[0]?.leave()
    const again = target.caller.stream('SubscribeToTask', { id })
    t.ok(await again.next())
    target.goOn()
    t.ok(isCompleted((await restOf(again)).at(-1)))
  }
}

/** Tests with that tag whose steps say all that there is. */
export const STEPS_SAY_ALL: readonly string[] = [
  'CORE-CTX-001',
  'SEC-AUTH-001',
  'SEC-AUTH-002',
  'SEC-AUTH-004',
  'SEC-AUTH-006',
  'SEC-EXTCARD-001',
  'SEC-EXTCARD-002',
  'SEC-EXTCARD-004'
]

/** What is left out, with its reason. The steps of these tests run. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  'SEC-PUSH-002': 'The receiver of a webhook refuses posts with other credentials. That is an app, not taskchart',
  'CLIENT-AUTH-001':
    "The client goes on with the extended card. taskchart's client gives it to its caller, and stays with the public card"
}

/** Whether a value has all that A2A requires, and nothing else. */
function fits(t: Test, method: OperationMethod, value: unknown): void {
  t.strictSame(tryDecode(schemaOf({ method }), value).violations ?? [], [])
}

async function sent({ caller }: ServedTarget, text: string): Promise<unknown> {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] }
  return (await caller.call('SendMessage', { message, configuration: { returnImmediately: true } })).result
}

/** A task of somebody else is refused as one that does not exist. */
async function revealsNothing(t: Test, { caller, variables }: ServedTarget): Promise<void> {
  const [foreign, missing] = [String(variables.otherUserTaskId), 'no-such-task']
  const refusals = await Promise.all([foreign, missing].map(id => refusalOf(caller.call('GetTask', { id }))))
  const [one, other] = refusals.map(({ message, native, details }) => ({ message, native, details }))
  t.strictSame(JSON.parse(JSON.stringify(one).replaceAll(foreign, missing)), JSON.parse(JSON.stringify(other)))
}

async function carriesCredentials(t: Test, { site, got }: ServedTarget): Promise<void> {
  site.goOn()
  await until(() => got[0])
  t.equal(got[0]?.headers.authorization, 'Bearer test-token')
}

/** Opens a long-running task, and streams of it, each after its first event. */
async function subscribed(target: ServedTarget, count: number): Promise<{ id: string; streams: Stream[] }> {
  const { task } = (await sent(target, 'tck-long-running')) as { task: { id: string } }
  const streams = Array.from({ length: count }, () => target.caller.stream('SubscribeToTask', { id: task.id }))
  for (const stream of streams) await stream.next()
  return { id: task.id, streams }
}

async function restOf(stream: Stream | undefined): Promise<StreamResponse[]> {
  const events: StreamResponse[] = []
  for (let event = await stream?.next(); event; event = await stream?.next()) events.push(event)
  return events
}

function isCompleted(event: StreamResponse | undefined): boolean {
  return event !== undefined && 'statusUpdate' in event && event.statusUpdate.status.state === 'TASK_STATE_COMPLETED'
}
