import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import t from 'tap'
import { parseAst } from 'vite'

/** The layers from the top: a file imports from its own and from those below it. */
const LAYERS = ['adapters', 'runtime', 'machines', 'machines/protocol'] as const

/** The rooms of the runtime from the bottom: a file imports from its own room and from those before it. */
const ROOMS = [
  'primitives',
  'xstate',
  'telemetry',
  'ports',
  'store',
  'store/memory',
  'authoring',
  'access',
  'streams',
  'commits',
  'negotiation',
  'work',
  'snapshots',
  'webhooks',
  'agent',
  'definitions',
  'contexts',
  'operations',
  ''
]

/** The folders of the adapters in the same way. */
const ADAPTERS = [
  'peers',
  'opentelemetry',
  'push',
  'ai',
  'rows',
  'storage',
  'postgres',
  'json-rpc',
  'v03',
  'client',
  'react',
  'auth',
  'drawing',
  'entry',
  'cluster',
  'delegation',
  'a2a-sdk',
  'legacy',
  'websocket',
  'http',
  'mcp',
  'ag-ui',
  'serve',
  'grpc',
  'conformance',
  'testing',
  'inspector',
  'cli'
]

/** Members of XState that begin with an underscore and may be used anywhere, with the reason. */
const PROMISED: Readonly<Record<string, string>> = {
  _parent: 'actors have it in the public types, and there is no other way to the parent of an actor'
}

/** The files that import values of XState, with the reason. All others import types only. */
const XSTATE_VALUES: Readonly<Record<string, string>> = {
  'adapters/conformance/protocol.machine.ts': 'a chart',
  'adapters/testing/plan/graph.ts': '@xstate/graph finds the configurations of a chart',
  'machines/context.machine.ts': 'a chart',
  'machines/negotiation.machine.ts': 'a chart',
  'machines/task.machine.ts': 'a chart',
  'runtime/xstate/builtin-actions.ts': 'the actions of XState in compiled charts',
  'runtime/xstate/compiled-machine.ts': 'a compiled chart, evaluated by the guards of XState',
  'runtime/xstate/library.ts': 'the functions of XState that other files call',
  'runtime/xstate/self-check.ts': 'a chart, and the comparison with XState'
}

/** The files that read the states and transitions of XState. All others read the outline of a chart. */
const STATE_NODES: Readonly<Record<string, string>> = {
  'adapters/inspector/stately.ts': 'the protocol of Stately has the configuration of a chart',
  'machines/properties/terms.ts': 'charts know nothing of the runtime, which has the outline',
  'runtime/xstate/compiled-machine.ts': 'compiles a chart',
  'runtime/xstate/guarded-chart.ts': 'makes a chart with other guards of the configuration of a chart',
  'runtime/xstate/persisted-snapshot.ts': 'compares a snapshot with a chart',
  'runtime/xstate/pure-step.ts': 'makes a chart with a limit of the configuration of a chart',
  'runtime/xstate/skeleton-chart.ts': 'makes a chart without code of an outline, and finds its states by their ids',
  'runtime/xstate/state-nodes.ts': 'reads them for the others',
  'runtime/xstate/transition-counter.ts': 'counts transitions',
  'runtime/xstate/written-chart.ts': 'makes the outline'
}

/** What only comments on V8's memory say. */
const V8 = /\b(?:V8|hidden class|long-lived|ephemeron|old generation)/gi

/** The packages that a browser loads. */
const BROWSER_PACKAGES = [
  'zod',
  'eventsource-parser',
  'leven',
  'preact',
  'preact/hooks',
  'marked',
  '@preact/signals',
  'react'
]

const LONGEST_FILE = 500

const LONGEST_LINE = 120

/** The files of the runtime that adapters may import. */
const MOST_DOORS = 30

/** The files of a folder, apart from those of its folders. */
const MOST_FILES = 20

/** The files of a folder of the adapters that needs no README, with those of its folders. */
const MOST_WITHOUT_README = 8

/** A shorter file has importers in two folders, or a reason. */
const SHORT_FILE = 60

