import { batch, effect, signal } from '@preact/signals'
import { systemClock } from '../../../../runtime/ports/clock.ts'
import { onMessageEvent } from '../../../../runtime/primitives/event-loop.ts'
import { BackOff } from '../../../client/retries/transport-state.ts'
import type {
  Authorized,
  ComparedTask,
  DrawnChart,
  FromHub,
  FromPage,
  HeatAnswer,
  Hello,
  Nodes,
  RecordedExample
} from '../../feed.ts'
import type { ChartCoverage, Proving, TestProgress } from '../../test-result.ts'
import { feedUrl, onNextFrame, setClock } from '../page.ts'
import { contextId } from '../selection.ts'
import {
  forgetFrames,
  forgetWatched,
  missedFrames,
  missedSteps,
  missedTasks,
  noteActors,
  noteContexts,
  noteFrames,
  noteSteps,
  noteTalk,
  noteTasks,
  steps
} from './known.ts'

/** The hub's last greeting. */
export const hello = signal<Hello | undefined>(undefined)

/** The coverage of the last `taskchart test`. */
export const coverage = signal<ChartCoverage | undefined>(undefined)

/** The recorded run of the agent's first example. */
export const example = signal<RecordedExample | undefined>(undefined)

/** The progress of the tests that a page asked for, or how they ended. */
export const testing = signal<TestProgress | undefined>(undefined)

/** The last proof of the agent's properties, or that one runs. */
export const proving = signal<Proving | undefined>(undefined)

/** The transitions that tasks took, as of the last answer. */
export const heat = signal<HeatAnswer | undefined>(undefined)

/** The last drawing of a chart with collapsed states. */
export const drawnChart = signal<DrawnChart | undefined>(undefined)

/** How a task goes on that was opened with another definition of the agent, as of the last answer. */
export const compared = signal<ComparedTask | undefined>(undefined)

/** The nodes of the cluster, as of the last answer. */
export const nodes = signal<Nodes | undefined>(undefined)

/** The result of the last authorization. */
export const authorized = signal<Authorized | undefined>(undefined)

/** The state of the feed. */
export const feedState = signal<FeedState>('connecting')

/** Why the agent's file could not be reloaded. */
export const reloadError = signal<string | undefined>(undefined)

/** The errors of the author's code, by task. */
export const crashes = signal<ReadonlyMap<string, string>>(new Map())

/** Whether frames are requested. */
export const wantsFrames = signal(false)

let waiting: FromHub[] = []

/** Whether the next message replaces everything known. */
const next = { tasksAreAll: false, contextsAreAll: false, talkIsAll: false, actorsAreAll: false }

let socket: FeedSocket | undefined

const takeAll = onNextFrame(() => {
  const taken = waiting
  waiting = []
  batch(() => taken.forEach(take))
})

/** Opens the feed, and requests what the page shows. */
export function openFeed(): void {
  socket = new FeedSocket(feedUrl(), {
    entered: state => (feedState.value = state),
    received: frame => {
      waiting.push(frame)
      takeAll()
    }
  })
  effect(() => {
    const watched = contextId.value
    forgetWatched()
    noteTalk([], true)
    watch(watched)
  })
  effect(() => socket?.send({ type: 'frames', on: wantsFrames.value }))
}

/** Sends a single request to the hub, if the feed is open. */
export function askHub(frame: FromPage): void {
  socket?.send(frame)
}

function watch(watched: string | undefined, instance?: string): void {
  next.actorsAreAll = true
  next.talkIsAll = true
  const last = steps.peek().at(-1)?.n
  socket?.send({
    type: 'watch',
    contextId: watched ?? null,
    ...(last !== undefined && instance !== undefined && { afterStep: last, instance })
  })
}

function take(frame: FromHub): void {
  switch (frame.type) {
    case 'hello':
      return greet(frame)
    case 'tasks':
      noteTasks(frame.rows, frame.removed, next.tasksAreAll)
      next.tasksAreAll = false
      return
    case 'contexts':
      noteContexts(frame.rows, frame.removed, next.contextsAreAll)
      next.contextsAreAll = false
      return
    case 'talk':
      if (frame.contextId !== contextId.peek()) return
      noteTalk(frame.rows, next.talkIsAll)
      next.talkIsAll = false
      return
    case 'actors':
      if (frame.contextId !== contextId.peek()) return
      noteActors(frame.rows, frame.gone, next.actorsAreAll)
      next.actorsAreAll = false
      return
    case 'steps':
      if (frame.contextId === contextId.peek()) noteSteps(frame.steps)
      return
    case 'frames':
      return noteFrames(frame.frames)
    case 'coverage':
      coverage.value = frame
      return
    case 'example':
      example.value = frame
      return
    case 'testing':
      testing.value = frame
      return
    case 'proving':
      proving.value = frame
      return
    case 'heat':
      heat.value = frame
      return
    case 'drawn':
      drawnChart.value = frame
      return
    case 'compared':
      compared.value = frame
      return
    case 'nodes':
      nodes.value = frame
      return
    case 'authorized':
      authorized.value = frame
      return
    case 'reload':
      reloadError.value = frame.error ?? undefined
      return
    case 'crash':
      crashes.value = new Map(crashes.peek()).set(frame.taskId, frame.error)
      return
    case 'lost':
      missed[frame.what].value += frame.count
  }
}

const missed = { steps: missedSteps, frames: missedFrames, tasks: missedTasks }

function greet(frame: Hello): void {
  const isNew = hello.peek()?.instance !== frame.instance
  hello.value = frame
  setClock(frame.nowMs)
  next.tasksAreAll = true
  next.contextsAreAll = true
  // If the file still cannot be loaded, the hub reports it again.
  reloadError.value = undefined
  // As well as the errors that it keeps.
  crashes.value = new Map()
  // As well as the progress of running tests, and the last proof.
  testing.value = undefined
  proving.value = undefined
  if (isNew) {
    missedTasks.value = 0
    noteTalk([], true)
    forgetWatched()
    forgetFrames()
    coverage.value = undefined
    example.value = undefined
    heat.value = undefined
    drawnChart.value = undefined
    compared.value = undefined
    nodes.value = undefined
  }
  watch(contextId.peek(), frame.instance)
  if (wantsFrames.peek()) socket?.send({ type: 'frames', on: true })
}

/** The state of the feed: being opened, open, or lost and about to be retried. */
type FeedState = 'connecting' | 'open' | 'lost'

/** Receives the feed's messages and states. */
interface FeedUser {
  received(frame: FromHub): void
  entered(state: FeedState): void
}

/** The socket of the feed, reopened whenever it is lost. */
class FeedSocket {
  readonly #url: string
  readonly #user: FeedUser
  readonly #backOff = new BackOff({ clock: systemClock, random: Math.random, giveUpAfterMs: Infinity })
  #socket: WebSocket | undefined

  constructor(url: string, user: FeedUser) {
    this.#url = url
    this.#user = user
    this.#open()
  }

  /** Sends a request if the feed is open. After a loss, the user repeats its requests on `hello`. */
  send(frame: FromPage): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame))
  }

  #open(): void {
    const socket = new WebSocket(this.#url)
    this.#socket = socket
    socket.addEventListener('open', () => this.#user.entered('open'))
    const receive = ({ data }: { readonly data: unknown }) => {
      this.#backOff.reset()
      this.#user.received(JSON.parse(String(data)) as FromHub)
    }
    onMessageEvent(socket, receive, error => console.error(error))
    socket.addEventListener('close', () => {
      this.#user.entered('lost')
      setTimeout(() => this.#open(), this.#backOff.next())
    })
  }
}
