import type { AnyStateMachine, InspectionEvent, StateValue } from 'xstate'
import { isTerminal } from '../../machines/protocol/states.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import { TokenBucket } from '../../runtime/access/shares.ts'
import type { Agent } from '../../runtime/index.ts'
import type { ObservedCluster } from '../../runtime/ports/cluster-status.ts'
import { randomIds } from '../../runtime/ports/ids.ts'
import type { Logger } from '../../runtime/ports/logger.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { definitionOfSnapshot } from '../../runtime/store/rows.ts'
import { isOpeningMessage, type Commit } from '../../runtime/store/store.ts'
import type { LiveActors, Observation } from '../../runtime/telemetry-port.ts'
import { chartVersion } from '../../runtime/work-port.ts'
import { statesOfValue } from '../../runtime/xstate/persisted-snapshot.ts'
import { type AgentChart, chartsOf, heatOf } from '../drawing/agent-charts.ts'
import { chartSource } from '../drawing/chart-source.ts'
import { chartMermaid } from '../drawing/mermaid.ts'
import type { Chart, ChartHeat, Hello } from './feed.ts'
import { seenNodes } from './nodes-seen.ts'
import type { PageLink, Shown } from './page-link.ts'
import { ContextIndex, TalkRecord } from './recorder/context-index.ts'
import { Recorder } from './recorder/recorder.ts'
import { stateIds } from './recorder/seen-step.ts'
import { earlierTasks, KNOWN_TASKS, openingOf, TaskIndex } from './recorder/task-index.ts'

/** Receives all recorded events in XState's form, in addition to the pages. */
export interface InspectionSink {
  /** A context is recorded from now on, with its present actors. */
  began(actors: LiveActors): void
  inspected(event: InspectionEvent): void
}

/** An observation of a runtime, with everything that is recorded of it. */
export interface HubObservation extends Shown {
  readonly observation: Observation
  /** The digests of the definitions with which tasks were first seen, by task. */
  readonly openedWith: Map<string, string>
  /** Resolves when the tasks from before the observation are listed, or could not be read. */
  readonly earlier: Promise<void>
  /** Ends the observation. What was recorded stays. */
  stop(): void
}

/** The receivers of an observation, and the observation that it continues. */
interface ObservationParts extends Pick<Shown, 'redact' | 'frames' | 'stirred' | 'test' | 'prove'> {
  /** The observation of the agent before its reload, whose steps and contexts stay. */
  readonly before?: HubObservation | undefined
  readonly draw: DrawChart
  readonly replays: boolean
  readonly pages: Iterable<PageLink>
  readonly sinks: Iterable<InspectionSink>
  /** A task was removed. */
  readonly removed: (taskId: string) => void
  readonly listedAMinute?: number | undefined
}

/**
 * The number of new tasks and contexts that are listed per minute: so many at once, then evenly. It bounds the cost of
 * a flood, which nobody can read, and which would displace all others from the list.
 */
const LISTED_A_MINUTE = 6000

/** The number of tasks that a commit opens. */
function countOpenedTasks({ log }: Commit): number {
  let count = 0
  for (const entry of log) if (isOpeningMessage(entry)) count += 1
  return count
}

/** The scope of callers of agents without `authenticate`. */
const ANYBODY = { tenant: '', principal: 'anonymous' }

/** Reads the nodes, and the way of a task that is listed. */
function nodesReader(cluster: ObservedCluster, tasks: TaskIndex): NonNullable<Shown['nodes']> {
  return async taskId => {
    const row = tasks.get(taskId)
    return seenNodes(
      cluster,
      row && {
        taskId,
        key: row.key,
        openedMs: row.openedMs,
        endedMs: isTerminal(row.state) ? row.changedMs : undefined
      }
    )
  }
}