/** Files that are short for another reason. The list only becomes shorter. */
const SHORT: Readonly<Record<string, string>> = {
  'adapters/cli/cluster/end-with-parent.ts': 'a process imports it by its address',
  'adapters/cli/cluster/run-postgres.ts': 'the entry of a process',
  'adapters/cli/dev/fresh-module-hooks.ts': 'the entry of a thread: hooks of modules',
  'adapters/cli/open.ts': 'a command',
  'adapters/cli/process/apart.ts': 'its importer is a process as soon as it is imported',
  'adapters/client/browser/vite.config.ts': 'the configuration of a build',
  'adapters/client/openers.browser.ts': 'a twin for browsers',
  'adapters/client/retries/whole-streams.ts': 'it loads the rest when a stream is lost',
  'adapters/client/transports/websocket/client-socket.ts': 'shared by twins',
  'adapters/client/transports/websocket/socket.browser.ts': 'a twin for browsers',
  'adapters/drawing/layout-thread.ts': 'the entry of a thread',
  'adapters/inspector/page/vite.config.ts': 'the configuration of a build',
  'adapters/inspector/page/without-eval.ts': 'the first script of the page',
  'adapters/react/react.d.ts': 'types of an optional peer'
}

/** The words of an author that are participles. */
const PARTICIPLES = ['accepted', 'declined', 'failed', 'refined', 'rejected', 'typed']

/**
 * Names that are exported more than once: the public ones say the same thing on both sides, the others are parts of the
 * page.
 */
const TWICE = ['AgentProvider', 'Question', 'conversation', 'textOf']

/** An import of a file. Types are not loaded. */
interface Import {
  readonly name: string
  readonly loads: 'types' | 'at once' | 'later'
}

interface SourceFile {
  readonly path: string
  readonly text: string
  readonly all: readonly Import[]
  /** The names of its imports, also those of types. */
  readonly imports: string[]
  /** The texts and the patterns in its code. */
  readonly literals: string[]
}

const files = ['adapters', 'runtime', 'machines'].flatMap(sources)

function sources(folder: string): SourceFile[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return sources(path)
    if (!/\.tsx?$/.test(path)) return []
    const text = readFileSync(path, 'utf8')
    const syntax = parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts', sourceType: 'module' })
    const all = importsIn(syntax)
    return [{ path, text, all, imports: all.map(({ name }) => name), literals: literalsIn(syntax) }]
  })
}

/** The part of a syntax tree that imports and literals are read from. */
interface Syntax {
  readonly type?: string
  readonly value?: unknown
  readonly regex?: { readonly pattern: string }
  readonly source?: { readonly value?: unknown } | null
  readonly importKind?: string
  readonly exportKind?: string
}

function childrenOf(node: Syntax): Syntax[] {
  return Object.values(node)
    .flat()
    .filter((child: unknown): child is Syntax => typeof child === 'object' && child !== null)
}

function literalsIn(node: Syntax): string[] {
  const { type, value, regex } = node
  const own =
    type === 'TemplateElement'
      ? (value as { readonly raw: string }).raw
      : type === 'Literal' && (regex?.pattern ?? value)
  return [...(typeof own === 'string' ? [own] : []), ...childrenOf(node).flatMap(literalsIn)]
}

function importsIn(node: Syntax): Import[] {
  const { type = '', source, importKind, exportKind } = node
  const name = source?.value
  const isType = importKind === 'type' || exportKind === 'type' || type === 'TSImportType'
  const own: Import[] =
    typeof name === 'string'
      ? [{ name, loads: isType ? 'types' : type === 'ImportExpression' ? 'later' : 'at once' }]
      : []
  return [...own, ...childrenOf(node).flatMap(importsIn)]
}

/** Where a text stands in the sources of these paths. */
function found(sign: RegExp, isMeant: (path: string) => boolean = () => true): { path: string; name: string }[] {
  return files
    .filter(({ path }) => isMeant(path))
    .flatMap(({ path, text }) => Array.from(text.matchAll(sign), ([name]) => ({ path, name })))
}

/** The names that a file loads. */
function loadsOf({ all }: SourceFile, when: readonly Import['loads'][]): string[] {
  return all.flatMap(({ name, loads }) => (when.includes(loads) ? [name] : []))
}

