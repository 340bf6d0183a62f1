import t from 'tap'
import { afterRounds, afterRound } from '../../../runtime/primitives/event-loop.ts'

await t.test('a callback after some turns waits only while others arrive', async t => {
  for (const [company, waited] of [
    [0, 2],
    [2, 3],
    [9, 5]
  ] as const) {
    let turns = 0
    const called: number[] = []
    afterRounds(5, () => called.push(turns))
    while (called.length === 0) {
      if (turns < company) afterRound(() => {})
      await new Promise(resolve => setImmediate(resolve))
      turns += 1
    }
    t.equal(turns, waited, `${company} turns with others`)
  }
})

await t.test('callbacks for the end of a turn run in order, and nested ones later', async t => {
  const called: string[] = []
  const ended = new Promise<void>(resolve => afterRounds(3, resolve))
  afterRounds(2, () => called.push('second turn'))
  afterRound(() => {
    called.push('first')
    afterRound(() => called.push('of the first'))
  })
  afterRound(() => called.push('after it'))
  t.strictSame(called, [])
  await ended
  t.strictSame(called, ['first', 'after it', 'second turn', 'of the first'])
  await new Promise<void>(afterRound)
  t.equal(called.length, 4, 'each once')
})
