import { isObject } from '../../machines/protocol/codec/json.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import { WireRefusal, type WireCaller } from '../../adapters/conformance/callers/caller.ts'
import { until } from '../fixtures/runtime/runtime-helpers.ts'
import type { ActsTest, Members, RawRequest, Step } from './corpus.ts'
import { faultsOf, searchFaults, streamFaults, valuesAt } from './expectations.ts'

/** An agent under test on one binding. */
export interface Target {
  readonly caller: Pick<WireCaller, 'call' | 'stream'>
  readonly card: () => Promise<unknown>
  /** Sends a request as it is. */
  readonly raw: (request: RawRequest) => Promise<RawAnswer>
  /** What the corpus leaves to its runner: the address of a webhook, for example. */
  readonly variables: Members
  /** Lets the tasks go on that work until somebody has seen them at work. */
  readonly goOn: () => void
}

export interface RawAnswer {
  readonly status: number
  readonly body: unknown
  /** The events of a stream. */
  readonly events: readonly unknown[]
}

/** What came of a step: an answer, a stream, or an error. */
interface Outcome extends Partial<RawAnswer> {
  readonly error?: { readonly error_type: string; readonly message: string; readonly data: unknown }
}

const METHODS: Readonly<Record<string, OperationMethod>> = {
  send_message: 'SendMessage',
  send_streaming_message: 'SendStreamingMessage',
  get_task: 'GetTask',
  list_tasks: 'ListTasks',
  cancel_task: 'CancelTask',
  subscribe_to_task: 'SubscribeToTask',
  create_push_config: 'CreateTaskPushNotificationConfig',
  get_push_config: 'GetTaskPushNotificationConfig',
  list_push_configs: 'ListTaskPushNotificationConfigs',
  delete_push_config: 'DeleteTaskPushNotificationConfig'
}

/** Runs the steps of a test. Gives what is not as the test expects it, up to the first step with a fault. */
export async function runSteps(test: ActsTest, target: Target): Promise<readonly string[]> {
  const known = new Map(Object.entries({ ...test.variables, ...target.variables }))
  for (const written of test.steps) {
    const { assertions = [], ...rest } = written
    const step = filled(rest, known)
    const outcome = await (step.repeat ? repeated(step, step.repeat, target) : attempted(step, target))
    known.set(`${step.id}.response`, outcome.body)
    for (const [name, path] of Object.entries(step.capture ?? {}))
      known.set(`${step.id}.${name}`, valuesAt(outcome.body, path)[0])
    const faults = faultsIn(step, outcome)
    const found = faults.length > 0 ? faults : assertions.flatMap(search => searchFaults(filled(search, known)))
    if (found.length > 0) return found.map(fault => `${step.id}: ${fault}`)
  }
  return []
}

/** A value with its variables in place: `{{step.name}}`, `{{name}}` and `{{$uuid}}`. */
function filled<T>(value: T, known: ReadonlyMap<string, unknown>): T {
  return fill(value, known) as T
}

function fill(value: unknown, known: ReadonlyMap<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map(item => fill(item, known))
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, fill(member, known)]))
  if (typeof value !== 'string') return value
  const [whole, name] = /^\{\{([^{}]+)\}\}$/.exec(value) ?? []
  if (whole !== undefined && name !== undefined) return variable(name, known)
  return value.replaceAll(/\{\{([^{}]+)\}\}/g, (_, name: string) => String(variable(name, known)))
}

function variable(name: string, known: ReadonlyMap<string, unknown>): unknown {
  if (name === '$uuid') return crypto.randomUUID()
  if (known.has(name)) return known.get(name)
  throw new Error(`The test has no variable ${name}. It has ${[...known.keys()].join(', ')}.`)
}

/**
 * Repeats a step until its condition holds. Its waits are for agents that need time: this one goes on as soon as it was
 * seen at work.
 */
async function repeated(
  step: Step,
  { until: condition }: NonNullable<Step['repeat']>,
  target: Target
): Promise<Outcome> {
  return until(async () => {
    const outcome = await attempted(step, target)
    if (outcome.error || holds(condition, outcome.body)) return outcome
    if (valuesAt(outcome.body, 'status.state')[0] === 'TASK_STATE_WORKING') target.goOn()
    return false
  }, `${step.id}: ${condition}`)
}

/** Whether a condition such as `status.state in [A, B]` holds. */
function holds(condition: string, body: unknown): boolean {
  const [, path = '', sign, values = ''] = /^(\S+) (==|!=|in) (.+)$/.exec(condition) ?? []
  if (sign === undefined)
    throw new Error(`A condition is PATH == VALUE, PATH != VALUE or PATH in [VALUES], not ${condition}`)
  const isAmong = values
    .replaceAll(/[[\] ]/g, '')
    .split(',')
    .includes(String(valuesAt(body, path)[0]))
  return isAmong !== (sign === '!=')
}

async function attempted(step: Step, target: Target): Promise<Outcome> {
  if (step.raw) return target.raw(step.raw)
  try {
    return await operated(step, target)
  } catch (error) {
    if (!(error instanceof WireRefusal)) throw error
    const { message, details } = error
    return { error: { error_type: errorType(error), message, data: details } }
  }
}

/** The errors of A2A by their numbers (§5.4), which JSON-RPC has. */
const ERROR_TYPES: ReadonlyMap<string, string> = new Map([
  ['-32001', 'TaskNotFoundError'],
  ['-32002', 'TaskNotCancelableError'],
  ['-32003', 'PushNotificationNotSupportedError'],
  ['-32004', 'UnsupportedOperationError'],
  ['-32005', 'ContentTypeNotSupportedError']
])

/** The name of an error, from its number, or from the reason that other bindings give: `TASK_NOT_FOUND`. */
function errorType({ native, reason }: WireRefusal): string {
  if (/^-\d/.test(native)) return ERROR_TYPES.get(native) ?? native
  const words = String(reason).toLowerCase().split('_')
  return `${words.map(word => word.slice(0, 1).toUpperCase() + word.slice(1)).join('')}Error`
}

/** Calls the operation of a step. */
async function operated({ operation = '', params = {} }: Step, target: Target): Promise<Outcome> {
  if (operation === 'get_agent_card')
    return { body: params.extended === true ? await called('GetExtendedAgentCard', {}, target) : await target.card() }
  const method = METHODS[operation]
  if (!method) throw new Error(`ACTS has no operation ${operation}.`)
  if (method !== 'SendStreamingMessage' && method !== 'SubscribeToTask')
    return { body: await called(method, params, target) }
  const stream = target.caller.stream(method, params)
  const events: unknown[] = []
  for (let event = await stream.next(); event; event = await stream.next()) {
    events.push(event)
    target.goOn()
  }
  return { events }
}

async function called(method: OperationMethod, params: Members, { caller }: Target): Promise<unknown> {
  return (await caller.call(method, params)).result
}

/** What is not as a step expects it. */
function faultsIn(
  { expect, expect_error: expectedError, expect_stream: stream }: Step,
  outcome: Outcome
): readonly string[] {
  const { error, body, events, status } = outcome
  if (expectedError) return error ? faultsOf(expectedError, error, 'the error') : ['it was not refused']
  if (error) return [`it was refused: ${error.error_type}: ${error.message}`]
  return [
    ...(expect && 'status' in expect ? faultsOf(expect.status, status, 'the status') : []),
    ...(expect ? faultsOf(expect.body, body, 'the answer') : []),
    ...(stream ? streamFaults(stream, events ?? []) : [])
  ]
}
