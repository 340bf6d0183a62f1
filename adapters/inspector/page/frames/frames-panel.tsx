import { computed, effect, signal } from '@preact/signals'
import type { TrafficFrame } from '../../feed.ts'
import { hello, wantsFrames } from '../feed/feed.ts'
import { forgetFrames, frames, missedFrames, tasks } from '../feed/known.ts'
import { Paste, sendLine } from '../parts.tsx'
import { choose, part } from '../selection.ts'
import { VirtualList } from '../virtual-list.tsx'
import { countText, frameText, shortId, sizeText, timeText } from '../wording.ts'
import { factsOf, taskOfFrame } from './frame-facts.ts'

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
