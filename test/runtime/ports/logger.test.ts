import { runInNewContext } from 'node:vm'
import { inspect } from 'node:util'
import t from 'tap'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { guardedLogger, isSecretName, redactValue, redactedText } from '../../../runtime/ports/logger.ts'
import { cpuMs } from '../../fixtures/processes/cpu-time.ts'
import { recordingLogger, rest, say, start, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'

const SECRET = 'hunter2-4f9a'

await t.test('names of secrets are recognized in every spelling, and other names are not', t => {
  for (const name of [
    'authorization',
    'Authorization',
    'Proxy-Authorization',
    'cookie',
    'set-cookie',
    'token',
    'accessToken',
    'refresh_token',
    'apiKey',
    'API_KEY',
    'x-api-key',
    'password',
    'db.password',
    'secret',
    'clientSecret',
    'credentials',
    'credential',
    'privateKey',
    'auth',
    'jwt'
  ]) {
    t.ok(isSecretName(name), name)
  }
  for (const name of [
    '',
    'taskId',
    'contextId',
    'message',
    'author',
    'key',
    'tokenCount',
    'maxTokens',
    'keyboard',
    'secretary',
    'details'
  ])
    t.notOk(isSecretName(name), name)
  t.end()
})

await t.test('a text loses only its secrets', t => {
  const texts: [string, string][] = [
    [`sent Bearer ${SECRET}, got 401`, 'sent Bearer [redacted], got 401'],
    [`Authorization: Bearer ${SECRET}\nHost: x`, 'Authorization: [redacted]\nHost: x'],
    [`bad credentials: Bearer ${SECRET}`, 'bad credentials: [redacted] [redacted]'],
    [`authorization: Basic ${SECRET} and more\r\nHost: x`, 'authorization: [redacted]\r\nHost: x'],
    [`Cookie: a=${SECRET}; b=${SECRET}`, 'Cookie: [redacted]'],
    [`Basic aHVudGVyOjI= refused`, 'Basic [redacted] refused'],
    [`connect postgres://anna:${SECRET}@db:5432/x failed`, 'connect postgres://[redacted]@db:5432/x failed'],
    [`https://${SECRET}@example.com/`, 'https://[redacted]@example.com/'],
    [
      `GET https://example.com/a?access_token=${SECRET}&page=2#x`,
      'GET https://example.com/a?access_token=[redacted]&page=2#x'
    ],
    [`?api_key=${SECRET}&api-key=${SECRET}`, '?api_key=[redacted]&api-key=[redacted]'],
    [`{"apiKey":"${SECRET} with spaces","page":2}`, '{"apiKey":[redacted],"page":2}'],
    [`"{\\"password\\":\\"${SECRET}\\",\\"page\\":2}"`, '"{\\"password\\":[redacted],\\"page\\":2}"'],
    [`{ token: '${SECRET}', page: 2 }`, '{ token: [redacted], page: 2 }'],
    [`client_secret = ${SECRET}`, 'client_secret = [redacted]'],
    [`token:"${SECRET}`, 'token:[redacted]'],
    [`jwt eyJhbGciOi.eyJzdWIi.c2ln-_ ended`, 'jwt [redacted] ended'],
    ['key sk-proj-abcdefghijklmnop1234 is wrong', 'key [redacted] is wrong'],
    ['Unexpected token < in JSON at position 0', 'Unexpected token < in JSON at position 0'],
    [
      'mail anna@example.com, see http://example.com/@anna and a://b/c@d',
      'mail anna@example.com, see http://example.com/@anna and a://b/c@d'
    ],
    ['', '']
  ]
  for (const [text, shown] of texts) t.equal(redactedText(text), shown)
  t.end()
})

await t.test('redacting a text takes linear time, whatever it contains', async t => {
  for (const piece of [
    'a',
    '://',
    'token:"',
    'token ',
    'Bearer ',
    'eyJa.',
    '\\',
    'authorization="',
    'sk-',
    'Basic aaaa',
    ' ',
    '@',
    "token='"
  ]) {
    const tookMs = await cpuMs(() => {
      for (let i = 0; i < 20; i += 1) redactedText(piece.repeat(100_000))
    })
    t.ok(tookMs < 2000, `${JSON.stringify(piece)}, 2,000,000 times, takes ${tookMs} ms of at most 2000`)
  }
  t.equal(redactedText('x'.repeat(10_000)), `${'x'.repeat(8192)}…`)
})

await t.test('values under names of secrets are removed at any depth, and others are unchanged', t => {
  const details = {
    taskId: 't',
    n: 1,
    yes: true,
    nothing: null,
    none: undefined,
    big: 10n,
    sign: Symbol('s'),
    call: () => SECRET,
    when: new Date(0),
    never: new Date(NaN),
    at: new URL(`https://anna:${SECRET}@x.example/?token=${SECRET}`),
    bytes: Buffer.from(SECRET),
    buffer: new ArrayBuffer(3),
    headers: { Authorization: `Bearer ${SECRET}`, cookie: [SECRET], accept: '*/*', token: null },
    list: [{ password: { deep: SECRET } }, new Set([`Bearer ${SECRET}`])],
    map: new Map<unknown, unknown>([
      ['apiKey', SECRET],
      [1, 'one']
    ])
  }
  t.strictSame(redactValue(details), {
    taskId: 't',
    n: 1,
    yes: true,
    nothing: null,
    none: undefined,
    big: '10',
    sign: 'Symbol(s)',
    call: '[function]',
    when: '1970-01-01T00:00:00.000Z',
    never: 'Invalid Date',
    at: 'https://[redacted]@x.example/?token=[redacted]',
    bytes: `[${SECRET.length} bytes]`,
    buffer: '[3 bytes]',
    headers: { Authorization: '[redacted]', cookie: '[redacted]', accept: '*/*', token: null },
    list: [{ password: '[redacted]' }, ['Bearer [redacted]']],
    map: { apiKey: '[redacted]', 1: 'one' }
  })
  t.end()
})

await t.test('an error stays an error without the secrets of its message, stack, causes and members', t => {
  const cause = new TypeError(`password=${SECRET}`)
  const error = Object.assign(new AggregateError([new Error(`Bearer ${SECRET}`)], `Bearer ${SECRET}`, { cause }), {
    code: 'E1',
    token: SECRET,
    config: { headers: { authorization: SECRET } }
  })
  const shown = redactValue({ error }) as { error: AggregateError & { cause: Error; config: object } }
  t.notMatch(inspect(shown, { depth: 20, showHidden: true }), SECRET)
  t.ok(shown.error instanceof Error)
  t.strictSame(
    [shown.error.name, shown.error.message, shown.error.cause.name, shown.error.cause.message],
    ['AggregateError', 'Bearer [redacted]', 'TypeError', 'password=[redacted]']
  )
  t.match(shown.error, {
    code: 'E1',
    token: '[redacted]',
    config: { headers: { authorization: '[redacted]' } },
    errors: [{ message: 'Bearer [redacted]' }]
  })
  t.match(shown.error.stack, /^AggregateError: Bearer \[redacted\]\n +at .*logger\.test/)
  t.match(redactValue(new DOMException('x', 'AbortError')), { name: 'AbortError', message: 'x' })
  t.match(
    redactValue(Object.create(Error.prototype, { message: { value: 'made by hand' } })),
    new Error('made by hand')
  )
  t.match(redactValue(runInNewContext('new RangeError("elsewhere")')), new Error('elsewhere'))
  t.match(redactValue(new A2AError('Overloaded', 'later')), { name: 'A2AError', code: 'Overloaded', message: 'later' })
  t.equal('cause' in (redactValue(new Error('x')) as Error), false)
  t.end()
})

await t.test('any value gives a result of limited size', t => {
  const cycle: Record<string, unknown> = { name: 'c' }
  cycle.self = cycle
  const own = {
    fine: 1,
    get bad() {
      throw new Error(SECRET)
    }
  }
  const trap = () => {
    throw new Error(SECRET)
  }
  const proxy = new Proxy({}, { ownKeys: trap, getPrototypeOf: trap, get: trap })
  const halfProxy = new Proxy({ a: 1 }, { get: trap })
  const error = Object.defineProperty(new Error('x'), 'message', { get: trap })
  const shared = { a: 1 }
  const polluted = JSON.parse('{"__proto__":{"admin":true}}') as object
  t.strictSame(redactValue({ cycle, own, proxy, halfProxy, twice: [shared, shared] }), {
    cycle: { name: 'c', self: '[circular]' },
    own: { fine: 1, bad: '[unreadable]' },
    proxy: '[unreadable]',
    halfProxy: { a: '[unreadable]' },
    twice: [shared, shared]
  })
  t.match(redactValue(error), { message: '[unreadable]' })
  t.equal((redactValue(polluted) as { admin?: boolean }).admin, undefined)
  let deep: unknown = 'end'
  for (let i = 0; i < 100_000; i += 1) deep = { deep }
  t.strictSame(redactValue(deep), { deep: { deep: { deep: { deep: { deep: { deep: '[more]' } } } } } })
  let chain = new Error('end')
  for (let i = 0; i < 1000; i += 1) chain = new Error(`${i}`, { cause: chain })
  t.ok(inspect(redactValue(chain), { depth: 100 }).length < 20_000)
  t.equal((redactValue(Array.from({ length: 1_000_000 }, (_, i) => i)) as unknown[]).length, 65)
  t.equal(
    Object.keys(redactValue(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i]))) as object).length,
    65
  )
  const wide = Array.from({ length: 64 }, () => Array.from({ length: 64 }, () => ({})))
  t.equal((JSON.stringify(redactValue(wide)).match(/\{\}/g) ?? []).length < 1000, true)
  for (const value of [
    'x',
    1,
    null,
    undefined,
    Object.create(null),
    new (class {
      readonly a = 1
    })(),
    new WeakMap(),
    Promise.resolve(),
    /x/
  ])
    t.doesNotThrow(() => redactValue(value))
  t.end()
})

