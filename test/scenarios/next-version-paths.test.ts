import t, { type Test } from 'tap'
import { planFor, type Path } from '../../adapters/testing/plan/plan.ts'
import { walk } from '../../adapters/testing/run/path-run.ts'
import { StubActors } from '../../adapters/testing/run/stub-actors.ts'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { SendMessageResponse, StreamResponse, Task, TimelineEntry } from '../../machines/protocol/objects.ts'
import type { NativeVersion } from '../../machines/protocol/versions.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import { defineAgent } from '../../runtime/index.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { cases, everything } from '../fixtures/charts/chart-with-everything.ts'
import { exampleCharts } from '../fixtures/charts/example-charts.ts'
import { sampleOf } from '../fixtures/sample.ts'

const BOTH: readonly NativeVersion[] = ['1.0', '1.1']

/** The charts whose paths are walked, and the longest one of all. */
const CHARTS = [
  ...exampleCharts,
  ['everything', defineAgent({ card: { name: 'Everything' }, work: everything }), { cases }] as const
]

/** What clients were answered on a path, as JSON text in the order of the answers; and the objects. */
interface Answers {
  readonly texts: string[]
  readonly events: StreamResponse[]
  readonly tasks: Task[]
}

/** A runtime that is called in a version, and whose answers are noted. */
function watched(version: NativeVersion, { texts, events, tasks }: Answers): (runtime: ServedRuntime) => ServedRuntime {
  const within = (call: CallContext = {}): CallContext => ({ ...call, version })
  const noted = async <T extends Task | SendMessageResponse>(answer: Promise<T>): Promise<T> => {
    try {
      const value = await answer
      texts.push(JSON.stringify(value))
      if ('status' in value) tasks.push(value)
      else if ('task' in value) tasks.push(value.task)
      return value
    } catch (error) {
      texts.push(JSON.stringify(isA2AError(error) ? toWireError(error) : String(error)))
      throw error
    }
  }
  return runtime => ({
    ...runtime,
    sendMessage: (params, call) => noted(runtime.sendMessage(params, within(call))),
    getTask: (params, call) => noted(runtime.getTask(params, within(call))),
    cancelTask: (params, call) => noted(runtime.cancelTask(params, within(call))),
    authorized: (id, data, call) => noted(runtime.authorized(id, data, within(call))),
    async *subscribeToTask(params, call) {
      for await (const event of runtime.subscribeToTask(params, within(call))) {
        texts.push(JSON.stringify(event))
        events.push(event)
        yield event
      }
    }
  })
}

/** Walks a path with calls of one version, on a runtime that speaks some. */
async function answersOn(
  { machine }: Awaited<ReturnType<typeof planFor>>,
  agent: (typeof CHARTS)[number][1],
  path: Path,
  version: NativeVersion,
  versions: readonly NativeVersion[],
  interlude: 'none' | 'killed'
): Promise<Answers> {
  const answers: Answers = { texts: [], events: [], tasks: [] }
  await walk(agent, new StubActors(machine), path, { reach: 'in process', interlude }, undefined, {
    versions,
    watch: watched(version, answers)
  })
  return answers
}

/** The same JSON without the members that only 1.1 has. */
function withoutNext(texts: readonly string[]): string[] {
  const isNext = (name: string) => ['generation', 'timeline', 'startGeneration', 'endGeneration'].includes(name)
  return texts.map(text => {
    const value = JSON.parse(text) as object
    const metadata: unknown[] = []
    // The extension's generation is in metadata, and stays.
    const kept = JSON.stringify(value, (name, member: unknown) => {
      if (name === 'metadata') return metadata.push(member) - 1
      return isNext(name) ? undefined : member
    })
    return JSON.stringify(
      JSON.parse(kept, (name, member: unknown) => (name === 'metadata' ? metadata[member as number] : member))
    )
  })
}

/** The numbers of a task's log, as a client of 1.1 sees them, have to be 1..n; artifacts have those of their events. */
function checkNumbers(t: Test, { events, tasks }: Answers, path: string): void {
  const last = tasks.at(-1)
  const timeline = last?.timeline ?? []
  const statuses = events.flatMap(event => ('statusUpdate' in event ? [event.statusUpdate] : []))
  const chunks = events.flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate] : []))
  const messages = timeline.filter(entry => entry.message)
  const numbers = [...events.map(event => Object.values(event)[0] as TimelineEntry), ...messages].map(numberOf)
  t.strictSame(
    numbers.toSorted((one, other) => one - other),
    Array.from({ length: numbers.length }, (_, index) => index + 1),
    `${path}: each number is there once`
  )
  t.equal(Number(last?.generation), numbers.length, `${path}: the task has the last one`)
  t.strictSame(
    timeline.map(numberOf),
    timeline.map(numberOf).toSorted((one, other) => one - other),
    `${path}: in order`
  )
  t.strictSame(
    timeline.flatMap(({ status, generation }) => (status ? [{ status, generation }] : [])),
    statuses.map(({ status, generation }) => ({ status, generation })),
    `${path}: the timeline has every status`
  )
  t.ok(timeline[0]?.message && numberOf(timeline[0]) === 1, `${path}: the opening message is the first`)
  for (const { artifactId, startGeneration, endGeneration } of last?.artifacts ?? []) {
    const own = chunks.filter(({ artifact }) => artifact.artifactId === artifactId)
    const end = own.at(-1)
    t.equal(startGeneration, own[0]?.generation, `${path}: ${artifactId} starts`)
    t.equal(endGeneration, end?.append && !end.lastChunk ? undefined : end?.generation, `${path}: ${artifactId} ends`)
  }
}

function numberOf({ generation }: { readonly generation?: string }): number {
  return Number(generation)
}

for (const [name, agent, options] of CHARTS) {
  await t.test(`${name}: on every path, answers of 1.0 are the same beside 1.1, which adds numbers 1..n`, async t => {
    const plan = await planFor(agent, { cases: options.cases ?? {} })
    for (const path of sampleOf(t, plan.paths, 25)) {
      for (const interlude of path.isDeepest ? (['none', 'killed'] as const) : (['none'] as const)) {
        const alone = await answersOn(plan, agent, path, '1.0', ['1.0'], interlude)
        const beside = await answersOn(plan, agent, path, '1.0', BOTH, interlude)
        const next = await answersOn(plan, agent, path, '1.1', BOTH, interlude)
        const where = `${path.name} (${interlude})`
        t.strictSame(beside.texts, alone.texts, `${where}: 1.0`)
        t.strictSame(withoutNext(next.texts), alone.texts, `${where}: 1.1`)
        checkNumbers(t, next, where)
      }
    }
  })
}
