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

await t.test('the guide to sizing has a line for each limit, with its default', t => {
  const guide = readFileSync('docs/sizing.md', 'utf8')
  const { perTenant, perPrincipal, ...single } = defaultLimits
  for (const name of Object.keys(single))
    t.match(guide, new RegExp(`^\\| \`${name}\` \\| [^|]+ \\| [^|]+ \\|$`, 'm'), name)
  t.match(guide, '| `perPrincipal.openTasks`, `perTenant.openTasks` | 1,000,000; 10,000,000 |')
  t.match([perPrincipal.openTasks, perTenant.openTasks], [1_000_000, 10_000_000])
  t.end()
})