/** Observes a runtime for pages and sinks. */
export function observe(
  runtime: ServedRuntime,
  {
    redact,
    frames,
    before,
    draw,
    replays,
    pages,
    sinks,
    removed,
    stirred,
    test,
    prove,
    listedAMinute = LISTED_A_MINUTE
  }: ObservationParts
): HubObservation {
  const { clock, logger } = runtime.settings
  const recorder =
    before?.recorder ??
    new Recorder(clock, {
      stirred,
      inspected: event => {
        for (const sink of sinks) sink.inspected(event)
      },
      began: actors => {
        for (const sink of sinks) sink.began(actors)
      },
      troubled: error => logger.error('the inspector failed', { error })
    })
  const troubled = (error: unknown) => logger.error('the messages of a context could not be read', { error })
  const tasks = new TaskIndex(redact, {
    missing: task => {
      openingOf(observation.store, task).then(opening => tasks.read({ ...task, ...opening }), troubled)
    },
    changed: task => {
      for (const page of pages) page.changed(task)
    },
    removed: task => {
      removed(task.taskId)
      for (const page of pages) page.removed(task)
    }
  })
  const contexts =
    before?.contexts ??
    new ContextIndex(redact, {
      changedContext: context => {
        for (const page of pages) page.changedContext(context)
      },
      removedContext: context => {
        for (const page of pages) page.removedContext(context)
      },
      onMessages: commit => {
        for (const page of pages) page.onMessages(commit)
      }
    })
  const readMessages: Observation['store']['readMessages'] = (...choice) => observation.store.readMessages(...choice)
  const statesOf = (value: unknown) => {
    const respond = chartsOf(observation.agent).find(({ id }) => id === 'respond')
    return respond && value !== undefined ? stateIds(statesOfValue(respond.machine, value as StateValue)) : []
  }
  contexts.readFrom({ live: recorder, readMessages, statesOf, troubled })
  const openedWith = before?.openedWith ?? new Map<string, string>()
  const budget = new TokenBucket(listedAMinute)
  /**
   * The names of the listed contexts in memory: a search through all listed ones for each event would cost 2 % of a
   * stream (Node 24).
   */
  const listed = new Set<string>()
  const isListed = (commit: Commit, name: string) => {
    if (recorder.isWatched(commit.key.contextId) || (listed.has(name) && tasks.hasAll(commit))) return true
    // A task that was not listed is listed when it changes, once the flood is over.
    const isNew = commit.expected === 0 || countOpenedTasks(commit) > 0
    if (budget.waitMs(isNew ? 1 : listedAMinute / 2, commit.atMs) > 0) return false
    budget.use(1, commit.atMs)
    return true
  }
  const observation = runtime.observe({
    entered: actors => {
      if (contexts.has(actors.name)) listed.add(actors.name)
      recorder.entered(actors)
    },
    left: actors => {
      listed.delete(actors.name)
      recorder.left(actors)
    },
    committed: (commit, actors) => {
      recorder.committed(commit, actors)
      if (isListed(commit, actors.name)) {
        listed.add(actors.name)
        contexts.committed(commit, actors)
        tasks.committed(commit)
        for (const { taskId, snapshot } of commit.tasks) noteDefinition(openedWith, taskId, snapshot)
      } else {
        const count = countOpenedTasks(commit)
        for (const page of pages) page.unlisted(count)
      }
      stirred()
    },
    erased: whose => [recorder, contexts, tasks].forEach(one => one.erased(whose))
  })
  let isStopped = false
  const readEarlier = async () => {
    const scopes = [ANYBODY, ...recorder.live.map(({ key }) => key)]
    const each = new Map(scopes.map(scope => [JSON.stringify([scope.tenant, scope.principal]), scope]))
    for await (const task of earlierTasks(observation.store, [...each.values()])) {
      if (isStopped) return
      tasks.read(task)
    }
  }
  void contexts.readLive(clock.now())
  const earlier = readEarlier().catch((error: unknown) =>
    logger.error('the earlier tasks could not be read', { error })
  )
  const comparisons = async () => {
    const { TaskComparisons } = await import('./task-comparison.ts')
    const { agent, store, localModules } = observation
    return new TaskComparisons({ agent, store, localModules, replays, redact, logger })
  }
  let compared: ReturnType<typeof comparisons> | undefined
  return {
    instance: randomIds(),
    openedWith,
    recorder,
    tasks,
    contexts,
    frames,
    redact,
    observation,
    earlier,
    stirred,
    test,
    prove,
    transitionCounts: transitionCountsReader(observation),
    draw: async (id, collapsed) => {
      const chart = chartsOf(observation.agent).find(one => one.id === id)
      return chart ? drawOrLog(chart, draw, logger, collapsed) : ''
    },
    compare: async taskId => {
      if (!tasks.get(taskId)) await earlier
      const key = tasks.get(taskId)?.key
      if (!key) return undefined
      const comparison = await (await (compared ??= comparisons())).of(key, taskId, openedWith.get(taskId))
      // Once it has gone on, the store has only the definition of now.
      noteDefinition(openedWith, taskId, await observation.store.readSnapshot(key, taskId))
      return comparison
    },
    nodes: observation.cluster && nodesReader(observation.cluster, tasks),
    talkOf: contextId => {
      const talk = new TalkRecord(contextId, { readMessages, redact, timesOf: key => contexts.timesOf(key) })
      const owner = tasks.newest.find(({ key }) => key.contextId === contextId)?.key ?? ANYBODY
      talk
        .read(contexts.keyOf(contextId) ?? { tenant: owner.tenant, principal: owner.principal, contextId })
        .catch(troubled)
        .finally(stirred)
      return talk
    },
    authorize: async (taskId, data) => {
      const key = tasks.get(taskId)?.key
      await runtime.authorized(taskId, data, key && { tenant: key.tenant, principal: key.principal })
    },
    stop: () => {
      isStopped = true
      observation.stop()
    }
  }
}

