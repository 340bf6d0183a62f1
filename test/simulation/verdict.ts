import { isTerminal } from '../../machines/protocol/states.ts'
import { textOf } from '../../runtime/authoring/words.ts'
import { entriesOf, type LedgerTask } from './ledger.ts'
import { brief, courseOf, departureFrom, seenAt, seenOf, type Circumstances } from './reference-model.ts'
import { codeOf, type Request } from './requests.ts'
import type { World } from './world.ts'

/** What a client says of a request that it cannot send again: to this agent, which is reliable, it always can. */
const CUT_OFF = /It is unknown whether the agent received it/

/** What a node says of a request that it cannot send to another node again. */
const UNKNOWN = /It is unknown whether the request was carried out/

/**
 * Holds a world in which all is quiet against the model: every task, every request, and all that was ever seen.
 * `isOver`: every task has ended by now, so that nothing is to be waited for any more.
 */
export function judge(world: World, { isOver }: { readonly isOver: boolean }): void {
  for (const task of world.ledger.tasks.values()) judgeTask(world, task)
  for (const request of world.requests.all) {
    if (isOver || request.outcome) judgeRequest(world, request)
    else judgePending(world, request)
  }
  judgeLists(world)
  judgeSights(world)
  judgeMessages(world)
  world.violations.check()
}

function judgeTask(world: World, task: LedgerTask): void {
  const { config, violations, outside, authorizations, canceled } = world
  const { taskId } = task
  const circumstances: Circumstances = {
    messages: config.messages,
    negotiates: config.negotiates,
    effectsAt: at => outside.effectsOf(taskId, at).keys.length,
    authorizations: authorizations.get(taskId) ?? new Set()
  }
  const wrong = departureFrom(courseOf(task, circumstances), task, {
    cancel: canceled.has(taskId),
    break: config.readFaults > 0,
    early: world.cluster?.inexactMs ?? 0
  })
  if (wrong)
    violations.add(
      `${taskId} (${config.work}) is ${task.events.map(brief).join(', ')}; ${wrong}; its messages: ${JSON.stringify(task.messages)}`
    )
  for (let at = 0; at < 20; at += 1) {
    const keys = new Set(outside.effectsOf(taskId, at).keys)
    if (keys.size > 1)
      violations.add(`I7: the effect at ${at} of ${taskId} was asked for as ${[...keys].join(' and ')}`)
  }
}

function judgeRequest(
  { config, ledger, violations, pending, isTroubled, contested, repeated }: World,
  request: Request
): void {
  const { number, what, codes, outcome, heard, message } = request
  if (!outcome) return violations.add(`I11: request ${number} (${what}) has no outcome; ${pending.length} are pending`)
  if ('error' in outcome) {
    const code = codeOf(outcome.error)
    if (message && UNKNOWN.test(String(outcome.error)))
      violations.add(`I11: request ${number} (${what}) has an unknown outcome, and a node could have sent it again`)
    if (CUT_OFF.test(String(outcome.error)))
      violations.add(`I11: request ${number} (${what}) was cut off, and the client did not go on with it`)
    const allowed = [
      ...codes,
      ...(isTroubled ? ['Overloaded'] : []),
      ...(config.liveContexts < 10 ? ['RateLimited'] : []),
      ...(config.readFaults > 0 ? ['InternalError'] : []),
      ...(message && contested.has(message.messageId) ? ['IdempotencyConflict'] : [])
    ]
    if (!allowed.includes(code)) violations.add(`request ${number} (${what}) gets ${code}: ${String(outcome.error)}`)
    return
  }
  if (request.isRefused && !(message && repeated.has(message.messageId)))
    return violations.add(
      `I10: request ${number} (${what}) had to be refused, and is answered with ${JSON.stringify(outcome.result)}`
    )
  if (typeof heard === 'object') {
    const { events } = ledger.tasks.get(heard.taskId) ?? { events: [] }
    const states = events
      .filter(({ generation }) => generation <= heard.generation)
      .flatMap(({ update }) => ('statusUpdate' in update ? [update.statusUpdate.status.state] : []))
    const state = states.at(-1)
    const isAtEnd =
      state && (isTerminal(state) || (what.startsWith('SendStreaming') && state === 'TASK_STATE_INPUT_REQUIRED'))
    if (!isAtEnd)
      violations.add(`I3: the stream of ${number} (${what}) ended at generation ${heard.generation}, ${state}`)
  }
  const taskId = taskOf(request)
  if (!message || taskId === undefined) return
  const rows = ledger.tasks.get(taskId)?.messages ?? []
  const row = rows.find(row => row.message.messageId === message.messageId && textOf(row.message) === textOf(message))
  if (!row) violations.add(`I1: ${message.messageId} was acknowledged with ${taskId}, and is lost`)
  // A message with a condition is the next entry after the one that its client had seen.
  const { ifGeneration } = request
  if (row && ifGeneration !== undefined && row.generation !== ifGeneration + 1 && !repeated.has(message.messageId))
    violations.add(`I10: ${message.messageId} was for generation ${ifGeneration}, and has ${row.generation}`)
}

