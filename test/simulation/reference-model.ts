import type { Task } from '../../machines/protocol/objects.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import { textOf } from '../../runtime/authoring/words.ts'
import type { TaskEvent } from '../../runtime/store/store.ts'
import type { LedgerTask } from './ledger.ts'
import { scriptOf, type Op } from './script.ts'

/** What the model has to know of the world beside a task's messages. */
export interface Circumstances {
  readonly messages: 'reject' | 'queue'
  readonly negotiates: boolean
  /** How often the outside was asked for the effect at a place in the task's script. */
  readonly effectsAt: (at: number) => number
  /** What was sent as an authorization for the task. */
  readonly authorizations: ReadonlySet<string>
}

/** What becomes of a task by itself. */
export interface Course {
  /** Its events, as {@link brief} has them. */
  readonly events: readonly string[]
  /** Where it waits for its client, if it does. */
  readonly waits: boolean
  /** Which of its events may come no earlier than some time after the one before, in milliseconds. */
  readonly notBefore: ReadonlyMap<number, number>
}

/** A task's event in one line: all of it but ids and times. */
export function brief({ update }: Pick<TaskEvent, 'update'>): string {
  if ('statusUpdate' in update) {
    const { state, message } = update.statusUpdate.status
    return `${state.slice('TASK_STATE_'.length)}${message ? ` ${textOf(message)}` : ''}`
  }
  const { artifact, append = false, lastChunk = false } = update.artifactUpdate
  return `artifact ${artifact.artifactId} ${textOf(artifact)}${append ? ' appended' : ''}${lastChunk ? ' last' : ''}`
}

/**
 * The whole of A2A as far as these agents use it: what events a task has, given the messages that it took and met.
 * Where more than one thing may rightly be told (the number of a try, an authorization), what was told decides, if it
 * may be.
 */
export function courseOf(
  { events: told, messages: [opening, ...messages] }: LedgerTask,
  circumstances: Circumstances
): Course {
  const events = ['SUBMITTED']
  const notBefore = new Map<number, number>()
  const left = [...messages]
  const toldNow = () => {
    const event = told[events.length]
    return event ? brief(event) : ''
  }
  const take = (wanted: (met: number) => boolean) => {
    const index = left.findIndex(({ met }) => wanted(met))
    return index < 0 ? undefined : left.splice(index, 1)[0]
  }
  const end = (waits: boolean): Course => ({ events, waits, notBefore })
  const script = opening ? textOf(opening.message) : ''
  if (circumstances.negotiates && script === 'no') return (events.push('REJECTED not that'), end(false))
  events.push('WORKING')
  for (const [at, op] of opsOf(script).entries()) {
    switch (op.kind) {
      case 'progress':
        events.push(`WORKING p@${at}`)
        break
      case 'chunks':
        for (let k = 0; k < op.count; k += 1)
          events.push(`artifact a@${at} ${k}${k > 0 ? ' appended' : ''}${k === op.count - 1 ? ' last' : ''}`)
        break
      case 'hurry':
      case 'question': {
        const said = op.kind === 'hurry' ? `h@${at}` : `q@${at}`
        const early = circumstances.messages === 'queue' ? take(met => met <= events.length) : undefined
        if (early) {
          events.push(`WORKING ${said}: ${textOf(early.message)}`)
          break
        }
        events.push(`INPUT_REQUIRED ${said}`)
        const answer = take(met => met === events.length)
        if (!answer && op.kind === 'question') return end(true)
        if (!answer && 'ms' in op) notBefore.set(events.length, op.ms)
        events.push('WORKING', `WORKING ${said}: ${answer ? textOf(answer.message) : 'late'}`)
        break
      }
      case 'login': {
        events.push(`AUTH_REQUIRED u@${at}`)
        const answer = take(met => met === events.length)
        const isGiven = told.length > events.length && told[events.length] !== undefined && toldNow() === 'WORKING'
        if (!answer && !isGiven) return end(true)
        events.push('WORKING')
        const data = toldNow().slice(`WORKING u@${at}: data `.length)
        events.push(
          `WORKING u@${at}: ${answer ? `message ${textOf(answer.message)}` : `data ${circumstances.authorizations.has(data) ? data : '?'}`}`
        )
        break
      }
      case 'effect': {
        const attempt = Number(toldNow().slice(`WORKING e@${at}: `.length))
        events.push(`WORKING e@${at}: ${attempt >= 1 && attempt <= circumstances.effectsAt(at) ? attempt : '?'}`)
        break
      }
      case 'sleep':
        notBefore.set(events.length, op.ms)
        events.push(`WORKING z@${at}`)
        break
      case 'busy':
        break
      case 'throw':
        return (events.push('FAILED The work ended with an error.'), end(false))
      case 'fail':
        return (events.push(`FAILED f@${at}`), end(false))
      case 'reject':
        return (events.push(`REJECTED r@${at}`), end(false))
    }
  }
  events.push('artifact result result last', 'COMPLETED done')
  return end(false)
}

