import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import { failureReasonOf } from '../../../machines/task.machine.ts'
import { endedFor, toOutcome, toWorkEvent } from '../../../runtime/authoring/checked-words.ts'
import { promptedQuestion, reasonIn } from '../../../runtime/work-port.ts'
import type { ChartMove, Move, WorkTurn } from './moves.ts'

/** An event of a task for comparison: without generated ids and times. */
export type ComparedEvent =
  | { readonly state: TaskState; readonly message?: Content }
  | { readonly artifact: Content & { readonly artifactId?: string }; readonly append: boolean }

/** An event of a resumed stream. */
export type ResumedUpdate = Extract<StreamResponse, { statusUpdate: unknown } | { artifactUpdate: unknown }>

type Content = { readonly parts: readonly unknown[]; readonly [member: string]: unknown }

/** The events of a task before its chart acts. */
export const OPENED: readonly ComparedEvent[] = [{ state: 'TASK_STATE_SUBMITTED' }, { state: 'TASK_STATE_WORKING' }]

/** The events of a canceled task. */
export const CANCELED: readonly ComparedEvent[] = [{ state: 'TASK_STATE_CANCELED' }]

/** The events that a task must send after a turn, derived from the chart: it resumes, emits, asks, and ends. */
export function updatesAfter(turn: WorkTurn, before?: WorkTurn, move?: Move | ChartMove): ComparedEvent[] {
  return [...turn.passed, turn].flatMap((each, i, all) =>
    i === 0 ? updatesOfTurn(each, before, move) : updatesOfTurn(each, all[i - 1])
  )
}

function updatesOfTurn(turn: WorkTurn, before?: WorkTurn, move?: Move | ChartMove): ComparedEvent[] {
  if (turn.lastReceived) return []
  const fault = faultOf(turn)
  if (fault) return [{ state: 'TASK_STATE_FAILED', message: { parts: [{ text: failureReasonOf(fault.error) }] } }]
  const [was, is] = [before && questionOf(before.lastReceived ?? before), questionOf(turn)]
  const all = turn.words.map(updateOfWords)
  // An emitted status after an answer is visible even if the same question follows.
  const isAnswered = move?.type === 'message' || move?.type === 'authorization' || was?.words !== is?.words
  const goesOn = isAnswered && all.some(update => 'state' in update)
  const isResumed = was && (goesOn || was.key !== is?.key)
  // A task that waits for an answer drops progress.
  const visible = was && !isResumed ? all.filter(update => !('state' in update)) : all
  const resumed: ComparedEvent[] = isResumed ? [{ state: 'TASK_STATE_WORKING' }] : []
  const question = is && (goesOn || was?.key !== is.key || was.words !== is.words) ? [is.update] : []
  return [...resumed, ...visible, ...question, ...(turn.status === 'done' ? endOf(turn) : [])]
}

/** The error of the chart, or of its output. */
export function faultOf(turn: WorkTurn): { readonly error: unknown } | undefined {
  if (turn.status === 'error') return { error: turn.error }
  if (turn.status !== 'done') return undefined
  try {
    endOf(turn)
    return undefined
  } catch (error) {
    return { error }
  }
}

/** An event from a stream or a store, for comparison. `isOwn`: whether the author chose an artifact's id. */
export function comparedUpdate(response: ResumedUpdate, isOwn: (artifactId: string) => boolean): ComparedEvent {
  if ('artifactUpdate' in response) {
    const { artifact, append = false } = response.artifactUpdate
    const { artifactId, ...content } = artifact
    return { artifact: { ...content, ...(isOwn(artifactId) && { artifactId }) }, append }
  }
  const { state, message } = response.statusUpdate.status
  return { state, ...(message && { message: contentOf(message) }) }
}

/**
 * Events in which the first chunk of an artifact does not append: the runtime sends it so, and a restored chart may not
 * know.
 */
export function withFirstChunks(updates: readonly ComparedEvent[]): ComparedEvent[] {
  const known = new Set<string>()
  return updates.map(update => {
    if ('state' in update) return update
    const { artifactId } = update.artifact
    const append = update.append && artifactId !== undefined && known.has(artifactId)
    if (artifactId !== undefined) known.add(artifactId)
    return { ...update, append }
  })
}

function updateOfWords(words: unknown): ComparedEvent {
  const word = toWorkEvent(words)
  if (word.type === 'work.produced') return { artifact: word.artifact, append: word.append === true }
  return { state: 'TASK_STATE_WORKING', ...('message' in word && word.message && { message: word.message }) }
}

/** The question of the chart, as its task sends it. */
function questionOf({
  status,
  chart,
  asks
}: WorkTurn): { readonly key: string; readonly words: string; readonly update: ComparedEvent } | undefined {
  const question = status === 'active' ? promptedQuestion(chart, asks) : undefined
  if (!question || !('message' in question.event)) return undefined
  const { type, message } = question.event
  return {
    ...question,
    update: { state: type === 'work.asked' ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_AUTH_REQUIRED', message }
  }
}

function endOf(turn: WorkTurn): ComparedEvent[] {
  const tag = (['failed', 'rejected'] as const).find(tag => turn.chart.hasTag(tag))
  const outcome = tag ? endedFor(tag, reasonIn(turn.chart, tag)) : toOutcome(turn.output)
  const message = outcome.message && { message: outcome.message }
  if (outcome.state !== 'completed')
    return [{ state: outcome.state === 'failed' ? 'TASK_STATE_FAILED' : 'TASK_STATE_REJECTED', ...message }]
  return [
    ...outcome.artifacts.map(artifact => ({ artifact, append: false })),
    { state: 'TASK_STATE_COMPLETED', ...message }
  ]
}

/** A message without the members that the runtime adds. */
function contentOf({
  parts,
  metadata,
  extensions
}: {
  parts: readonly unknown[]
  metadata?: unknown
  extensions?: unknown
}): Content {
  return { parts, ...(metadata !== undefined && { metadata }), ...(extensions !== undefined && { extensions }) }
}
