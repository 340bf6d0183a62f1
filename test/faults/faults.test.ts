import { readFileSync } from 'node:fs'
import t from 'tap'
import { planted } from './fault.ts'
import { FAULTS } from './faults.ts'

const page = readFileSync('test/faults/README.md', 'utf8')

await t.test('the text that a fault replaces occurs in the source exactly once', async t => {
  for (const fault of FAULTS) {
    const source = readFileSync(fault.file, 'utf8')
    t.not(planted(source, fault), source, fault.name)
  }
  t.throws(
    () => planted('twice twice', { name: 'a fault', file: 'a.ts', find: 'twice', replace: '' }),
    /"a fault" looks for a text that is not in a\.ts exactly once: twice/
  )
  t.throws(() => planted('', { name: 'a fault', file: 'a.ts', find: 'once', replace: '' }), /not in a\.ts exactly once/)
})

await t.test('every fault has a unique name, a row of the table and a detecting test', async t => {
  const names = FAULTS.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  const rows = page.split('\n').filter(line => / `(?:machines|runtime|adapters|examples)\//.test(line))
  const shown = rows.map(row => row.split(' | ')[0]?.replace('| ', ''))
  t.strictSame(shown, names)
  t.strictSame(
    rows.filter(row => row.includes('nothing catches it')),
    []
  )
})
