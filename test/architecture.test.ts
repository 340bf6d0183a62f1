import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'

/** The layers from the top: a file imports from its own and from those below it. */
const LAYERS = ['adapters', 'runtime', 'machines', 'machines/protocol'] as const

/** The rooms of the runtime from the bottom: a file imports from its own room and from those before it. */
const ROOMS = [
  'primitives', 'xstate', 'telemetry', 'ports', 'store', 'store/memory', 'authoring', 'access', 'streams', 'commits', 'timers', 'negotiation', 'work',
  'snapshots', 'webhooks', 'agent', 'contexts', 'operations', ''
]

/** The folders of the adapters in the same way. */
const ADAPTERS = [
  'peers', 'opentelemetry', 'push', 'ai', 'rows', 'storage', 'postgres', 'json-rpc', 'v03', 'client', 'react', 'auth', 'drawing', 'cards', 'entry', 'cluster', 'delegation', 'a2a-sdk', 'legacy', 'websocket',
  'http', 'metrics', 'serve', 'grpc', 'conformance', 'testing', 'inspector', 'cli'
]

/** Members of XState that begin with an underscore and may be used anywhere, with the reason. */
const PROMISED: Readonly<Record<string, string>> = {
  _parent: 'actors have it in the public types, and there is no other way to the parent of an actor'
}

/** What only comments on V8's memory say. */
const V8 = /\b(?:V8|hidden class|long-lived|ephemeron|old generation)/gi

/** The packages that a browser loads. */
const BROWSER_PACKAGES = ['zod', 'eventsource-parser', 'leven', 'preact', 'preact/hooks', 'marked', '@preact/signals', 'react']

const LONGEST_FILE = 500

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
    if (!/\.tsx?$/.test(path)) return []
    const text = readFileSync(path, 'utf8')
    return [{ path, text, imports: Array.from(text.matchAll(/(?:from|import\()\s*'([^']+)'/g), ([, name = '']) => name) }]
  })
}

/** Where a text stands in the sources of these paths. */
function found(sign: RegExp, isMeant: (path: string) => boolean = () => true): { path: string; name: string }[] {
  return files.filter(({ path }) => isMeant(path)).flatMap(({ path, text }) => Array.from(text.matchAll(sign), ([name]) => ({ path, name })))
}

const AT_ONCE = /from\s*'([^']+)'/g
const LATER = /import\(\s*'([^']+)'/g
const AT_ONCE_OR_LATER = /(?:from|import\()\s*'([^']+)'/g

/** The names that a file imports at run time: imports of types are not there. */
function importsIn(text: string, imports: RegExp): string[] {
  return Array.from(text.replaceAll(/^(?:import|export) type .*$/gm, '').matchAll(imports), ([, name = '']) => name)
}

/** The files that these load. `placed` gives the file that is loaded for a path. */
function loadedBy(entries: readonly string[], imports: RegExp, placed = (path: string) => path): SourceFile[] {
  const loaded = new Map<string, SourceFile>()
  const load = (path: string) => {
    const file = files.find(file => file.path === path)
    if (!file || loaded.has(path)) return
    loaded.set(path, file)
    for (const name of importsIn(file.text, imports).filter(name => name.startsWith('.'))) load(placed(normalize(join(dirname(path), name))))
  }
  for (const entry of entries) load(entry)
  return [...loaded.values()]
}

function layerOf(path: string): number {
  return LAYERS.findLastIndex(layer => path.startsWith(`${layer}/`))
}

function roomOf(path: string): string {
  return dirname(path).replace(/^runtime\/?/, '')
}

await t.test('imports go one way: adapters, runtime, machines, protocol', async t => {
  t.ok(files.length > 50)
  for (const { path, imports } of files) {
    for (const name of imports.filter(name => name.startsWith('.'))) {
      const target = normalize(join(dirname(path), name))
      t.ok(layerOf(target) >= layerOf(path), `${path} imports ${target}`)
    }
  }
})

await t.test('imports between rooms of the runtime go one way, including types', async t => {
  const rooms = files.filter(({ path }) => path.startsWith('runtime/')).map(({ path, imports }) => ({ path, imports, room: roomOf(path) }))
  t.strictSame(new Set(rooms.map(({ room }) => room)), new Set(ROOMS), 'every folder is a room')
  for (const { path, imports, room } of rooms) {
    for (const name of imports.filter(name => name.startsWith('.'))) {
      const target = normalize(join(dirname(path), name))
      if (target.startsWith('runtime/')) t.ok(ROOMS.indexOf(roomOf(target)) <= ROOMS.indexOf(room), `${path} imports ${target}`)
    }
  }
  const [readme, guide] = ['runtime/README.md', 'docs/architecture.md'].map(page => readFileSync(page, 'utf8'))
  for (const room of ROOMS.filter(Boolean)) t.ok(guide?.includes(room), `the guide names ${room}`)
  for (const room of ROOMS.filter(room => room && !room.includes('/'))) t.ok(readme?.includes(`| \`${room}\` |`), `the README names ${room}`)
})

