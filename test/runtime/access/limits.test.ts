import { readFileSync } from 'node:fs'
import t from 'tap'
import { defaultLimits, limitsWith } from '../../../runtime/access/limits.ts'

await t.test('a limit that is not above 0 is refused at once, by its name', t => {
  t.same(limitsWith(), defaultLimits)
  t.equal(limitsWith({ advanced: { jsonDepth: 3 } }).jsonDepth, 3)
  t.throws(() => limitsWith({ messageByte: 3 } as never), {
    name: 'TypeError',
    message: 'limits has no messageByte. Is messageBytes meant?'
  })
  t.throws(() => limitsWith({ size: 3 } as never), {
    name: 'TypeError',
    message: /^limits has no size\. There are tasksPerContext, eventsPerTask, /
  })
  t.throws(() => limitsWith({ hastyTurns: 3 } as never), {
    name: 'TypeError',
    message: 'limits has no hastyTurns. It is an advanced one: limits: { advanced: { hastyTurns } }.'
  })
  t.throws(() => limitsWith({ advanced: { hastyTurn: 3 } as never }), {
    name: 'TypeError',
    message: 'limits.advanced has no hastyTurn. Is hastyTurns meant?'
  })
  t.throws(() => limitsWith({ advanced: { messageBytes: 3 } as never }), {
    name: 'TypeError',
    message: /^limits\.advanced has no messageBytes/
  })
  for (const wrong of [0, -1, NaN])
    t.throws(() => limitsWith({ messageBytes: wrong }), {
      name: 'RangeError',
      message: /limits\.messageBytes has to be a number above 0/
    })
  t.end()
})

const UNITS: Readonly<Record<string, number>> = {
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000
}

/** The number that a text says: bytes of `4 MiB`, milliseconds of `3 days`, 100 of `100 a second`. */
function numberIn(text: string): number {
  const [, digits = '', unit = ''] = /^([\d.,]*\d)(?: (MiB|GiB|second|minute|hour|day)s?)?/.exec(text) ?? []
  return Number(digits.replaceAll(',', '')) * (UNITS[unit] ?? 1)
}

await t.test('the guide to sizing, and the comment of each limit, have its default', t => {
  const guide = readFileSync('docs/sizing.md', 'utf8')
  const source = readFileSync('runtime/access/limits.ts', 'utf8')
  const comments = new Map(
    Array.from(
      source.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\n {2}(\w+): (?:number|Quota)$/gm),
      ([, comment = '', name = '']) => [name, comment.replaceAll(/\s*\n\s*\*\s*/g, ' ')]
    )
  )
  const { perTenant, perPrincipal, ...single } = defaultLimits
  for (const [name, value] of Object.entries(single)) {
    const [, shown = ''] = new RegExp(`^\\| \`${name}\` \\| ([^|]+) \\| [^|]+ \\|$`, 'm').exec(guide) ?? []
    t.equal(numberIn(shown), value, `the guide says ${shown} of ${name}`)
    const [, said = ''] = /\bDefault ([^]+?)\.\s*$/.exec(comments.get(name) ?? '') ?? []
    t.equal(numberIn(said), value, `the comment says ${said} of ${name}`)
  }
  t.match(guide, '| `perPrincipal.openTasks`, `perTenant.openTasks` | 1,000,000; 10,000,000 |')
  t.match([perPrincipal.openTasks, perTenant.openTasks], [1_000_000, 10_000_000])
  const [, said = ''] = /Default (.*) per minute/.exec(comments.get('perTenant') ?? '') ?? []
  t.same(said.split(/, | and /).map(numberIn), Object.values(perTenant))
  t.match(comments.get('perPrincipal'), 'Default a tenth of `perTenant`.')
  t.same(
    Object.values(perPrincipal).map(value => value * 10),
    Object.values(perTenant)
  )
  t.end()
})
