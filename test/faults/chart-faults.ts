import type { Fault } from './fault.ts'

const TASK = 'machines/task.machine.ts'
const CONTEXT = 'machines/context.machine.ts'
const NEGOTIATION = 'machines/negotiation.machine.ts'

/** Faults of our charts, and of the tables beside them. */
export const chartFaults: readonly Fault[] = [
  { name: 'a cancel does not cancel', file: TASK, find: `'task.cancel': 'canceled',`, replace: `'task.cancel': {},` },
  {
    name: 'failed work completes its task',
    file: TASK,
    find: `{ guard: { type: 'isFailure', params: ({ event }) => event.output }, target: '#task.failed' },`,
    replace: ''
  },
  {
    name: 'an answer is not passed on',
    file: TASK,
    find: `on: { 'message.received': { actions: forward() }, 'work.resumed': 'working' }`,
    replace: `on: { 'work.resumed': 'working' }`
  },
  {
    name: 'of queued messages the newest is delivered first',
    file: TASK,
    find: 'const [next, ...queue] = context.queue',
    replace: 'const [next, ...queue] = context.queue.toReversed()'
  },
  {
    name: 'a late event opens a canceled task again',
    file: TASK,
    find: `canceled: { type: 'final', tags: 'terminal', entry: emitStatus('TASK_STATE_CANCELED') },`,
    replace: `canceled: { tags: 'terminal', entry: emitStatus('TASK_STATE_CANCELED'), on: { 'work.progressed': 'active', 'message.received': 'active' } },`
  },
  {
    name: 'a restart is not counted',
    file: 'machines/supervision.ts',
    find: 'return [...within(crash, restarts), crash.atMs]',
    replace: 'return within(crash, restarts)'
  },
  {
    name: 'a context accepts one task too many',
    file: CONTEXT,
    find: 'return context.tasks.length < context.taskLimit',
    replace: 'return context.tasks.length <= context.taskLimit'
  },
  {
    name: 'an offer is accepted twice',
    file: NEGOTIATION,
    find: `'deal.made': { target: 'judging', actions: ['forgetOffers', 'goOn'] },`,
    replace: `'deal.made': { target: 'judging', actions: 'goOn' },`
  },
  {
    name: 'an offer is accepted at the moment it expires',
    file: NEGOTIATION,
    find: 'context.standing.expiresAtMs <= atHand(context).arrived.atMs',
    replace: 'context.standing.expiresAtMs < atHand(context).arrived.atMs'
  },
  {
    name: 'a deal has no terms',
    file: NEGOTIATION,
    find: `return { decision: 'accepted', terms: (context.standing as StandingOffer).terms }`,
    replace: `return { decision: 'accepted' }`
  },
  {
    name: 'an error has another code on the wire',
    file: 'machines/protocol/errors.ts',
    find: 'TaskNotCancelable: row(-32002',
    replace: 'TaskNotCancelable: row(-32004'
  },
  {
    name: 'half a surrogate pair is accepted',
    file: 'machines/protocol/codec/json.ts',
    unit: 'test/machines/protocol/protocol-json.test.ts',
    find: 'return value.isWellFormed() ?',
    replace: 'return value !== undefined ?'
  },
  {
    name: 'JSON may hold any number of values',
    file: 'machines/protocol/codec/json.ts',
    unit: 'test/machines/protocol/protocol-json.test.ts',
    find: 'nodes += frame.values.length',
    replace: 'nodes += 0'
  },
  {
    name: 'large JSON is parsed before its limits are checked',
    file: 'machines/protocol/codec/json.ts',
    unit: 'test/machines/protocol/protocol-json.test.ts',
    find: 'if (text.length <= SCANNED_LENGTH)',
    replace: 'if (text.length > 0)'
  }
]
