import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { WebSocketTransportFactory, toRequestHandler } from '../../adapters/a2a-sdk/index.ts'
import { conversation, modelReply, modelWork } from '../../adapters/ai/index.ts'
import { apiKey, bearerJwt, cardSigner, cardVerifier } from '../../adapters/auth/index.ts'
import { negotiate, connect, offerIn, questionOf } from '../../adapters/client/connect.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import { delegate, remoteAgent } from '../../adapters/delegation/index.ts'
import { inspect } from '../../adapters/inspector/index.ts'
import { dialect01, dialect03 } from '../../adapters/legacy/index.ts'
import { webhooks } from '../../adapters/push/webhooks.ts'
import { httpHandler, serve } from '../../adapters/serve/serve.ts'
import { readSqlite, sqliteStore } from '../../adapters/storage/sqlite.ts'
import { agentTests } from '../../adapters/testing/index.ts'
import { planFor } from '../../adapters/testing/plan/plan.ts'
import {
  A2AError,
  dataOf,
  artifact,
  artifactToRefine,
  createRuntime,
  defineAgent,
  file,
  fromPromise,
  inputRequired,
  negotiation,
  offer,
  progress,
  refined,
  setupNegotiation,
  setupWork,
  type WorkArguments
} from '../../runtime/index.ts'
import type { NodeRuntimeOptions } from '../../runtime/runtime-options.ts'
import { memoryStore } from '../../runtime/store/memory/memory-store.ts'
import { checkOptions, kindOf, closestName } from '../../runtime/primitives/options.ts'
import { findArtifactToRefine } from '../../runtime/work/refining.ts'
import { echo } from '../fixtures/runtime/agents.ts'

const agent = defineAgent({ card: { name: 'A' }, work: echo })
const work = {} as WorkArguments
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const url = 'http://127.0.0.1:1/'

/** Options that are wrong, as an author without types may write them. */
type Wrong = never

const uncalled = { find: artifactToRefine } as unknown as Wrong

function running(t: Test) {
  const runtime = createRuntime({ agent, logger: { warn: () => {}, error: () => {} } })
  t.teardown(() => runtime.close())
  return runtime
}

