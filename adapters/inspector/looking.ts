import type { InspectionEvent } from 'xstate'
import type { LiveActors, Observation } from '../../runtime/contexts/observers.ts'
import { TokenBucket } from '../../runtime/access/usage.ts'
import { randomIds } from '../../runtime/ports/ids.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { contextName, type Commit } from '../../runtime/store/store.ts'
import { ContextIndex } from './contexts/context-index.ts'
import { TalkRecord } from './contexts/talk-record.ts'
import type { PageLink, Shown } from './page-link.ts'
import { Recorder } from './recorder/recorder.ts'
import { earlierTasks, openingOf, TaskIndex } from './recorder/task-index.ts'
import { heatReader } from './shown-agent.ts'

/** Receives all recorded events in XState's form, in addition to the pages. */
export interface Sink {
  /** A context is recorded from now on, with its present actors. */
  began(actors: LiveActors): void
  inspected(event: InspectionEvent): void
}

/** An observation of a runtime, with everything that is recorded of it. */
export interface Looking extends Shown {
  readonly observation: Observation
  /** Ends the observation. What was recorded stays. */
  stop(): void
}

/** The receivers of an observation, and what it goes on from. */
export interface LookingParts extends Pick<Shown, 'redact' | 'frames' | 'stirred' | 'test' | 'prove'> {
  /** The observation of the agent before its reload, whose steps and contexts stay. */
  readonly before?: Looking | undefined
  readonly pages: Iterable<PageLink>
  readonly sinks: Iterable<Sink>
  /** A task was removed. */
  readonly removed: (taskId: string) => void
  readonly listedAMinute?: number | undefined
}

/**
 * The number of new tasks and contexts that are listed per minute: so many at once, then evenly. It bounds the cost of a flood, which nobody
 * can read.
 */
const LISTED_A_MINUTE = 30_000

/** The number of tasks that a commit opens. */
function openedIn({ log }: Commit): number {
  let count = 0
  for (const entry of log) if ('update' in entry && entry.generation === 1) count += 1
  return count
}

/** The scope of callers of agents without `authenticate`. */
const ANYBODY = { tenant: '', principal: 'anonymous' }

/** Observes a runtime for pages and sinks. */
export function lookAt(runtime: Runtime, { redact, frames, before, pages, sinks, removed, stirred, test, prove, listedAMinute = LISTED_A_MINUTE }: LookingParts): Looking {
  const { clock, logger } = runtime.settings
  const eachPage = (tell: (page: PageLink) => void) => {
    for (const page of pages) tell(page)
  }
  const recorder = before?.recorder ?? new Recorder(clock, {
    stirred,
    inspected: event => Array.from(sinks, sink => sink.inspected(event)),
    began: actors => Array.from(sinks, sink => sink.began(actors)),
    troubled: error => logger.error('the inspector failed', { error })
  })
  const troubled = (error: unknown) => logger.error('the messages of a context could not be read', { error })
  const tasks = new TaskIndex(redact, {
    missing: row => {
      const { store } = observation
      openingOf(store, row, (message, metadata) => tasks.title(message, metadata)).then(opening => tasks.read({ ...row, ...opening }), troubled)
    },
    changed: row => eachPage(page => page.changed(row)),
    removed: taskId => {
      removed(taskId)
      eachPage(page => page.removed(taskId))
    }
  })
  const contexts = before?.contexts ?? new ContextIndex({
    changedContext: row => eachPage(page => page.changedContext(row)),
    removedContext: contextId => eachPage(page => page.removedContext(contextId)),
    said: commit => eachPage(page => page.said(commit))
  })
  const readMessages: Observation['store']['readMessages'] = (...choice) => observation.store.readMessages(...choice)
  contexts.readFrom({ live: recorder, readMessages, title: message => tasks.title(message), troubled })
  const room = new TokenBucket(listedAMinute)
  const isListed = (commit: Commit, name: string) => {
    const { key, atMs } = commit
    if (recorder.isWatched(key.contextId) || (commit.expected > 0 && contexts.has(name) && commit.tasks.every(({ taskId }) => tasks.get(taskId)))) return true
    // A task that was not listed is listed when it changes, once the flood is over.
    const isNew = commit.expected === 0 || openedIn(commit) > 0
    if (room.waitMs(isNew ? 1 : listedAMinute / 2, atMs) > 0) return false
    room.use(1, atMs)
    return true
  }
  const observation = runtime.observe({
    entered: actors => recorder.entered(actors),
    left: actors => recorder.left(actors),
    committed: commit => {
      const name = contextName(commit.key)
      recorder.committed(commit, name)
      if (isListed(commit, name)) {
        contexts.committed(commit, name)
        tasks.committed(commit)
      } else eachPage(page => page.unlisted(openedIn(commit)))
      stirred()
    },
    erased: whose => [recorder, contexts, tasks].forEach(one => one.erased(whose))
  })
  let isStopped = false
  const readEarlier = async () => {
    const scopes = [ANYBODY, ...recorder.live.map(({ key }) => key)]
    const each = new Map(scopes.map(scope => [JSON.stringify([scope.tenant, scope.principal]), scope]))
    for await (const row of earlierTasks(observation.store, [...each.values()], (message, metadata) => tasks.title(message, metadata))) {
      if (isStopped) return
      tasks.read(row)
    }
  }
  void contexts.readLive(clock.now())
  readEarlier().catch((error: unknown) => logger.error('the earlier tasks could not be read', { error }))
  return {
    instance: randomIds(),
    recorder, tasks, contexts, frames, redact, observation, stirred, test, prove,
    heat: heatReader(observation),
    talkOf: contextId => {
      const talk = new TalkRecord(contextId, { readMessages, redact, atMs: (key, messageId) => contexts.atMs(key, messageId) })
      const owner = tasks.newest.find(row => row.contextId === contextId)?.owner ?? ANYBODY
      talk.read(contexts.keyOf(contextId) ?? { ...owner, contextId }).catch(troubled).finally(stirred)
      return talk
    },
    authorize: async (taskId, data) => {
      await runtime.authorized(taskId, data, tasks.get(taskId)?.owner)
    },
    stop: () => {
      isStopped = true
      observation.stop()
    }
  }
}
