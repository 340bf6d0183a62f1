import t from 'tap'
import { readRunInput } from '../../../adapters/ag-ui/run-input.ts'
import { AgUiTask, type AgUiEvent } from '../../../adapters/ag-ui/task-events.ts'
import { planFor } from '../../../adapters/testing/plan/plan.ts'
import { walk } from '../../../adapters/testing/run/path-run.ts'
import { StubActors } from '../../../adapters/testing/run/stub-actors.ts'
import type { StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import { defineAgent } from '../../../runtime/index.ts'
import type { ServedRuntime } from '../../../runtime/runtime-options.ts'
import { cases, everything } from '../../fixtures/charts/chart-with-everything.ts'
import { exampleCharts } from '../../fixtures/charts/example-charts.ts'
import { AG_UI_CLIENTS, openThread } from '../../fixtures/peers/ag-ui-clients.ts'
import { sampleOf } from '../../fixtures/sample.ts'

const CHARTS = [
  ...exampleCharts,
  ['everything', defineAgent({ card: { name: 'Everything' }, work: everything }), { cases }] as const
]

/** Notes the events of a task, and the task as GetTask gives it last. */
function noting(events: StreamResponse[], tasks: Task[]): (runtime: ServedRuntime) => ServedRuntime {
  return runtime => ({
    ...runtime,
    getTask: async (params, call) => {
      const task = await runtime.getTask(params, call)
      tasks.push(task)
      return task
    },
    async *subscribeToTask(params, call) {
      for await (const event of runtime.subscribeToTask(params, call)) {
        events.push(event)
        yield event
      }
    }
  })
}

/** The task as GetTask gives it without history, to a client without extensions. */
function withoutHistory(task: Task): object {
  const members = Object.entries(task).filter(([member]) => member !== 'history' && member !== 'metadata')
  const metadata = Object.entries(task.metadata ?? {}).filter(([key]) => key !== RELIABILITY_EXTENSION)
  return {
    ...Object.fromEntries(members),
    ...(metadata.length > 0 && { metadata: Object.fromEntries(metadata) })
  }
}

for (const [name, agent, options] of CHARTS) {
  await t.test(`${name}: on every path, both clients of AG-UI end with the task that GetTask gives`, async t => {
    const { paths, machine } = await planFor(agent, { cases: options.cases ?? {} })
    for (const path of sampleOf(t, paths, 25)) {
      const [events, tasks]: [StreamResponse[], Task[]] = [[], []]
      await walk(agent, new StubActors(machine), path, { reach: 'in process', interlude: 'none' }, undefined, {
        watch: noting(events, tasks)
      })
      const last = tasks.at(-1)
      if (!last || events.length === 0) continue
      for (const client of AG_UI_CLIENTS) {
        const told: AgUiEvent[] = [{ type: 'RUN_STARTED', threadId: 't', runId: 'r' }]
        const task = new AgUiTask(readRunInput({ threadId: 't', runId: 'r', messages: [] }), 'interrupt')
        for (const event of events) told.push(...task.of(event))
        told.push(...task.close(), { type: 'RUN_FINISHED', threadId: 't', runId: 'r' })
        const body = told.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')
        const page = openThread(client, async () => new Response(body))
        const { error } = await page.run()
        t.equal(error, undefined, `${path.name}: ${client} takes the order of the events`)
        t.strictSame(page.state.task, withoutHistory(last), `${path.name}: ${client}`)
      }
    }
  })
}
