import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadWithModules, readLocalModules } from '../../../../adapters/testing/diff/local-modules.ts'
import type { LocalModules } from '../../../../runtime/work-port.ts'

/** What a source reads of an agent's module, by the names of the statements. */
function reads(t: Test, module: string, source: string): string[] {
  const folder = t.testdir({ 'agent.ts': module })
  return [...readLocalModules(join(folder, 'agent.ts')).readsOf([source]).keys()]
}

await t.test('local modules are read through each other, with their packages', t => {
  const folder = t.testdir({
    'agent.ts': `
import { a } from './lib/a.js'
import data from './data.json' with { type: 'json' }
import { readFileSync } from 'node:fs'
import { assign } from 'xstate'
export * from './charts'
const late = () => import('./late')
const older = require('./older.cjs')
new URL('./prompt.txt', import.meta.url)
import './gone.js'
`,
    lib: { 'a.ts': "import '../agent.ts'\nimport { z } from 'zod'\nexport const a = 1", 'view.tsx': "<p>it's</p>" },
    charts: { 'index.ts': "import '../lib/view.tsx'\nexport const chart = setup({}).createMachine({})" },
    'data.json': '{}',
    'late.mts': '',
    'older.cjs': '',
    'prompt.txt': "it's a text"
  })
  const modules = readLocalModules(join(folder, 'agent.ts'))
  t.strictSame(modules.charts, ['agent.ts', 'charts/index.ts'])
  t.strictSame(
    [...modules.others.keys()],
    ['data.json', 'lib/a.ts', 'lib/view.tsx', 'late.mts', 'older.cjs', 'prompt.txt'].toSorted()
  )
  t.strictSame(modules.packages, ['xstate', 'zod'])
  t.end()
})

await t.test('a source reads the statements that it mentions, also through others', t => {
  const module = `
import { assign, emit as send } from 'xstate'
import * as prices from 'prices'
const LIMIT = 4, OTHER = 5
const { small, large } = sizes
export function isLong(text: string) {
  return text.length > LIMIT
}
export class Order extends Base { total = isLong('') }
let count = 0
count += 1
Object.assign(config, { small })
if (count > 1) {
  other = 2
} else { another = 3 }
const words = \`a \${ LIMIT } b\`
type Size = 'small'
export default defineAgent({ work: isLong })
const chart = createMachine({ unread })
`
  t.strictSame(reads(t, module, '() => isLong("")').toSorted(), ['LIMIT, OTHER', 'isLong'].toSorted())
  t.match(reads(t, module, '() => new Order()'), ['Order, Base', 'isLong', 'LIMIT, OTHER'])
  t.match(reads(t, module, '() => count').join('; '), /count/)
  t.match(reads(t, module, '() => config').join('; '), /Object, config/)
  t.match(reads(t, module, '() => send()'), ['emit, as, send'])
  t.match(reads(t, module, '() => words').toSorted(), ['LIMIT, OTHER', 'words'])
  t.strictSame(reads(t, module, '() => unread'), [], 'charts are compared by themselves')
  t.strictSame(reads(t, module, '({ context: { LIMIT: own } }) => own'), [])
  t.ok(reads(t, module, '() => large').length > 0)
  t.ok(reads(t, module, '() => another').length > 0)
  t.end()
})

await t.test('a module whose tokens cannot be told is one statement', t => {
  const folder = t.testdir({ 'agent.jsx': "const a = <p>it's</p>\nconst b = 'b'" })
  const modules = readLocalModules(join(folder, 'agent.jsx'))
  t.equal(modules.readsOf(['() => b']).size, 1)
  t.strictSame(modules.readsOf(['() => c']).size, 0)
  t.end()
})

await t.test('a module may begin with a text in parentheses, and end with a word', t => {
  t.strictSame(reads(t, "('./x')\nexport default\n", '() => x'), [])
  t.end()
})

await t.test('local modules are those that were loaded, and not known if one changed meanwhile', async t => {
  const folder = t.testdir({ 'agent.mjs': "import './price.mjs'", 'price.mjs': 'export const price = 1' })
  const [path, price] = [join(folder, 'agent.mjs'), join(folder, 'price.mjs')]
  const write = async (text: string) => writeFileSync(price, `export const price = ${text}`)
  const pricesOf = ({ localModules }: { localModules: () => LocalModules }) => localModules().others.get('price.mjs')
  const before = await loadWithModules(path, async () => 'the module')
  await write('2')
  t.match([before.loaded, pricesOf(before)], ['the module', /= 1/])
  const hasChanged = { message: `${price} has changed while it was loaded. Run the command again` }
  const meanwhile = await loadWithModules(path, () => write('3'))
  t.throws(meanwhile.localModules, hasChanged)
  t.match(pricesOf(await loadWithModules(path, async () => {})), /= 3/)
  const gone = await loadWithModules(path, async () => rmSync(price))
  t.throws(gone.localModules, hasChanged)
  const unreadable = await loadWithModules(join(folder, 'none.mjs'), async () => {})
  t.throws(unreadable.localModules, { code: 'ENOENT' })
})
