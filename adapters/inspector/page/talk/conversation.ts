import { computed } from '@preact/signals'
import { offerIn, type Offer } from '../../../../machines/protocol/negotiation.ts'
import type { Artifact, Message, TaskStatus } from '../../../../machines/protocol/objects.ts'
import { isInterrupted, isPause, isTerminal, type TaskState } from '../../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../../runtime/store/store.ts'
import type { WatchedMessage } from '../../feed.ts'
import { moveOf } from '../../story/moments.ts'
import { lastGeneration, logs, shownTaskId, taskAt, type TaskLog } from '../agent/task-log.ts'
import { contextChanges, contexts, talk } from '../feed/known.ts'
import { contextId } from '../selection.ts'
import { generation, isNewest } from '../time-bar.tsx'
import { type Spoken, spoken } from './sending.ts'

/** A piece of the conversation. */
export type TalkItem =
  | { readonly kind: 'message'; readonly key: string; readonly message: Message; readonly taskId?: string }
  | Run
  | {
      readonly kind: 'question'
      readonly key: string
      readonly taskId: string
      readonly status: TaskStatus
      readonly isOpen: boolean
    }
  | { readonly kind: 'artifact'; readonly key: string; readonly taskId: string; readonly artifact: Artifact }

/** The events of a task between two messages. */
export interface Run {
  readonly kind: 'run'
  readonly key: string
  readonly taskId: string
  readonly events: TaskEvent[]
  state: TaskState
  /** Whether it is the task's last one. */
  isLast: boolean
}

/** The sources of a conversation. */
interface TalkSources {
  readonly logs: ReadonlyMap<string, TaskLog>
  readonly talk: readonly WatchedMessage[]
  readonly spoken: readonly Spoken[]
  /** Only what happened until a generation of a task. Default: everything. */
  readonly until?: { readonly taskId: string; readonly generation: number } | undefined
}

/** Something that happened at a time, in milliseconds since 1970. */
type Moment = { readonly atMs: number } & (
  | { readonly message: Message; readonly taskId?: string }
  | { readonly event: TaskEvent; readonly log: TaskLog }
)

/** The conversation of the chosen context, until the shown generation of the shown task. */
export const talkItems = computed(() => {
  const here = spoken.value.filter(({ message }) => message.contextId === contextId.value)
  const { value: id } = shownTaskId
  const until = isNewest.value || id === undefined ? undefined : { taskId: id, generation: generation.value }
  return talkItemsOf({ logs: logs.value, talk: talk.value, spoken: here, until })
})

/** The last offer of the chosen context that was neither declined nor followed by a task. */
export const lastOffer = computed(() => lastOfferIn(talkItems.value))

/** The id of the offer that stands in the chosen context: by the hub, or if it does not know, by the conversation. */
export const standingOfferId = computed(() => {
  void contextChanges.value
  const row = contexts.get(contextId.value ?? '')
  const [standing, last] = [row?.offer?.offerId, lastOffer.value?.offerId]
  if (!row) return last
  // The row and the messages come apart: until both have a new offer, the one before is not open any more.
  return last === undefined || standing === last ? standing : undefined
})

/** The conversation of a context: everything that was said and done in it, oldest first. */
export function talkItemsOf({ logs, talk, spoken, until }: TalkSources): TalkItem[] {
  const places = new Map(talk.map(said => [said.messageId, said]))
  const ofTasks = [...logs.values()].map(log => momentsOf(log, places))
  const inTasks = new Set([...logs.values()].flatMap(({ said }) => said.map(({ messageId }) => messageId)))
  const between = withoutTask(
    { talk, spoken: spoken.filter(({ message }) => !inTasks.has(message.messageId)) },
    timesOf(ofTasks.flat())
  )
  const moments = [...between, ...ofTasks.flat()].toSorted((one, other) => one.atMs - other.atMs)
  return itemsOf(until ? momentsUntil(moments, until) : moments)
}

/** The moments until a generation of a task, whose artifacts are those of then. */
function momentsUntil(moments: readonly Moment[], { taskId, generation }: NonNullable<TalkSources['until']>): Moment[] {
  const last = moments.findLastIndex(
    moment => 'event' in moment && moment.event.taskId === taskId && moment.event.generation <= generation
  )
  const then = new Map<TaskLog, TaskLog>()
  return moments.slice(0, last + 1).map(moment => {
    if (!('event' in moment) || moment.event.taskId !== taskId) return moment
    const { log } = moment
    const cut = then.get(log) ?? {
      ...log,
      isPast: true,
      events: { ...log.events, events: log.events.events.filter(event => event.generation <= generation) }
    }
    then.set(log, cut)
    return { ...moment, log: cut }
  })
}

/** The moments of a task in order. Artifacts have the time of the status before them. */
function momentsOf(log: TaskLog, places: ReadonlyMap<string, WatchedMessage>): Moment[] {
  const {
    events: { events },
    said
  } = log
  const messages = said.filter(({ role }) => role === 'ROLE_USER')
  const generations = generationsOf(log, places)
  const moments: Moment[] = []
  let atMs = 0
  const sayUntil = (generation: number, nextMs: number) => {
    while (messages[0] && (generations.get(messages[0].messageId) ?? 0) < generation) {
      const [message] = messages.splice(0, 1) as [Message]
      atMs = Math.max(atMs, places.get(message.messageId)?.atMs ?? (atMs === 0 ? nextMs : atMs))
      moments.push({ atMs, message, taskId: log.events.taskId })
    }
  }
  for (const event of events) {
    const eventMs = 'statusUpdate' in event.update ? Date.parse(event.update.statusUpdate.status.timestamp ?? '') : NaN
    sayUntil(event.generation, eventMs)
    atMs = Math.max(atMs, eventMs || atMs)
    moments.push({ atMs, event, log })
  }
  sayUntil(Infinity, Date.now())
  return moments
}

