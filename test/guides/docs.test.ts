import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { tsImport } from 'tsx/esm/api'
import { WebSocket } from 'ws'
import { readEnvelope } from '../../adapters/json-rpc/dispatch.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { CLOSE_CODES } from '../../adapters/websocket/close-codes.ts'
import { PING_INTERVAL_MS } from '../../adapters/websocket/heartbeat.ts'
import { READER_STALL_MS } from '../../adapters/entry/connection.ts'
import { HIGH_WATER_BYTES } from '../../adapters/websocket/outbox.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { ERRORS } from '../../machines/protocol/errors.ts'
import { OPERATIONS } from '../../machines/protocol/operations.ts'
import { RELIABILITY_EXTENSION, WEBSOCKET_BINDING, WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import { defaultLimits } from '../../runtime/access/limits.ts'
import { createRuntime, type Agent } from '../../runtime/index.ts'
import { runCommand } from '../fixtures/cli/run-command.ts'

const binding = readFileSync('docs/websocket-binding.md', 'utf8')

/** The rows of the first table below a text, as cells. */
function tableAfter(text: string): string[][] {
  const from = binding.slice(binding.indexOf(text))
  const [table = ''] = /(?:^\|.*\n)+/m.exec(from) ?? []
  return table
    .trim()
    .split('\n')
    .slice(2)
    .map(row =>
      row
        .split('|')
        .slice(1, -1)
        .map(cell => cell.trim().replaceAll('`', ''))
    )
}

await t.test('the binding has every heading that A2A requires of a custom binding', async t => {
  const headings = Array.from(binding.matchAll(/^## (.*)$/gm), ([, heading]) => heading)
  for (const heading of [
    'Operations',
    'Data mapping',
    'Service parameters',
    'Errors',
    'Streaming',
    'Ordering',
    'Reconnection',
    'Authentication',
    'Agent Card',
    'Security',
    'Samples',
    'Deviations'
  ])
    t.ok(headings.includes(heading), heading)
})

await t.test('its table of errors matches the code', async t => {
  const rows = Object.entries(ERRORS).map(([name, { code, reason, message }]) => [name, String(code), reason, message])
  t.same(tableAfter('| Error | Code |'), rows)
})

await t.test('its table of close codes matches the code', async t => {
  const codes = tableAfter('| Code | Meaning |').map(([code]) => Number(code))
  t.same(new Set(codes), new Set(Object.values(CLOSE_CODES)))
  t.equal(codes.length, Object.keys(CLOSE_CODES).length)
})

await t.test('it names every operation, and the identifiers of the code', async t => {
  for (const method of Object.keys(OPERATIONS)) t.ok(binding.includes(`\`${method}\``), method)
  for (const name of [WEBSOCKET_BINDING, WEBSOCKET_SUBPROTOCOL, RELIABILITY_EXTENSION])
    t.ok(binding.includes(`\`${name}\``), name)
})

const words = binding.replaceAll(/\s+/g, ' ')

await t.test('its numbers match the code', async t => {
  t.match(
    words,
    `${defaultLimits.callsPerConnection} unary calls and ${defaultLimits.streamsPerConnection.toLocaleString('en')} streams`
  )
  t.match(words, `${defaultLimits.framesPerSecond.toLocaleString('en')} frames a second`)
  t.match(words, `default ${defaultLimits.messageBytes / 2 ** 20} MiB`)
  t.match(words, `deeper than ${defaultLimits.jsonDepth}`)
  t.match(words, `pings every ${PING_INTERVAL_MS / 1000} seconds`)
  t.match(words, `more than ${HIGH_WATER_BYTES / 2 ** 20} MiB`)
  t.match(words, `nothing drains for ${READER_STALL_MS / 1000} seconds`)
  t.match(words, `for ${defaultLimits.longPollMs / 1000} seconds at the most`)
})

const samples = binding
  .slice(binding.indexOf('## Samples'))
  .split('\n')
  .filter(line => line.startsWith('{'))

await t.test('the server reads its samples as frames', async t => {
  t.equal(samples.length, 6)
  for (const sample of samples) {
    const { method } = JSON.parse(sample) as { method?: string }
    if (method) t.match(readEnvelope(sample, {}), { kind: 'request', method })
  }
})

await t.test('a stream answers its first sample as the samples show', async t => {
  const { default: agent } = (await tsImport(pathToFileURL(resolve('examples/sailboat.ts')).href, import.meta.url)) as {
    default: Agent
  }
  const runtime = createRuntime({ agent })
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0, http: false })
  t.teardown(() => served.close())
  const socket = new WebSocket(served.url)
  await once(socket, 'open')
  const frames: Record<string, unknown>[] = []
  const ended = new Promise<void>(resolveEnd => {
    socket.on('message', (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as Record<string, unknown>
      frames.push(frame)
      if ('streamEnd' in frame) resolveEnd()
    })
  })
  socket.send(samples[0] ?? '')
  await ended
  socket.close()
  t.same([...new Set(frames.map(({ id }) => id))], [1])
  const kinds = frames.map(({ result }) => (isObject(result) ? Object.keys(result)[0] : 'streamEnd'))
  t.equal(kinds[0], 'task')
  t.same([...new Set(kinds.slice(1))], ['statusUpdate', 'artifactUpdate', 'streamEnd'])
})

const pages = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'bench/README.md',
  'examples/README.md',
  'test/README.md',
  'test/faults/README.md',
  ...readdirSync('docs')
    .filter(name => name.endsWith('.md'))
    .map(name => `docs/${name}`)
]

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsOf(page: string): Set<string> {
  const headings = readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm)
  return new Set(
    Array.from(headings, ([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-')
    )
  )
}

await t.test('every link of the pages has an existing file and heading', async t => {
  for (const page of pages) {
    for (const [, link = ''] of readFileSync(page, 'utf8').matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const [path = '', anchor] = link.split('#')
      const target = path ? join(dirname(page), path) : page
      t.ok(existsSync(target) && (!anchor || anchorsOf(target).has(anchor)), `${page}: ${link}`)
    }
  }
})

await t.test('READMEs of the sources and docs/architecture.md name files of the sources that are there', async t => {
  const paths = ['machines', 'runtime', 'adapters'].flatMap(layer =>
    readdirSync(layer, { recursive: true, encoding: 'utf8' }).map(path => join(layer, path))
  )
  const readmes = paths.filter(path => path.endsWith('/README.md'))
  for (const page of ['docs/architecture.md', ...readmes])
    for (const [, name = ''] of readFileSync(page, 'utf8').matchAll(/`([a-z][\w./-]*\.(?:ts|tsx|css))`/g))
      t.ok(existsSync(name) || paths.some(path => path.endsWith(`/${name}`)), `${page}: ${name}`)
})

await t.test('CONTRIBUTING.md names tables and files of the sources that are there', async t => {
  const [, section = ''] = readFileSync('CONTRIBUTING.md', 'utf8').split('## Where a change goes')
  const names = Array.from(section.matchAll(/`([^`\s]+)`/g), ([, name = '']) => name)
  const sources = ['machines', 'runtime', 'adapters'].flatMap(layer =>
    readdirSync(layer, { recursive: true, encoding: 'utf8' }).map(path => join(layer, path))
  )
  const files = sources.filter(path => path.endsWith('.ts'))
  const text = files.map(path => readFileSync(path, 'utf8')).join('\n')
  for (const name of names.filter(name => /^[A-Z][A-Z_]+$/.test(name))) t.match(text, new RegExp(`\\b${name}\\b`), name)
  for (const name of names.filter(name => /\.(?:ts|css)$|^(?:machines|runtime|adapters)\/.*\/$/.test(name)))
    t.ok(existsSync(name) || sources.some(path => path.endsWith(`/${name}`)), name)
})

await t.test('docs/README.md, from which the site makes its sidebar, lists every page once', async t => {
  const listed = Array.from(
    readFileSync('docs/README.md', 'utf8').matchAll(/^- \[[^\]]+\]\((\w[^)]*)\)/gm),
    ([, link = '']) => link
  )
  for (const name of readdirSync('docs').filter(name => name.endsWith('.md') && name !== 'README.md'))
    t.equal(listed.filter(link => link === name).length, 1, name)
})

/** The words of the last column of the glossary, with the term to write instead. */
const FORBIDDEN = Array.from(
  readFileSync('docs/glossary.md', 'utf8').matchAll(/^\| ([^|]+) \| [^|]+ \| ((?:`[^|`]+`(?:, )?)+) \|$/gm)
).flatMap(([, term = '', words = '']) =>
  Array.from(words.matchAll(/`([^`]+)`/g), ([, word = '']) => ({
    term,
    word,
    found: new RegExp(`(?<![\\w-])${word.replaceAll(' ', '\\s+')}(?![\\w-])`, 'i')
  }))
)

/** What a reader reads of a page: neither blocks of code nor code in a line. */
const proseOf = (page: string) =>
  readFileSync(page, 'utf8')
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/`[^`]*`/g, '')

/** Fails for each forbidden word of a text. */
function hasOnlyTerms(t: Test, name: string, text: string): void {
  for (const { term, word, found } of FORBIDDEN) t.notMatch(text, found, `${name} has "${word}": write "${term}"`)
}

await t.test('the pages use only the terms of docs/glossary.md', async t => {
  t.ok(FORBIDDEN.length > 20)
  for (const page of pages.filter(page => /^README|^docs/.test(page))) hasOnlyTerms(t, page, proseOf(page))
})

await t.test('the help of every command uses only these terms', async t => {
  const { stdout } = await runCommand(['help'])
  hasOnlyTerms(t, 'taskchart help', stdout)
  const names = Array.from(stdout.matchAll(/^ {2}taskchart ([a-z]+) /gm), ([, name = '']) => name)
  t.ok(names.length > 10)
  for (const name of names) hasOnlyTerms(t, `taskchart help ${name}`, (await runCommand(['help', name])).stdout)
})

/**
 * The text of the errors that a source makes: the strings on the lines that call a constructor of an error, without
 * what they interpolate.
 */
function messagesOf(path: string): string[] {
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => /\bnew \w*Error\(/.test(line))
  return lines.flatMap(line =>
    Array.from(line.matchAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/g), ([text]) =>
      text.replaceAll(/\$\{[^}]*\}/g, '')
    )
  )
}

