import t from 'tap'
import { coverageLines, isWhole, type Coverage } from './coverage.ts'

const WHOLE: readonly number[] = [4, 3, 2, 4]
const found = (covered: readonly number[], total: readonly number[] = WHOLE): Coverage =>
  new Map([['runtime/runtime.ts', { covered, total }]])

await t.test(
  'what a complete run had covered and this one has not is lost, and what a source has no more is not',
  async t => {
    const record = new Map([
      ['runtime/runtime.ts', WHOLE],
      ['runtime/index.ts', [1, 0, 0, 1]],
      ['runtime/removed.ts', [9, 9, 9, 9]]
    ])
    t.strictSame(coverageLines(found([4, 1, 2, 4]), record), [
      'Covered: 4 of 4 statements, 1 of 3 branches, 2 of 2 functions, 4 of 4 lines',
      'Lost against test/coverage.json, which a complete run writes:',
      '  runtime/index.ts: 1 statements, 1 lines',
      '  runtime/runtime.ts: 2 branches'
    ])
    record.delete('runtime/index.ts')
    t.strictSame(coverageLines(found([3, 2, 2, 3], [3, 2, 2, 3]), record).slice(1), [
      'Nothing was lost against test/coverage.json'
    ])
  }
)

await t.test('only a few of the files that lost something are named', async t => {
  const record = new Map(
    [
      'runtime/',
      'machines/',
      'adapters/',
      'examples/',
      'test/',
      'docs/',
      'README.md',
      'package.json',
      'LICENSE',
      'CHANGELOG.md'
    ].map(path => [path, [1, 0, 0, 1]])
  )
  const lines = coverageLines(new Map(), record)
  t.equal(lines.length, 11)
  t.equal(lines.at(-1), '  and of 2 more files')
})

await t.test('sources are covered whole if every part is', async t => {
  t.ok(isWhole(found(WHOLE)))
  t.notOk(isWhole(found([4, 3, 2, 3])))
  t.notOk(isWhole(new Map()))
})
