import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'

/** The layers from the top: a file imports from its own and from those below it. */
const LAYERS = ['adapters', 'runtime', 'machines', 'machines/protocol'] as const

const LONGEST_FILE = 300

interface SourceFile {
  readonly path: string
  readonly text: string
  readonly imports: string[]
}

const files = ['adapters', 'runtime', 'machines'].flatMap(sources)

function sources(folder: string): SourceFile[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return sources(path)
    const text = readFileSync(path, 'utf8')
    return [{ path, text, imports: Array.from(text.matchAll(/(?:from|import\()\s*'([^']+)'/g), ([, name = '']) => name) }]
  })
}

function layerOf(path: string): number {
  return LAYERS.findLastIndex(layer => path.startsWith(`${layer}/`))
}

await t.test('arrows go one way: adapters, runtime, machines, protocol', async t => {
  t.ok(files.length > 50)
  for (const { path, imports } of files) {
    for (const name of imports.filter(name => name.startsWith('.'))) {
      const target = normalize(join(dirname(path), name))
      t.ok(layerOf(target) >= layerOf(path), `${path} imports ${target}`)
    }
  }
})

await t.test('the charts and the words are pure: no Node, no clock, no ids, no console', async t => {
  for (const { path, text, imports } of files.filter(({ path }) => path.startsWith('machines/'))) {
    t.same(imports.filter(name => !name.startsWith('.') && !['xstate', 'zod'].includes(name)), [], path)
    t.notMatch(text, /\b(?:Date\.now|new Date\(\)|setTimeout|crypto\.|nanoid|console\.|process\.|Math\.random)/, path)
  }
})

await t.test('what a browser loads imports nothing of Node', async t => {
  const loaded = new Set<string>()
  /** What is there at run time: imports of types are not. */
  const importsOf = (text: string) => Array.from(text.replaceAll(/^(?:import|export) type .*$/gm, '').matchAll(/(?:from|import\()\s*'([^']+)'/g), ([, name = '']) => name)
  const load = (path: string) => {
    const file = files.find(file => file.path === path)
    if (!file || loaded.has(path)) return
    loaded.add(path)
    for (const name of importsOf(file.text).filter(name => name.startsWith('.'))) load(normalize(join(dirname(path), name)))
  }
  for (const entry of ['adapters/client/connect.ts', 'adapters/inspector/page/main.tsx']) load(entry)
  t.ok(loaded.size > 50)
  for (const path of loaded) {
    const { text = '' } = files.find(file => file.path === path) ?? {}
    t.same(importsOf(text).filter(name => name.startsWith('node:')), [], path)
    t.notMatch(text, /\bBuffer\b/, path)
  }
})

await t.test('no file is longer than its limit, and none leaves work for later', async t => {
  for (const { path, text } of files) {
    t.ok(text.split('\n').length <= LONGEST_FILE + 1, path)
    t.notMatch(text, /\b(?:TODO|FIXME|HACK|@ts-ignore|@ts-expect-error)\b|\bas any\b/, path)
  }
})

await t.test('the lock file names no download addresses', async t => {
  t.notMatch(readFileSync('package-lock.json', 'utf8'), '"resolved"')
})
