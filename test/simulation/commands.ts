import * as fc from 'fast-check'
import type { ListTasksResponse, Message } from '../../machines/protocol/objects.ts'
import type { Conditions } from '../../runtime/access/call-context.ts'
import type { Client } from './client.ts'
import type { SimulatedCluster } from './cluster/cluster.ts'
import type { Expectation, Request, Requests } from './requests.ts'
import { textOfScript, type Op } from './script.ts'
import type { World } from './world.ts'

export type Command = fc.AsyncCommand<Requests, World>

/** What people do with the agent of a world, and what happens to it, in any order. */
export const commands: readonly fc.Arbitrary<Command>[] = (() => {
  const client = fc.nat({ max: 2 })
  const which = fc.nat({ max: 7 })
  const op: fc.Arbitrary<Op> = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<Op>({ kind: 'progress' }, { kind: 'effect' }) },
    { weight: 4, arbitrary: fc.constantFrom<Op>({ kind: 'question' }, { kind: 'question' }, { kind: 'login' }) },
    { weight: 1, arbitrary: fc.constantFrom<Op>({ kind: 'throw' }, { kind: 'fail' }, { kind: 'reject' }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('chunks' as const), count: fc.integer({ min: 1, max: 4 }) })
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom('sleep' as const, 'busy' as const, 'hurry' as const),
        ms: fc.integer({ min: 1, max: 400 })
      })
    }
  )
  const said = fc.oneof(
    { weight: 10, arbitrary: fc.array(op, { maxLength: 6 }).map(textOfScript) },
    { weight: 1, arbitrary: fc.constantFrom('hello', 'no') }
  )
  const context = fc.option(fc.nat({ max: 2 }), { nil: undefined })
  const match = fc.constantFrom('any' as const, 'any' as const, 'any' as const, 'seen' as const, 'wrong' as const)
  const fates = fc.array(
    fc.constantFrom(
      'written' as const,
      'fails before' as const,
      'fails after' as const,
      'kills before' as const,
      'kills after' as const
    ),
    { minLength: 1, maxLength: 3 }
  )
  const ms = fc.oneof(fc.nat({ max: 80 }), fc.nat({ max: 3000 }))

  return [
    ...often(
      5,
      fc
        .record({ client, said, context, isStream: fc.boolean(), isQuick: fc.boolean() })
        .map(given => command('open', given, openTask))
    ),
    ...often(
      6,
      fc
        .record({ client, which, match, isStream: fc.boolean() })
        .map(given => command('answer', given, answer, given.client))
    ),
    ...often(
      2,
      fc
        .record({ client, which, isOther: fc.nat({ max: 4 }).map(n => n === 0) })
        .map(given => command('sendAgain', given, sendAgain))
    ),
    ...often(
      2,
      fc
        .record({ client, which, cursor: fc.option(which, { nil: undefined }) })
        .map(given => command('subscribe', given, subscribe, given.client))
    ),
    ...often(
      2,
      fc.record({ client, which, isLong: fc.boolean() }).map(given => command('get', given, get, given.client))
    ),
    ...often(
      1,
      fc.record({ client, pageSize: fc.integer({ min: 1, max: 3 }) }).map(given => command('list', given, list))
    ),
    ...often(
      1,
      fc.record({ client, which, match }).map(given => command('cancel', given, cancel, given.client))
    ),
    ...often(
      2,
      fc.record({ client, which }).map(given => command('authorize', given, authorize, given.client))
    ),
    ...often(
      1,
      fc.record({ which }).map(given => command('spy', given, spy, 0))
    ),
    ...often(
      4,
      fc.record({ ms }).map(given => command('pass', given, (world, { ms }) => world.pass(ms)))
    ),
    ...often(
      1,
      fc.record({ which }).map(given => command('cut', given, (world, { which }) => world.cut(which)))
    ),
    ...often(
      1,
      fc
        .record({ client, which })
        .map(given => command('leave', given, (world, { client, which }) => world.client(client).leave(which)))
    ),
    ...often(
      1,
      fc.record({ fates }).map(given => command('trouble', given, (world, { fates }) => world.trouble(fates)))
    ),
    ...often(
      1,
      fc.record({ ms }).map(given => command('kill', given, (world, { ms }) => world.kill(ms)))
    ),
    ...often(
      1,
      fc.record({ ms }).map(given => command('restart', given, (world, { ms }) => world.restart(ms)))
    )
  ]
})()