await t.test('a guarded logger removes secrets, and survives a logger that throws or rejects', async t => {
  const { logger, log } = recordingLogger()
  const guarded = guardedLogger(logger)
  guarded.warn(`Bearer ${SECRET}`, { token: SECRET })
  guarded.error('e', { error: new Error('x') })
  guarded.info?.('nobody hears', {})
  t.match(log, [
    { level: 'warn', message: 'Bearer [redacted]', details: { token: '[redacted]' } },
    { level: 'error', message: 'e' }
  ])
  t.equal(log.length, 2)
  const told: string[] = []
  guardedLogger({ ...logger, info: message => void told.push(message) }).info?.('heard', {})
  t.strictSame(told, ['heard'])
  const throws = () => {
    throw new Error('full')
  }
  for (const bad of [
    { warn: throws, error: throws },
    { warn: async () => throws(), error: async () => throws() }
  ]) {
    guardedLogger(bad).warn('x', {})
    guardedLogger(bad).error('x', {})
  }
  await rest()
})

await t.test('a runtime logs no secrets, and a logger that throws has no effect', async t => {
  const { logger, log } = recordingLogger()
  const bad = () => {
    throw new Error(`Bearer ${SECRET}`, { cause: { headers: { cookie: SECRET } } })
  }
  const one = start(t, { work: bad }, { logger })
  t.equal(taskIn(await one.runtime.sendMessage(say('x'))).status.state, 'TASK_STATE_FAILED')
  t.equal(log.length, 1)
  t.notMatch(inspect(log, { depth: 20 }), SECRET)
  const broken = { warn: bad, error: bad }
  const other = start(t, { work: bad }, { logger: broken })
  t.equal(taskIn(await other.runtime.sendMessage(say('x'))).status.state, 'TASK_STATE_FAILED')
  t.doesNotThrow(() => other.runtime.settings.logger.error('x', {}))
})