/** The files that these load. `placed` gives the file that is loaded for a path. */
function loadedBy(
  entries: readonly string[],
  when: readonly Import['loads'][],
  placed = (path: string) => path
): SourceFile[] {
  const loaded = new Map<string, SourceFile>()
  const load = (path: string) => {
    const file = files.find(file => file.path === path)
    if (!file || loaded.has(path)) return
    loaded.set(path, file)
    for (const name of loadsOf(file, when).filter(name => name.startsWith('.')))
      load(placed(normalize(join(dirname(path), name))))
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

/** The bindings, and what they share. */
const BINDINGS = ['entry', 'grpc', 'http', 'json-rpc', 'serve', 'websocket'].map(name => `adapters/${name}/`)

/** Decisions, and the words that make them: only these files of the folders have them. */
const DECISIONS = [
  {
    decision: 'whether a task takes an event',
    words: String.raw`\bsnapshot\)?\.can\(`,
    within: ['runtime/'],
    places: ['runtime/contexts/external-events.ts']
  },
  {
    decision: 'which version of A2A a request asks for',
    words: String.raw`\bnormaliseVersion\(\w*[tT]ext|\bnormaliseVersion\(.*[pP]arameters`,
    within: BINDINGS,
    places: ['adapters/json-rpc/dispatch.ts']
  },
  {
    decision: 'how a request counts that reaches no operation',
    words: String.raw`\.rejected\(`,
    within: ['runtime/', 'adapters/'],
    places: ['runtime/access/quotas.ts', 'runtime/operations/admission.ts']
  },
  {
    decision: 'when a stream or an answer ends',
    words: String.raw`return !?isTerminal\(\w+\) (?:\|\||&&)`,
    within: ['machines/', 'runtime/', 'adapters/'],
    places: ['machines/protocol/states.ts']
  },
  {
    decision: 'how work starts',
    words: String.raw`send\(\{ type: 'task\.start'`,
    within: ['runtime/'],
    places: ['runtime/contexts/work-host.ts']
  },
  {
    decision: 'whether the runtime is closed',
    words: String.raw`throw runtimeClosing\(\)`,
    within: ['runtime/'],
    places: ['runtime/contexts/dependencies.ts']
  },
  {
    decision: 'whether a caller may use the tenant of a call',
    words: String.raw`tenants\.has\(`,
    within: ['runtime/', 'adapters/'],
    places: ['runtime/access/quotas.ts']
  },
  {
    decision: 'which node makes a change',
    words: String.raw`cluster\.runOnOwner\(`,
    within: ['runtime/'],
    places: ['runtime/operations/deliver.ts', 'runtime/operations/send-on-node.ts']
  }
]

await t.test('imports are read from the syntax, also over several lines', async t => {
  const text =
    "import {\n  a\n} from './a.ts'\nimport type { B } from './b.ts'\nexport *\n  from './c.ts'\nexport const d = (e: import('./e.ts').E) => import(\n  './f.ts'\n)"
  t.strictSame(importsIn(parseAst(text, { lang: 'ts' })), [
    { name: './a.ts', loads: 'at once' },
    { name: './b.ts', loads: 'types' },
    { name: './c.ts', loads: 'at once' },
    { name: './e.ts', loads: 'types' },
    { name: './f.ts', loads: 'later' }
  ])
  t.ok(files.flatMap(({ all }) => all).length > 3000)
  const silent = files
    .filter(({ imports, text }) => imports.length === 0 && /^import /m.test(text))
    .map(({ path }) => path)
  t.strictSame(silent, [], 'no file has imports that were not found')
})

await t.test('imports go one way: adapters, runtime, machines, protocol', async t => {
  for (const { path, imports } of files) {
    for (const name of imports.filter(name => name.startsWith('.'))) {
      const target = normalize(join(dirname(path), name))
      t.ok(
        layerOf(target) >= layerOf(path),
        `${path} imports ${target}: move what it needs to its own layer or to one below it`
      )
    }
  }
})

await t.test('imports between rooms of the runtime go one way, including types', async t => {
  const rooms = files
    .filter(({ path }) => path.startsWith('runtime/'))
    .map(({ path, imports }) => ({ path, imports, room: roomOf(path) }))
  t.strictSame(
    new Set(rooms.map(({ room }) => room)),
    new Set(ROOMS),
    'every folder is a room: add a new one to ROOMS, to runtime/README.md and to docs/architecture.md'
  )
  for (const { path, imports, room } of rooms) {
    for (const name of imports.filter(name => name.startsWith('.'))) {
      const target = normalize(join(dirname(path), name))
      if (target.startsWith('runtime/'))
        t.ok(
          ROOMS.indexOf(roomOf(target)) <= ROOMS.indexOf(room),
          `${path} imports ${target}: move what it needs to its own room or to one below it`
        )
    }
  }
  const [readme, guide] = ['runtime/README.md', 'docs/architecture.md'].map(page => readFileSync(page, 'utf8'))
  for (const room of ROOMS.filter(Boolean)) t.ok(guide?.includes(room), `docs/architecture.md names the room ${room}`)
  const listed = Array.from(readme?.matchAll(/^\| `(\w+)` \|/gm) ?? [], ([, room]) => room)
  t.strictSame(
    new Set(listed),
    new Set(ROOMS.filter(room => room && !room.includes('/'))),
    'runtime/README.md has a row for each room'
  )
})

await t.test('imports between folders of the adapters go one way, including types', async t => {
  const folderOf = (path: string) => path.split('/')[1] ?? ''
  const adapters = files.filter(({ path }) => path.startsWith('adapters/'))
  t.strictSame(
    new Set(adapters.map(({ path }) => folderOf(path))),
    new Set(ADAPTERS),
    'every folder has its place: add a new one to ADAPTERS and to docs/architecture.md'
  )
  for (const { path, imports } of adapters) {
    for (const name of imports.filter(name => name.startsWith('.'))) {
      const target = normalize(join(dirname(path), name))
      if (target.startsWith('adapters/'))
        t.ok(
          ADAPTERS.indexOf(folderOf(target)) <= ADAPTERS.indexOf(folderOf(path)),
          `${path} imports ${target}: move what it needs to its own folder or to one below it`
        )
    }
  }
  const guide = readFileSync('docs/architecture.md', 'utf8')
  for (const folder of ADAPTERS) t.ok(guide.includes(folder), `docs/architecture.md names the folder ${folder}`)
})

await t.test('adapters enter the runtime through its doors, which the guide lists', async t => {
  const [, guide = ''] = readFileSync('docs/architecture.md', 'utf8').split(/^### The doors$/m)
  const doors = Array.from(
    guide.replace(/^## [^]*/m, '').matchAll(/^\| `(runtime\/[\w/-]+\.ts)` \| [^|]+ \|$/gm),
    ([, door = '']) => door
  )
  const entered = files
    .filter(({ path }) => path.startsWith('adapters/'))
    .flatMap(({ path, imports }) =>
      imports.filter(name => name.startsWith('.')).map(name => normalize(join(dirname(path), name)))
    )
  t.strictSame(
    [...new Set(entered.filter(path => path.startsWith('runtime/')))].toSorted(),
    doors.toSorted(),
    'docs/architecture.md lists each door: import from one of them, or move what you need into the adapter'
  )
  t.ok(
    doors.length <= MOST_DOORS,
    `the runtime has at most ${MOST_DOORS} doors, not ${doors.length}: move what you need into one of them`
  )
})

await t.test('a folder of sources has at most twenty files, a large one has a README', async t => {
  const paths = files.map(({ path }) => path)
  for (const folder of new Set(paths.map(dirname)))
    t.ok(
      paths.filter(path => dirname(path) === folder).length <= MOST_FILES,
      `${folder} has at most ${MOST_FILES} files: merge two of them, or make a folder of those that belong together`
    )
  for (const folder of ADAPTERS) {
    const own = paths.filter(path => path.startsWith(`adapters/${folder}/`))
    const page = `adapters/${folder}/README.md`
    t.ok(own.length <= MOST_WITHOUT_README || existsSync(page), `${page} says what the folder is for`)
    if (!existsSync(page)) continue
    const readme = readFileSync(page, 'utf8')
    const parts = own.map(path =>
      path
        .replace(/\.tsx?$/, '')
        .split('/')
        .slice(2)
    )
    for (const [name = '', isFolder] of parts)
      t.ok(readme.includes(isFolder === undefined ? `\`${name}\`` : `\`${name}/\``), `${page} names ${name}`)
    const there = new Set([...parts.flat(), ...own.map(path => basename(path))])
    for (const [, name = '', hyphened = name] of readme.matchAll(
      /^(?:- |\| )`([a-z][\w./-]*)`|`([a-z\d]+(?:-[a-z\d]+)+)`/gm
    ))
      t.ok(there.has(hyphened.replace(/\/$/, '')), `${page} names ${hyphened}, which is there`)
  }
})

await t.test('a decision is made in one place', async t => {
  for (const { decision, words, within, places } of DECISIONS)
    t.strictSame(
      [
        ...new Set(
          found(new RegExp(words, 'g'), path => within.some(folder => path.startsWith(folder))).map(({ path }) => path)
        )
      ],
      places,
      `${decision}: call the place that decides it`
    )
})

await t.test('only one room uses undocumented parts of XState', async t => {
  const dist = 'node_modules/xstate/dist'
  const sources = readdirSync(dist)
    .filter(name => name.endsWith('.cjs.js'))
    .map(name => readFileSync(join(dist, name), 'utf8'))
  const members = new Set(sources.flatMap(text => Array.from(text.matchAll(/\.(_[a-z]\w+)/g), ([, name = '']) => name)))
  t.ok(members.has('_nodes') && members.has('_bookId') && Object.keys(PROMISED).every(name => members.has(name)))
  const isPrivate = (name: string) => name === 'retryResolve' || (members.has(name) && !Object.hasOwn(PROMISED, name))
  t.strictSame(
    found(/\b(?:_[a-z]\w+|retryResolve|scheduler\.schedule)\b/g, path => !path.startsWith('runtime/xstate/')).filter(
      ({ name }) => name.startsWith('scheduler') || isPrivate(name)
    ),
    []
  )
})

await t.test('values of XState are imported by charts and by the files that do what XState does', t => {
  const isXState = (name: string) => /^@?xstate(?:\/|$)/.test(name)
  t.strictSame(
    files.flatMap(file => (loadsOf(file, ['at once', 'later']).some(isXState) ? [file.path] : [])).toSorted(),
    Object.keys(XSTATE_VALUES),
    'a file calls the functions of runtime/xstate/library.ts, or has a reason in XSTATE_VALUES'
  )
  t.end()
})

await t.test('one file has the names that XState gives to events and actions', t => {
  const isXStates = (text: string) => /(?<![\w@/])xstate\\?\.[a-z(]/.test(text)
  t.ok(isXStates('xstate.done.actor.*') && isXStates('^xstate\\.(?:done|error)'))
  t.strictSame(files.flatMap(({ path, literals }) => (literals.some(isXStates) ? [path] : [])).toSorted(), [
    'machines/xstate-names.ts'
  ])
  t.end()
})

await t.test('charts are read by their outline, and not in XState', t => {
  const reads = [
    /\b(?:Any)?(?:StateNode|TransitionDefinition)\b/g,
    /\b(?:machine|logic|work)\??\.(?:root|config|states|transitions|getStateNodeById)\b/g,
    /\{[^{}]*\b(?:root|config|states)\b[^{}]*\}: AnyStateMachine/g
  ]
  t.strictSame(
    [...new Set(reads.flatMap(read => found(read).map(({ path }) => path)))].toSorted(),
    Object.keys(STATE_NODES),
    'a file reads the outline of a chart, or has a reason in STATE_NODES'
  )
  t.end()
})

await t.test("only two rooms depend on V8's memory management", async t => {
  t.strictSame(
    found(V8, path => !/^runtime\/(?:xstate|primitives)\//.test(path)),
    []
  )
})

await t.test('what sockets, streams and threads send is received in one way', async t => {
  const listeners =
    /(?:\b(?:on|once|addListener|prependListener|addEventListener)\(\s*['"](?:message|data)['"]|\bonmessage\b)/g
  // The script of a page is text, and a transport of the MCP SDK has a member of this name.
  const others = ['runtime/primitives/event-loop.ts', 'adapters/inspector/stately.ts', 'adapters/mcp/stdio.ts']
  t.strictSame(
    found(listeners, path => !others.includes(path)),
    []
  )
  t.equal(
    found(/\b(?:onReceived|onMessageEvent)\(/g, path => path !== 'runtime/primitives/event-loop.ts').length > 10,
    true
  )
})

await t.test('charts and words are pure: no Node, no clock, no ids, no console', async t => {
  for (const { path, text, imports } of files.filter(({ path }) => path.startsWith('machines/'))) {
    t.same(
      imports.filter(name => !name.startsWith('.') && !['xstate', 'zod'].includes(name)),
      [],
      path
    )
    t.notMatch(text, /\b(?:Date\.now|new Date\(\)|setTimeout|crypto\.|nanoid|console\.|process\.|Math\.random)/, path)
  }
})

await t.test('browser code imports nothing of Node, and no optional peer', async t => {
  /** Browsers get `NAME.browser.ts` in place of `NAME.ts`, if it is there. */
  const inBrowser = (path: string) =>
    files.find(file => file.path === path.replace(/\.ts$/, '.browser.ts'))?.path ?? path
  const loaded = loadedBy(
    ['adapters/client/connect.ts', 'adapters/react/index.ts', 'adapters/inspector/page/main.tsx'],
    ['at once', 'later'],
    inBrowser
  )
  t.ok(loaded.length > 50)
  for (const file of loaded) {
    const { path, text } = file
    t.strictSame(
      loadsOf(file, ['at once', 'later']).filter(name => !name.startsWith('.') && !BROWSER_PACKAGES.includes(name)),
      [],
      path
    )
    t.notMatch(text, /\bBuffer\b/, path)
  }
})

await t.test('the command line loads a command when it runs it', async t => {
  const [atOnce, later] = [
    loadedBy(['adapters/cli/bin.ts'], ['at once']),
    loadedBy(['adapters/cli/bin.ts'], ['at once', 'later'])
  ].map(loaded => loaded.map(({ path }) => path)) as [string[], string[]]
  const commands = files
    .filter(({ path }) => path === 'adapters/cli/commands.ts')
    .flatMap(file => loadsOf(file, ['later']))
    .map(name => normalize(join('adapters/cli', name)))
  t.equal(commands.length, 20)
  t.strictSame(
    commands.filter(path => atOnce.includes(path) || !later.includes(path)),
    []
  )
  t.ok(atOnce.length < 30, `it loads ${atOnce.length} modules before that`)
})

await t.test('no file is longer than its limit, no comment is wider than a line, and none contains a TODO', async t => {
  t.strictSame(
    found(/^ *(?:\/?\*|\/\/).{119,}$/gm).filter(({ name }) => name.length > LONGEST_LINE),
    [],
    `no comment is wider than ${LONGEST_LINE} characters`
  )
  t.strictSame(
    files.flatMap(({ path, text }) => (text.split('\n').length > LONGEST_FILE + 1 ? [path] : [])),
    [],
    `no file has more than ${LONGEST_FILE} lines: move one of its concepts to another file`
  )
  t.strictSame(
    found(/(?<=\n) *\/\*\*(?:(?!\*\/)[^])*\*\/ *\n(?=\s*(?:\n|\/\*\*|\}))/g),
    [],
    'a comment stands above what it describes'
  )
  t.strictSame(found(/\b(?:TODO|FIXME|HACK|@ts-ignore|@ts-expect-error)\b|\bas any\b/g), [])
})

await t.test('a short file is used in two folders, or has a reason; a folder has more than one file', async t => {
  const importers = new Map<string, Set<string>>()
  for (const { path, imports } of files) {
    for (const name of imports.filter(name => name.startsWith('.'))) {
      const target = normalize(join(dirname(path), name))
      importers.set(target, (importers.get(target) ?? new Set()).add(dirname(path)))
    }
  }
  const entries = readFileSync('package.json', 'utf8')
  const short = files.filter(({ path, text }) => {
    const isEntry = entries.includes(`"./dist/${path.replace(/\.ts$/, '.js')}"`)
    return text.split('\n').length <= SHORT_FILE && !isEntry && (importers.get(path)?.size ?? 0) < 2
  })
  t.strictSame(
    short.map(({ path }) => path).toSorted(),
    Object.keys(SHORT).toSorted(),
    `a file of at most ${SHORT_FILE} lines goes into the file that imports it, or has a reason in SHORT`
  )
  const folders = files.map(({ path }) => dirname(path))
  t.strictSame(
    folders.filter(folder => folders.filter(other => other === folder).length < 2),
    [],
    'a folder has more than one file: move the file up'
  )
})

await t.test('an exported name is there once, and no function is named by a participle', async t => {
  const exported =
    /^export (?:async )?(?:function\*?|const|class|interface|type|abstract class|enum) ([A-Za-z_$][\w$]*)/gm
  const places = new Map<string, Set<string>>()
  for (const { path, text } of files.filter(({ path }) => !path.includes('.browser.')))
    for (const [, name = ''] of text.matchAll(exported)) places.set(name, (places.get(name) ?? new Set()).add(path))
  t.strictSame(
    [...places].flatMap(([name, paths]) => (paths.size > 1 ? [name] : [])).toSorted(),
    TWICE.toSorted(),
    'an exported name is there once: give one of them another name'
  )
  const participles = found(
    /^export (?:async )?function\*? (?:[a-z]+ed|told|said|taken|given|made|known|kept|held|sent|seen|shown|run|read|beside)\b/gm
  )
  t.strictSame(
    participles.map(({ name }) => name.split(' ').at(-1) ?? '').toSorted(),
    PARTICIPLES,
    'a verb and a noun name a function'
  )
})

await t.test('the lock file names no download addresses', async t => {
  t.notMatch(readFileSync('package-lock.json', 'utf8'), '"resolved"')
})