await t.test('every function refuses an unknown option, and suggests the closest name', async t => {
  const runtime = running(t)
  const model = 'a/model'
  const rows: Record<string, [run: () => unknown, message: string]> = {
    createRuntime: [
      () => createRuntime({ agent, autenticate: () => undefined } as Wrong),
      'createRuntime has no autenticate. Is authenticate meant?'
    ],
    'createRuntime, db': [
      () => createRuntime({ agent, db: 'agent.db' } as Wrong),
      "createRuntime has no db. Write store: sqliteStore('agent.db'), of taskchart/store, or store: await postgresStore('postgres://…'), of taskchart/postgres."
    ],
    'createRuntime, port': [
      () => createRuntime({ agent, port: 4242 } as Wrong),
      'createRuntime has no port. Write serve(runtime, { port }), of taskchart/http.'
    ],
    'createRuntime, work': [
      () => createRuntime({ work: echo } as Wrong),
      'createRuntime has no work. Write agent: defineAgent({ card, work }).'
    ],
    defineAgent: [
      () => defineAgent({ card: { name: 'A' }, wrok: echo } as Wrong),
      'defineAgent has no wrok. Is work meant?'
    ],
    setupWork: [() => setupWork({ gaurds: {} } as Wrong), 'setupWork has no gaurds. Is guards meant?'],
    progress: [() => progress('x', { metdata: {} } as Wrong), 'progress has no metdata. Is metadata meant?'],
    'serve, letters swapped': [() => serve(runtime, { prot: 0 } as Wrong), 'serve has no prot. Is port meant?'],
    'connect, letters swapped': [
      () => connect(url, { hedaers: {} } as Wrong),
      'connect has no hedaers. Is headers meant?'
    ],
    limits: [
      () => createRuntime({ agent, limits: { messageByte: 1 } } as Wrong),
      'limits has no messageByte. Is messageBytes meant?'
    ],
    'limits.perTenant': [
      () => createRuntime({ agent, limits: { perTenant: { openTask: 1 } } } as Wrong),
      'limits.perTenant has no openTask. Is openTasks meant?'
    ],
    retention: [
      () => createRuntime({ agent, retention: { endedTaskMs: 1 } } as Wrong),
      'retention has no endedTaskMs. Is endedTasksMs meant?'
    ],
    tenants: [
      () => createRuntime({ agent, tenants: { acme: { member: [] } } } as Wrong),
      'tenants.acme has no member. Is members meant?'
    ],
    restart: [
      () => defineAgent({ card: { name: 'A' }, work: echo, restart: { type: 'transient', perioMs: 1 } as Wrong }),
      'restart has no perioMs. Is periodMs meant?'
    ],
    extensions: [
      () => defineAgent({ card: { name: 'A' }, work: echo, extensions: [{ uri: 'urn:a', requird: true } as Wrong] }),
      'extensions[0] has no requird. Is required meant?'
    ],
    skills: [
      () =>
        defineAgent({
          card: { name: 'A', skills: [{ id: 'a', name: 'a', description: '', tags: [], example: [] } as Wrong] },
          work: echo
        }),
      'card.skills[0] has no example. Is examples meant?'
    ],
    provider: [
      () => defineAgent({ card: { name: 'A', provider: { url, organisation: 'x' } as Wrong }, work: echo }),
      'card.provider has no organisation. Is organization meant?'
    ],
    meta: [
      () =>
        defineAgent({
          card: { name: 'A' },
          work: setupWork({}).createMachine({
            id: 'desk',
            initial: 'a',
            states: { a: { tags: 'input-required', meta: { promt: 'x' } as Wrong, on: { 'message.received': 'a' } } }
          })
        }),
      'The state desk.a has promt in its meta. Is prompt meant?'
    ],
    erase: [() => runtime.erase({ contextid: 'x' } as Wrong), 'erase has no contextid. Is contextId meant?'],
    negotiation: [
      () => negotiation({ terms: z.object({}), round: 3, respond: () => offer({}) } as Wrong),
      'negotiation has no round. Is rounds meant?'
    ],
    inputRequired: [() => inputRequired('x', { shema: 1 } as Wrong), 'A question has no shema. Is schema meant?'],
    file: [
      () => file(new Uint8Array(), { fileName: 'a', mimeType: 'b' } as Wrong),
      'file has no fileName. Is filename meant?'
    ],
    artifact: [() => artifact('x', { apend: true } as Wrong), 'artifact has no apend. Is append meant?'],
    offer: [() => offer({}, { mesage: 'x' } as Wrong), 'offer has no mesage. Is message meant?'],
    artifactToRefine: [
      () => artifactToRefine({ promt: () => '' } as Wrong),
      'artifactToRefine has no promt. Is prompt meant?'
    ],
    'artifactToRefine, of work': [
      () => findArtifactToRefine(work, { option: true } as Wrong),
      'artifactToRefine has no option. Is optional meant?'
    ],
    serve: [() => serve(runtime, { port: 0, inspecter: 1 } as Wrong), 'serve has no inspecter. Is inspector meant?'],
    httpHandler: [
      () => httpHandler(runtime, { websocket: true } as Wrong),
      'httpHandler has no websocket. Is webSocket meant?'
    ],
    connect: [() => connect(url, { header: {} } as Wrong), 'connect has no header. Is headers meant?'],
    cardLimits: [
      () => connect(url, { cardLimits: { skill: 1 } } as Wrong),
      'cardLimits has no skill. Is skills meant?'
    ],
    toRequestHandler: [
      () => toRequestHandler(runtime, { interface: [] } as Wrong),
      'toRequestHandler has no interface. Is interfaces meant?'
    ],
    WebSocketTransportFactory: [
      () => new WebSocketTransportFactory({ header: {} } as Wrong),
      'WebSocketTransportFactory has no header. Is headers meant?'
    ],
    remoteAgent: [() => remoteAgent(url, { names: 'x' } as Wrong), 'remoteAgent has no names. Is name meant?'],
    delegate: [
      () => delegate(work, remoteAgent(url), 'x', { deadline: 1 } as Wrong),
      'delegate has no deadline. Is deadlineMs meant?'
    ],
    webhooks: [
      () => webhooks({ allowLoopbak: true } as Wrong),
      'webhooks has no allowLoopbak. Is allowLoopback meant?'
    ],
    sqliteStore: [
      () => sqliteStore('x.db', { log: 1 } as Wrong),
      'sqliteStore has no log. There are driver, logger, stopped.'
    ],
    readSqlite: [
      () => readSqlite('x.db', { driver: 'node:sqlite' } as Wrong),
      'readSqlite has no driver. There are logger.'
    ],
    inspect: [() => inspect({ tokens: 'x' } as Wrong), 'inspect has no tokens. Is token meant?'],
    apiKey: [() => apiKey({ keys: {}, headers: 'x' } as Wrong), 'apiKey has no headers. Is header meant?'],
    bearerJwt: [
      () => bearerJwt({ issuer: 'a', audience: 'b', key: publicKey, algorithm: ['ES256'] } as Wrong),
      'bearerJwt has no algorithm. Is algorithms meant?'
    ],
    cardSigner: [() => cardSigner({ key: privateKey, kind: 'x' } as Wrong), 'cardSigner has no kind. Is kid meant?'],
    cardVerifier: [
      () => cardVerifier({ key: publicKey, issuer: 'x' } as Wrong),
      'cardVerifier has no issuer. There are jwksUrl, keysCooldownMs, keysMaxAgeMs, jwks, key, algorithms, clock.'
    ],
    agentTests: [() => agentTests(agent, { case: {} } as Wrong), 'agentTests has no case. Is cases meant?'],
    planFor: [() => planFor(agent, { limits: 3 } as Wrong), 'planFor has no limits. Is limit meant?'],
    cases: [() => planFor(agent, { cases: { openings: {} } } as Wrong), 'cases has no openings. Is opening meant?'],
    'modelWork, artifact': [
      () => modelWork({ model, artifact: { id: 'x' } } as Wrong),
      'artifact has no id. There are artifactId, name.'
    ],
    'modelReply, history': [
      () => modelReply({ model, history: { message: 1 } } as Wrong),
      'history has no message. Is messages meant?'
    ],
    conversation: [() => conversation(work, { message: 1 } as Wrong), 'history has no message. Is messages meant?']
  }
  for (const [name, [run, message]] of Object.entries(rows))
    await t.rejects(async () => run(), new TypeError(message), name)
})

