import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { REQUIREMENTS } from '../../adapters/conformance/requirements/requirements.ts'
import { AgentCardSchema } from '../../machines/protocol/card.ts'
import type { Schema } from '../../machines/protocol/codec/decode.ts'
import {
  ListTasksResponseSchema,
  SendMessageResponseSchema,
  StreamResponseSchema,
  TaskSchema
} from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import type { Binding } from './binding.ts'
import { BINDINGS } from './bindings.ts'
import { PARTS } from './rows.ts'
import { run } from './run.ts'
import { withResults } from './table.ts'
import { builtForBrowsers } from '../fixtures/protocol/browser-schemas.ts'

const ANSWERS: Partial<Record<OperationMethod, Schema<unknown>>> = {
  SendMessage: SendMessageResponseSchema,
  GetTask: TaskSchema,
  ListTasks: ListTasksResponseSchema,
  CancelTask: TaskSchema,
  GetExtendedAgentCard: AgentCardSchema
}

const GUIDE = 'docs/conformance.md'

/** The answers to the rows, with the schemas by which clients validate them. */
const answers = new Map<string, [Schema<unknown>, unknown]>()

/** A binding whose answers are recorded. */
function recorded(binding: Binding): Binding {
  const note = (schema: Schema<unknown> | undefined, answer: unknown) =>
    void (schema && answers.set(JSON.stringify(answer), [schema, answer]))
  const open: Binding['open'] = async (...given) => {
    const caller = await binding.open(...given)
    return {
      ...caller,
      call: async (method, ...more) => {
        const answer = await caller.call(method, ...more)
        note(ANSWERS[method], answer.result)
        return answer
      },
      stream: (...given) => {
        const stream = caller.stream(...given)
        const next = async () => {
          const event = await stream.next()
          if (event) note(StreamResponseSchema, event)
          return event
        }
        return { ...stream, next }
      }
    }
  }
  return { ...binding, open }
}

const results = await run(t, BINDINGS.map(recorded), Object.values(PARTS).flat())
const guide = readFileSync(GUIDE, 'utf8')
const now = withResults(guide, BINDINGS, PARTS, results)

if (process.argv.includes('write')) writeFileSync(GUIDE, now)
else {
  await t.test('docs/conformance.md says what came of it: npm run conformance writes it', async t => {
    t.equal(guide, now)
  })
}

await t.test('every requirement has a row, and every row a cell on each binding', async t => {
  const ids = Object.values(PARTS).flatMap(rows => rows.map(({ id }) => id))
  t.same(
    ids.toSorted((a, b) => a - b),
    REQUIREMENTS.map((_, i) => i + 1)
  )
  for (const [name, cells] of results) t.equal(cells.size, ids.length, name)
  for (const cells of results.values()) for (const cell of cells.values()) t.not(cell.reason, '')
})

await t.test('the test of any server has the same requirements with the same weight', async t => {
  const weights = (rows: readonly { readonly id: number; readonly level: string; readonly section: string }[]) =>
    rows.map(({ id, level, section }) => [id, level, section]).toSorted(([a], [b]) => Number(a) - Number(b))
  t.same(weights(REQUIREMENTS), weights(Object.values(PARTS).flat()))
})

await t.test('clients in browsers read every answer as those in Node do', async t => {
  const { compare } = await builtForBrowsers(t)
  for (const [schema, answer] of answers.values()) compare(schema, answer)
  t.ok(answers.size > 1000, `${answers.size} answers`)
})
