import t from 'tap'
import { defaultLimits, limitsWith } from '../../../runtime/access/limits.ts'

await t.test('a limit that is not above 0 is refused at once, by its name', t => {
  t.same(limitsWith(), defaultLimits)
  t.equal(limitsWith({ jsonDepth: 3 }).jsonDepth, 3)
  t.throws(() => limitsWith({ messageByte: 3 } as never), {
    name: 'TypeError',
    message: 'limits has no messageByte. Is messageBytes meant?'
  })
  t.throws(() => limitsWith({ size: 3 } as never), {
    name: 'TypeError',
    message: /^limits has no size\. There are tasksPerContext, eventsPerTask, /
  })
  for (const wrong of [0, -1, NaN])
    t.throws(() => limitsWith({ messageBytes: wrong }), {
      name: 'RangeError',
      message: /limits\.messageBytes has to be a number above 0/
    })
  t.end()
})