await t.test('an option of a runtime refuses a value of another type, with what to write', async t => {
  const wanted: Record<keyof NodeRuntimeOptions, [wrong: unknown, message: RegExp]> = {
    agent: [
      { card: { name: 'A' }, work: echo },
      /^agent has to be what defineAgent gives: createRuntime\(\{ agent: defineAgent\(\{ card, work \}\) \}\), not an object\.$/
    ],
    store: [memoryStore, /^store has to be a store, such as .* not a function\.$/],
    clock: [Date, /^clock has to be a clock/],
    ids: ['x', /^ids has to be a function/],
    logger: [console.warn, /^logger has to be a logger: \{ warn, error \}/],
    limits: [5, /^limits has to be an object such as/],
    retention: [[], /^retention has to be an object .* not a list\.$/],
    deduplicate: ['yes', /^deduplicate has to be true or false, not a string\.$/],
    versions: [['1.1'], /^versions has to be \['1\.0'\] or \['1\.0', '1\.1'\], not a list\.$/],
    authenticate: ['key', /^authenticate has to be a function/],
    authorize: [true, /^authorize has to be a function/],
    tenants: [['acme'], /^tenants has to be an object/],
    origins: [
      'https://a.example',
      /^origins has to be a list of texts such as \['https:\/\/app\.example'\], not a string\.$/
    ],
    hosts: ['a.example', /^hosts has to be a list of texts/],
    publicUrl: [new URL(url), /^publicUrl has to be a text such as 'https:/],
    cluster: [5, /^cluster has to be/],
    signCard: [5, /^signCard has to be a function/],
    push: [webhooks, /^push has to be a sender of webhooks: webhooks\(\) of taskchart\/http, not a function\.$/],
    localModules: ['agent.ts', /^localModules has to be a function/],
    telemetry: [5, /^telemetry has to be openTelemetry\(\)/],
    observeProperties: [['never'], /^observeProperties has to be true or false, not a list\.$/]
  }
  for (const [name, [wrong, message]] of Object.entries(wanted))
    t.throws(() => createRuntime({ agent, [name]: wrong }), { name: 'TypeError', message }, name)
  t.throws(
    () => createRuntime(agent as Wrong),
    new TypeError('createRuntime takes the agent as an option: createRuntime({ agent }).')
  )
  t.throws(() => createRuntime({} as Wrong), { name: 'TypeError', message: /^agent is missing/ })
  t.throws(
    () => createRuntime(undefined as Wrong),
    new TypeError('createRuntime takes options as an object, not undefined: createRuntime({ agent }).')
  )
})

await t.test('wrong arguments for a runtime, an agent, an address or a file are named', async t => {
  const runtime = running(t)
  const rows: [run: () => unknown, message: RegExp][] = [
    [
      () => toRequestHandler(agent as Wrong),
      /^toRequestHandler takes a runtime, not an agent: toRequestHandler\(createRuntime\(\{ agent \}\)\)\.$/
    ],
    [() => serve(undefined as Wrong, { port: 0 }), /^serve takes a runtime, not undefined/],
    [
      () => serve(runtime, null as Wrong),
      /^serve takes options as an object, not null: serve\(runtime, \{ port: 4242 \}\)\.$/
    ],
    [
      () => serve(runtime, { port: '4242' } as Wrong),
      /^port has to be a number such as 4242, or 0 for a free port, not a string\.$/
    ],
    [
      () => serve(runtime, { port: 70_000 }),
      /^port has to be a number such as 4242, or 0 for a free port, not 70000\.$/
    ],
    [
      () => serve(runtime, { port: 0, path: 'agent' }),
      /^path has to be a path that begins with a slash, such as '\/agent', not a string\.$/
    ],
    [
      () => serve(runtime, { port: 0, dialects: [dialect03] } as Wrong),
      /^dialects has to be a list such as \[dialect03\(runtime\)\], of taskchart\/http, not a list\.$/
    ],
    [
      () => serve(runtime, { port: 0, inspector: inspect } as Wrong),
      /^inspector has to be what inspect\(\) of taskchart\/inspector gives, not a function\.$/
    ],
    [() => httpHandler(agent as Wrong), /^httpHandler takes a runtime, not an agent/],
    [() => serve(runtime, { server: runtime } as Wrong), /^server has to be an HTTP server of node:http/],
    [() => dialect01(agent as Wrong), /^dialect01 takes a runtime, not an agent/],
    [() => dialect01(runtime, { idRememberedMs: 1 } as Wrong), /^dialect01 has no idRememberedMs\. Is idsRememberedMs/],
    [() => dialect03(agent as Wrong), /^dialect03 takes a runtime, not an agent/],
    [
      () => connect(runtime as Wrong),
      /^connect takes the address of an agent, not an object: connect\('http:\/\/127\.0\.0\.1:4242\/'\)\.$/
    ],
    [() => connect(url, { giveUpAfterMs: -1 }), /^giveUpAfterMs has to be milliseconds from 0, not -1\.$/],
    [() => connect(url, { headers: 'x' } as Wrong), /^headers has to be an object such as/],
    [() => remoteAgent(undefined as Wrong), /^remoteAgent takes the address of an agent, not undefined/],
    [
      () => sqliteStore({ file: 'x' } as Wrong),
      /^sqliteStore takes the path of a file, not an object: sqliteStore\('agent\.db'\)\.$/
    ],
    [() => readSqlite(''), /^readSqlite takes the path of a file, not an empty text/],
    [
      () => sqliteStore('x.db', { driver: 'sqlite3' as Wrong }),
      /^driver has to be 'node:sqlite' or 'better-sqlite3', not a string\.$/
    ],
    [
      () => agentTests(agent, { drivers: ['chart'] as Wrong }),
      /^There is no driver "chart"\. Did you mean 'the chart' or 'the chart, restored from JSON before every step'\?$/
    ],
    [
      () => agentTests(agent, { drivers: ['x'] as Wrong }),
      /^There is no driver "x"\. There are 13, such as 'the chart' or /
    ],
    [
      () => agentTests(agent, { drivers: [1] as Wrong }),
      /^drivers has to be a list of some of these drivers: 'the chart', 'the chart, restored .*, not a list\.$/
    ],
    [() => agentTests(agent, { drivers: [] }), /^drivers has to be/],
    [
      () => agentTests(runtime as Wrong),
      /^agentTests takes what defineAgent gives, not an object: agentTests\(defineAgent\(\{ card, work \}\)\)\.$/
    ],
    [() => planFor(undefined as Wrong), /^planFor takes what defineAgent gives, not undefined/],
    [
      () => planFor(agent, { kind: 'all' as Wrong }),
      /^kind has to be 'cover' or 'shortest' or 'simple', not a string\.$/
    ],
    [() => planFor(agent, { limit: 0 }), /^limit has to be a number above 0/],
    [() => planFor(agent, { cases: { memory: 5 } as Wrong }), /^memory has to be a function of the context/],
    [
      () => planFor(agent, { cases: { opening: 'start' } as Wrong }),
      /^opening has to be an object that gives each a name/
    ],
    [
      () => bearerJwt({ issuer: 'a', audience: 'b', key: publicKey, principal: 'sub' } as Wrong),
      /^principal has to be a function/
    ],
    [() => bearerJwt(undefined as Wrong), /^bearerJwt takes options as an object, not undefined/]
  ]
  for (const [run, message] of rows) await t.rejects(async () => run(), { name: 'TypeError', message }, String(message))
})

await t.test('an undefined option is omitted, and a name of Object is unknown', async t => {
  t.doesNotThrow(() => checkOptions({ path: undefined, other: undefined }, { path: true }, 'serve', 'x'))
  t.throws(
    () => checkOptions(JSON.parse('{"constructor":1}'), { path: true }, 'serve', 'x'),
    new TypeError('serve has no constructor. There are path.')
  )
  t.throws(
    () => checkOptions(JSON.parse('{"__proto__":1}'), { path: true }, 'serve', 'x'),
    new TypeError('serve has no __proto__. There are path.')
  )
  t.same([null, undefined, [], {}, 'x', 1, () => {}].map(kindOf), [
    'null',
    'undefined',
    'a list',
    'an object',
    'a string',
    'a number',
    'a function'
  ])
})

await t.test('a long name is refused at once, and truncated in the error', async t => {
  const long = 'a'.repeat(2 ** 22)
  t.equal(closestName(long, ['authenticate', `${'a'.repeat(60)}b`]), undefined)
  t.throws(
    () => checkOptions({ [long]: 1 }, { path: true }, 'serve', 'x'),
    new TypeError(`serve has no ${'a'.repeat(80)}…. There are path.`)
  )
})

/** What V8 and Node say of a value that a function did not expect. */
const OF_ENGINE =
  /^Cannot (?:read|convert|destructure|set|use)|is not a function|is not iterable|is not a constructor|Received |\(reading /

await t.test(
  'every function of the package says what it takes, if it is called without its argument or with a wrong one',
  async t => {
    const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      exports: Record<string, { default?: string }>
    }
    let called = 0
    for (const [subpath, { default: path }] of Object.entries(exports)) {
      // React calls components and hooks itself.
      if (path === undefined || subpath === './react') continue
      const module = (await import(new URL(`../../${path.slice('./dist/'.length)}`, import.meta.url).href)) as Record<
        string,
        unknown
      >
      for (const [name, exported] of Object.entries(module)) {
        if (typeof exported !== 'function') continue
        for (const given of [[], [null], [5], [{}], [[]], [() => 1]]) {
          called += 1
          const error: unknown = await (async () =>
            Reflect.apply(
              name[0] === name[0]?.toUpperCase() ? (...all: unknown[]) => Reflect.construct(exported, all) : exported,
              undefined,
              given
            ))().then(
            () => undefined,
            (thrown: unknown) => thrown
          )
          const text = error instanceof Error ? error.message : ''
          t.notMatch(text, OF_ENGINE, `${subpath}: ${name}(${given.map(kindOf).join()})`)
        }
      }
    }
    t.ok(called > 350, 'they were called')
  }
)

await t.test('a function that got a wrong argument says what it takes and what it got', t => {
  const rows: [run: () => unknown, message: string][] = [
    [
      () => defineAgent(undefined as Wrong),
      "defineAgent takes an object, not undefined: defineAgent({ card: { name: 'Barista' }, work: async ({ message }) => … })."
    ],
    [
      () => setupWork(undefined as Wrong),
      'setupWork takes options as an object, not undefined: setupWork({ types: { context } }).'
    ],
    [() => file('x' as Wrong), "file takes bytes as a Uint8Array, not a string: file(await readFile('ticket.pdf'))."],
    [
      () => fromPromise(5 as Wrong),
      'fromPromise takes a function that gives a promise, not a number: fromPromise(async ({ input, step }) => …).'
    ],
    [
      () => setupWork({ actors: uncalled }),
      'The actor find is a function, and not the logic of an actor. Call the function that makes it: actors: { find: artifactToRefine() }, or fromPromise(async () => …).'
    ],
    [
      () => setupNegotiation({ actors: uncalled }),
      'The actor find is a function, and not the logic of an actor. Call the function that makes it: actors: { find: artifactToRefine() }, or fromPromise(async () => …).'
    ],
    [
      () => refined(undefined as Wrong, 'x'),
      "refined takes what artifactToRefine gives, not undefined: refined(earlier, 'the new text')."
    ],
    [() => questionOf({} as Wrong), 'questionOf takes a task, not an object: questionOf(task).'],
    [
      () => negotiate({ accept: undefined as Wrong }),
      'negotiate takes one move, an offer or terms: negotiate({ accept: offerIn(message) }).'
    ],
    [
      () => negotiate({ accept: { offerId: 'o' }, propose: { euros: 40 } } as Wrong),
      'negotiate takes one move, an offer or terms: negotiate({ accept: offerIn(message) }).'
    ],
    [
      () => isTerminal('WORKING' as Wrong),
      'isTerminal takes the state of a task, such as \'TASK_STATE_WORKING\', not "WORKING": isTerminal(task.status.state).'
    ],
    [() => offerIn('x' as Wrong), 'offerIn takes a message, which has parts, not "x": offerIn(task.status.message).'],
    [
      () => dataOf({ parts: [] }, undefined as Wrong),
      'A schema of zod, valibot, arktype or the like (Standard Schema) is missing: dataOf(message, z.object({ … })), not undefined.'
    ],
    [
      () => dataOf({ type: 'other' } as Wrong, z.string()),
      'dataOf takes a message or an artifact, not an object. A task has them in status.message, history and artifacts.'
    ]
  ]
  for (const [run, message] of rows) t.throws(run, new TypeError(message), message)
  t.throws(() => new A2AError('Nope' as Wrong), {
    name: 'TypeError',
    message: /^A2AError takes a code, such as 'TaskNotFound', not "Nope": .* There are InvalidParams|There are /
  })
  t.throws(
    () => apiKey({} as Wrong),
    new TypeError(
      "keys has to be the key of each caller, or a function that looks one up, not undefined: apiKey({ keys: { anna: '…' } })."
    )
  )
  t.end()
})