/** What is seen of a task at a generation: its state, what that says, and each artifact's text. */
export function seenAt({ events }: LedgerTask, generation: number): string {
  let status = ''
  let state: TaskState | undefined
  const artifacts = new Map<string, string[]>()
  for (const { update } of events.filter(event => event.generation <= generation)) {
    if ('statusUpdate' in update) {
      state = update.statusUpdate.status.state
      status = statusText(update.statusUpdate.status)
    } else {
      const { artifact, append } = update.artifactUpdate
      const before = append ? (artifacts.get(artifact.artifactId) ?? []) : []
      artifacts.set(artifact.artifactId, [...before, textOf(artifact)])
    }
  }
  return JSON.stringify([state, status, [...artifacts].map(([id, parts]) => [id, parts.join('\n')])])
}

/** The same of a task as a client sees it. */
export function seenOf({ status, artifacts = [] }: Task): string {
  return JSON.stringify([
    status.state,
    statusText(status),
    artifacts.map(artifact => [artifact.artifactId, textOf(artifact)])
  ])
}

function statusText({ message, timestamp = '' }: Task['status']): string {
  return `${timestamp} ${message ? textOf(message) : ''}`
}

/**
 * Compares a task with its course, when all is quiet. `early`: how much two clocks may differ, in milliseconds. Gives
 * what is wrong.
 */
export function departureFrom(
  { events, notBefore, waits }: Course,
  task: LedgerTask,
  may: { readonly cancel: boolean; readonly break: boolean; readonly early: number }
): string | undefined {
  const told = task.events.map(brief)
  const last = told.at(-1) ?? ''
  const early = [...notBefore].find(
    ([index, ms]) =>
      told[index] === events[index] && timeOf(task.events[index]) - timeOf(task.events[index - 1]) < ms - may.early
  )
  if (early) return `event ${early[0] + 1} came too early`
  const isWhole = (count: number) => told.slice(0, count).every((event, index) => event === events[index])
  if (last === 'CANCELED')
    return isWhole(told.length - 1)
      ? may.cancel
        ? undefined
        : 'nobody has canceled it'
      : `it is not ${events.join(', ')}`
  if (may.break && last === 'FAILED The work ended with an error.' && isWhole(told.length - 1)) return undefined
  if (told.length !== events.length || !isWhole(told.length)) return `it is not ${events.join(', ')}`
  if (task.state && isTerminal(task.state) === waits) return `it ${waits ? 'has ended' : 'does not go on'}`
  return undefined
}

function opsOf(said: string): readonly Op[] {
  try {
    return scriptOf(said)
  } catch {
    return [{ kind: 'throw' }]
  }
}

function timeOf(event: TaskEvent | undefined): number {
  return event && 'statusUpdate' in event.update ? Date.parse(event.update.statusUpdate.status.timestamp ?? '') : NaN
}
