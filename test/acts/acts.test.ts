import { readFileSync, writeFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { BINDINGS, PROFILES, serveAgent, type BindingName, type Site } from './agent.ts'
import { CLIENT_SPECIALS, runClientSteps } from './client.ts'
import { CORRECTIONS, corrected, repaired, REPAIRS } from './corrections.ts'
import { readCorpus, type ActsTest } from './corpus.ts'
import { withResults, type Column } from './results.ts'
import { runSteps, type Target } from './runner.ts'
import { LEFT_OUT, SPECIALS, STEPS_SAY_ALL } from './specials.ts'
import { targetOf } from './target.ts'

const GUIDE = 'docs/conformance.md'

const corpus = readCorpus()
const isForClients = ({ steps }: ActsTest) => steps.some(step => step.client_response)
const servers = corpus.filter(test => !isForClients(test)).map(repaired)
const clients = corpus.filter(isForClients).map(repaired)

/** Runs the steps of a test, and then what they leave to the runner. Gives the faults of the steps. */
type Run = (t: Test, test: ActsTest) => Promise<readonly string[]>

/** A test has to pass as it is written. One with a correction has to fail so, and to pass as it is corrected. */
async function judge(t: Test, test: ActsTest, column: Column, run: Run): Promise<void> {
  await t.test(`${test.id}: ${test.name}`, async t => {
    const correction = CORRECTIONS.find(({ id }) => id === test.id)
    const faults = await run(t, test)
    if (!correction) {
      if (t.strictSame(faults, [])) column.passed.push(test.id)
      return
    }
    t.not(faults.length, 0, `${test.id} wants that ${correction.wants}. If it passes, take its correction away`)
    const other = corrected(test, correction)
    if (!other) column.failed.push(test.id)
    else if (t.strictSame(await run(t, other), [])) column.corrected.push(test.id)
  })
}

const emptyColumn = (name: string): Column => ({ name, passed: [], corrected: [], failed: [] })

function isFor({ transport }: ActsTest, binding: BindingName): boolean {
  return transport?.includes(binding) ?? true
}

/** The first agent whose card has the capabilities that a test needs. Tests of secrets need callers that differ. */
function siteFor({ id, preconditions, tags = [] }: ActsTest, sites: readonly Site[]): Site {
  const needed = { ...preconditions?.capabilities, ...(tags.includes('security') && { authentication: true }) }
  const found = sites.find(({ runtime }) => {
    const { capabilities, securityRequirements = [] } = runtime.agentCard([])
    const offered = { ...capabilities, authentication: securityRequirements.length > 0 } as Record<string, unknown>
    return Object.entries(needed).every(([name, isNeeded]) => (offered[name] ?? false) === isNeeded)
  })
  if (!found) throw new Error(`No agent has what ${id} needs: ${JSON.stringify(needed)}`)
  return found
}

const columns: Column[] = []

for (const binding of BINDINGS) {
  await t.test(`an agent passes the tests of ACTS over ${binding}`, async t => {
    const column = emptyColumn(binding)
    columns.push(column)
    const sites = await Promise.all(PROFILES.map(profile => serveAgent(t, profile)))
    for (const test of servers.filter(test => isFor(test, binding))) {
      await judge(t, test, column, async (t, test) => {
        const target = await targetOf(t, siteFor(test, sites), binding)
        const faults = await runSteps(test, target)
        if (faults.length === 0) await SPECIALS[test.id]?.(t, target)
        return faults
      })
    }
  })
}

await t.test('the client passes the tests of ACTS', async t => {
  const column = emptyColumn('client')
  columns.push(column)
  for (const test of clients) {
    await judge(t, test, column, async (t, test) => {
      const faults = await runClientSteps(t, test)
      if (faults.length === 0) await CLIENT_SPECIALS[test.id]?.(t)
      return faults
    })
  }
})

await t.test('every test of ACTS was run, and every correction is of one', async t => {
  const run = columns.flatMap(({ passed, corrected, failed }) => [...passed, ...corrected, ...failed])
  t.strictSame(
    corpus.map(({ id }) => id).filter(id => !run.includes(id)),
    []
  )
  t.strictSame(
    CORRECTIONS.map(({ id }) => id).filter(id => !run.includes(id)),
    []
  )
  t.equal(new Set(CORRECTIONS.map(({ id }) => id)).size, CORRECTIONS.length)
  t.equal(new Set(corpus.map(({ id }) => id)).size, corpus.length)
})

await t.test('every repair of the corpus is needed', async t => {
  for (const [i, { says, mend }] of REPAIRS.entries()) {
    const steps = corpus.flatMap(test => REPAIRS.slice(0, i).reduce((steps, { mend }) => steps.map(mend), test.steps))
    t.notOk(isDeepStrictEqual(steps.map(mend), steps), says)
  }
})

await t.test('what the corpus leaves to its runner is done, or left out with a reason', async t => {
  const special = corpus.flatMap(({ id, tags = [] }) => (tags.includes('runner-special') ? [id] : []))
  const known = [...[SPECIALS, CLIENT_SPECIALS, LEFT_OUT].flatMap(Object.keys), ...STEPS_SAY_ALL]
  t.strictSame(
    special.filter(id => !known.includes(id)),
    []
  )
  t.strictSame(
    known.filter(id => !corpus.some(test => test.id === id)),
    []
  )
})

await t.test('no test of ACTS passes against an agent that answers nothing', async t => {
  const silent: Target = {
    caller: {
      call: async () => ({ result: {}, extensions: '' }),
      stream: () => ({ next: async () => undefined, leave: () => {} })
    },
    card: async () => ({}),
    raw: async () => ({ status: 200, body: {}, events: [] }),
    variables: { webhookUrl: '', insufficientAuthToken: '', otherUserTaskId: '' },
    goOn: () => {}
  }
  for (const test of servers) t.not((await runSteps(test, silent)).length, 0, test.id)
})

const guide = readFileSync(GUIDE, 'utf8')
const now = withResults(guide, columns, corpus)

if (process.argv.includes('write')) writeFileSync(GUIDE, now)
else {
  await t.test('docs/conformance.md says what came of ACTS: npm run conformance writes it', async t => {
    t.equal(guide, now)
  })
}
