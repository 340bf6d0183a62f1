import t from 'tap'
import * as real from 'zod'
import * as small from '../../../../adapters/client/browser/zod.ts'
import { builtForBrowsers } from '../../../fixtures/protocol/browser-schemas.ts'
import { samples } from '../../../fixtures/protocol/protocol-samples.ts'

/** What stands in for a member of a good value. */
const ODD: readonly unknown[] = [
  undefined,
  null,
  '',
  'x',
  '\n',
  0,
  -1,
  1.5,
  Number.NaN,
  true,
  false,
  [],
  [null],
  ['', 7, {}],
  {},
  { a: null },
  'aGk',
  'TASK_STATE_WORKING',
  2,
  '2026-01-02T03:04:05+01:00'
]

let turn = 0

/** A value with each of its members, at every depth, replaced by odd values in turn, and with a member too many. */
function* spoiled(value: unknown): Generator {
  for (let count = 0; count < 6; count += 1) yield ODD[(turn += 1) % ODD.length]
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    for (const other of spoiled(member)) {
      const copy = structuredClone(value)
      Object.assign(copy, { [name]: other })
      yield copy
    }
  }
  if (!Array.isArray(value)) yield { ...value, unknown_member: 1 }
}

await t.test('browser schemas accept the same values as those of Node, with the same errors', async t => {
  const { compare } = await builtForBrowsers(t)
  let compared = 0
  for (const [, schema, value] of samples)
    for (const input of [value, ...spoiled(value)]) compared += Number(compare(schema, input))
  t.ok(compared > 1000, `${compared} values`)
})

await t.test('each kind of schema behaves as that of zod', async t => {
  const error = ({ input }: { readonly input?: unknown }) => `wanted, not ${typeof input}`
  const both = <T>(make: (z: typeof real) => { safeParse(value: unknown): T }) =>
    [make(real), make(small as unknown as typeof real)] as const
  const kinds = {
    string: both(z => z.string({ error }).check(z.minLength(2, { error: 'two at least' }))),
    refined: both(z =>
      z.string({ error }).check(z.refine((value: string) => value !== 'no', { error: 'not no', path: ['at'] }))
    ),
    list: both(z => z.array(z.unknown(), { error }).check(z.minLength(1, { error }))),
    enum: both(z => z.enum(['x', 'y'], { error })),
    boolean: both(z => z.boolean({ error })),
    number: both(z => z.number({ error })),
    custom: both(z => z.custom(value => value === 'x', { error })),
    object: both(z => z.object({ a: z.optional(z.string({ error })), b: z.boolean({ error }) }, { error })),
    optional: both(z => z.optional(z.boolean({ error }))),
    pipe: both(z =>
      z.pipe(
        z.transform((value: unknown) => (value === 'x' ? true : value)),
        z.boolean({ error })
      )
    ),
    piped: both(z =>
      z.pipe(
        z.string({ error }),
        z.transform((value: string) => value.length)
      )
    ),
    complaining: both(z =>
      z.pipe(
        z.transform((value: unknown, context) => {
          if (value === '') context.issues.push({ code: 'custom', message: 'empty', path: ['p'], input: value })
          return value
        }),
        z.string({ error })
      )
    )
  }
  const seen = (result: ReturnType<(typeof kinds)['custom'][0]['safeParse']>) =>
    result.success
      ? { data: result.data }
      : { issues: result.error.issues.map(({ path, message }) => ({ path, message })) }
  for (const [name, [own, other]] of Object.entries(kinds)) {
    for (const value of [...ODD, 'no', { b: true }, { a: 'x', b: false, c: 1 }, { a: 7 }]) {
      t.strictSame(seen(other.safeParse(value)), seen(own.safeParse(value)), `${name} of ${JSON.stringify(value)}`)
    }
  }
})

await t.test('nothing is compiled in browsers', async t => {
  t.strictSame(small.config(), { jitless: true })
  const schema = small.unknown()
  t.equal(small.compile(schema), schema)
})
