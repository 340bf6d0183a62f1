import { computed } from '@preact/signals'
import type { ActorStep, TrafficFrame } from '../../feed.ts'
import { frames } from '../feed/known.ts'

/** A summary of a frame. */
export interface FrameFacts {
  /** The method, or the kind of answer. */
  readonly what: string
  readonly id: string
  /** The task that it is about, if it names one. */
  readonly taskId: string | undefined
  readonly isError: boolean
}

const known = new WeakMap<TrafficFrame, FrameFacts>()

/** Summarises a frame, whose text may be cut. Cached. */
export function factsOf(frame: TrafficFrame): FrameFacts {
  const before = known.get(frame)
  if (before) return before
  const facts = read(frame)
  known.set(frame, facts)
  return facts
}

/** The tasks of requests that open one, by the number of the frame: their answers name them. */
const openedTasks = computed(() => {
  const opened = new Map<number, string>()
  const asked = new Map<string, TrafficFrame>()
  for (const frame of frames.value) {
    const { id, taskId } = factsOf(frame)
    const key = `${frame.connection} ${id}`
    const request = asked.get(key)
    if (frame.direction === 'in') asked.set(key, frame)
    else if (request && taskId !== undefined) opened.set(request.n, taskId)
  }
  return opened
})

/** The task of a frame, or of the answer to it; `undefined` if neither names one. */
export function taskOfFrame(frame: TrafficFrame): string | undefined {
  return factsOf(frame).taskId ?? openedTasks.value.get(frame.n)
}

/** A request over MCP about a task, and its answer. */
interface Exchange {
  readonly taskId: string
  readonly method: string
  readonly frames: TrafficFrame[]
  /** The text of its answer without the id of the request; empty before the answer. */
  answer: string
  /** How many polls with this answer it stands for. */
  count: number
}

/**
 * The calls over MCP about the shown tasks, as steps between client and runtime. Of polls of a task that follow each
 * other and have the same answer only the newest is there, with their number.
 */
export function mcpSteps(isShown: (taskId: string) => boolean): ActorStep[] {
  const exchanges: Exchange[] = []
  const open = new Map<string, Exchange>()
  for (const frame of frames.value) {
    const taskId = frame.connection.startsWith('mcp ') ? taskOfFrame(frame) : undefined
    const { what, id } = factsOf(frame)
    const key = `${frame.connection} ${id}`
    const exchange = frame.direction === 'out' ? open.get(key) : undefined
    if (exchange) {
      exchange.frames.push(frame)
      exchange.answer = frame.text.replace(`"id":${id}`, '')
    } else if (frame.direction === 'in' && taskId !== undefined && isShown(taskId)) {
      const begun = { taskId, method: what, frames: [frame], answer: '', count: 1 }
      open.set(key, begun)
      exchanges.push(begun)
    }
  }
  return withoutRepeats(exchanges).flatMap(({ taskId, frames, count }) =>
    frames.map((frame, i) => stepOf(frame, taskId, i === 0 && count > 1 ? ` ×${count}` : ''))
  )
}

function withoutRepeats(exchanges: readonly Exchange[]): Exchange[] {
  const newest = new Map<string, Exchange>()
  const repeated = new Set<Exchange>()
  for (const exchange of exchanges) {
    const before = newest.get(exchange.taskId)
    newest.set(exchange.taskId, exchange)
    if (!before || [before, exchange].some(({ method }) => method !== 'tasks/get')) continue
    if (before.answer !== exchange.answer) continue
    exchange.count = before.count + 1
    repeated.add(before)
  }
  return exchanges.filter(exchange => !repeated.has(exchange))
}

/** Steps of calls have negative numbers: those of actors have positive ones. */
function stepOf(frame: TrafficFrame, taskId: string, more: string): ActorStep {
  const { n, atMs, direction, connection, text } = frame
  const [from, to] = direction === 'in' ? ['client', 'runtime'] : ['runtime', 'client']
  const event = { type: `${factsOf(frame).what}${more}`, connection, frame: text }
  return { n: -n, atMs, kind: 'event', from, to, taskId, event }
}

/** The id of a task: as a member, as a task itself, or in the words of a result of MCP. */
const TASK_ID = /"taskId"\s*:\s*"([^"]+)"|"(?:task|params|result)"\s*:\s*\{\s*"id"\s*:\s*"([^"]+)"|taskId: ([\w-]+)/

function read({ direction, connection, text }: TrafficFrame): FrameFacts {
  const isError = /"error"\s*:\s*\{/.test(text)
  const isAnswer = direction === 'out' && /"result"\s*:/.test(text)
  const method = isAnswer ? undefined : /"method"\s*:\s*"([^"]*)"/.exec(text)?.[1]
  const id = /"id"\s*:\s*("[^"]*"|\d+)/.exec(text)?.[1] ?? ''
  const kind = connection.startsWith('mcp ')
    ? (/"status"\s*:\s*"(\w+)"/.exec(text)?.[1] ?? /"resultType"\s*:\s*"(input_required)"/.exec(text)?.[1])
    : /"(statusUpdate|artifactUpdate|task|message|streamEnd)"\s*:/.exec(text)?.[1]
  const [, member, itself, named] = TASK_ID.exec(text) ?? []
  return { what: isError ? 'error' : (method ?? kind ?? 'result'), id, taskId: member ?? itself ?? named, isError }
}
