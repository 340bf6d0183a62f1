import { cpSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import t from 'tap'
import { compilerOutput } from './fixtures/guides/compiled-guide.ts'
import { runBare } from './fixtures/processes/bare-process.ts'

interface Exported {
  readonly name: string
  readonly isType: boolean
  /** The source file that declares it. */
  readonly file: string
}

/** What each subpath exports: values, then types. */
const PUBLIC: Readonly<Record<string, { readonly values: string; readonly types: string }>> = {
  '.': {
    values: `
      A2AError accepted artifact artifactToRefine authRequired createRuntime data dataOf declined defineAgent
      failed file fromPromise inputRequired negotiation offer progress propertiesOf refined rejected reply
      setupNegotiation setupWork taskCompleted text textOf typed
    `,
    types: `
      Accepted Agent AgentCard AgentDefinition AgentDescription AgentInterface AgentSkill Artifact ArtifactChoice
      ArtifactReference ArtifactWords Authenticate Authorization AuthorizationReceived Authorize CallContext
      Caller Clock Declined EarlierArtifact ErrorCode Failed GeneratorArguments JsonValue LimitChanges ListTasksResponse Logger Message
      MessageReceived MessageToAnswer Migrate NegotiateFunction Negotiation NegotiationAnswer Offered OpenOffer Part Principal
      ProducedArtifact Progress PromiseArguments Property PropertyWords Question Rejected Reply RequestDetails
      RespondArguments Runtime RuntimeOptions SendMessageResponse SignCard StandardSchema StepArguments
      StreamResponse Task TaskState Term Words WorkArguments WorkChart WorkFunction WorkGenerator WorkInput
      WorkMeta WorkResult WorkTag WorkWords
    `
  },
  './http': {
    values: 'cardHandler dialect01 dialect03 httpHandler metricsText serve webhooks',
    types: `
      CardHandler Dialect Handler HandlerOptions PortBinding PortExtension ServeOptions Served WebhookAnswer
      WebhookPost WebhookSender
    `
  },
  './client': {
    values: `
      A2AError artifactVersions connect conversation foldTask negotiate offerIn questionOf textOf watchTask
    `,
    types: `
      AgentCard AgentClient AgentInterface AgentSkill Artifact ArtifactVersion ArtifactVersions CallOptions
      ConnectOptions Content Conversation ConversationView ErrorCode JsonValue LinkState
      ListTaskPushNotificationConfigsResponse ListTasksResponse Message Offer OpenQuestion Part SendMessageRequest
      SendMessageResponse StreamResponse Task TaskArtifactUpdateEvent TaskPushNotificationConfig TaskState
      TaskStatus TaskStatusUpdateEvent TaskView Watched WatchedTask
    `
  },
  './react': {
    values: 'AgentProvider useAgent useConversation useTask',
    types: 'AgentConnection UsedConversation UsedTask'
  },
  './a2a-sdk': {
    values: 'WebSocketTransportFactory expressErrors fromExecutor toRequestHandler whileConnected',
    types: ''
  },
  './grpc': {
    values: 'grpc grpcErrors',
    types: ''
  },
  './store': {
    values: 'sqliteStore',
    types: `
      Commit ContextKey DeduplicationKey Erasure Health JournalRow LiveActors MessageRow Metric MetricDefinition
      MetricSource MetricValue NewWebhook Observation Observer OpenTasksFilter ReadOptions Scope SendRow
      SpanAttributes SpanStart StateCounts Store StoreStatus StoredContext StoredTask StoredWebhook SweepBounds
      TaskChoice TaskCursor TaskEvent TaskPage TaskQuery TaskRow TaskSize Telemetry TelemetrySpan TraceCarrier
      TransitionCount TransitionStore Wake WakeCursor Webhook WebhookNote WebhookProgress WebhookRow
    `
  },
  './mcp': {
    values: 'mcpHandler',
    types: 'McpOptions'
  },
  './ag-ui': {
    values: 'agUiHandler',
    types: 'AgUiOptions'
  },
  './postgres': {
    values: 'postgresStore',
    types: 'PostgresPool'
  },
  './delegation': {
    values: 'delegate remoteAgent',
    types: 'RemoteAgent RemoteAnswer RemoteEvent RemoteInput RemoteQuestion RemoteResult'
  },
  './auth': {
    values: 'anyOf apiKey bearerJwt cardSigner cardVerifier',
    types: 'JwtClaims VerifyCard'
  },
  './ai': {
    values: 'answerWithModel conversation modelReply modelWork',
    types: 'ModelAnswer ToolApproval Usage'
  },
  './inspector': {
    values: 'inspect',
    types: ''
  },
  './testing': {
    values: 'agentTests proveAgent proveChart testAgent',
    types: `
      AgentTestOptions AgentTests Cases Coverage PathTest Proof ReachedParts Verdict Walk WalkStep
    `
  },
  './opentelemetry': {
    values: 'openTelemetry',
    types: ''
  }
}

const { exports: subpaths } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  exports: Record<string, { types: string } | string>
}