/** What else happens to several nodes. */
export const clusterCommands: readonly fc.Arbitrary<Command>[] = (() => {
  const ms = fc.oneof(fc.nat({ max: 3000 }), fc.nat({ max: 12_000 }))
  const happens = (name: string, run: (cluster: SimulatedCluster, ms: number) => void) =>
    fc.record({ ms }).map(given => command(name, given, ({ cluster }, { ms }) => cluster && run(cluster, ms)))
  return [
    // People do more than breaks.
    ...commands,
    ...commands,
    ...often(
      2,
      happens('hang', (cluster, ms) => cluster.hang(ms))
    ),
    ...often(
      2,
      happens('part', (cluster, ms) => cluster.part(ms))
    ),
    ...often(
      1,
      fc
        .record({ ms: fc.nat({ max: 45_000 }) })
        .map(given => command('partForLong', given, ({ cluster }, { ms }) => cluster?.part(ms)))
    ),
    ...often(
      1,
      happens('partNodes', (cluster, ms) => cluster.partNodes(ms))
    ),
    ...often(
      1,
      happens('crash', (cluster, ms) => cluster.crash(ms))
    ),
    ...often(
      1,
      happens('endSession', cluster => cluster.endSession())
    ),
    ...often(
      1,
      happens('unlock', cluster => cluster.unlock())
    ),
    ...often(
      1,
      happens('cutLink', cluster => cluster.cutLink())
    ),
    ...often(
      1,
      happens('resize', cluster => cluster.resize())
    ),
    ...often(
      2,
      fc.record({ ms: fc.nat({ max: 6000 }) }).map(given => command('pass', given, (world, { ms }) => world.pass(ms)))
    )
  ]
})()

/** Commands are chosen with equal chances: this one is there several times. */
function often(times: number, one: fc.Arbitrary<Command>): fc.Arbitrary<Command>[] {
  return Array.from({ length: times }, () => one)
}

/** A command that shows what it was given. One for a `client` waits until that knows a task. */
function command<Given>(
  name: string,
  given: Given,
  run: (world: World, given: Given) => unknown,
  client?: number
): Command {
  return {
    check: requests => client === undefined || requests.tasksOf(client === 2 ? 'bob' : 'alice').length > 0,
    run: async (_, world) => {
      await run(world, given)
      await world.moment()
    },
    toString: () => `${name} ${JSON.stringify(given)}`
  }
}

function messageOf(world: World, { principal }: Client, text: string, more: Partial<Message>): Message {
  const message: Message = { messageId: world.messageId(), role: 'ROLE_USER', parts: [{ text }], ...more }
  world.sent.push({ principal, message })
  return message
}

function taskOf(world: World, client: number, which: number): string {
  const tasks = world.requests.tasksOf(world.client(client).principal)
  return tasks[which % tasks.length] as string
}

function openTask(
  world: World,
  {
    client,
    said,
    context,
    isStream,
    isQuick
  }: { client: number; said: string; context: number | undefined; isStream: boolean; isQuick: boolean }
): void {
  const from = world.client(client)
  const message = messageOf(world, from, said, context === undefined ? {} : { contextId: `ctx-${context}` })
  deliver(from, message, { codes: [], message }, {}, isStream, isQuick)
}

function authorize(world: World, { client, which }: { client: number; which: number }): void {
  world.authorize(world.client(client).principal, taskOf(world, client, which))
}

function answer(
  world: World,
  {
    client,
    which,
    match,
    isStream
  }: { client: number; which: number; match: 'any' | 'seen' | 'wrong'; isStream: boolean }
): void {
  const from = world.client(client)
  const taskId = taskOf(world, client, which)
  const message = messageOf(world, from, `answer ${world.sent.length}`, { taskId })
  const isRefused = match === 'wrong'
  const conditions = conditionsOf(world, from, taskId, match)
  const codes = [
    'UnsupportedOperation',
    ...(match === 'any' ? [] : ['TaskGenerationMismatch']),
    ...(world.config.messages === 'queue' ? ['RateLimited'] : [])
  ]
  deliver(
    from,
    message,
    { codes, message, taskId, isRefused, ifGeneration: conditions.ifGenerationMatch },
    conditions,
    isStream,
    false
  )
}