/** Notes the definition that stored a task, when it is seen for the first time. */
function noteDefinition(openedWith: Map<string, string>, taskId: string, snapshot = ''): void {
  const digest = openedWith.has(taskId) ? undefined : definitionOfSnapshot(snapshot)
  if (digest === undefined) return
  openedWith.set(taskId, digest)
  for (const oldest of openedWith.keys()) {
    if (openedWith.size <= KNOWN_TASKS) return
    openedWith.delete(oldest)
  }
}

/** The number of example messages that pages show. */
const MOST_EXAMPLES = 4

/** The facts of an agent's card that pages show. */
export function shownAgent(runtime: ServedRuntime): Hello['agent'] {
  const { name, description, version, skills, capabilities } = runtime.agentCard([])
  const { params } = capabilities.extensions?.find(({ uri }) => uri === NEGOTIATION_EXTENSION) ?? {}
  return {
    name,
    description,
    version,
    examples: skills.flatMap(({ examples = [] }) => examples).slice(0, MOST_EXAMPLES),
    ...(params?.['terms'] !== undefined && { terms: params['terms'] })
  }
}

/** Draws a chart as an `<svg>` element. The states with these ids are drawn without the states in them. */
export type DrawChart = (machine: AnyStateMachine, collapsed?: readonly string[]) => Promise<string>

/** The charts of an agent for pages. A chart that cannot be drawn has no picture, and the error is logged. */
export async function drawnCharts(agent: Agent, draw: DrawChart, logger: Logger): Promise<Chart[]> {
  return Promise.all(
    chartsOf(agent).map(async chart => {
      const { id, title, machine } = chart
      const svg = await drawOrLog(chart, draw, logger)
      return { id, title, svg, mermaid: chartMermaid(machine), source: chartSource(machine) }
    })
  )
}

async function drawOrLog(
  { id, machine }: AgentChart,
  draw: DrawChart,
  logger: Logger,
  collapsed?: readonly string[]
): Promise<string> {
  return draw(machine, collapsed).catch((error: unknown) => {
    logger.error('a chart could not be drawn', { chart: id, error })
    return ''
  })
}

/**
 * Reads what tasks took in the author's charts; `undefined` if the store does not count transitions, or there are no
 * such charts.
 */
function transitionCountsReader({ agent, store }: Observation): (() => Promise<ChartHeat[]>) | undefined {
  const charts = chartsOf(agent).filter(({ id }) => id === 'work' || id.startsWith('child:'))
  const read = store.readTransitions?.bind(store)
  if (!read || charts.length === 0) return undefined
  return async () =>
    Promise.all(
      charts.map(async ({ id, machine }) => ({
        chart: id,
        transitions: heatOf(machine, await read(chartVersion(machine))).transitions
      }))
    )
}