/** The source files of the subpaths. */
const sources = Object.entries(subpaths).flatMap(([subpath, target]) =>
  typeof target === 'string' ? [] : [[subpath, target.types.replace('./dist/', '').replace('.d.ts', '.ts')] as const]
)

const DECLARED = /^export (?:declare |abstract |async )*(function\*?|class|const|interface|type) (\w+)/gm
const LISTED = /^export (type )?\{([^}]*)\}(?: from '([^']+)')?/gm

function declares(file: string, name: string): boolean {
  return Array.from(readFileSync(file, 'utf8').matchAll(DECLARED), ([, , name]) => name).includes(name)
}

/** What a file exports, with the files that declare it. */
function exportsOf(file: string): Exported[] {
  const text = readFileSync(file, 'utf8')
  const declared = Array.from(text.matchAll(DECLARED), ([, kind = '', name = '']) => ({
    name,
    isType: kind === 'interface' || kind === 'type',
    file
  }))
  const listed = Array.from(text.matchAll(LISTED)).flatMap(([, types, names = '', from]) =>
    names.split(',').map(name => {
      const [, type = types, own = ''] = /^\s*(type )?(\w+)\s*$/.exec(name) ?? []
      const source = from ?? new RegExp(`^import [^']*\\b${own}\\b[^']* from '([^']+)'`, 'm').exec(text)?.[1] ?? ''
      const path = source.startsWith('.') ? normalize(join(dirname(file), source)) : file
      const isOwn = path === file || declares(path, own)
      const passedOn = isOwn ? undefined : exportsOf(path).find(({ name }) => name === own)
      return passedOn ?? { name: own, isType: type !== undefined, file: path }
    })
  )
  return [...declared, ...listed]
}

const namesOf = (exported: readonly Exported[]) => exported.map(({ name }) => name).toSorted()
const words = (text = '') => text.split(/\s+/).filter(Boolean)

for (const [subpath, file] of sources) {
  await t.test(`${join('taskchart', subpath)} exports these values and types, and no others`, async t => {
    const exported = exportsOf(file)
    const values = exported.filter(({ isType }) => !isType)
    t.strictSame(namesOf(values), words(PUBLIC[subpath]?.values))
    t.strictSame(namesOf(exported.filter(({ isType }) => isType)), words(PUBLIC[subpath]?.types))
    const loaded = (await import(new URL(`../${file.replace('.ts', '.js')}`, import.meta.url).href)) as object
    t.strictSame(Object.keys(loaded).toSorted(), namesOf(values), 'the values are there at run time')
    t.match(
      readFileSync('docs/architecture.md', 'utf8'),
      `| \`${join('taskchart', subpath)}\` |`,
      'the guide has a row for it'
    )
  })
}

await t.test('the package has these subpaths, with at most 75 values and 172 types', async t => {
  t.strictSame(
    Object.keys(subpaths).filter(name => !name.endsWith('.json')),
    Object.keys(PUBLIC)
  )
  const exported = sources.flatMap(([, file]) => exportsOf(file))
  /** A declaration that two subpaths export counts once. */
  const count = (ofTypes: boolean) =>
    new Set(exported.flatMap(({ name, file, isType }) => (isType === ofTypes ? [`${name} of ${file}`] : []))).size
  const [values, types] = [count(false), count(true)]
  t.comment(`${values} values, ${types} types`)
  t.ok(values <= 75 && values > 60)
  t.ok(types <= 172 && types > 130)
})