function sendAgain(
  world: World,
  { client, which, isOther }: { client: number; which: number; isOther: boolean }
): void {
  const from = world.client(client)
  const own = world.sent.filter(({ principal }) => principal === from.principal)
  const first = own[which % own.length]?.message
  if (!first) return
  world.repeated.add(first.messageId)
  if (isOther) world.contested.add(first.messageId)
  const message: Message = isOther ? { ...first, parts: [{ text: 'another' }] } : first
  // Either may come first.
  const codes = ['UnsupportedOperation', 'RateLimited', 'IdempotencyConflict', 'TaskGenerationMismatch']
  deliver(from, message, { codes, message }, {}, false, true)
}

function deliver(
  from: Client,
  message: Message,
  expectation: Expectation,
  conditions: Conditions,
  isStream: boolean,
  isQuick: boolean
): Request {
  if (isStream)
    return from.stream('SendStreamingMessage', { message }, conditions, {
      ...expectation,
      codes: [...expectation.codes, 'left']
    })
  return from.send({ message, ...(isQuick && { configuration: { returnImmediately: true } }) }, conditions, expectation)
}

function subscribe(
  world: World,
  { client, which, cursor }: { client: number; which: number; cursor: number | undefined }
): void {
  const from = world.client(client)
  const taskId = taskOf(world, client, which)
  if (cursor === undefined)
    return void from.stream('SubscribeToTask', { id: taskId }, {}, { taskId, codes: ['UnsupportedOperation', 'left'] })
  const after = cursor % (world.requests.seen(from.principal, taskId) + 1)
  from.stream('SubscribeToTask', { id: taskId }, { afterGeneration: after }, { taskId, after, codes: ['left'] })
}

function get(world: World, { client, which, isLong }: { client: number; which: number; isLong: boolean }): void {
  const from = world.client(client)
  const taskId = taskOf(world, client, which)
  from.getTask({ id: taskId }, isLong ? { currentGeneration: world.requests.seen(from.principal, taskId) } : {}, {
    taskId,
    codes: []
  })
}

/** Reads all pages of the list: no task twice, and none left out that was there before. */
function list(world: World, { client, pageSize }: { client: number; pageSize: number }): void {
  const from = world.client(client)
  const listed = new Set<string>()
  // One that moves meanwhile goes to the front, and may be missed.
  const known = world.still(from.principal)
  const ask = (pageToken?: string) =>
    from.list({ pageSize, ...(pageToken && { pageToken }) }, { codes: [], isBrief: true }, turn)
  const turn = (_: Request, { tasks, nextPageToken }: ListTasksResponse) => {
    for (const { id } of tasks) listed.add(id)
    const still = new Set(world.still(from.principal))
    if (nextPageToken) ask(nextPageToken)
    else
      world.listed.push({
        principal: from.principal,
        listed: [...listed],
        known: known.filter(task => still.has(task)).map(task => String(task.split(' ')[0]))
      })
  }
  ask()
}

function cancel(
  world: World,
  { client, which, match }: { client: number; which: number; match: 'any' | 'seen' | 'wrong' }
): void {
  const from = world.client(client)
  const taskId = taskOf(world, client, which)
  world.canceled.add(taskId)
  const codes = ['TaskNotCancelable', ...(match === 'any' ? [] : ['TaskGenerationMismatch'])]
  from.cancel({ id: taskId }, conditionsOf(world, from, taskId, match), { taskId, codes, isRefused: match === 'wrong' })
}

/** Bob tries everything upon a task of Alice's. */
function spy(world: World, { which }: { which: number }): void {
  const id = taskOf(world, 0, which)
  const bob = world.client(2)
  const never = { codes: ['TaskNotFound', 'left'], isRefused: true }
  bob.getTask({ id }, {}, never)
  bob.cancel({ id }, {}, never)
  bob.stream('SubscribeToTask', { id }, {}, never)
  bob.send(
    { message: { messageId: world.messageId(), role: 'ROLE_USER', parts: [{ text: 'for me' }], taskId: id } },
    {},
    never
  )
}

function conditionsOf(
  world: World,
  { principal }: Client,
  taskId: string,
  match: 'any' | 'seen' | 'wrong'
): { readonly ifGenerationMatch?: number } {
  const seen = world.requests.seen(principal, taskId)
  return match === 'any' ? {} : { ifGenerationMatch: match === 'seen' ? seen : seen + 1000 }
}