await t.test('imports between folders of the adapters go one way, including types', async t => {
  const folderOf = (path: string) => path.split('/')[1] ?? ''
  const adapters = files.filter(({ path }) => path.startsWith('adapters/'))
  t.strictSame(new Set(adapters.map(({ path }) => folderOf(path))), new Set(ADAPTERS))
  for (const { path, imports } of adapters) {
    for (const name of imports.filter(name => name.startsWith('.'))) {
      const target = normalize(join(dirname(path), name))
      if (target.startsWith('adapters/')) t.ok(ADAPTERS.indexOf(folderOf(target)) <= ADAPTERS.indexOf(folderOf(path)), `${path} imports ${target}`)
    }
  }
  for (const folder of ADAPTERS) t.ok(readFileSync('docs/architecture.md', 'utf8').includes(folder), folder)
})

await t.test('a folder of the adapters has at most twenty files, and a README if large', async t => {
  const paths = files.flatMap(({ path }) => (path.startsWith('adapters/') ? [path] : []))
  for (const folder of new Set(paths.map(dirname))) t.ok(paths.filter(path => dirname(path) === folder).length <= 20, folder)
  for (const folder of ADAPTERS) {
    const own = paths.filter(path => path.startsWith(`adapters/${folder}/`)).map(path => path.split('/').slice(2))
    if (own.length <= 8) continue
    const readme = readFileSync(`adapters/${folder}/README.md`, 'utf8')
    for (const [name = '', isFolder] of own) t.ok(readme.includes(isFolder === undefined ? `\`${name.replace(/\.tsx?$/, '')}\`` : `\`${name}/\``), `the README of ${folder} names ${name}`)
  }
})

await t.test('only one room uses undocumented parts of XState', async t => {
  const dist = 'node_modules/xstate/dist'
  const sources = readdirSync(dist).filter(name => name.endsWith('.cjs.js')).map(name => readFileSync(join(dist, name), 'utf8'))
  const members = new Set(sources.flatMap(text => Array.from(text.matchAll(/\.(_[a-z]\w+)/g), ([, name = '']) => name)))
  t.ok(members.has('_nodes') && members.has('_bookId') && Object.keys(PROMISED).every(name => members.has(name)))
  const isPrivate = (name: string) => name === 'retryResolve' || (members.has(name) && !Object.hasOwn(PROMISED, name))
  t.strictSame(found(/\b(?:_[a-z]\w+|retryResolve|scheduler\.schedule)\b/g, path => !path.startsWith('runtime/xstate/')).filter(({ name }) => name.startsWith('scheduler') || isPrivate(name)), [])
})

await t.test("only two rooms depend on V8's memory management", async t => {
  t.strictSame(found(V8, path => !/^runtime\/(?:xstate|primitives)\//.test(path)), [])
})

await t.test('what sockets, streams and threads send is received in one way', async t => {
  const listeners = /(?:\b(?:on|once|addListener|prependListener|addEventListener)\(\s*['"](?:message|data)['"]|\bonmessage\b)/g
  // The script of a page is text here.
  t.strictSame(found(listeners, path => !['runtime/primitives/received.ts', 'adapters/inspector/stately/stately-page.ts'].includes(path)), [])
  t.equal(found(/\b(?:onReceived|onMessageEvent)\(/g, path => path !== 'runtime/primitives/received.ts').length > 10, true)
})

await t.test('charts and words are pure: no Node, no clock, no ids, no console', async t => {
  for (const { path, text, imports } of files.filter(({ path }) => path.startsWith('machines/'))) {
    t.same(imports.filter(name => !name.startsWith('.') && !['xstate', 'zod'].includes(name)), [], path)
    t.notMatch(text, /\b(?:Date\.now|new Date\(\)|setTimeout|crypto\.|nanoid|console\.|process\.|Math\.random)/, path)
  }
})

await t.test('browser code imports nothing of Node, and no optional peer', async t => {
  /** Browsers get `NAME.browser.ts` in place of `NAME.ts`, if it is there. */
  const inBrowser = (path: string) => files.find(file => file.path === path.replace(/\.ts$/, '.browser.ts'))?.path ?? path
  const loaded = loadedBy(['adapters/client/connect.ts', 'adapters/react/index.ts', 'adapters/inspector/page/main.tsx'], AT_ONCE_OR_LATER, inBrowser)
  t.ok(loaded.length > 50)
  for (const { path, text } of loaded) {
    t.strictSame(importsIn(text, AT_ONCE_OR_LATER).filter(name => !name.startsWith('.') && !BROWSER_PACKAGES.includes(name)), [], path)
    t.notMatch(text, /\bBuffer\b/, path)
  }
})

await t.test('the command line loads a command when it runs it', async t => {
  const [atOnce = [], later = []] = [AT_ONCE, AT_ONCE_OR_LATER].map(imports => loadedBy(['adapters/cli/bin.ts'], imports).map(({ path }) => path))
  const commands = importsIn(readFileSync('adapters/cli/commands.ts', 'utf8'), LATER).map(name => normalize(join('adapters/cli', name)))
  t.equal(commands.length, 19)
  t.strictSame(commands.filter(path => atOnce.includes(path) || !later.includes(path)), [])
  t.ok(atOnce.length < 30, `it loads ${atOnce.length} modules before that`)
})

await t.test('no file is longer than its limit, and none contains a TODO', async t => {
  t.strictSame(files.flatMap(({ path, text }) => (text.split('\n').length > LONGEST_FILE + 1 ? [path] : [])), [])
  t.strictSame(found(/\b(?:TODO|FIXME|HACK|@ts-ignore|@ts-expect-error)\b|\bas any\b/g), [])
})

await t.test('the lock file names no download addresses', async t => {
  t.notMatch(readFileSync('package-lock.json', 'utf8'), '"resolved"')
})