await t.test('every public export has a docstring', async t => {
  for (const { name, file } of sources.flatMap(([, file]) => exportsOf(file))) {
    t.match(
      readFileSync(file, 'utf8'),
      new RegExp(
        `\\*/\\n(?:export )?(?:declare |abstract |async )*(?:function\\*?|class|const|interface|type) ${name}\\b`
      ),
      `${name} of ${file}`
    )
  }
})

await t.test('no subpath loads an optional package when it is imported, but those that are named for one', async t => {
  const { peerDependenciesMeta } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    peerDependenciesMeta: Record<string, unknown>
  }
  const hooks = `const absent = ${JSON.stringify(Object.keys(peerDependenciesMeta))}
export const resolve = (name, context, next) => {
  if (absent.some(peer => name === peer || name.startsWith(peer + '/'))) throw new Error('It loads ' + name)
  return next(name, context)
}`
  const named: Record<string, RegExp> = {
    './react': /It loads react$/m,
    './a2a-sdk': /It loads @a2a-js\/sdk/,
    './grpc': /It loads (?:@a2a-js\/sdk|@bufbuild\/protobuf|@grpc\/grpc-js)/
  }
  for (const [subpath, file] of sources) {
    const url = new URL(`../${file.replace('.ts', '.js')}`, import.meta.url).href
    const loading = runBare(
      '--input-type=module',
      '-e',
      `import { register } from 'node:module'
register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hooks)}))
await import(${JSON.stringify(url)})`
    )
    const peer = named[subpath]
    if (peer) await t.rejects(loading, { message: peer }, subpath)
    else await t.resolves(loading, subpath)
  }
})

/** The packages that bring their types, and those that a subpath is named for. */
const TYPED = ['xstate', 'zod']
const NAMED_FOR: Readonly<Record<string, readonly string[]>> = {
  './react': ['react'],
  './a2a-sdk': ['@a2a-js/sdk'],
  './grpc': ['@grpc/grpc-js'],
  './ai': ['ai']
}

