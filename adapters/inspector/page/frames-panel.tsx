import { computed, effect, signal } from '@preact/signals'
import type { ActorStep, TrafficFrame } from '../feed.ts'
import { hello, wantsFrames } from './feed/feed.ts'
import { forgetFrames, frames, missedFrames, tasks } from './feed/known.ts'
import { Paste, sendLine } from './parts.tsx'
import { choose, part } from './selection.ts'
import { VirtualList } from './virtual-list.tsx'
import { countText, frameText, shortId, sizeText, timeText } from './wording.ts'

const ROW_HEIGHT = 28

const search = signal('')

const connection = signal('')

const direction = signal('')

const isPaused = signal(false)

const chosen = signal<TrafficFrame | undefined>(undefined)

const connections = computed(() => [...new Set(frames.value.map(({ connection }) => connection))])

const shown = computed(() =>
  shownFrames(frames.value, { connection: connection.value, direction: direction.value, search: search.value })
)

/**
 * Requests frames once this part was opened, or the sequence, which has calls in it, and then also while others are
 * shown; not while paused.
 */
export function askForFrames(): void {
  let isWanted = false
  effect(() => {
    isWanted ||= part.value === 'frames' || part.value === 'sequence'
    wantsFrames.value = isWanted && !isPaused.value
  })
}

/** The frames of each connection: JSON-RPC over WebSocket, and the messages of MCP. */
export function FramesPanel() {
  return (
    <div class="panel frames-panel">
      <div class="tools">
        <input
          type="search"
          placeholder="Search frames"
          aria-label="Search frames"
          value={search.value}
          onInput={event => (search.value = event.currentTarget.value)}
        />
        <select
          aria-label="Which connection"
          value={connection.value}
          onChange={event => (connection.value = event.currentTarget.value)}
        >
          <option value="">All connections</option>
          {connections.value.map(name => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <select
          aria-label="Which direction"
          value={direction.value}
          onChange={event => (direction.value = event.currentTarget.value)}
        >
          <option value="">In and out</option>
          <option value="in">In</option>
          <option value="out">Out</option>
        </select>
        <button type="button" aria-pressed={isPaused.value} onClick={() => (isPaused.value = !isPaused.value)}>
          Pause
        </button>
        <button type="button" onClick={forgetFrames}>
          Clear
        </button>
        <span class="tools-gap" />
        <span class="quiet">
          {missedFrames.value > 0
            ? `${countText(shown.value.length, 'frame')}, ${missedFrames.value} missed`
            : countText(shown.value.length, 'frame')}
        </span>
      </div>
      <VirtualList
        label="Frames"
        items={shown.value}
        keyOf={frameKey}
        heightOf={() => ROW_HEIGHT}
        activeKey={chosen.value && frameKey(chosen.value)}
        follows
        choose={frame => (chosen.value = frame)}
        row={frame => <FrameLine frame={frame} />}
        empty={
          <>
            <p>
              {isPaused.value
                ? 'Paused. Press Pause again to see new frames.'
                : 'New frames on the agent’s connections appear here. Send a message under Talk, or in a terminal:'}
            </p>
            {!isPaused.value && hello.value && <Paste line={sendLine(hello.value)} />}
          </>
        }
      />
      {chosen.value && <FrameDetail frame={chosen.value} />}
    </div>
  )
}

function frameKey({ n }: TrafficFrame): string {
  return String(n)
}

function FrameLine({ frame }: { readonly frame: TrafficFrame }) {
  const { what, id, isError } = factsOf(frame)
  const taskId = taskOfFrame(frame)
  return (
    <>
      <span class="mono quiet">{timeText(frame.atMs)}</span>
      <span
        class={`frame-way frame-${frame.direction}`}
        title={frame.direction === 'in' ? 'to the agent' : 'from the agent'}
      >
        {frame.direction === 'in' ? '→' : '←'}
      </span>
      <span class="mono frame-connection">{frame.connection}</span>
      <span class={isError ? 'frame-what frame-error' : 'frame-what'}>{what}</span>
      <span class="mono quiet frame-id">{id}</span>
      <span class="mono quiet frame-task" title={taskId && `task ${taskId}`}>
        {taskId && shortId(taskId)}
      </span>
      <span class="quiet frame-size">{sizeText(frame.bytes)}</span>
      <span class="mono frame-text">{frame.text.slice(0, 200)}</span>
    </>
  )
}

function FrameDetail({ frame }: { readonly frame: TrafficFrame }) {
  const { direction, connection, bytes, text, atMs } = frame
  const task = tasks.get(taskOfFrame(frame) ?? '')
  const isCut = new TextEncoder().encode(text).length < bytes
  return (
    <aside class="detail" aria-label="The chosen frame">
      <header>
        <b>{direction === 'in' ? 'To the agent' : 'From the agent'}</b>
        <span class="quiet">{`${connection}, ${timeText(atMs)}, ${sizeText(bytes)}${isCut ? ', only its beginning' : ''}`}</span>
        <span class="tools-gap" />
        {task && (
          <button type="button" onClick={() => choose(task.contextId, task.taskId)}>
            Show its task
          </button>
        )}
        <button type="button" class="plain" aria-label="Close" onClick={() => (chosen.value = undefined)}>
          ✕
        </button>
      </header>
      <pre>{frameText(text)}</pre>
    </aside>
  )
}

/** Filters frames by connection, direction, and text. */
function shownFrames(
  frames: readonly TrafficFrame[],
  {
    connection,
    direction,
    search
  }: { readonly connection: string; readonly direction: string; readonly search: string }
): TrafficFrame[] {
  const wanted = search.toLowerCase()
  return frames.filter(frame => {
    if (connection !== '' && frame.connection !== connection) return false
    if (direction !== '' && frame.direction !== direction) return false
    return wanted === '' || frame.text.toLowerCase().includes(wanted)
  })
}

/** A summary of a frame. */
interface FrameFacts {
  /** The method, or the kind of answer. */
  readonly what: string
  readonly id: string
  /** The task that it is about, if it names one. */
  readonly taskId: string | undefined
  readonly isError: boolean
}

const known = new WeakMap<TrafficFrame, FrameFacts>()

/** Summarises a frame, whose text may be cut. Cached. */
function factsOf(frame: TrafficFrame): FrameFacts {
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
function taskOfFrame(frame: TrafficFrame): string | undefined {
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