/** In a quiet world every task waits or has ended, so that only streams are open, and they have told all. */
function judgePending({ ledger, violations }: World, { number, what, heard }: Request): void {
  if (typeof heard !== 'object') return violations.add(`I11: request ${number} (${what}) gets no answer`)
  const newest = ledger.tasks.get(heard.taskId)?.events.at(-1)?.generation ?? 0
  if (heard.generation < newest)
    violations.add(`I3: the stream of ${number} (${what}) stays at generation ${heard.generation} of ${newest}`)
}

/** The task with which a message was acknowledged. */
function taskOf({ outcome, heard }: Request): string | undefined {
  if (typeof heard === 'object') return heard.taskId
  const result = outcome && 'result' in outcome ? (outcome.result as { readonly task?: { readonly id: string } }) : {}
  return result.task?.id
}

function judgeSights({ requests, ledger, violations }: World): void {
  for (const { request, task, generation } of requests.sights) {
    const truth = ledger.tasks.get(task.id)
    if (!truth || truth.key.principal !== request.principal)
      violations.add(
        `I10: request ${request.number} (${request.what}) sees ${task.id}, which ${truth ? 'is not its own' : 'does not exist'}`
      )
    else if (generation > entriesOf(truth))
      violations.add(`I4: request ${request.number} sees ${task.id} at generation ${generation} of ${entriesOf(truth)}`)
    else {
      const [is, seen] = [seenAt(truth, generation), seenOf(task)]
      if (request.isBrief ? JSON.parse(is)[0] !== JSON.parse(seen)[0] : is !== seen)
        violations.add(
          `request ${request.number} (${request.what}) sees ${task.id} at ${generation} as ${seen}, and it was ${is}`
        )
      const met = truth.messages
        .filter(message => message.generation <= generation)
        .map(({ message }) => message.messageId)
      const shown = (task.history ?? []).filter(({ role }) => role === 'ROLE_USER').map(({ messageId }) => messageId)
      if (!request.isBrief && met.join() !== shown.join())
        violations.add(
          `I1: request ${request.number} (${request.what}) sees ${task.id} at ${generation} with ${shown.join()} and not ${met.join()}`
        )
    }
  }
  for (const { request, taskId, generation, after, event } of requests.streamed) {
    const { events = [] } = ledger.tasks.get(taskId) ?? {}
    const truth = events.find(event => event.generation > after)
    if (truth && truth.generation < generation)
      violations.add(
        `I3: the stream of ${request.number} (${request.what}) goes from ${after} of ${taskId} to ${generation}, and leaves ${truth.generation} out`
      )
    if (!truth || brief(truth) !== brief({ update: event as never }))
      violations.add(
        `I4: request ${request.number} hears ${JSON.stringify(event)}, which is not event ${generation} of ${taskId}`
      )
  }
}

function judgeMessages({ ledger, violations }: World): void {
  const places = new Map<string, string>()
  for (const { key, taskId, messages } of ledger.tasks.values()) {
    for (const { message } of messages) {
      const name = `${key.principal} ${message.messageId}`
      if (places.has(name)) violations.add(`I6: the message ${name} is in ${places.get(name)} and in ${taskId}`)
      places.set(name, taskId)
    }
  }
}

function judgeLists({ listed, ledger, violations }: World): void {
  for (const { principal, listed: tasks, known } of listed) {
    const missing = known.filter(taskId => !tasks.includes(taskId))
    const foreign = tasks.filter(taskId => ledger.tasks.get(taskId)?.key.principal !== principal)
    if (missing.length > 0) violations.add(`I1: a list of ${principal} leaves ${missing.join()} out`)
    if (foreign.length > 0) violations.add(`I10: a list of ${principal} shows ${foreign.join()}`)
  }
}