await t.test('the errors of the sources use only these terms', async t => {
  const sources = ['machines', 'runtime', 'adapters'].flatMap(folder =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(name => /(?<!\.d)\.tsx?$/.test(name))
      .map(name => join(folder, name))
  )
  const messages = sources.flatMap(path => messagesOf(path).map(text => ({ path, text })))
  t.ok(messages.length > 300)
  for (const { path, text } of messages)
    for (const { term, word, found } of FORBIDDEN)
      if (found.test(text)) t.fail(`${path} says ${text}: write "${term}" for "${word}"`)
})

/** The sources that a step runs through, in a process of its own: coverage would change its own figures. */
async function sourcesOf(step: 'message' | 'event'): Promise<string[]> {
  const { NODE_V8_COVERAGE: _, ...env } = process.env
  const child = fork(new URL('../fixtures/servers/way.js', import.meta.url), [step], { env, execArgv: [] })
  const ended = once(child, 'exit')
  const [sources] = (await once(child, 'message')) as [string[]]
  await ended
  return sources
}

await t.test('a message and an event run through the files that the guide lists', async t => {
  const guide = readFileSync('docs/architecture.md', 'utf8')
  const from = guide.indexOf('To read it in the code')
  const listed = Array.from(
    guide.slice(from, guide.indexOf('The same way', from)).matchAll(/`([^`]+\.ts)`/g),
    ([, name = '']) => name
  )
  const sources = await sourcesOf('message')
  t.strictSame(listed.toSorted(), sources, 'the table of docs/architecture.md has each file')
  const advice = 'merge two of them, or move what you need into one of them'
  t.ok(sources.length <= 55, `a message runs through at most 55 files, not ${sources.length}: ${advice}`)
  const ofEvent = await sourcesOf('event')
  t.ok(ofEvent.length <= 46, `an event runs through at most 46 files, not ${ofEvent.length}: ${advice}`)
})

await t.test('the guide follows a message and a stream through functions that are there', async t => {
  const guide = readFileSync('docs/architecture.md', 'utf8')
  const hops = Array.from(guide.matchAll(/^\d+\. `([\w#.]+)` (?:in `([^`]+\.ts)`)?/gm))
  t.ok(hops.length > 20)
  let file = ''
  for (const [, name = '', place = file] of hops) {
    file = place
    const [owner = '', method] = name.split('.')
    const text = readFileSync(file, 'utf8')
    t.match(text, new RegExp(`^export (?:async )?(?:class|const|function) ${owner}\\b`, 'm'), `${file} has ${owner}`)
    if (method) t.match(text, new RegExp(`^  (?:async )?${method}\\b[<(]`, 'm'), `${file} has ${name}`)
  }
})