/**
 * The generation of the task when each message of the client arrived: from the feed, else that of the agent's message
 * before it.
 */
function generationsOf(
  { events: { events }, said }: TaskLog,
  places: ReadonlyMap<string, WatchedMessage>
): ReadonlyMap<string, number> {
  const spokenAt = new Map(
    events.map(({ generation, update }) => [
      'statusUpdate' in update ? update.statusUpdate.status.message?.messageId : undefined,
      generation
    ])
  )
  const found = new Map<string, number>()
  let before = 0
  for (const { messageId, role } of said) {
    if (role === 'ROLE_AGENT') before = spokenAt.get(messageId) ?? before
    else found.set(messageId, places.get(messageId)?.generation ?? before)
  }
  return found
}

function timesOf(moments: readonly Moment[]): ReadonlyMap<string, number> {
  return new Map(
    moments.flatMap(moment => ('message' in moment ? [[moment.message.messageId, moment.atMs] as const] : []))
  )
}

/** The messages without a task. One of an unknown time is as old as the next one with a time. */
function withoutTask(
  { talk, spoken }: Pick<TalkSources, 'talk' | 'spoken'>,
  times: ReadonlyMap<string, number>
): Moment[] {
  const own = new Map(spoken.map(one => [one.message.messageId, one]))
  const told = new Set(talk.map(({ messageId }) => messageId))
  const moments: Moment[] = spoken.filter(({ message }) => !told.has(message.messageId)).toReversed()
  let nextMs = Infinity
  for (const {
    messageId,
    atMs = times.get(messageId) ?? nextMs,
    taskId,
    message = own.get(messageId)?.message
  } of talk.toReversed()) {
    nextMs = atMs
    if (taskId === undefined && message) moments.push({ atMs, message: own.get(messageId)?.message ?? message })
  }
  return moments.toReversed()
}

function itemsOf(moments: readonly Moment[]): TalkItem[] {
  const items: TalkItem[] = []
  const runs = new Map<string, Run>()
  const last = new Map<string, Run>()
  const artifacts = new Map<string, number>()
  const end = (taskId: string | undefined) => taskId !== undefined && runs.delete(taskId)
  for (const moment of moments) {
    if ('message' in moment) {
      const { message, taskId } = moment
      end(taskId)
      items.push({ kind: 'message', key: message.messageId, message, ...(taskId !== undefined && { taskId }) })
      continue
    }
    const { event, log } = moment
    const { taskId } = event
    const run = runs.get(taskId) ?? newRun(event)
    if (!runs.has(taskId)) items.push(run)
    runs.set(taskId, run)
    last.set(taskId, run)
    run.events.push(event)
    if ('artifactUpdate' in event.update) {
      const {
        artifact: { artifactId },
        append
      } = event.update.artifactUpdate
      const name = `${taskId} ${artifactId}`
      if (append && artifacts.has(name)) continue
      const artifact = artifactOf(log, artifactId)
      if (artifact) artifacts.set(name, items.push({ kind: 'artifact', key: name, taskId, artifact }) - 1)
      continue
    }
    const { status } = event.update.statusUpdate
    run.state = status.state
    const isNewest = event.generation === lastGeneration(log.events)
    if (isInterrupted(status.state))
      items.push({
        kind: 'question',
        key: `${taskId} ${event.generation}`,
        taskId,
        status,
        isOpen: isNewest && log.isPast !== true
      })
    else if (isTerminal(status.state) && status.message)
      items.push({ kind: 'message', key: status.message.messageId, message: status.message, taskId })
    if (isPause(status.state)) end(taskId)
  }
  for (const run of last.values()) run.isLast = true
  const newest = new Set(artifacts.values())
  return items.filter((item, i) => item.kind !== 'artifact' || newest.has(i))
}

function newRun({ taskId, generation }: TaskEvent): Run {
  return {
    kind: 'run',
    key: `${taskId} run ${generation}`,
    taskId,
    events: [],
    state: 'TASK_STATE_SUBMITTED',
    isLast: false
  }
}

const whole = new WeakMap<TaskLog, ReadonlyMap<string, Artifact>>()

/** An artifact as it is now. */
function artifactOf(log: TaskLog, artifactId: string): Artifact | undefined {
  const known =
    whole.get(log) ?? new Map(taskAt(log.events, Infinity).artifacts?.map(artifact => [artifact.artifactId, artifact]))
  whole.set(log, known)
  return known.get(artifactId)
}

function lastOfferIn(items: readonly TalkItem[]): Offer | undefined {
  let standing: Offer | undefined
  for (const item of items) {
    if (item.kind === 'run') standing = undefined
    if (item.kind !== 'message' || item.taskId !== undefined) continue
    const offer = item.message.role === 'ROLE_AGENT' ? offerIn(item.message) : undefined
    if (offer) standing = offer
    else if (moveOf(item.message)?.['decline'] !== undefined) standing = undefined
  }
  return standing
}