/** The packages that the declarations behind a declaration import, each with the path to the file that does. */
function packagesBehind(declaration: string): Map<string, string> {
  const packages = new Map<string, string>()
  const paths = new Map([[declaration, declaration]])
  for (const [file, path] of paths)
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
      /(?:^(?:import|export) [^;'"]* from |\bimport\()'([^']+)'/gm
    )) {
      const next = join(dirname(file), name.replace(/\.ts$/, '.d.ts'))
      if (!name.startsWith('.')) packages.set(/^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name, path)
      else if (!paths.has(next)) paths.set(next, `${path} < ${next}`)
    }
  return packages
}

await t.test('the types of a subpath need no package without types and no optional one that it is not named for', t => {
  for (const [subpath, file] of sources) {
    const packages = packagesBehind(join('dist', file.replace(/\.ts$/, '.d.ts')))
    const allowed = [...TYPED, ...(NAMED_FOR[subpath] ?? [])]
    const others = Array.from(packages).filter(([name]) => !name.startsWith('node:') && !allowed.includes(name))
    t.strictSame(others, [], subpath)
    for (const name of allowed) t.ok(packages.has(name), `${subpath} has types of ${name}`)
  }
  t.end()
})

/** A module that passes on every function and class of the package, so that its declarations name what they give. */
async function passingOn(): Promise<string> {
  const lines = sources.map(async ([subpath, file], i) => {
    const loaded = (await import(new URL(`../${file.replace('.ts', '.js')}`, import.meta.url).href)) as object
    const passed = Object.entries(loaded).map(([name, value]: [string, unknown]) => {
      const one = `s${i}.${name}`
      if (typeof value !== 'function') return `export const s${i}_${name} = ${one}`
      return /^class\b/.test(Function.prototype.toString.call(value))
        ? `export const s${i}_${name} = (...given: ConstructorParameters<typeof ${one}>) => new ${one}(...given)`
        : `export const s${i}_${name} = (...given: Parameters<typeof ${one}>) => ${one}(...given)`
    })
    return [`import * as s${i} from '${join('taskchart', subpath)}'`, ...passed].join('\n')
  })
  return (await Promise.all(lines)).join('\n')
}

await t.test('declarations of a module can name what the functions of the package give', async t => {
  const folder = t.testdir({
    'package.json': JSON.stringify({ type: 'module' }),
    'tsconfig.json': JSON.stringify({
      extends: relative(t.testdirName, 'tsconfig.json'),
      compilerOptions: { rootDir: '.', outDir: 'out', declaration: true, declarationMap: false, sourceMap: false },
      include: ['*.ts']
    }),
    'all.ts': await passingOn(),
    'module.ts': `
import * as root from 'taskchart'
import { delegate, remoteAgent } from 'taskchart/delegation'
import { anyOf, apiKey, bearerJwt } from 'taskchart/auth'
import { inspect } from 'taskchart/inspector'
import { artifactVersions, connect, conversation, foldTask, negotiate, offerIn, questionOf, watchTask, type AgentClient, type Task } from 'taskchart/client'
import { cardHandler, dialect01, dialect03, httpHandler, metricsText, serve, webhooks } from 'taskchart/http'
import { postgresStore } from 'taskchart/postgres'
import { sqliteStore } from 'taskchart/store'
import { agentTests, proveAgent } from 'taskchart/testing'

export const words = () => [
  root.progress('x'), root.artifact('x'), root.failed('x'), root.rejected('x'), root.reply('x'), root.declined('x'),
  root.accepted({ euros: 1 }), root.offer({ euros: 1 }), root.inputRequired('x'), root.authRequired('x')
] as const
export const parts = () => [root.text('x'), root.data({ euros: 1 }), root.file(new Uint8Array()), negotiate({ propose: {} })] as const
export const refining = [root.artifactToRefine(), root.artifactToRefine({ optional: true })] as const
export const setups = [root.setupWork({}), root.setupNegotiation({}), root.setupNegotiation({ types: { terms: root.typed<{ euros: number }>() } })] as const
export const asked = (schema: root.StandardSchema<number>, message: root.Message) => [root.inputRequired('x', { schema }), root.dataOf(message, schema)] as const
export async function* work({ message, step }: root.GeneratorArguments) {
  yield root.progress(root.textOf(message))
  const login = yield* root.authRequired('Log in.')
  await step('pay', ({ idempotencyKey }) => idempotencyKey)
  return 'data' in login ? { artifact: 'x' } : root.failed('x')
}
export const chart = root.setupWork({
  types: { context: root.typed<{ found: root.EarlierArtifact[] }>(), events: root.typed<root.AuthorizationReceived>() },
  actors: { pay: root.fromPromise<string>(async () => 'x'), find: root.artifactToRefine(), taskCompleted: root.taskCompleted }
}).createMachine({
  context: ({ input }) => ({ found: input.earlierArtifacts }),
  initial: 'done',
  states: { done: { type: 'final' } },
  output: () => ({ artifact: 'x' })
})
export const properties = { 'it ends': root.propertiesOf(chart).eventually('done') }
export const negotiated = (terms: root.StandardSchema<{ euros: number }>) => root.negotiation({ terms, respond: ({ standing }) => (standing ? root.accepted() : root.offer({ euros: 1 })) })
export const agent = root.defineAgent({ card: { name: 'A' }, work: chart })
export const runtime = () => root.createRuntime({ agent, authenticate: anyOf(apiKey({} as never), bearerJwt({ jwks: { keys: [] } } as never)) })
export const watched = (runtime: root.Runtime) => [runtime.health(), runtime.metrics, runtime.observe({}), runtime.listTasks({})] as const
export const served = (runtime: root.Runtime) => [serve(runtime), httpHandler(runtime), cardHandler(runtime, { interfaces: [] }), dialect01(runtime), dialect03(runtime), metricsText(runtime), webhooks(), inspect()] as const
export const stores = () => [sqliteStore('x'), postgresStore('x')] as const
export const client = () => connect('ws://localhost')
export const shown = (agent: AgentClient, task: Task) => [conversation(agent), watchTask(agent, 't'), questionOf(task), artifactVersions(), foldTask(task, { task })] as const
export const offered = (message: root.Message) => [offerIn(message)] as const
export const remote = remoteAgent('http://localhost')
export const relayed = (work: root.WorkArguments) => delegate(work, remote, 'x')
export const tests = () => [agentTests(agent), proveAgent(agent)] as const
`
  })
  // Where users have it: a name that the package does not export cannot be reached there.
  const installed = join(folder, 'node_modules', 'taskchart')
  cpSync('package.json', join(installed, 'package.json'))
  cpSync('dist', join(installed, 'dist'), { recursive: true, filter: path => !path.endsWith('.js') })
  t.equal(await compilerOutput(folder), '')
})
